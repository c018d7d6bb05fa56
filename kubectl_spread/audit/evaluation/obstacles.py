"""Obstacles: why a node does not take a pod before its constraints decide, in the order of the scheduler's filters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Final, NamedTuple

import msgspec

from kubectl_spread.audit.snapshot.capacity import NodeCapacity, usage_of
from kubectl_spread.audit.snapshot.records import PodClass
from kubectl_spread.kube.api.types import Taint
from kubectl_spread.kube.features import Behaviour
from kubectl_spread.kube.scheduler import nodeports, taints
from kubectl_spread.kube.scheduler.interpodaffinity import AffinityAnswer
from kubectl_spread.kube.scheduler.podtopologyspread.domains import NodeSets
from kubectl_spread.memoization import memoized
from kubectl_spread.phrases import plural

_CONDITIONS: Final = frozenset(
    f"node.kubernetes.io/{condition}"
    for condition in (
        *("not-ready", "unreachable", "network-unavailable"),
        *("memory-pressure", "disk-pressure", "pid-pressure"),
    )
)
"""Taints that Kubernetes sets, and removes, with the conditions of a node."""


class ObstacleKind(StrEnum):
    """Why a node will not take a pod, whatever its constraints say."""

    CORDONED = "cordoned"
    TAINTED = "tainted"
    UNHEALTHY = "unhealthy"
    EXCLUDED = "excluded"
    FULL = "full"
    VOLUME = "volume"
    CONSTRAINED = "constrained"
    REPELLED = "repelled"


class Filter(NamedTuple):
    """The words about a filter of the scheduler, wherever it refuses nodes.

    Attributes:
        name: Its name in reports.
        plural: What it looks at, in a list of all filters.
        one_node: What a node does that it refuses.
        several_nodes: What several nodes do.
        cause: The cause in ``explain`` where it keeps pods from a domain.
        signs: The words of the scheduler's message about it, in lower case.
        remedy: What a person can do, as the end of a sentence, with a place for which nodes.
    """

    name: str
    plural: str
    one_node: str
    several_nodes: str
    cause: str
    signs: tuple[str, ...]
    remedy: str


FILTERS: Final = {
    ObstacleKind.CORDONED: Filter(
        name="cordon",
        plural="cordons",
        one_node="is cordoned",
        several_nodes="are cordoned",
        cause="drained-domain",
        signs=("unschedulable",),
        remedy="uncordon {nodes}",
    ),
    ObstacleKind.TAINTED: Filter(
        name="taints",
        plural="taints",
        one_node="has a taint that is not tolerated",
        several_nodes="have taints that are not tolerated",
        cause="tainted-domain",
        signs=("untolerated taint",),
        remedy="remove the taints that the pods do not tolerate, or tolerate them",
    ),
    ObstacleKind.UNHEALTHY: Filter(
        name="taints",
        plural="conditions of nodes",
        one_node="is unhealthy",
        several_nodes="are unhealthy",
        cause="tainted-domain",
        signs=("untolerated taint",),
        remedy="repair {nodes}, whose taints Kubernetes removes when they are healthy",
    ),
    ObstacleKind.EXCLUDED: Filter(
        name="nodeAffinity",
        plural="node affinity and nodeSelector",
        one_node="does not match nodeSelector or affinity",
        several_nodes="do not match nodeSelector or affinity",
        cause="node-affinity",
        signs=("node affinity", "nodeaffinity"),
        remedy="let nodeSelector or node affinity match more nodes",
    ),
    ObstacleKind.FULL: Filter(
        name="resources",
        plural="resources and host ports",
        one_node="has no room",
        several_nodes="have no room",
        cause="full-domain",
        signs=("insufficient", "too many pods", "free ports"),
        remedy="add nodes with enough room, or lower the requests",
    ),
    ObstacleKind.VOLUME: Filter(
        name="volumes",
        plural="volumes",
        one_node="is out of reach of a volume",
        several_nodes="are out of reach of a volume",
        cause="volumes",
        signs=("volume",),
        remedy="give the pod a volume that its nodes can reach: give up the claim, or add nodes there",
    ),
    ObstacleKind.CONSTRAINED: Filter(
        name="spread",
        plural="spread constraints",
        one_node="does not match the spread constraints",
        several_nodes="do not match the spread constraints",
        cause="hard-constraint",
        signs=("topology spread",),
        remedy="make the constraint ScheduleAnyway, or raise its maxSkew",
    ),
    ObstacleKind.REPELLED: Filter(
        name="podAffinity",
        plural="pod affinity and anti-affinity",
        one_node="is refused by pod affinity",
        several_nodes="are refused by pod affinity",
        cause="pod-affinity",
        signs=("pod affinity", "anti-affinity"),
        remedy="make the term preferred, or add nodes",
    ),
}
"""Maps each kind of obstacle to the filter that finds it, in the scheduler's order."""


