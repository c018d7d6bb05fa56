"""Random batches of pods that wait, and the nodes that Karpenter makes for all of them together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from copy import deepcopy
from random import Random
from typing import Final

from kubectl_spread.engine.events import Watch
from kubectl_spread.engine.provisioning import Provisioning
from kubectl_spread.engine.runs import RunResult, Simulation
from kubectl_spread.engine.world import World
from tests.audits import audit
from tests.builders import Json, node_class_json, pod_json
from tests.conformance.newnodes import cases

RUNS: Final = 20
_NO_TYPE: Final = "no instance type met the scheduling requirements"
"""What Karpenter says where it chose a zone that has no instance type."""
_CPU: Final = 8
"""The size of the instance type of the oracle."""


def case(seed: int, index: int) -> Json:
    """Return a case in which several equal pods wait, and each NodePool has a node, whose size new ones have."""
    random = Random(f"{seed}/{index}/batch")
    question = deepcopy(cases.case(seed, index))
    for pool, node in zip(question["nodePools"], question["nodes"], strict=False):
        node["metadata"]["labels"]["karpenter.sh/nodepool"] = pool["metadata"]["name"]
    names = {node["metadata"]["labels"].get("karpenter.sh/nodepool") for node in question["nodes"]}
    question["nodePools"] = [pool for pool in question["nodePools"] if pool["metadata"]["name"] in names]
    (pending,) = question["pending"]
    pending["spec"]["containers"][0]["resources"]["requests"]["cpu"] = random.choice(("1", "3", "5"))
    question["pending"] = [_copy(pending, number) for number in range(random.randint(2, 6))]
    return question


def _copy(pod: Json, number: int) -> Json:
    copied = deepcopy(pod)
    copied["metadata"] |= {"name": f"{cases.PENDING}-{number}", "uid": f"uid-{cases.PENDING}-{number}"}
    return copied


def objects(question: Json) -> list[Json]:
    """Return the objects of a case; the nodes have the size of the instance type, and another pod that fills them."""
    nodes = deepcopy(question["nodes"])
    for node in nodes:
        node["status"]["allocatable"] = {"cpu": str(_CPU), "memory": "32Gi", "pods": "110"}
    full = [{"name": "app", "image": "app", "resources": {"requests": {"cpu": str(_CPU)}}}]
    fillers = [
        pod_json(
            f"full-{node['metadata']['name']}", node=node["metadata"]["name"], labels={"app": "full"}, containers=full
        )
        for node in nodes
    ]
    zones = next(iter(question["zones"].values()))
    pods = [*question["pods"], *question["pending"], *fillers]
    return [*nodes, *pods, *question["nodePools"], node_class_json(*zones)]


def difference(question: Json, answer: Json) -> str:
    """Return how the new nodes of a simulation differ from those of Karpenter; "" where they do not.

    What Karpenter makes is what some runs make: it takes any of the zones with the fewest pods.
    """
    runs = _runs(question)
    if any(_NO_TYPE in each for each in answer["errors"].values()):
        # Karpenter tries again later, and may then choose another of the emptiest zones.
        return "" if len(answer["claims"]) <= max(run.made.total() for run in runs) else "more nodes"
    claims = answer["claims"]
    if len(claims) not in {run.made.total() for run in runs}:
        return "another number of nodes"
    pools = Counter(each["nodePool"] for each in claims)
    if pools not in [Counter(each.maker.removeprefix("NodePool ") for each in run.made.elements()) for run in runs]:
        return "nodes of other pools"
    if all(len(each["zones"]) == 1 for each in claims):
        zones = Counter(each["zones"][0] for each in claims)
        if zones not in [Counter(each.zone for each in run.made.elements()) for run in runs]:
            return "nodes in other zones"
    return ""


def _runs(question: Json) -> Sequence[RunResult]:
    evaluation = audit(*objects(question))
    world = World(evaluation.snapshot, evaluation.context.behaviour, None)
    return Simulation(world, [Watch()], maker=Provisioning).fixed(RUNS, about=())
