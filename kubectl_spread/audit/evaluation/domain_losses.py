"""Domain losses: the workloads that run in a domain, and what is left of them without it.

Numbers are those of the snapshot; where lost pods would go is not asked.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

import msgspec

from kubectl_spread.audit.evaluation.domain_counts import CountedDomains
from kubectl_spread.audit.snapshot.labelled import Labelled
from kubectl_spread.audit.snapshot.records import PodClass, PodRecord
from kubectl_spread.audit.snapshot.snapshot import Snapshot
from kubectl_spread.kube import disruption
from kubectl_spread.kube.api.objects import ObjectRef
from kubectl_spread.kube.api.types import OwnerReference
from kubectl_spread.kube.disruption import PodDisruptionBudget


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
    """Return the budgets of the pods in a domain, by workload and name."""
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
        scaled = _scaled_controller(pod_class.namespace, pod_class.owner, snapshot)
        if scaled is None:
            return None
        controllers[scaled[0]] = scaled[1]
    return sum(controllers.values())


def _scaled_controller(namespace: str, owner: OwnerReference, snapshot: Snapshot) -> tuple[ObjectRef, int] | None:
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
