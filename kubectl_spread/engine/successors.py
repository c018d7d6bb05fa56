"""Successors: the next pods like one that was read, placed one after another."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Final

import msgspec
from msgspec.structs import replace

from kubectl_spread.audit.evaluation.volumes import UNKNOWN_CLAIMS
from kubectl_spread.audit.snapshot.records import PodRecord
from kubectl_spread.engine.cluster import SimulatedCluster
from kubectl_spread.engine.destinations import Destinations, destinations
from kubectl_spread.engine.pods import SimulatedPod
from kubectl_spread.engine.world import owner_of
from kubectl_spread.kube.api.labels import ascending

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
    pod = cluster.create(record, cluster.world.kind(record.pod_class, workload), workload, owner_of(like))
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
