"""``kubectl spread`` on real terminals: its lines fit the width."""

from __future__ import annotations

import pytest

from tests import generated
from tests.terminals import printed


@pytest.mark.parametrize(
    ("columns", "row"),
    [
        (60, "deploy/api    zone hard      3 3 (0..2)    2   1 hard-skew"),
        (80, "deploy/api     zone  hard       3  a=2 b=1 c=0     2    1  hard-skew"),
    ],
)
def test_the_sample_fits(columns: int, row: str) -> None:
    lines = printed(columns, *generated.CHECK, "--color=never").splitlines()
    assert row in lines
    assert max(map(len, lines)) <= columns


def test_the_rules_fit() -> None:
    lines = printed(60, "rules", "--color=never").splitlines()
    assert max(map(len, lines)) <= 60
    assert not any("…" in line for line in lines)
