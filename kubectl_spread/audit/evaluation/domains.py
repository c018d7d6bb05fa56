"""Domains: the nodes and pods of each domain of a topology key, and what workloads lose with one of them.

A pod runs if it is bound and neither finished nor terminating: these are the pods that the scheduler's spread plugin
counts.

Source: kubernetes v1.37.1 pkg/scheduler/framework/plugins/podtopologyspread/common.go, countPodsMatchSelector.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from kubectl_spread.audit.snapshot.capacity import NodeCapacity
from kubectl_spread.audit.snapshot.records import PodClass, PodRecord
from kubectl_spread.audit.snapshot.snapshot import Snapshot
from kubectl_spread.kube import disruption
from kubectl_spread.kube.api import labels as labelselectors
from kubectl_spread.kube.api.labels import Labelled
from kubectl_spread.kube.api.objects import ObjectRef
from kubectl_spread.kube.api.types import READY, LabelSelectorRequirement, Node, OwnerReference
from kubectl_spread.kube.disruption import PodDisruptionBudget
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


class BudgetLoss(msgspec.Struct, frozen=True):
    """A PodDisruptionBudget of a workload's pods.

    Attributes:
        name: Its name.
        minimum: The number of healthy pods that it wants; None where that is unknown.
        left: The number of running pods that it selects outside the domain.
    """

    name: str
    minimum: int | None
    left: int

    @property
    def below(self) -> bool:
        """Whether the pods that are left are too few for it."""
        return self.minimum is not None and self.left < self.minimum


class WorkloadLoss(msgspec.Struct, frozen=True):
    """A workload with running pods in a domain.

    Attributes:
        workload: The root owner of the pods; a pod without an owner is its own workload.
        here: The number of its running pods in the domain.
        running: The number of all its running pods.
        budgets: The budgets that select any of its pods here, by name; None where budgets were not read.
    """

    workload: ObjectRef
    here: int
    running: int
    budgets: tuple[BudgetLoss, ...] | None = None

    @property
    def left(self) -> int:
        """The number of its running pods outside the domain."""
        return self.running - self.here


def losses(counts: CountedDomains, place: int, snapshot: Snapshot) -> list[WorkloadLoss]:
    """Return the workloads that run in a domain, those that lose most first.

    First are workloads without a pod elsewhere, then those with a budget whose minimum is not left; among equals those
    that lose the largest share, and then the most pods.

    Args:
        counts: The counts of all domains.
        place: The index of the domain.
        snapshot: The pods, with all pods of each namespace, since budgets select among these, and the budgets.
    """
    budget_losses = _budgets(counts, place, snapshot) if snapshot.budgets.read else None
    workloads = [
        WorkloadLoss(
            workload,
            tally[place],
            tally.total(),
            None if budget_losses is None else tuple(budget_losses.get(workload, ())),
        )
        for workload, tally in counts.workloads.items()
        if tally[place]
    ]
    return sorted(workloads, key=_worst_first)


def _worst_first(loss: WorkloadLoss) -> tuple[object, ...]:
    below = any(budget.below for budget in loss.budgets or ())
    return (loss.left > 0, not below, -loss.here / loss.running, -loss.here, loss.workload)


class _Selected(msgspec.Struct):
    """The pods of one class: the running ones, those of them in the domain, and the workloads of the latter."""

    pod_class: PodClass
    running: int = 0
    here: int = 0
    workloads: set[ObjectRef] = msgspec.field(default_factory=set)


def _budgets(counts: CountedDomains, place: int, snapshot: Snapshot) -> Mapping[ObjectRef, list[BudgetLoss]]:
    by_namespace: defaultdict[str, list[PodDisruptionBudget]] = defaultdict(list)
    for budget in sorted(snapshot.budgets, key=lambda budget: budget.metadata.name):
        by_namespace[budget.metadata.namespace].append(budget)
    pods = [pod for pod in snapshot.pods if pod.namespace in by_namespace]
    classes = _classes(pods, counts.places, place, snapshot)
    of_workloads: defaultdict[ObjectRef, list[BudgetLoss]] = defaultdict(list)
    for namespace, labelled in classes.items():
        for budget in by_namespace[namespace]:
            selected = _selected(budget, labelled)
            if not any(each.here for each in selected):
                continue
            scale = _scale(selected, snapshot) if budget.needs_scale else None
            left = sum(each.running - each.here for each in selected)
            loss = BudgetLoss(budget.metadata.name, budget.desired_healthy(scale), left)
            for workload in {workload for each in selected for workload in each.workloads}:
                of_workloads[workload].append(loss)
    return of_workloads


def _classes(
    pods: Iterable[PodRecord], places: Mapping[str, int], place: int, snapshot: Snapshot
) -> dict[str, Labelled[_Selected]]:
    """Return the pods of each class, by namespace and labels."""
    classes: dict[PodClass, _Selected] = {}
    for pod in pods:
        alike = classes.setdefault(pod.pod_class, _Selected(pod.pod_class))
        if pod.node and not pod.terminating:
            alike.running += 1
            if places.get(pod.node) == place:
                alike.here += 1
                alike.workloads.add(snapshot.workload(pod))
    labelled: dict[str, Labelled[_Selected]] = {}
    for pod_class, alike in classes.items():
        labelled.setdefault(pod_class.namespace, Labelled()).add(pod_class.labels, alike)
    return labelled


def _selected(budget: PodDisruptionBudget, labelled: Labelled[_Selected]) -> list[_Selected]:
    if budget.spec.selector is None:
        return []
    return [alike for _, alike in labelled.selected(budget.spec.selector)]


def _scale(selected: Iterable[_Selected], snapshot: Snapshot) -> int | None:
    """Return the sum of the replicas of the pods' controllers; None where one of them is unknown.

    Pods without a controller are left out, as by the disruption controller.

    Source: kubernetes v1.37.1 pkg/controller/disruption/disruption.go, getExpectedScale.
    """
    controllers: dict[ObjectRef, int] = {}
    for pod_class in (each.pod_class for each in selected):
        if pod_class.owner is None:
            continue
        scaled = scaled_controller(pod_class.namespace, pod_class.owner, snapshot)
        if scaled is None:
            return None
        controllers[scaled[0]] = scaled[1]
    return sum(controllers.values())


def scaled_controller(namespace: str, owner: OwnerReference, snapshot: Snapshot) -> tuple[ObjectRef, int] | None:
    """Return the controller whose replicas count for a pod, and their number; None where it is unknown.

    That is the Deployment of a ReplicaSet, or the ReplicaSet itself if a Deployment does not own it.

    Source: kubernetes v1.37.1 pkg/controller/disruption/disruption.go, finders.
    """
    if not any(disruption.is_of(owner, kind) for kind in ("ReplicaSet", "ReplicationController", "StatefulSet")):
        return None
    record = snapshot.ownership.record(ObjectRef(namespace, owner.kind, owner.name))
    if record is not None and record.owner is not None and record.owner.kind == "Deployment":
        if not disruption.is_of(record.owner, "Deployment"):
            return None
        record = snapshot.ownership.record(ObjectRef(namespace, "Deployment", record.owner.name))
    if record is None or record.replicas is None:
        return None
    return record.ref, record.replicas
