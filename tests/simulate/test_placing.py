"""Which nodes the simulated scheduler samples and how it scores them, where random cases of conformance found faults.

The nodes and scores are those of kube-scheduler v1.37.1.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any, Final

from kubectl_spread.engine.cluster import SimulatedCluster
from kubectl_spread.engine.world import World
from kubectl_spread.kube import features
from tests.builders import HOSTNAME, ZONE, Json, selector
from tests.conformance.placements import ours

_MEBIBYTE: Final = 1024 * 1024


def _node(name: str, *, taints: Sequence[Json] = (), zone: str | None = None) -> Json:
    allocatable = {"cpu": "8", "memory": "8Gi", "pods": "110"}
    labels = {HOSTNAME: name, **({} if zone is None else {ZONE: zone})}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": {"taints": list(taints)},
        "status": {"allocatable": allocatable},
    }


def _pod(name: str, node: str = "", **spec: Any) -> Json:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "web", "controller": True}
    labels = {"app": "web"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "shop", "uid": name, "labels": labels, "ownerReferences": [owner]},
        "spec": {
            "containers": [{"name": "app"}],
            "schedulerName": "default-scheduler",
            "priority": 0,
            "preemptionPolicy": "Never",
            **({"nodeName": node} if node else {}),
            **spec,
        },
        "status": {"phase": "Running" if node else "Pending"},
    }


def _question(nodes: Sequence[Json], queue: Sequence[Json], pods: Sequence[Json] = ()) -> Json:
    replica_set = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": "web", "namespace": "shop", "uid": "web"},
        "spec": {"replicas": 3, "selector": selector({"app": "web"}), "template": {}},
    }
    empty: dict[str, list[Json]] = {"services": [], "claims": [], "volumes": []}
    namespaces = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}]
    return {
        "nodes": list(nodes),
        "pods": list(pods),
        "queue": list(queue),
        "namespaces": namespaces,
        "replicaSets": [replica_set],
        **empty,
    }


def _steps(question: Json, *nodes: str) -> list[Json]:
    """Return the steps of the simulation while each pod of the queue goes to a node."""
    chosen = [
        {"pod": pod["metadata"]["name"], "node": node} for pod, node in zip(question["queue"], nodes, strict=True)
    ]
    steps: list[Json] = ours.answer(question, chosen)["steps"]
    return steps


def _assumed(*queue: Json) -> list[tuple[int, int]]:
    """Return the cpu, in thousandths, and the memory, in mebibytes, that the scores assume for each pod."""
    snapshot = ours._snapshot(_question([_node("a")], queue))
    world = World(snapshot, features.behaviour(37, features.gates(37, {})), None)
    kinds = {pod.name: pod.kind for pod in SimulatedCluster(world, Random(0)).queue()}
    assumed = [kinds[pod["metadata"]["name"]].assumed for pod in queue]
    return [(cpu, memory // _MEBIBYTE) for cpu, memory in assumed]


def test_the_next_search_begins_at_the_first_node_that_was_not_needed() -> None:
    """Of 110 nodes 100 are sampled; five are open to the second pod only, and lie before that node."""
    taint = {"key": "gpu", "effect": "NoSchedule"}
    names = [f"n{number:03}" for number in range(110)]
    nodes = [_node(name, taints=[taint] if 100 <= number < 105 else []) for number, name in enumerate(names)]
    tolerant = _pod("second", tolerations=[{"key": "gpu", "operator": "Exists"}])
    first, second = _steps(_question(nodes, [_pod("first"), tolerant]), "n000", "n001")
    assert first["candidates"] == names[:100]
    assert second["candidates"] == [*names[:95], *names[105:]]


def test_the_requests_of_a_pod_itself_are_not_assumed_while_it_is_placed() -> None:
    own = {"requests": {"cpu": "3", "memory": "3Gi"}}
    assert _assumed(_pod("web", resources=own)) == [(100, 200)]


def test_pods_with_other_init_containers_are_scored_by_what_is_assumed_for_these() -> None:
    sidecars = [{"name": f"i{number}", "restartPolicy": "Always"} for number in range(2)]
    assert _assumed(_pod("web"), _pod("more", initContainers=sidecars)) == [(100, 200), (300, 600)]


def test_nodes_without_a_zone_and_with_an_empty_one_are_one_domain_of_default_constraints() -> None:
    nodes = [_node("a", zone="x"), _node("b", zone=""), _node("c")]
    pods = [_pod(f"old-{number}", node) for number, node in enumerate("aaaaabbcc")]
    (step,) = _steps(_question(nodes, [_pod("new")], pods), "b")
    assert step["scores"]["spread"] == {"a": 46, "b": 104, "c": 200}
