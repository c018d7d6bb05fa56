"""The redrawing of the screen of ``--watch``, and what it is not redrawn for."""

from __future__ import annotations

import msgspec
import pytest

from kubectl_spread.cli import watch
from kubectl_spread.cli.watch import lasting
from tests.audits import audit, reported
from tests.builders import constraint, node_json, pod_json
from tests.render.identified import live

NODES = [node_json(f"{zone}1", zone=zone) for zone in "abc"]


EVEN = reported(
    audit(*NODES, *(pod_json(f"web-{zone}", node=f"{zone}1", constraints=[constraint()]) for zone in "abc"))
)


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
