"""``check`` of named workloads ends with whether they survive the loss of any zone."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from tests.audits import deployment
from tests.builders import ZONE, Json, constraint, node_json, pod_json
from tests.cli.test_check import run

HONOR = constraint(nodeTaintsPolicy="Honor")


def check(*arguments: str, constraints: list[Json], without: Sequence[str] = (), unread: int = 0) -> str:
    """Return the last line of a check of three replicas, one in each zone; ``unread`` nodes have unknown room."""
    zones = "abc"
    web = deployment(constraints=constraints)
    web["spec"] |= {"replicas": 3, "selector": {"matchLabels": {"app": "web"}}}
    pods = [pod_json(f"web-{zone}", node=f"{zone}1", owner="Deployment/web", constraints=constraints) for zone in zones]
    nodes = [node_json(f"{zone}{number}", without=without) for zone in zones for number in (1, 2)]
    for node in nodes[unread:]:
        node["status"] = {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}}
    objects = [web, *pods, *nodes]
    capture = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
    return run("check", *arguments, "-f", "-", "--server-version", "1.37", stdin=capture).stdout.splitlines()[-1]


@pytest.mark.parametrize(
    ("constraints", "answer"),
    [
        ([HONOR], "Survives the loss of any zone: yes"),
        (
            [constraint()],
            "Survives the loss of any zone: no (zone a: 2 of 3): kubectl spread recommend deploy/web -n default",
        ),
    ],
)
def test_the_answer_is_that_of_a_simulated_outage(constraints: list[Json], answer: str) -> None:
    """The nodes of a lost zone stay, and hold the minimum unless the constraint leaves tainted nodes out."""
    assert check("deploy/web", constraints=constraints) == answer


def test_nothing_is_said_without_the_name_of_a_workload() -> None:
    assert "Survives" not in check("-A", constraints=[HONOR])


def test_nothing_is_said_without_zones_or_with_unknown_room() -> None:
    assert "Survives" not in check("deploy/web", constraints=[HONOR], without=[ZONE])
    assert "Survives" not in check("deploy/web", constraints=[HONOR], unread=1)
