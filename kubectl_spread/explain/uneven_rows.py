"""Uneven rows, which need an explanation, and the pods of workloads: of which owner and revision, in which domains?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from typing import Final

import msgspec
from msgspec import UNSET, UnsetType

from kubectl_spread.audit.evaluation.evaluate import Audit, EvaluatedConstraint, EvaluatedPod
from kubectl_spread.audit.merge.verdicts import Verdict
from kubectl_spread.audit.snapshot.records import OwnerRecord, PodClass, PodRecord
from kubectl_spread.audit.snapshot.revisions import revision_of
from kubectl_spread.engine.node_answers import answers_of
from kubectl_spread.kube.api import labels as labelselectors
from kubectl_spread.kube.api.objects import ObjectRef
from kubectl_spread.kube.scheduler.podtopologyspread.constraints import counts_nothing
from kubectl_spread.kube.scheduler.podtopologyspread.spread import Spread
from kubectl_spread.phrases import domains
from kubectl_spread.report import model, projections

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


RELABELLED: Final = frozenset({Verdict.STALE_LABEL, Verdict.REMOVED_LABEL})
"""The verdicts on pods with a label that changed after the pod was created."""


class UnevenRow(msgspec.Struct, frozen=True):
    """A row whose skew is above maxSkew, or that refuses the next pod on every free node.

    Attributes:
        index: The index of the row in the report.
        row: The row.
        spread: The count of the row.
        workload_pods: The pods of the row's workload.
        audit: The audit.
        low: The domains that are too far below the fullest; without a skew, the domains at the minimum.
    """

    index: int
    row: EvaluatedConstraint
    spread: Spread
    workload_pods: WorkloadPods
    audit: Audit
    low: tuple[str, ...]

    @property
    def skewed(self) -> bool:
        """Whether the skew is above maxSkew."""
        return self.spread.exceeds_max_skew

    @property
    def counted(self) -> list[PodRecord]:
        """The workload's pods that count."""
        counts = counter(self.spread, self.audit)
        return [pod for pod in self.workload_pods.pods if counts(pod)]

    def domain(self, value: str) -> str:
        """Return a domain in words: ``zone a``."""
        return domains(self.spread.constraint.topology_key, [value])

    def nodes_of(self, value: str) -> list[str]:
        """Return the eligible nodes of a domain."""
        return [node for node, domain in self.spread.domains.value_of.items() if domain == value]

    def settled_by(self, count: Spread) -> bool:
        """Tell whether the row would need no explanation with another count of the same domains."""
        return not count.exceeds_max_skew if self.skewed else count.frees(self.spread)

    def skews(self, count: Spread, when: str) -> str:
        """Return the skew of another count and the present skew, in a sentence that begins with ``when``."""
        return f"{when} the skew would be {count.skew} instead of {self.spread.skew}."

    def per_domain(self, pods: Iterable[PodRecord]) -> Counter[str]:
        """Count the pods that the constraint counts, by domain."""
        return per_domain(pods, self.spread, self.audit)

    @property
    def relabelled_pending(self) -> list[EvaluatedPod]:
        """The pending pods of the row with a label that changed after they were created."""
        return [member for member in self.row.members if member.verdict in RELABELLED and not member.pod.node]


def uneven_rows(audit: Audit, pods: PodsByWorkload) -> Iterator[UnevenRow]:
    """Yield the rows that need an explanation, in the report's order."""
    for index, row in enumerate(audit.rows):
        spread = row.spread
        if spread is None:
            continue
        uneven = UnevenRow(index, row, spread, pods[row.workload], audit, _low(row, spread, audit))
        if uneven.low or uneven.skewed or uneven.relabelled_pending:
            yield uneven


def _low(row: EvaluatedConstraint, spread: Spread, audit: Audit) -> tuple[str, ...]:
    """Return the domains that are too low, in order; none if the row needs no explanation."""
    counts = spread.match_num
    if spread.exceeds_max_skew:
        limit = counts.most - spread.constraint.max_skew
        return tuple(sorted(domain for domain, number in counts.items() if number < limit))
    if row.lower_bound or not _refuses_free_nodes(row, spread, audit):
        return ()
    return tuple(sorted(domain for domain, number in counts.items() if number == counts.least))


def _refuses_free_nodes(row: EvaluatedConstraint, spread: Spread, audit: Audit) -> bool:
    """Tell whether some nodes have no obstacle for the next pod, and the constraint refuses all of these nodes.

    A bound pod without owner has no next pod.
    """
    if not spread.constraint.hard or (row.workload.kind == "Pod" and all(pod.node for pod in row.pods)):
        return False
    key, answers = spread.constraint.topology_key, answers_of(row.evaluations[0][0], row.pods[0], audit)
    domains = [audit.nodes.labels_of(node).get(key) for node in answers.unobstructed()]
    return bool(domains) and not any(spread.allows(domain) for domain in domains)


