"""The marks of changes from one report to the next, and the redrawing of the screen."""

from __future__ import annotations

import re

import msgspec
import pytest

from kubectl_spread.cli import watch
from kubectl_spread.render import table
from kubectl_spread.render.changes import Changes, lasting
from kubectl_spread.render.table import Layout
from kubectl_spread.render.terminal import Terminal
from kubectl_spread.report.model import Report
from tests.audits import audit, reported
from tests.builders import Json, constraint, node_json, pod_json
from tests.render.identified import live

NODES = [node_json(f"{zone}1", zone=zone) for zone in "abc"]


def web(zones: str, name: str = "web") -> list[Json]:
    owner = f"Deployment/{name}"
    return [
        pod_json(f"{name}-{index}", node=f"{zone}1", constraints=[constraint()], owner=owner)
        for index, zone in enumerate(zones)
    ]


def report(*pods: Json, nodes: int = 3) -> Report:
    return reported(audit(*NODES[:nodes], *pods))


EVEN = report(*web("abc"))
UNEVEN = report(*web("aab"))


def marks(earlier: Report | None, later: Report, width: int | None = None) -> dict[str, str]:
    text = table.check(later, Layout(changes=Changes(earlier, later)), Terminal(width=width))
    marked_lines = [line for line in text.splitlines() if re.match(r"[ +*] (deploy/|warning)", line)]
    return {line[2:].split()[0]: line[0] for line in marked_lines}


@pytest.mark.parametrize(
    ("earlier", "later", "mapping", "summary"),
    [
        (None, UNEVEN, {"deploy/web": " ", "warning": " "}, ""),
        (UNEVEN, UNEVEN, {"deploy/web": " ", "warning": " "}, ""),
        (EVEN, UNEVEN, {"deploy/web": "*", "warning": "+"}, "rows: 1 changed; findings: 1 new"),
        (UNEVEN, EVEN, {"deploy/web": "*"}, "rows: 1 changed; findings: 1 gone"),
        (
            UNEVEN,
            report(*web("aaab")),
            {"deploy/web": "*", "warning": "*"},
            "pods 3 -> 4; rows: 1 changed; findings: 1 changed",
        ),
        (
            EVEN,
            report(*web("abc"), *web("abc", "api")),
            {"deploy/api": "+", "deploy/web": "*"},
            "pods 3 -> 6; rows: 1 new, 1 changed; findings: 2 new",
        ),
        (EVEN, report(), {}, "pods 3 -> 0; rows: 1 gone"),
        (report(*web("ab"), nodes=2), report(*web("ab")), {"deploy/web": "*"}, "nodes 2 -> 3; rows: 1 changed"),
    ],
    ids=["first", "same", "worse", "better", "more", "another", "gone", "node"],
)
def test_rows_and_findings_have_marks(
    earlier: Report | None, later: Report, mapping: dict[str, str], summary: str
) -> None:
    assert marks(earlier, later) == mapping
    assert marks(earlier, later, width=60) == mapping
    assert Changes(earlier, later).summary() == summary


@pytest.mark.parametrize("width", [60, 80])
def test_a_marked_table_fits_the_terminal(width: int) -> None:
    text = table.check(UNEVEN, Layout(changes=Changes(EVEN, UNEVEN)), Terminal(width=width))
    assert max(map(len, text.splitlines())) <= width


def test_a_marked_table_is_the_table_two_columns_to_the_right() -> None:
    plain = table.check(UNEVEN, Layout(), Terminal()).splitlines()
    marked = table.check(UNEVEN, Layout(changes=Changes(None, UNEVEN)), Terminal()).splitlines()
    moved = [line.removeprefix("  ") for line in marked]
    assert [line.lstrip() for line in moved] == [line.lstrip() for line in plain]


def test_revisions_and_the_time_are_not_changes() -> None:
    assert lasting(EVEN).cluster.resource_versions == {}
    live_report = msgspec.structs.replace(EVEN, cluster=live(EVEN.cluster))
    later = msgspec.structs.replace(live_report.cluster, read_at="2026-11-22T05:24:08Z")
    assert lasting(live_report) == lasting(msgspec.structs.replace(live_report, cluster=later))
    assert lasting(live_report) != lasting(EVEN)
    assert lasting(EVEN).constraints == EVEN.constraints


@pytest.mark.parametrize(
    ("height", "visible_lines"),
    [
        (6, ["0", "1", "2", "3", "4", "5"]),
        (5, ["0", "1", "2", "... 2 more lines", "5"]),
        (4, ["0", "1", "... 3 more lines", "5"]),
        (1, ["0", "1", "... 3 more lines", "5"]),
    ],
)
def test_lines_that_do_not_fit_are_counted(height: int, visible_lines: list[str]) -> None:
    assert watch.fitted([str(number) for number in range(6)], height) == visible_lines


def test_a_frame_clears_only_the_rest_of_lines_and_screen() -> None:
    assert watch.frame(["one", "two"], 24) == "\x1b[Hone\x1b[K\ntwo\x1b[K\n\x1b[J"
