"""Random batches of pods that wait, and the nodes that Karpenter orders for all of them together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from copy import deepcopy
from random import Random
from typing import Final

from kubectl_spread.engine.cluster import SimulatedCluster
from kubectl_spread.engine.nodeclaims import Batch
from kubectl_spread.engine.world import World
from kubectl_spread.kube.api.labels import ZONE
from kubectl_spread.kube.noderequirements import Requirements
from tests.audits import audit
from tests.builders import Json, claim_json, node_class_json, pod_json, requirement, using_claim, volume_json
from tests.conformance.newnodes import cases

RUNS: Final = 2000
"""How often a batch is decided, to find one that decides as Karpenter did where it takes any of several domains."""
_AGAIN: Final = 50
_RARE: Final = 5
_CPU: Final = 8
"""The size of the instance type of the oracle."""
_Orders = Counter[tuple[str, tuple[str, ...], int]]
"""The nodes that are ordered: the NodePool, the zones where each may be, and the number of pods."""


def case(seed: int, index: int) -> Json:
    """Return a case in which pods of one or two kinds wait, and each NodePool has a node, whose size new ones have."""
    random = Random(f"{seed}/{index}/batch")
    question = deepcopy(cases.case(seed, index))
    for pool, node in zip(question["nodePools"], question["nodes"], strict=False):
        node["metadata"]["labels"]["karpenter.sh/nodepool"] = pool["metadata"]["name"]
    names = {node["metadata"]["labels"].get("karpenter.sh/nodepool") for node in question["nodes"]}
    question["nodePools"] = [pool for pool in question["nodePools"] if pool["metadata"]["name"] in names]
    for node in question["nodes"]:
        # The nodes are as large as new ones, of which only this is left.
        node["status"]["allocatable"]["cpu"] = random.choice(("0", "0", "0", "4"))
    (pending,) = question["pending"]
    # Karpenter forgets what it has counted for a constraint when it drops one of several terms of node affinity.
    of_nodes = pending["spec"]["affinity"].get("nodeAffinity", {})
    for required in of_nodes.values():
        del required["nodeSelectorTerms"][1:]
    pending["spec"]["containers"] = [cases.container(random.choice(("1", "3", "5")))]
    question["pending"] = [_copy(pending, number) for number in range(random.randint(2, 6))]
    if random.random() < 0.4:
        other = pod_json("db-new", labels=cases.DATABASE, containers=[cases.container(random.choice(("1", "3", "5")))])
        other["spec"]["affinity"] = cases.affinity(random)
        others = [_copy(other, number) for number in range(random.randint(1, 3))]
        question["pending"] = [*others, *question["pending"]]
    zones = next(iter(question["zones"].values()))
    volumes = random.random() < 0.2
    question["volumeZones"] = {pod["metadata"]["name"]: random.choice(zones) for pod in question["pending"] if volumes}
    return question


def _copy(pod: Json, number: int) -> Json:
    copied, name = deepcopy(pod), f"{pod['metadata']['name']}-{number}"
    copied["metadata"] |= {"name": name, "uid": f"uid-{name}"}
    return copied


def objects(question: Json) -> list[Json]:
    """Return the objects of a case; the nodes have the size of the instance type, and a pod that takes what is full."""
    nodes, fillers = deepcopy(question["nodes"]), []
    for node in nodes:
        name, allocatable = node["metadata"]["name"], node["status"]["allocatable"]
        full = [cases.container(str(_CPU - int(allocatable["cpu"])))]
        node["status"]["allocatable"] = {"cpu": str(_CPU), "memory": "32Gi", "pods": "110"}
        fillers.append(pod_json(f"full-{name}", node=name, labels={"app": "full"}, containers=full))
    pending, volumes = deepcopy(question["pending"]), []
    for pod in pending:
        name = pod["metadata"]["name"]
        if zone := question["volumeZones"].get(name):
            pod["spec"]["volumes"] = [using_claim(name)]
            volumes += [claim_json(name, f"of-{name}"), volume_json(f"of-{name}", requirement(ZONE, "In", zone))]
    zones = next(iter(question["zones"].values()))
    return [*nodes, *question["pods"], *pending, *fillers, *volumes, *question["nodePools"], node_class_json(*zones)]


def difference(question: Json, answer: Json, again: Callable[[], Json]) -> str:
    """Return how the nodes that a batch orders differ from those of Karpenter; "" where they do not.

    What Karpenter orders is what some batches order: it takes any of the zones with the fewest pods. That it takes a
    combination which no batch had may be rare; then it is asked again.
    """
    claims = _claims(answer)
    orders = list[_Orders]()
    for each in _batches(question):
        if each == claims:
            return ""
        orders.append(each)
    if sum(_claims(again()) not in orders for _ in range(_AGAIN)) < _RARE:
        return ""
    if claims.total() not in {each.total() for each in orders}:
        return "another number of nodes"
    pools = [Counter(pool for pool, _, _ in each.elements()) for each in (claims, *orders)]
    return "nodes in other zones, or for other pods" if pools[0] in pools[1:] else "nodes of other pools"


def _claims(answer: Json) -> _Orders:
    return Counter((each["nodePool"], tuple(sorted(each["zones"])), len(each["pods"])) for each in answer["claims"])


def _batches(question: Json) -> Iterator[_Orders]:
    evaluation = audit(*objects(question))
    world = World(evaluation.snapshot, evaluation.context.behaviour, None)
    cluster = SimulatedCluster(world, Random(0))
    for run in range(RUNS):
        cluster.reseed(Random(run))
        batch = Batch(cluster, [])
        batch.ordered(cluster.queue())
        yield Counter((each.pool.metadata.name, _zones(each.requirements), each.pods) for each in batch._claims)


def _zones(requirements: Requirements) -> tuple[str, ...]:
    """Return the zones that a node may be in as the oracle names them: none where requirements do not list them."""
    allowed = requirements.get(ZONE)
    return tuple(sorted(allowed.listed or ())) if allowed else ()
