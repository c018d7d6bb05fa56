"""Bars show the minimum and the allowed pods above it."""

from __future__ import annotations

import msgspec
import pytest

from kubectl_spread.render import figures, screen, table
from kubectl_spread.render.document import Document, Table
from kubectl_spread.render.table import Layout
from kubectl_spread.render.terminal import Cell, Column, Terminal
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


def bars_of(row: Row) -> list[str]:
    assert isinstance(row.domains, list)
    counts = [domain.match_num for domain in row.domains]
    return [figures.lengthwise(count, row, max(counts)) for count in counts]


@pytest.mark.parametrize(
    ("counts", "max_skew", "bars"),
    [
        ([2, 1, 0], 1, ["▓█", "▓", "·"]),
        ([3, 1, 1], 1, ["▒▓█", "▒·", "▒·"]),
        ([2, 2, 2], 1, ["▒▒·"] * 3),
        ([5, 2, 3], 2, ["▒▒▓▓█", "▒▒··", "▒▒▓·"]),
    ],
)
def test_a_character_is_a_pod(counts: list[int], max_skew: int, bars: list[str]) -> None:
    assert bars_of(row(counts, max_skew)) == bars


def test_a_terminal_without_unicode_has_bars_of_ascii() -> None:
    columns = [Column(f"bar {index}") for index in range(2)]
    shapes = bars_of(row([5, 2, 3], 2))
    answer = Document(
        command="check",
        title="",
        cluster="",
        header=[],
        tables=[Table("", columns, [[Cell(shape), Cell("x")] for shape in shapes])],
    )
    lines = screen.text(answer, Terminal(ascii=True)).splitlines()
    assert [line.split()[0] for line in lines[1:]] == ["==++#", "==..", "==+."]


def test_the_legend_has_the_characters_of_bars_with_pods_above_the_minimum() -> None:
    assert figures.legend([row([2, 1, 0]), row([2, 2])]) == "Bars: ▓ up to maxSkew above it, █ more, · free."
    assert figures.legend([row([3, 2])]) == "Bars: ▒ up to the global minimum, ▓ up to maxSkew above it, · free."
    assert figures.legend([row([2, 2, 2])]) == ""


def test_long_bars_are_scaled_to_the_largest() -> None:
    assert bars_of(row([96, 48, 1])) == ["▒" + "█" * 23, "▒" + "█" * 11, "▒"]
    assert max(map(len, bars_of(row([3, 2, 1], 1000)))) <= figures.WIDTH


def test_a_large_max_skew_does_not_flatten_bars() -> None:
    assert bars_of(row([3, 2, 1], 1000)) == ["▒▓▓···", "▒▓····", "▒·····"]


@pytest.mark.parametrize(("number", "domains"), [(5, "n00=1 n01=1"), (6, "6 (1..1)")])
def test_a_wide_table_has_the_counts_of_many_domains(number: int, domains: str) -> None:
    counted = row([1] * number)
    report = msgspec.structs.replace(reported(audit()), constraints=[counted])
    assert domains in table.check(report, Layout(show="all"), Terminal())
    wide = table.check(report, Layout(wide=True), Terminal())
    assert all(f"n{index:02}=1" in wide for index in range(number))
