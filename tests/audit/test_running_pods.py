"""Running pods: how many of a workload's pods run in each zone, and on the node with the most of them."""

from __future__ import annotations

from kubectl_spread.diagnosis.exposure import RunningPods, running_pods
from kubectl_spread.kube.api.objects import ObjectRef
from kubectl_spread.report.model import NodesKnown
from tests.audits import audit, deployment, without
from tests.builders import ZONE, Json, node_json, pod_json

WEB = ObjectRef("default", "Deployment", "web")
NODES = [node_json("a1"), node_json("a2"), node_json("b1"), without(node_json("plain"), "metadata", "labels", ZONE)]


def web(*nodes: str, owner: str = "Deployment/web") -> list[Json]:
    """Return a pod of one workload on each node; "" leaves it pending."""
    return [pod_json(f"web-{number}", node=node, owner=owner) for number, node in enumerate(nodes)]


def of(*objects: Json, nodes: NodesKnown | None = None) -> list[RunningPods]:
    return list(running_pods(audit(*objects, nodes=nodes)))


def test_pods_are_counted_by_zone_and_on_the_fullest_node() -> None:
    pods = web("a1", "a1", "a2", "b1", "plain", "")
    assert of(*pods, *NODES) == [RunningPods(WEB, 5, (("a", 3), ("b", 1)), 2)]


def test_pods_that_terminate_or_are_on_unknown_nodes_do_not_run() -> None:
    leaving = pod_json("leaving", node="a1", owner="Deployment/web")
    leaving["metadata"]["deletionTimestamp"] = "2026-11-01T09:00:00Z"
    assert of(*web("gone", "b1"), leaving, *NODES) == [RunningPods(WEB, 1, (("b", 1),), 1)]


def test_a_workload_without_running_pods_has_zero() -> None:
    assert of(deployment("web"), *NODES) == [RunningPods(WEB, 0, (), 0)]


def test_pods_that_do_not_stand_in_for_each_other_are_left_out() -> None:
    assert of(*web("a1", "b1", owner="DaemonSet/web"), pod_json("bare", node="a1"), *NODES) == []


def test_without_nodes_it_is_unknown_which_pods_run() -> None:
    assert of(*web("a1", "b1")) == []
    assert of(*web("a1", "b1"), nodes="inferred") == []
