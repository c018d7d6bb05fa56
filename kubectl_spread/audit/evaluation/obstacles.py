"""Obstacles: what keeps a pod from a node before its constraints decide, in the order of the scheduler's filters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from enum import StrEnum

import msgspec

from kubectl_spread.audit.snapshot.capacity import NodeCapacity
from kubectl_spread.audit.snapshot.records import PodClass
from kubectl_spread.kube.api.types import Node
from kubectl_spread.kube.features import Behaviour
from kubectl_spread.kube.scheduler import taints
from kubectl_spread.kube.scheduler.podtopologyspread.domains import NodeSets
from kubectl_spread.phrases import plural


class ObstacleKind(StrEnum):
    """Why a node will not take a pod, whatever its constraints say."""

    CORDONED = "cordoned"
    TAINTED = "tainted"
    EXCLUDED = "excluded"
    FULL = "full"
    CONSTRAINED = "constrained"
    REPELLED = "repelled"


class Obstacle(msgspec.Struct, frozen=True):
    """Why one node does not take a pod: the cause, and the details in words."""

    cause: ObstacleKind
    text: str


class Obstacles:
    """What keeps the pods of each class from each node, computed once for each pair."""

    def __init__(self, nodes: NodeSets, room: NodeCapacity, behaviour: Behaviour) -> None:
        """Evaluate ``nodes``, with ``room`` for resources."""
        self._nodes = nodes
        self._room = room
        self._behaviour = behaviour
        self._by_name = {node.metadata.name: node for node in nodes.nodes}
        self._kinds: dict[PodClass, PodClass] = {}
        self._representatives: dict[object, PodClass] = {}
        self._found: dict[tuple[PodClass, str], Obstacle | None] = {}

    def kind(self, pod_class: PodClass) -> PodClass:
        """Return the first of the classes that nodes cannot tell from ``pod_class``."""
        representative = self._kinds.get(pod_class)
        if representative is None:
            requests = None if pod_class.requests is None else frozenset(pod_class.requests.items())
            key = (self._nodes.usable(pod_class.placement), requests)
            representative = self._kinds[pod_class] = self._representatives.setdefault(key, pod_class)
        return representative

    def of(self, pod_class: PodClass, node: str) -> Obstacle | None:
        """Return the first thing that keeps a pod of ``pod_class`` from a node, or None."""
        pod_class = self.kind(pod_class)
        key = (pod_class, node)
        if key not in self._found:
            self._found[key] = self._find(pod_class, self._by_name[node])
        return self._found[key]

    def free(self, pod_class: PodClass, nodes: Iterable[str]) -> Iterable[str]:
        """Yield those of ``nodes`` that would take a pod of ``pod_class``."""
        return (node for node in nodes if self.of(pod_class, node) is None)

    def takes(self, pod_class: PodClass, node: str, *, most: int) -> int:
        """Return how many pods of ``pod_class`` a node has room for, up to ``most``."""
        return self._room.holds(pod_class.requests, node, most=most)

    def _find(self, pod_class: PodClass, node: Node) -> Obstacle | None:
        placement, name = pod_class.placement, node.metadata.name
        usable = self._nodes.usable(placement)[name]
        if not usable.open:
            return Obstacle(ObstacleKind.CORDONED, "cordoned")
        if not usable.tolerated:
            comparison = self._behaviour.toleration_comparison
            taint = taints.find_untolerated(node.spec.taints, placement.tolerations, comparison_operators=comparison)
            value = f"={taint.value}" if taint and taint.value else ""
            return Obstacle(
                ObstacleKind.TAINTED, f"untolerated taint {taint.key}{value}:{taint.effect}" if taint else ""
            )
        if not usable.fits:
            return Obstacle(ObstacleKind.EXCLUDED, "node affinity or nodeSelector does not match")
        if lacking := self._room.lacks(pod_class.requests, name):
            return Obstacle(ObstacleKind.FULL, ", ".join(lacking))
        return None


def summary(obstacles: Iterable[Obstacle | None]) -> str:
    """Return obstacles in words, the most frequent first: ``2 nodes: cordoned; 1 node: Insufficient cpu``."""
    counts: Mapping[str, int] = Counter(obstacle.text for obstacle in obstacles if obstacle is not None)
    ordered = sorted(counts, key=lambda text: (-counts[text], text))
    return "; ".join(f"{plural(counts[text], 'node')}: {text}" for text in ordered)