class Owner(model.Part, frozen=True, kw_only=True):
    """A direct owner with its number of pods and the owners above it, the root first.

    ``revision`` is the number that a Deployment gave its ReplicaSet.
    """

    kind: str
    name: str
    revision: int | UnsetType = UNSET
    pods: int
    above: list[model.Workload]


class Share(model.Part, frozen=True, kw_only=True):
    """The counted pods of one revision, by domain; ``skew`` is the skew of these pods alone.

    ``revision`` is the value of the label that distinguishes revisions, ``owner`` the direct owner below the root.
    """

    revision: str | UnsetType = UNSET
    owner: model.Workload | UnsetType = UNSET
    number: int | UnsetType = UNSET
    counts: dict[str, int]
    skew: int


class RowRollup(model.Part, frozen=True, kw_only=True):
    """The count of one row, in pods by domain; ``row`` is its index in ``constraints``.

    Pods that are ``terminating`` still run, but do not count.
    """

    row: int
    path: str
    revisions: list[Share]
    other_pods: dict[str, int] | UnsetType = UNSET
    counted: dict[str, int]
    skew: int
    terminating: dict[str, int] | UnsetType = UNSET
    skew_with_terminating: int | UnsetType = UNSET


class Rollup(model.Part, frozen=True, kw_only=True):
    """The owners of the pods, and the revisions and owners in the count of each row."""

    owners: list[Owner]
    rows: list[RowRollup]


def roll_up(audit: Audit, pods: PodsByWorkload) -> Rollup:
    """Return the roll-up of every row with a count."""
    return Rollup(
        owners=[
            owner
            for workload_pods in (pods[workload] for workload in sorted(pods))
            for owner in _owners(workload_pods, audit)
        ],
        rows=[
            _row(index, row, row.spread, pods[row.workload], audit)
            for index, row in enumerate(audit.rows)
            if row.spread is not None
        ],
    )


def _owners(workload_pods: WorkloadPods, audit: Audit) -> list[Owner]:
    """Return the direct owners of a workload's pods, owners of its newest revision first."""
    pods = [pod for revision in reversed(workload_pods.revisions) for pod in revision.pods]
    chains = [tuple(audit.snapshot.owner_chain(pod)) for pod in pods]
    numbers = Counter(chain[0].ref if chain else workload_pods.workload for chain in chains)
    chain_of = {chain[0].ref: chain for chain in chains if chain}
    return [_owner(ref, number, chain_of.get(ref, ())) for ref, number in numbers.items()]


def _owner(ref: ObjectRef, pods: int, chain: Sequence[OwnerRecord]) -> Owner:
    return Owner(
        kind=ref.kind,
        name=ref.name,
        revision=(chain[0].revision if chain else 0) or UNSET,
        pods=pods,
        above=[projections.workload(record.ref) for record in reversed(chain[1:])],
    )


def _row(index: int, row: EvaluatedConstraint, spread: Spread, workload_pods: WorkloadPods, audit: Audit) -> RowRollup:
    shares = [_share(revision, spread, audit) for revision in reversed(workload_pods.revisions)]
    foreign = others(spread, workload_pods, audit)
    terminating = audit.evaluator.census.terminating(row.namespace, spread)
    return RowRollup(
        row=index,
        path=str(row.path),
        revisions=[share for share in shares if share.counts and any(share.counts.values())],
        other_pods=_listed(foreign, spread) if foreign else UNSET,
        counted=_listed(spread.match_num, spread),
        skew=spread.skew,
        terminating=_listed(terminating, spread) if terminating else UNSET,
        skew_with_terminating=spread.changed(terminating).skew if terminating else UNSET,
    )


def _share(revision: Revision, spread: Spread, audit: Audit) -> Share:
    counts = per_domain(revision.pods, spread, audit)
    rest = {domain: number - counts[domain] for domain, number in spread.match_num.items()}
    owner = revision.owner
    return Share(
        revision=revision.name or UNSET,
        owner=UNSET if owner is None else projections.workload(owner.ref),
        number=UNSET if owner is None else owner.revision or UNSET,
        counts=_listed(counts, spread),
        skew=spread.without(rest).skew,
    )


def _listed(counts: Mapping[str, int], spread: Spread) -> dict[str, int]:
    """Return counts by eligible domain, without empty domains if there are many domains."""
    many = len(spread.match_num) > projections.MANY_DOMAINS
    return {domain: counts.get(domain, 0) for domain in sorted(spread.match_num) if counts.get(domain, 0) or not many}
