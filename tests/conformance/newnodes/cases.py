"""Random clusters with NodePools, and a pod that waits because no node has room."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Final

from tests.builders import (
    ZONE,
    Json,
    constraint,
    node_class_json,
    node_json,
    node_pool_json,
    pod_json,
    requirement,
)

_ZONES: Final = ("a", "b", "c", "d")
_TAINT: Final = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}
_TOLERATION: Final = {"key": "gpu", "operator": "Exists"}
_TEAM: Final = "example.com/team"
PENDING: Final = "web-new"
"""The name of the pod that waits."""


def case(seed: int, index: int) -> Json:
    """Return the case with a number, as a question to the oracle; ``zones`` are those of the class of all pools."""
    random = Random(f"{seed}/{index}")
    zones = _some(random, _ZONES, 1)
    pools = [_pool(random, f"pool-{number}") for number in range(random.randint(1, 3))]
    nodes = [_node(random, number, pools) for number in range(random.randint(1, 6))]
    constraints = _constraints(random)
    rows = [{**each} for each in constraints]
    bound = [
        pod_json(f"web-{number}", node=random.choice(nodes)["metadata"]["name"], constraints=rows)
        for number in range(random.randint(0, 8))
    ]
    pending = pod_json(PENDING, constraints=rows, containers=[_container("1")], **_placement(random))
    for pod in (*bound, pending):
        pod["spec"].setdefault("containers", [_container("0")])
    return {
        "nodePools": pools,
        "zones": {pool["metadata"]["name"]: zones for pool in pools},
        "nodes": nodes,
        "pods": bound,
        "pending": [pending],
    }


def objects(question: Json) -> list[Json]:
    """Return the objects of a case, with the class of its nodes."""
    zones = next(iter(question["zones"].values()))
    return [
        *question["nodes"],
        *question["pods"],
        *question["pending"],
        *question["nodePools"],
        node_class_json(*zones),
    ]


def _some(random: Random, values: Sequence[str], least: int) -> list[str]:
    return sorted(random.sample(values, random.randint(least, len(values))))


def _container(cpu: str) -> Json:
    return {"name": "web", "image": "registry.example/web:1", "resources": {"requests": {"cpu": cpu}}}


def _pool(random: Random, name: str) -> Json:
    requirements = []
    if random.random() < 0.6:
        requirements.append(requirement(ZONE, random.choice(("In", "In", "NotIn")), *_some(random, _ZONES, 1)))
    if random.random() < 0.3:
        requirements.append(requirement(_TEAM, random.choice(("In", "NotIn")), *_some(random, ("x", "y"), 1)))
    labels = {_TEAM: random.choice("xy")} if random.random() < 0.2 else {}
    return node_pool_json(name, *requirements, labels=labels, taints=[_TAINT] if random.random() < 0.3 else [])


def _node(random: Random, number: int, pools: Sequence[Json]) -> Json:
    """Return a node without room, some of which belong to a pool."""
    zone = random.choice(_ZONES)
    pool = {"karpenter.sh/nodepool": random.choice(pools)["metadata"]["name"]} if random.random() < 0.7 else {}
    taints = [_TAINT] if random.random() < 0.2 else []
    node = node_json(f"{zone}{number}", labels=pool, taints=taints)
    node["status"] = {"allocatable": {"cpu": "0", "memory": "8Gi", "pods": "110"}}
    return node


def _constraints(random: Random) -> list[Json]:
    keys = random.choice(((ZONE,), (ZONE,), (ZONE, "kubernetes.io/hostname"), ("kubernetes.io/hostname",), ()))
    return [_constraint(random, key) for key in keys]


def _constraint(random: Random, key: str) -> Json:
    hard = random.random() < 0.8
    return constraint(
        key=key,
        hard=hard,
        max_skew=random.choice((1, 1, 2, 3)),
        minDomains=random.choice((None, None, 2, 3, 4)) if hard else None,
        nodeTaintsPolicy=random.choice((None, "Honor", "Ignore")),
        nodeAffinityPolicy=random.choice((None, "Honor", "Ignore")),
    )


def _placement(random: Random) -> Json:
    """Return the node selector, affinity and tolerations of the pod that waits."""
    placement: Json = {}
    chance = random.random()
    if chance < 0.15:
        placement["nodeSelector"] = {ZONE: random.choice(_ZONES)}
    elif chance < 0.3:
        placement["nodeSelector"] = {_TEAM: random.choice("xy")}
    elif chance < 0.5:
        operator = random.choice(("In", "NotIn"))
        terms = [{"matchExpressions": [requirement(ZONE, operator, *_some(random, _ZONES, 1))]}]
        selector = {"nodeSelectorTerms": terms}
        placement["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": selector}}
    if random.random() < 0.5:
        placement["tolerations"] = [_TOLERATION]
    return placement
