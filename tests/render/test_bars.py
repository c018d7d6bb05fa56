"""Bars show the minimum and the allowed pods above it, in blocks or in ASCII."""

from __future__ import annotations

import pytest

from kubectl_spread.render import figures
from kubectl_spread.report.model import Row
from tests.audits import audit, reported
from tests.builders import HOSTNAME, constraint, node_json, pod_json


def row(counts: list[int], max_skew: int = 1) -> Row:
    spread_constraint = constraint(key=HOSTNAME, maxSkew=max_skew)
    nodes = [node_json(f"n{index:02}") for index in range(len(counts))]
    pods = [
        pod_json(f"p{index}-{number}", node=f"n{index:02}", constraints=[spread_constraint], owner="Deployment/web")
        for index, count in enumerate(counts)
        for number in range(count)
    ]
    (row,) = reported(audit(*nodes, *pods)).constraints
    return row


def bars_of(row: Row, *, ascii_only: bool = False) -> list[str]:
    assert isinstance(row.domains, list)
    counts = [domain.match_num for domain in row.domains]
    return [figures.lengthwise(count, row, max(counts), ascii_only=ascii_only) for count in counts]


@pytest.mark.parametrize(
    ("counts", "max_skew", "blocks", "plain"),
    [
        ([2, 1, 0], 1, ["▓█", "▓", "·"], ["+#", "+", "."]),
        ([3, 1, 1], 1, ["▒▓█", "▒·", "▒·"], ["=+#", "=.", "=."]),
        ([2, 2, 2], 1, ["▒▒·"] * 3, ["==."] * 3),
        ([5, 2, 3], 2, ["▒▒▓▓█", "▒▒··", "▒▒▓·"], ["==++#", "==..", "==+."]),
    ],
)
def test_a_character_is_a_pod(counts: list[int], max_skew: int, blocks: list[str], plain: list[str]) -> None:
    constraint_row = row(counts, max_skew)
    assert bars_of(constraint_row) == blocks
    assert bars_of(constraint_row, ascii_only=True) == plain


def test_the_legend_has_the_characters_of_bars_with_pods_above_the_minimum() -> None:
    assert figures.legend([row([2, 1, 0]), row([2, 2])], ascii_only=False) == (
        "Bars: ▓ up to maxSkew above it, █ more, · free."
    )
    assert figures.legend([row([3, 2])], ascii_only=True) == (
        "Bars: = up to the global minimum, + up to maxSkew above it, . free."
    )
    assert figures.legend([row([2, 2, 2])], ascii_only=False) == ""


def test_long_bars_are_scaled_to_the_largest() -> None:
    assert bars_of(row([96, 48, 1]), ascii_only=True) == ["=" + "#" * 23, "=" + "#" * 11, "="]
    assert max(map(len, bars_of(row([3, 2, 1], 1000)))) <= figures.WIDTH


def test_a_large_max_skew_does_not_flatten_bars() -> None:
    assert bars_of(row([3, 2, 1], 1000), ascii_only=True) == ["=++...", "=+....", "=....."]
    assert figures.side_by_side(row([4, 2, 1], 1000), ascii_only=True) == "=:.|O"


@pytest.mark.parametrize(
    ("counts", "blocks", "plain"),
    [
        ([2, 1, 0], "█▄·|▄", "O=_|="),
        ([1, 1, 1], "▄▄▄|█", "===|O"),
        ([8, 1], "█▁|▂", "O.|:"),
        ([1] * 24, "▄" * 24 + "|█", "=" * 24 + "|O"),
        ([1] * 25, "", ""),
    ],
)
def test_a_character_is_a_domain(counts: list[int], blocks: str, plain: str) -> None:
    constraint_row = row(counts)
    assert figures.side_by_side(constraint_row, ascii_only=False) == blocks
    assert figures.side_by_side(constraint_row, ascii_only=True) == plain
