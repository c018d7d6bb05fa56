"""Destinations: which nodes would take a pod, or the next pods of a workload, and why do the others refuse it?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import Final

import msgspec
from msgspec.structs import replace

from kubectl_spread.audit.evaluation import affinity
from kubectl_spread.audit.evaluation.volumes import UNKNOWN_CLAIMS
from kubectl_spread.audit.snapshot.records import PodRecord
from kubectl_spread.engine.answers import RefusalCause
from kubectl_spread.engine.cluster import SimulatedCluster
from kubectl_spread.engine.kinds import unparsed
from kubectl_spread.engine.pods import SimulatedPod
from kubectl_spread.engine.reasons import everywhere, refusals_by_filter, unparsed_cause
from kubectl_spread.engine.world import owner_of
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
    yield RefusalCause(cause.kind, f"no label {key}", key, right_key=""), lacking
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


_OF_OWNER: Final = "next"


class NextPod(msgspec.Struct, frozen=True):
    """One of several pods that are created one after another.

    Attributes:
        destinations: The nodes that would take it.
        node: The node with the best score, on which it is placed; "" where no node takes it.
    """

    destinations: Destinations
    node: str


def next_pods(cluster: SimulatedCluster, like: PodRecord, number: int) -> Iterator[NextPod]:
    """Place more pods like one that was read, until one finds no node; the cluster keeps them."""
    names = _names(cluster, like)
    for _ in range(number):
        pod, unknown = _created(cluster, like, next(names))
        answer = destinations(cluster, pod, unknown)
        if pod.node:
            # Its template names the node, and no scheduler places it.
            yield NextPod(answer, pod.node)
            continue
        # Of nodes that are as good as each other the scheduler takes any.
        best = cluster.state.best(pod.kind, list(ascending(answer.free)))
        node = min((cluster.table.names[each] for each in best), default="")
        yield NextPod(answer, node)
        if not node:
            return
        cluster.place(pod, cluster.table.numbers[node])


def next_destinations(cluster: SimulatedCluster, like: PodRecord) -> Destinations:
    """Return the nodes that would take one more pod like one that was read; the cluster keeps the pod, pending."""
    pod, unknown = _created(cluster, like, next(_names(cluster, like)))
    return destinations(cluster, pod, unknown)


def _created(cluster: SimulatedCluster, like: PodRecord, name: str) -> tuple[SimulatedPod, str]:
    """Create a pending pod like one that was read, and return what is not known about its volumes."""
    claims = cluster.volumes.claim_names(like.pod_class)
    record = replace(cluster.world.created_again(like), name=name, claims=() if claims is None else claims.of(name))
    workload = cluster.world.snapshot.workload(like)
    pod = cluster.create(record, workload, owner_of(like))
    unknown = UNKNOWN_CLAIMS if claims is None and like.claims else cluster.volumes.of(record).unknown
    return pod, unknown


def _names(cluster: SimulatedCluster, like: PodRecord) -> Iterator[str]:
    """Yield the names of the next pods; those of a StatefulSet with claims have the lowest ordinals that are free."""
    owner, claims = owner_of(like), cluster.volumes.claim_names(like.pod_class)
    if owner is None or claims is None or not claims.templates:
        return (f"{like.name}-{_OF_OWNER}-{number}" for number in count(1))
    taken = {pod.name for pod in cluster.world.records if owner_of(pod) == owner}
    names = (f"{owner.name}-{ordinal}" for ordinal in count(claims.start))
    return (name for name in names if name not in taken)
