"""The sections of ``explain`` about a Deployment during a rollout, with a cordoned zone and pending pods."""

from __future__ import annotations

from pathlib import Path

import pytest

from kubectl_spread.render import screen
from kubectl_spread.render.explanation import document
from kubectl_spread.render.terminal import Terminal
from tests.conftest import Golden
from tests.render.uneven import uneven

GOLDEN = Path(__file__).parent / "golden"


@pytest.mark.parametrize(("width", "suffix"), [(None, ""), (80, ".narrow")])
def test_sections_match_their_golden_files(width: int | None, suffix: str, golden: Golden) -> None:
    golden(GOLDEN / f"uneven{suffix}.explain.txt", screen.text(document(uneven()), Terminal(width=width)))


@pytest.mark.parametrize("width", [60, 80])
def test_sections_fit_a_narrow_terminal(width: int) -> None:
    lines = screen.text(document(uneven()), Terminal(width=width)).splitlines()
    assert all(len(line) <= width for line in lines if not line.startswith("    $ "))
