"""Domain counts: the nodes and pods of each domain of a topology key.

A pod runs if it is bound and neither finished nor terminating: these are the pods that the scheduler's spread plugin
counts.

Source: kubernetes v1.37.1 pkg/scheduler/framework/plugins/podtopologyspread/common.go, countPodsMatchSelector.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from kubectl_spread.audit.snapshot.capacity import NodeCapacity
from kubectl_spread.audit.snapshot.records import PodClass
from kubectl_spread.audit.snapshot.snapshot import Snapshot
from kubectl_spread.kube.api import labels as labelselectors
from kubectl_spread.kube.api.objects import ObjectRef
from kubectl_spread.kube.api.types import READY, LabelSelectorRequirement, Node
from kubectl_spread.kube.scheduler import taints

_TRUE: Final = "True"
_ELSEWHERE: Final = -1
"""The place of pods on nodes that are not listed."""


class ResourceUse(msgspec.Struct, frozen=True):
    """The amount of a resource that pods request, and that nodes allow; None: a node does not say what it allows."""

    requested: int
    allocatable: int | None


class DomainUse(msgspec.Struct, frozen=True):
    """The requests of all pods on the nodes of a domain; ``unknown`` is the number of pods that are not in the sums."""

    cpu: ResourceUse
    memory: ResourceUse
    unknown: int


class CountedDomain(msgspec.Struct):
    """The nodes of a domain and the pods on them; the value None is that of nodes without the topology key.

    Attributes:
        value: The value of the topology key.
        nodes: The names of the nodes.
        ready: The number of nodes whose condition Ready is True.
        cordoned: The number of nodes that are unschedulable.
        closed: The number of nodes that are cordoned, or have a taint that keeps pods away.
        pods: The number of running pods.
        terminating: The number of terminating pods, which do not count as running.
        workloads: The number of workloads with running pods here.
        only_here: The number of these that run nowhere else.
        half_here: The number of these with at least half of their running pods here.
        use: The requests of the pods.
    """

    value: str | None
    nodes: list[str]
    ready: int
    cordoned: int
    closed: int
    use: DomainUse
    pods: int = 0
    terminating: int = 0
    workloads: int = 0
    only_here: int = 0
    half_here: int = 0


class CountedDomains(msgspec.Struct, frozen=True):
    """The domains of a topology key, and the pods in scope.

    Attributes:
        domains: The domains by value; the nodes without the key are last.
        workloads: For each workload with running pods, their number in each domain, by the index of the domain.
        places: The index of the domain of each node.
        pods: The number of running pods.
        pending: The number of pods without a node.
        terminating: The number of terminating pods.
        unlisted: The running pods on each node that is not listed.
    """

    domains: list[CountedDomain]
    workloads: dict[ObjectRef, Counter[int]]
    places: dict[str, int]
    pods: int
    pending: int
    terminating: int
    unlisted: Counter[str]


def count(snapshot: Snapshot, key: str, labels: Iterable[LabelSelectorRequirement] = ()) -> CountedDomains:
    """Count the nodes of each domain of a topology key, and the pods of the snapshot with these labels on them."""
    domains, places = _domains(snapshot, key)
    counts = CountedDomains(domains, {}, places, 0, 0, 0, Counter())
    pods = pending = terminating = 0
    selected = labelselectors.matcher(labels)
    tallies: dict[PodClass, Counter[int] | None] = {}
    for pod in snapshot.pods:
        pod_class = pod.pod_class
        if pod_class not in tallies:
            root = _root(pod_class, snapshot)
            chosen = selected(pod_class.labels)
            tallies[pod_class] = None if not chosen else Counter() if root is None else _tally(counts, root)
        tally = tallies[pod_class]
        if tally is None:
            continue
        place = places.get(pod.node, _ELSEWHERE)
        if not pod.node:
            pending += 1
        elif pod.terminating:
            terminating += 1
            if place != _ELSEWHERE:
                domains[place].terminating += 1
        else:
            pods += 1
            if place == _ELSEWHERE:
                counts.unlisted[pod.node] += 1
            else:
                domains[place].pods += 1
            (tally if pod_class.owner else _tally(counts, pod.ref))[place] += 1
    _count_workloads(counts)
    return msgspec.structs.replace(counts, pods=pods, pending=pending, terminating=terminating)


def _tally(counts: CountedDomains, workload: ObjectRef) -> Counter[int]:
    return counts.workloads.setdefault(workload, Counter())


def _root(pod_class: PodClass, snapshot: Snapshot) -> ObjectRef | None:
    """Return the root owner of the pods of a class; None for pods without an owner."""
    chain = snapshot.ownership.chain(pod_class.namespace, pod_class.owner)
    return chain[-1].ref if chain else None


def _domains(snapshot: Snapshot, key: str) -> tuple[list[CountedDomain], dict[str, int]]:
    """Return the domains of a key, and the index of the domain of each node."""
    nodes: dict[str | None, list[Node]] = {}
    for node in snapshot.nodes:
        nodes.setdefault(node.metadata.labels.get(key), []).append(node)
    values = sorted(nodes, key=lambda value: (value is None, value or ""))
    places = {node.metadata.name: place for place, value in enumerate(values) for node in nodes[value]}
    capacity = snapshot.capacity()
    return [_domain(value, nodes[value], capacity) for value in values], places


def _domain(value: str | None, nodes: Sequence[Node], capacity: NodeCapacity) -> CountedDomain:
    names = sorted(node.metadata.name for node in nodes)
    return CountedDomain(
        value,
        names,
        ready=sum(map(_is_ready, nodes)),
        cordoned=sum(node.spec.unschedulable for node in nodes),
        closed=sum(map(taints.keep_pods_away, nodes)),
        use=DomainUse(
            _use("cpu", names, capacity),
            _use("memory", names, capacity),
            sum(map(capacity.unknown_requests, names)),
        ),
    )


def _is_ready(node: Node) -> bool:
    return any(condition.type == READY and condition.status == _TRUE for condition in node.status.conditions)


def _use(resource: str, nodes: Iterable[str], capacity: NodeCapacity) -> ResourceUse:
    requested = sum(capacity.requested(node).get(resource, 0) for node in nodes)
    amounts = [None if (listed := capacity.allocatable(node)) is None else listed.get(resource, 0) for node in nodes]
    known_amounts = [amount for amount in amounts if amount is not None]
    return ResourceUse(requested, sum(known_amounts) if len(known_amounts) == len(amounts) else None)


def _count_workloads(counts: CountedDomains) -> None:
    for workload, tally in list(counts.workloads.items()):
        running = tally.total()
        if not running:
            del counts.workloads[workload]
        for place, here in tally.items():
            if place != _ELSEWHERE:
                domain = counts.domains[place]
                domain.workloads += 1
                domain.only_here += here == running
                domain.half_here += 2 * here >= running
