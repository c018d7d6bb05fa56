"""Workload pods: which pods belong to each revision, and in which domains does a constraint count them?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from functools import cache
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
    """The pods of one revision; without a label for revisions, the pods of one direct owner.

    Attributes:
        name: The value of the label; "" without one.
        owner: The direct owner; None if the workload owns the pods itself.
        pods: The pods.
    """

    name: str
    owner: OwnerRecord | None
    pods: list[PodRecord] = msgspec.field(default_factory=list)

    @property
    def age(self) -> tuple[int, datetime, str]:
        """The sort key: the Deployment's number of the revision, then the creation of its owner or first pod."""
        first = min((pod.created or LONG_AGO for pod in self.pods), default=LONG_AGO)
        number = self.owner.revision if self.owner else 0
        return number, (self.owner.created if self.owner and self.owner.created else first), self.name


class WorkloadPods(msgspec.Struct, frozen=True):
    """All pods of one workload that were read, even terminating and pending pods, by revision, the oldest first."""

    workload: ObjectRef
    revisions: tuple[Revision, ...]

    @property
    def pods(self) -> list[PodRecord]:
        """The pods of all revisions."""
        return [pod for revision in self.revisions for pod in revision.pods]


PodsByWorkload = dict[ObjectRef, WorkloadPods]
"""The pods of each workload."""


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
        owner = chain[0] if chain and chain[0].ref != workload else None
        key = name or (owner.ref if owner else "")
        revisions.setdefault(key, Revision(name, owner)).pods.append(pod)
    return {
        workload: WorkloadPods(workload, tuple(sorted(revisions.values(), key=lambda revision: revision.age)))
        for workload, revisions in by_workload.items()
    }


def counter(spread: Spread, audit: Audit) -> Callable[[PodRecord], bool]:
    """Return a function that tells whether a constraint counts a pod of its namespace."""
    selector, value_of = spread.constraint.selector, spread.domains.value_of
    if counts_nothing(selector, audit.context.behaviour):
        return lambda _: False

    @cache
    def selects(pod_class: PodClass) -> bool:
        return labelselectors.matches(selector, pod_class.labels)

    return lambda pod: not pod.terminating and pod.node in value_of and selects(pod.pod_class)


def per_domain(pods: Iterable[PodRecord], spread: Spread, audit: Audit) -> Counter[str]:
    """Count the pods that a constraint counts, by eligible domain."""
    counts = counter(spread, audit)
    return Counter(spread.domains.value_of[pod.node] for pod in pods if counts(pod))


def others(spread: Spread, workload_pods: WorkloadPods, audit: Audit) -> Counter[str]:
    """Count the pods of other workloads that a constraint counts, by domain."""
    foreign = Counter(spread.match_num)
    foreign.subtract(per_domain(workload_pods.pods, spread, audit))
    return +foreign
