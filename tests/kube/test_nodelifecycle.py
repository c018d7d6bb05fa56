"""Zones of nodes, and how fast their pods are evicted."""

from __future__ import annotations

import pytest

from kubectl_spread.kube import nodelifecycle
from kubectl_spread.kube.api.labels import REGION, ZONE, zone_of
from kubectl_spread.kube.api.types import Node, NodeCondition, NodeSpec, NodeStatus, ObjectMeta, Taint, Toleration


@pytest.mark.parametrize(
    ("nodes", "not_ready", "seconds"),
    [
        pytest.param(5, 5, 10, id="all"),
        pytest.param(3, 2, 10, id="fewer than three"),
        pytest.param(4, 3, None, id="three of four"),
        pytest.param(20, 11, None, id="exactly 55 %"),
        pytest.param(20, 10, 10, id="less than 55 %"),
        pytest.param(50, 28, None, id="most of a zone of 50"),
        pytest.param(51, 29, 100, id="most of a larger zone"),
        pytest.param(51, 51, 10, id="all of a larger zone"),
    ],
)
def test_the_time_between_two_nodes(nodes: int, not_ready: int, seconds: float | None) -> None:
    assert nodelifecycle.ZoneState(nodes, not_ready).interval == seconds


@pytest.mark.parametrize(
    ("labels", "zone"),
    [
        ({}, ("", "")),
        ({ZONE: "a"}, ("", "a")),
        ({REGION: "r"}, ("r", "")),
        ({REGION: "r", ZONE: "a", "failure-domain.beta.kubernetes.io/zone": "old"}, ("r", "old")),
    ],
)
def test_a_zone_is_a_region_and_a_zone(labels: dict[str, str], zone: tuple[str, str]) -> None:
    assert zone_of(Node(metadata=ObjectMeta(labels=labels))) == zone


def test_a_node_is_ready_by_its_condition_or_its_taints() -> None:
    conditions = (NodeCondition(type="DiskPressure", status="False"), NodeCondition(type="Ready", status="Unknown"))
    assert not nodelifecycle.is_ready(Node(status=NodeStatus(conditions=conditions)))
    tainted = NodeSpec(taints=(Taint(key="node.kubernetes.io/not-ready", effect="NoSchedule"),))
    assert not nodelifecycle.is_ready(Node(spec=tainted))
    assert nodelifecycle.is_ready(Node(spec=tainted, status=NodeStatus(conditions=(NodeCondition("Ready", "True"),))))
    assert nodelifecycle.is_ready(Node())


@pytest.mark.parametrize(
    ("tolerations", "seconds"),
    [
        pytest.param([], 300, id="that of admission"),
        pytest.param([Toleration(operator="Exists")], None, id="without end"),
        pytest.param(
            [Toleration(key=nodelifecycle.UNREACHABLE, operator="Exists", toleration_seconds=30)], 30, id="own"
        ),
        pytest.param([Toleration(operator="Exists", effect="NoSchedule")], 300, id="of another effect"),
        pytest.param(
            [Toleration(operator="Exists", toleration_seconds=-1), Toleration(operator="Exists")], 0, id="the first one"
        ),
    ],
)
def test_how_long_a_pod_stays(tolerations: list[Toleration], seconds: float | None) -> None:
    assert nodelifecycle.tolerated_seconds(tolerations, comparison_operators=False) == seconds
