"""Destinations: which nodes would take a pod now, why do the others refuse it, and what is not known?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec

from kubectl_spread.audit.evaluation import affinity
from kubectl_spread.engine.answers import RefusalCause
from kubectl_spread.engine.cluster import SimulatedCluster
from kubectl_spread.engine.kinds import unparsed
from kubectl_spread.engine.pods import SimulatedPod
from kubectl_spread.engine.reasons import everywhere, refusals_by_filter, unparsed_cause
from kubectl_spread.kube.api.labels import ascending
from kubectl_spread.kube.scheduler.resources import POD
from kubectl_spread.phrases import plural

_LISTED: Final = 3
_UNREAD_NAMESPACES: Final = (
    "pods of other namespaces were not read, so neither their resources nor their anti-affinity is known"
)


class Destinations(msgspec.Struct, frozen=True):
    """The nodes that would take a pod, and the others by the first filter that refuses each of them.

    Attributes:
        names: The name of each node, by its number.
        free: The nodes that would take it, as a bitmap.
        refused: The causes with the nodes that each refuses first, as a bitmap, in the scheduler's order.
        unknown: What was not read, and may keep the pod from nodes that would take it.
        scores: The scores by the soft constraints alone of the nodes that would take it; none for a single node.
    """

    names: Sequence[str]
    free: int
    refused: tuple[tuple[RefusalCause, int], ...]
    unknown: tuple[str, ...] = ()
    scores: Mapping[str, int] = {}

    @property
    def allowed(self) -> list[str]:
        """The nodes that would take the pod, by name."""
        return self.named(self.free)

    def named(self, nodes: int) -> list[str]:
        """Return the names of nodes, in order."""
        return sorted(self.names[number] for number in ascending(nodes))


def destinations(cluster: SimulatedCluster, pod: SimulatedPod, unknown: str) -> Destinations:
    """Return the nodes that would take a pod now; ``unknown`` is what is not known about its volumes."""
    table = cluster.table
    if cause := everywhere(cluster, pod):
        return Destinations(table.names, 0, ((cause, table.everything),))
    left, refused = table.everything, list[tuple[RefusalCause, int]]()
    for cause, bits in refusals_by_filter(cluster, pod):
        for each, nodes in _by_label(cluster, cause, left & bits):
            if nodes:
                refused.append((each, nodes))
        left &= ~bits
    if left.bit_count() > 1 and (term := unparsed(pod.kind.pod_class, hard=False)):
        refused.append((unparsed_cause(term), left))
        left = 0
    missing = tuple(dict.fromkeys(filter(None, (unknown, *_unknown(cluster, pod, left)))))
    return Destinations(table.names, left, tuple(refused), missing, _scores(cluster, pod, left))


def _by_label(cluster: SimulatedCluster, cause: RefusalCause, nodes: int) -> Iterator[tuple[RefusalCause, int]]:
    """Yield a cause with its nodes, those apart that lack the topology key of a constraint."""
    key = cause.topology_key
    carrying = cluster.table.sets.carrying([key]) if key else 0
    lacking = nodes & ~carrying if carrying else 0
    yield RefusalCause(cause.kind, f"no label {key}", key), lacking
    yield cause, nodes & ~lacking


def _scores(cluster: SimulatedCluster, pod: SimulatedPod, free: int) -> dict[str, int]:
    if free.bit_count() <= 1 or not pod.kind.soft:
        return {}
    numbers = list(ascending(free))
    scores = cluster.state.spread_scores(pod.kind, numbers)
    return dict(sorted(zip((cluster.table.names[number] for number in numbers), scores, strict=True)))


def _unknown_room(cluster: SimulatedCluster, free: int) -> Iterator[str]:
    texts = [text for number, text in cluster.unknown_room.items() if free >> number & 1]
    yield from texts[:_LISTED]
    if more := len(texts[_LISTED:]):
        yield f"the room on {plural(more, 'more node')}"


def _unknown(cluster: SimulatedCluster, pod: SimulatedPod, free: int) -> Iterator[str]:
    """Yield what is not known, and may refuse the ``free`` nodes."""
    yield from cluster.unknown_needs(pod)
    if any(name != POD for name, _ in pod.kind.requests):
        yield from _unknown_room(cluster, free)
    if cluster.world.kinds.asks_for_unread_namespaces(pod.kind):
        yield affinity.UNKNOWN_NAMESPACES
    if not cluster.world.snapshot.anti_affinity.everywhere:
        yield _UNREAD_NAMESPACES
