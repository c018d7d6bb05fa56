"""Whether nodes could be made for the pods that would wait after an event."""

from __future__ import annotations

from typing import Any

from tests.builders import ZONE, Json, node_pool_json, requirement
from tests.simulate.clusters import deployment, nodes, simulated, zone_constraint

HARD: dict[str, Any] = {"topologySpreadConstraints": [zone_constraint("web")]}
CLUSTER = [*nodes("a1", "b1", "c1"), *deployment("web", ["a1", "b1", "c1"], **HARD)]


def message(*pools: Json, events: tuple[str, ...]) -> str:
    """Return the message of the only finding."""
    (finding,) = simulated([*CLUSTER, *pools], *events)["findings"]
    assert finding["severity"] == "error"
    return str(finding["message"])


def pool(*zones: str) -> Json:
    return node_pool_json("default", requirement(ZONE, "In", *zones))


def test_a_lost_zone_counts_so_only_there_a_node_may_be_made() -> None:
    end = "NodePool default may make a node only in zone a, if an instance type fits and is available there."
    assert message(pool("a", "b", "c"), events=("--lose", "zone=a")).endswith(f" {end}")


def test_no_node_is_made_where_the_pool_has_no_such_zone() -> None:
    text = message(pool("b", "c"), events=("--lose", "zone=a"))
    assert " No NodePool can make a node: NodePool default refuses because the constraint on zone (maxSkew 1) " in text


def test_without_node_pools_nothing_is_said() -> None:
    assert "NodePool" not in message(events=("--lose", "zone=a"))


def test_nothing_is_said_where_no_pod_waits() -> None:
    assert simulated([*CLUSTER, pool("a")], "--scale", "deploy/web=2")["findings"] == []


def test_nothing_is_said_of_all_pods_that_is_true_of_some() -> None:
    """The pod that waits already tolerates the taint of the NodePool; the template no longer does."""
    cluster = [*nodes("a1", "b1", "c1"), *deployment("web", ["b1", "c1", ""], **HARD)]
    cluster[0]["spec"] = {"unschedulable": True}
    cluster[-1]["metadata"]["creationTimestamp"] = "2026-08-01T10:00:00Z"
    cluster[-1]["spec"]["tolerations"] = [{"key": "gpu", "operator": "Exists"}]
    tainted = node_pool_json("default", taints=[{"key": "gpu", "value": "yes", "effect": "NoSchedule"}])
    (finding,) = simulated([*cluster, tainted], "--drain", "zone=b")["findings"]
    assert finding["message"].endswith(" is not the same for all of them, or in all runs.")
