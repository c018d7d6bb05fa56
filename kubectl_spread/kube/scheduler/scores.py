"""Which nodes does the scheduler look at, and how do its default plugins rank them? Spread has a package of its own.

Source: kubernetes v1.37.1 pkg/scheduler/backend/cache/node_tree.go, list; pkg/scheduler/schedule_one.go,
numFeasibleNodesToFind; pkg/scheduler/apis/config/v1/default_plugins.go, getDefaultPlugins, and
pkg/scheduler/framework/plugins, noderesources, helper/normalize_score.go and interpodaffinity/scoring.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import zip_longest
from typing import Final

import msgspec
from msgspec.structs import replace

from kubectl_spread.kube.api.labels import zone_of
from kubectl_spread.kube.api.types import Node, PodSpec
from kubectl_spread.kube.scheduler import resources
from kubectl_spread.kube.scheduler.resources import Amounts

MAX_NODE_SCORE: Final = 100
_HALF: Final = MAX_NODE_SCORE // 2
_ASSUMED: Final[Amounts] = {"cpu": 100, "memory": 200 * 1024 * 1024 * 1000}
"""The requests, in thousandths, that the scores assume for a container that does not name them.

Source: kubernetes v1.37.1 pkg/scheduler/util/pod_resources.go.
"""


class Weights(msgspec.Struct, frozen=True):
    """The weights of the score plugins; 0 for a plugin that is disabled."""

    taint_toleration: int = 3
    node_affinity: int = 2
    pod_topology_spread: int = 2
    inter_pod_affinity: int = 2
    node_resources_fit: int = 1
    balanced_allocation: int = 1


def assumed_requests(spec: PodSpec) -> tuple[int, int]:
    """Return the cpu and memory of a running pod for LeastAllocated, which assumes some for each container without any.

    Requests of the pod itself stand for those of its containers.

    Raises:
        ValueError: A quantity is not valid.

    Source: kubernetes v1.37.1 pkg/scheduler/framework/types.go, CalculatePodResource.
    """
    assumed = _ASSUMED
    if resources.has_own_requests(spec):
        named = resources.pod_requests(spec)
        assumed = {name: amount for name, amount in _ASSUMED.items() if name not in named}
    return _cpu_and_memory(spec, assumed)


def assumed_requests_of_incoming(spec: PodSpec) -> tuple[int, int]:
    """Return the cpu and memory of a pod that is to be placed for LeastAllocated, which reads those of containers only.

    Raises:
        ValueError: A quantity is not valid.

    Source: kubernetes v1.37.1 pkg/scheduler/framework/plugins/noderesources/fit.go, NewFit, which does not set
    enablePodLevelResources of its scorer.
    """
    return _cpu_and_memory(replace(spec, resources=None), _ASSUMED)


def _cpu_and_memory(spec: PodSpec, assumed: Amounts) -> tuple[int, int]:
    requests = resources.pod_requests(spec, assumed)
    return requests.get("cpu", 0), requests.get("memory", 0)


def least_allocated(requested: tuple[int, int], allocatable: tuple[int, int]) -> int:
    """Return the score of a node with these amounts, the pod's own among those that are requested.

    Source: kubernetes v1.37.1 pkg/scheduler/framework/plugins/noderesources/least_allocated.go, leastResourceScorer.
    """
    (cpu, memory), (has_cpu, has_memory) = requested, allocatable
    score = (has_cpu - cpu) * MAX_NODE_SCORE // has_cpu if cpu <= has_cpu > 0 else 0
    score += (has_memory - memory) * MAX_NODE_SCORE // has_memory if memory <= has_memory > 0 else 0
    return score // 2 if has_cpu and has_memory else score


def balanced_allocation(with_pod: tuple[int, int], without_pod: tuple[int, int], allocatable: tuple[int, int]) -> int:
    """Return the score of a node by what a pod changes in the balance of its resources.

    Source: kubernetes v1.37.1 pkg/scheduler/framework/plugins/noderesources/balanced_allocation.go,
    balancedResourceScorer.
    """
    change = _balance(with_pod, allocatable) - _balance(without_pod, allocatable)
    return _HALF + (_HALF + change) // 2


def _balance(requested: tuple[int, int], allocatable: tuple[int, int]) -> int:
    (cpu, memory), (has_cpu, has_memory) = requested, allocatable
    if not (has_cpu and has_memory):
        return MAX_NODE_SCORE
    of_cpu = cpu / has_cpu if cpu < has_cpu else 1.0
    of_memory = memory / has_memory if memory < has_memory else 1.0
    return int((1 - abs(of_cpu - of_memory) / 2) * MAX_NODE_SCORE)


def share_of_most(raw: Sequence[int], *, reverse: bool = False) -> list[int]:
    """Return scores as shares of the largest one.

    Source: kubernetes v1.37.1 pkg/scheduler/framework/plugins/helper/normalize_score.go, DefaultNormalizeScore.
    """
    most = max(raw)
    if not most:
        return [MAX_NODE_SCORE if reverse else 0] * len(raw)
    shares = [MAX_NODE_SCORE * score // most for score in raw]
    return [MAX_NODE_SCORE - share for share in shares] if reverse else shares


def between_extremes(raw: Sequence[int]) -> list[int]:
    """Return scores of pod affinity by their place between the smallest and the largest one.

    Source: kubernetes v1.37.1 pkg/scheduler/framework/plugins/interpodaffinity/scoring.go, NormalizeScore.
    """
    least, most = min(raw), max(raw)
    if least == most:
        return [0] * len(raw)
    return [int(MAX_NODE_SCORE * ((score - least) / (most - least))) for score in raw]


LEAST: Final = 100
"""The number of feasible nodes that the scheduler looks for at least."""
_LEAST_PERCENT: Final = 5
_MOST_PERCENT: Final = 50
_NODES_FOR_A_PERCENT: Final = 125
_HUNDRED: Final = 100


def nodes_to_find(nodes: int) -> int:
    """Return the number of feasible nodes after which the scheduler stops looking for more."""
    if nodes < LEAST:
        return nodes
    percent = max(_MOST_PERCENT - nodes // _NODES_FOR_A_PERCENT, _LEAST_PERCENT)
    return max(nodes * percent // _HUNDRED, LEAST)


def in_visiting_order(nodes: Iterable[Node]) -> list[Node]:
    """Return nodes as the scheduler visits them: in turn one of each zone."""
    by_zone: dict[tuple[str, str], list[Node]] = {}
    for node in nodes:
        by_zone.setdefault(zone_of(node), []).append(node)
    return [node for turn in zip_longest(*by_zone.values()) for node in turn if node is not None]
