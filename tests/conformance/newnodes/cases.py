"""Random clusters with NodePools, and a pod that waits because no node has room."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any, Final

from tests.builders import (
    HOSTNAME,
    ZONE,
    Json,
    constraint,
    node_class_json,
    node_json,
    node_pool_json,
    pod_json,
    requirement,
    selector,
    term,
)

_ZONES: Final = ("a", "b", "c", "d")
_TAINT: Final = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}
_TOLERATION: Final = {"key": "gpu", "operator": "Exists"}
_TEAM: Final = "example.com/team"
_WITH_AFFINITY: Final = 0.5
"""The share of the kinds of pods that have terms of affinity or anti-affinity."""
_REQUIRED: Final = 0.75
DATABASE: Final = {"app": "db"}
"""The labels of the other pods."""
PENDING: Final = "web-new"
"""The name of the pod that waits."""


def case(seed: int, index: int) -> Json:
    """Return the case with a number, as a question to the oracle; ``zones`` are those of the class of all pools."""
    random = Random(f"{seed}/{index}")
    zones = _some(random, _ZONES, 1)
    pools = [_pool(random, f"pool-{number}") for number in range(random.randint(1, 3))]
    nodes = [_node(random, number, pools) for number in range(random.randint(1, 6))]
    rows = _constraints(random)
    between = affinity(random) if random.random() < _WITH_AFFINITY else {}
    others = affinity(random) if random.random() < _WITH_AFFINITY else {}
    bound = [
        *(_bound(random, f"web-{number}", nodes, between, constraints=rows) for number in range(random.randint(0, 8))),
        *(_bound(random, f"db-{number}", nodes, others, labels=DATABASE) for number in range(random.randint(0, 3))),
    ]
    pending = pod_json(PENDING, constraints=rows, containers=[container("1")], **_placement(random))
    pending["spec"]["affinity"] = {**pending["spec"].get("affinity", {}), **between}
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


def _bound(random: Random, name: str, nodes: Sequence[Json], between: Json, **fields: Any) -> Json:
    """Return a pod that is on one of the nodes, and needs no room."""
    node = random.choice(nodes)["metadata"]["name"]
    return pod_json(name, node=node, affinity=between, containers=[container("0")], **fields)


def affinity(random: Random) -> Json:
    """Return one or two terms of affinity or anti-affinity of a pod to pods of both kinds, most of them required."""
    chosen: Json = {}
    for _ in range(random.choice((1, 1, 2))):
        selects = selector({"app": random.choice(("web", "db"))})
        of_pods = term(key=random.choice((ZONE, ZONE, HOSTNAME)), selects=selects)
        terms = chosen.setdefault(random.choice(("podAffinity", "podAntiAffinity", "podAntiAffinity")), {})
        if random.random() < _REQUIRED:
            terms.setdefault("requiredDuringSchedulingIgnoredDuringExecution", []).append(of_pods)
        else:
            weighted = {"weight": random.randint(1, 100), "podAffinityTerm": of_pods}
            terms.setdefault("preferredDuringSchedulingIgnoredDuringExecution", []).append(weighted)
    return chosen


def _some(random: Random, values: Sequence[str], least: int) -> list[str]:
    return sorted(random.sample(values, random.randint(least, len(values))))


def container(cpu: str) -> Json:
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
        expressions = [requirement(ZONE, operator, *_some(random, _ZONES, 1)) for _ in range(random.choice((1, 1, 2)))]
        terms = [{"matchExpressions": [each]} for each in expressions]
        selector = {"nodeSelectorTerms": terms}
        placement["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": selector}}
    if random.random() < 0.5:
        placement["tolerations"] = [_TOLERATION]
    return placement
