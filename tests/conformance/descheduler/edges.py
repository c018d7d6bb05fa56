"""Edge cases for the descheduler; ``vectors.json`` has the recorded answers of the real one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from tests.builders import HOSTNAME, ZONE, Json, constraint, node_json, pod_json, requirement, selector
from tests.conformance.descheduler.cases import KIND

SPREAD: Final = constraint()
NODES: Final = (node_json("a1"), node_json("b1"), node_json("c1"))
_EVICT: Final[Mapping[str, str]] = {"descheduler.alpha.kubernetes.io/evict": ""}
_DELETED: Final = "2026-09-02T10:00:00Z"
_EMPTY_DIR: Final = [{"name": "v", "emptyDir": {}}]


def cluster(*pods: Sequence[Json], nodes: Sequence[Json] = NODES) -> Json:
    """Return a question about pods; they are named p0, p1 and so on."""
    named = [
        {**pod, "metadata": {**pod["metadata"], "name": f"p{index}"}}
        for index, pod in enumerate(pod for equal_pods in pods for pod in equal_pods)
    ]
    return {"kind": KIND, "nodes": list(nodes), "pods": named}


def pods(node: str, number: int = 1, spread: Sequence[Json] = (SPREAD,), **fields: object) -> list[Json]:
    """Return equal pods of a ReplicaSet, which ``cluster`` names."""
    manifest_fields: Json = {"owner": "ReplicaSet/web", **fields}
    return [pod_json(node=node, constraints=spread, **manifest_fields) for _ in range(number)]


def with_conditions(node: Json, **conditions: str) -> Json:
    """Return a node with conditions."""
    return {
        **node,
        "status": {"conditions": [{"type": kind, "status": status} for kind, status in conditions.items()]},
    }


def spreading(number_on_a: int, number_on_b: int, spread: Sequence[Json], **fields: object) -> Json:
    """Return equal pods on two of three nodes."""
    return cluster(pods("a1", number_on_a, spread, **fields), pods("b1", number_on_b, spread, **fields))


EDGES: Final[Mapping[str, Json]] = {
    "within maxSkew": spreading(1, 1, [SPREAD]),
    "above maxSkew": spreading(2, 1, [SPREAD]),
    "bare pods": cluster(pods("a1", 3, owner=""), pods("b1")),
    "DaemonSet pods": cluster(pods("a1", 3, owner="DaemonSet/web"), pods("b1")),
    "pods with local storage": cluster(pods("a1", 3, volumes=_EMPTY_DIR), pods("b1")),
    "pods with a claim": cluster(
        pods("a1", 3, volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]), pods("b1")
    ),
    "priority below critical": cluster(pods("a1", 3, priority=1_999_999_999), pods("b1")),
    "critical priority": cluster(pods("a1", 3, priority=2_000_000_000), pods("b1")),
    "mirror of a static pod": cluster(
        pods(
            "a1",
            1,
            metadata={"annotations": {"kubernetes.io/config.mirror": "x", "kubernetes.io/config.source": "file"}},
        )
    ),
    "source api": cluster(pods("a1", 3, metadata={"annotations": {"kubernetes.io/config.source": "api"}})),
    "preferably not evicted": cluster(
        pods("a1", 3, metadata={"annotations": {"descheduler.alpha.kubernetes.io/prefer-no-eviction": ""}})
    ),
    "evict annotation": cluster(
        pods("a1", 3, volumes=_EMPTY_DIR, priority=2_000_000_000, metadata={"annotations": _EVICT}, owner="")
    ),
    "terminating": cluster(pods("a1", 3, metadata={"deletionTimestamp": _DELETED}), pods("b1")),
    "terminating with the evict annotation": cluster(
        pods("a1", 3, metadata={"deletionTimestamp": _DELETED, "annotations": _EVICT})
    ),
    "finished": cluster(pods("a1", 2, phase="Succeeded"), pods("a1", 2, phase="Failed"), pods("b1")),
    "no node is ready": cluster(pods("a1", 3), nodes=[with_conditions(node, Ready="False") for node in NODES]),
    "a node is not ready": cluster(
        pods("a1", 2), pods("b1", 1), pods("c1"), nodes=[NODES[0], NODES[1], with_conditions(NODES[2], Ready="Unknown")]
    ),
    "a node under pressure": cluster(
        pods("a1", 2), nodes=[with_conditions(NODES[0], MemoryPressure="True", Ready="True"), NODES[1]]
    ),
    "ScheduleAnyway": spreading(3, 0, [constraint(hard=False)]),
    "minDomains": spreading(1, 1, [constraint(minDomains=5)]),
    "no selector": spreading(3, 0, [{key: value for key, value in SPREAD.items() if key != "labelSelector"}]),
    "no selector, but keys to match": spreading(
        3, 0, [{**{key: value for key, value in SPREAD.items() if key != "labelSelector"}, "matchLabelKeys": ["app"]}]
    ),
    "empty selector": cluster(
        pods("a1", 1, [constraint(selects={})]),
        pods("a1", 2, (), labels={"else": "x"}),
        pods("b1", 1, namespace="other"),
    ),
    "label changed after the merge": cluster(
        pods(
            "a1",
            3,
            [constraint(selects=selector({"app": "web"}, requirement("rev", "In", "r1")), match=["rev"])],
            labels={"app": "web", "rev": "r2"},
        )
    ),
    "a key of another constraint is missing": cluster(
        pods("a1", 2, [SPREAD, constraint(key=HOSTNAME)]), nodes=[NODES[0], node_json("b1", without=[HOSTNAME])]
    ),
    "its own key is missing": cluster(
        pods("a1", 1), pods("b1", 2), nodes=[NODES[0], node_json("b1", without=[ZONE]), NODES[2]]
    ),
    "a pod on a node that the selector excludes": cluster(
        pods("a1", 2, nodeSelector={ZONE: "b"}), pods("b1", 1, nodeSelector={ZONE: "b"})
    ),
    "excluded nodes that affinity policy ignores": spreading(
        2, 1, [constraint(nodeAffinityPolicy="Ignore")], nodeSelector={ZONE: "b"}
    ),
    "a tainted node": cluster(
        pods("a1", 1, [constraint(nodeTaintsPolicy="Honor")]),
        pods("b1", 1, [constraint(nodeTaintsPolicy="Honor")]),
        nodes=[NODES[0], NODES[1], node_json("c1", taints=[{"key": "gpu", "effect": "NoSchedule"}])],
    ),
    "a taint tolerated by comparison": cluster(
        pods(
            "a1",
            2,
            [constraint(nodeTaintsPolicy="Honor")],
            tolerations=[{"key": "gpu", "operator": "Gt", "value": "5"}],
        ),
        nodes=[NODES[0], node_json("b1", taints=[{"key": "gpu", "value": "7", "effect": "NoSchedule"}])],
    ),
    "a cordoned node": cluster(pods("a1", 2), nodes=[NODES[0], {**NODES[1], "spec": {"unschedulable": True}}]),
}