AFFINITY_WORDS: Final = {
    AffinityAnswer.NO_AFFINITY: "required pod affinity: no such pod in the domain",
    AffinityAnswer.ANTI_AFFINITY: "required pod anti-affinity: such a pod is in the domain",
    AffinityAnswer.EXISTING_ANTI_AFFINITY: "required anti-affinity of a pod in the domain",
    AffinityAnswer.UNPARSEABLE: "a selector of its pod affinity cannot be parsed",
}
"""Maps the answers of the filter of pod affinity to words."""


class Obstacle(msgspec.Struct, frozen=True):
    """Why one node does not take a pod.

    Attributes:
        cause: The filter that refuses it.
        text: The details in words.
        taint: The taint as kubectl writes it.
        remedy: What a person can do, where that is not what helps against most refusals of the filter.
    """

    cause: ObstacleKind
    text: str
    taint: str = ""
    remedy: str = ""


CORDONED: Final = Obstacle(ObstacleKind.CORDONED, "cordoned")
EXCLUDED: Final = Obstacle(ObstacleKind.EXCLUDED, "node affinity or nodeSelector does not match")


def tainted(taint: Taint) -> Obstacle:
    """Return the obstacle that a taint is for pods that do not tolerate it."""
    written = f"{taint.key}{f'={taint.value}' if taint.value else ''}:{taint.effect}"
    cause = ObstacleKind.UNHEALTHY if taint.key in _CONDITIONS else ObstacleKind.TAINTED
    return Obstacle(cause, f"untolerated taint {written}", written)


class Obstacles:
    """The obstacles of pods on nodes, computed once for each pair of class and node."""

    def __init__(self, nodes: NodeSets, capacity: NodeCapacity, behaviour: Behaviour) -> None:
        """Compare pods with ``nodes`` and the ``capacity`` that these have left."""
        self._nodes = nodes
        self._capacity = capacity
        self._behaviour = behaviour
        self._representatives: dict[object, PodClass] = {}

    @memoized
    def representative(self, pod_class: PodClass) -> PodClass:
        """Return the first of the classes that nodes cannot tell from ``pod_class``."""
        usage = usage_of(pod_class.spec, pod_class.requests), nodeports.host_ports(pod_class.spec)
        return self._representatives.setdefault((self._nodes.usable(pod_class.placement), usage), pod_class)

    def of(self, pod_class: PodClass, node: str) -> Obstacle | None:
        """Return the first obstacle of a pod of ``pod_class`` on a node, or None."""
        return self._first(self.representative(pod_class), node)

    @memoized
    def _first(self, pod_class: PodClass, name: str) -> Obstacle | None:
        placement, node = pod_class.placement, self._nodes.by_name[name]
        usable = self._nodes.usable(placement)[name]
        if not usable.open:
            return CORDONED
        if not usable.tolerated:
            comparison = self._behaviour.toleration_comparison
            taint = taints.find_untolerated(node.spec.taints, placement.tolerations, comparison_operators=comparison)
            return Obstacle(ObstacleKind.TAINTED, "") if taint is None else tainted(taint)
        return self.when_open(pod_class, name)

    def when_open(self, pod_class: PodClass, node: str) -> Obstacle | None:
        """Return the first obstacle of a pod on a node that has no cordon and no taint any more, or None."""
        if not self._nodes.usable(pod_class.placement)[node].fits:
            return EXCLUDED
        if lacking := self._capacity.lacks(pod_class.requests, nodeports.excluding(pod_class.spec), node):
            return Obstacle(ObstacleKind.FULL, ", ".join(lacking))
        return None


def only_pinned(obstacles: Iterable[Obstacle]) -> bool:
    """Tell whether nothing but the nodeSelector or node affinity of the pod excludes nodes, of which there are some."""
    causes = {obstacle.cause for obstacle in obstacles}
    return causes == {ObstacleKind.EXCLUDED}


def summary(obstacles: Iterable[Obstacle | None]) -> str:
    """Return obstacles in words, the most frequent first: ``2 nodes: cordoned; 1 node: Insufficient cpu``."""
    return counted(Counter(obstacle.text for obstacle in obstacles if obstacle is not None))


def counted(counts: Mapping[str, int]) -> str:
    """Return the texts of obstacles in words, each with its number of nodes, the most frequent first."""
    ordered = sorted(counts, key=lambda text: (-counts[text], text))
    return "; ".join(f"{plural(counts[text], 'node')}: {text}" for text in ordered)
