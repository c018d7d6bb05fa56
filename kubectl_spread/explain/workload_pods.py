"""PodsByWorkload: the pods of one workload by revision, and which of them a constraint counts where."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Final

import msgspec

from kubectl_spread.audit.evaluation.evaluate import Audit
from kubectl_spread.audit.snapshot.records import OwnerRecord, PodClass, PodRecord
from kubectl_spread.audit.snapshot.revisions import revision_of
from kubectl_spread.kube.api import labels as labelselectors
from kubectl_spread.kube.api.objects import ObjectRef
from kubectl_spread.kube.scheduler.podtopologyspread.constraints import counts_nothing
from kubectl_spread.kube.scheduler.podtopologyspread.spread import Spread

LONG_AGO: Final = datetime.min.replace(tzinfo=UTC)


class Revision(msgspec.Struct):
    """The pods of one revision, or of one direct owner where no label tells revisions apart.

    ``name`` is the label's value, "" without one; ``owner`` is None where the workload owns the pods itself.
    """

    name: str
    owner: OwnerRecord | None
    pods: list[PodRecord] = msgspec.field(default_factory=list)

    @property
    def age(self) -> tuple[int, datetime, str]:
        """Sorts the oldest first: by the number a Deployment gave, else by when its owner, or first pod, was made."""
        first = min((pod.created or LONG_AGO for pod in self.pods), default=LONG_AGO)
        number = self.owner.revision if self.owner else 0
        return number, (self.owner.created if self.owner and self.owner.created else first), self.name


class WorkloadPods(msgspec.Struct, frozen=True):
    """All pods of one workload that were read, terminating and pending ones too; ``revisions`` the oldest first."""

    workload: ObjectRef
    revisions: tuple[Revision, ...]

    @property
    def pods(self) -> list[PodRecord]:
        """All pods."""
        return [pod for revision in self.revisions for pod in revision.pods]


PodsByWorkload = dict[ObjectRef, WorkloadPods]
"""Maps a workload to its workload_pods."""


def pods_by_workload(audit: Audit) -> PodsByWorkload:
    """Return all pods of the requested workloads."""
    workloads = {row.workload for row in audit.rows} | {audit.snapshot.workload(pod) for pod in audit.pods}
    by_workload: dict[ObjectRef, dict[object, Revision]] = {workload: {} for workload in workloads}
    for pod in audit.everyone:
        chain = audit.snapshot.owner_chain(pod)
        workload = chain[-1].ref if chain else pod.ref
        revisions = by_workload.get(workload)
        if revisions is None:
            continue
        name = revision_of(pod.pod_class.labels)
        own = chain[0] if chain and chain[0].ref != workload else None
        key = name or (own.ref if own else "")
        revisions.setdefault(key, Revision(name, own)).pods.append(pod)
    return {
        workload: WorkloadPods(workload, tuple(sorted(revisions.values(), key=lambda revision: revision.age)))
        for workload, revisions in by_workload.items()
    }


def matcher(spread: Spread, audit: Audit) -> Callable[[PodRecord], bool]:
    """Return what tells whether a constraint's selector selects a pod; called once a class."""
    selector = spread.constraint.selector
    if counts_nothing(selector, audit.context.behaviour):
        return lambda _: False
    selected: dict[PodClass, bool] = {}

    def selects(pod: PodRecord) -> bool:
        if pod.pod_class not in selected:
            selected[pod.pod_class] = labelselectors.matches(selector, pod.pod_class.labels)
        return selected[pod.pod_class]

    return selects


def per_domain(pods: Iterable[PodRecord], spread: Spread, audit: Audit) -> Counter[str]:
    """Count the pods that count, by eligible domain."""
    selects = matcher(spread, audit)
    value_of = spread.domains.value_of
    return Counter(value_of[pod.node] for pod in pods if not pod.terminating and pod.node in value_of and selects(pod))


def others(spread: Spread, workload_pods: WorkloadPods, audit: Audit) -> Counter[str]:
    """Count the matching pods of other workloads by domain: the count without the workload's own pods."""
    foreign = Counter(spread.match_num)
    foreign.subtract(per_domain(workload_pods.pods, spread, audit))
    return +foreign
