"""The roll-up: whose the pods of each domain are, by owner and revision, and which pods run there without counting."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import UNSET, UnsetType

from kubectl_spread.audit.evaluation.evaluate import Audit, EvaluatedConstraint
from kubectl_spread.audit.snapshot.records import PodRecord
from kubectl_spread.explain.workload_pods import PodsByWorkload, Revision, WorkloadPods, others, per_domain
from kubectl_spread.kube.api.objects import ObjectRef
from kubectl_spread.kube.scheduler.podtopologyspread.spread import Spread
from kubectl_spread.report import model, projections


class Owner(model.Part, frozen=True, kw_only=True):
    """A direct owner of pods: how many, and who stands above it, the root first.

    ``revision`` is the number that a Deployment gave its ReplicaSet.
    """

    kind: str
    name: str
    revision: int | UnsetType = UNSET
    pods: int
    above: list[model.Workload]


class Share(model.Part, frozen=True, kw_only=True):
    """The counted pods of one revision, by domain; ``skew`` is what it would be if only these counted.

    ``revision`` is the value of the label that tells revisions apart, ``owner`` the direct owner below the root.
    """

    revision: str | UnsetType = UNSET
    owner: model.Workload | UnsetType = UNSET
    number: int | UnsetType = UNSET
    counts: dict[str, int]
    skew: int


class RowRollup(model.Part, frozen=True, kw_only=True):
    """Who makes the count of one row, in pods by domain; ``row`` is its index in ``constraints``.

    ``terminating`` pods run and do not count.
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
    """The owners of the pods, and for each row whose pods its count is made of."""

    owners: list[Owner]
    rows: list[RowRollup]


def roll_up(audit: Audit, pods: PodsByWorkload) -> Rollup:
    """Return the roll-up of every row that is counted."""
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
    """Return the direct owners of a workload's pods, those of its newest revision first."""
    by_owner: dict[ObjectRef, list[PodRecord]] = {}
    for revision in reversed(workload_pods.revisions):
        for pod in revision.pods:
            chain = audit.snapshot.owner_chain(pod)
            by_owner.setdefault(chain[0].ref if chain else workload_pods.workload, []).append(pod)
    owners = []
    for ref, pods in by_owner.items():
        chain = audit.snapshot.owner_chain(pods[0])
        owners.append(
            Owner(
                kind=ref.kind,
                name=ref.name,
                revision=(chain[0].revision if chain else 0) or UNSET,
                pods=len(pods),
                above=[projections.workload(record.ref) for record in reversed(chain[1:])],
            )
        )
    return owners


def _row(index: int, row: EvaluatedConstraint, spread: Spread, workload_pods: WorkloadPods, audit: Audit) -> RowRollup:
    shares = [_share(revision, spread, audit) for revision in reversed(workload_pods.revisions)]
    foreign = others(spread, workload_pods, audit)
    gone = audit.evaluator.terminating(row.namespace, spread)
    return RowRollup(
        row=index,
        path=str(row.path),
        revisions=[share for share in shares if share.counts and any(share.counts.values())],
        other_pods=_listed(foreign, spread) if foreign else UNSET,
        counted=_listed(spread.match_num, spread),
        skew=spread.skew,
        terminating=_listed(gone, spread) if gone else UNSET,
        skew_with_terminating=spread.changed(gone).skew if gone else UNSET,
    )


def _share(revision: Revision, spread: Spread, audit: Audit) -> Share:
    counts = per_domain(revision.pods, spread, audit)
    rest = {value: number - counts[value] for value, number in spread.match_num.items()}
    owner = revision.owner
    return Share(
        revision=revision.name or UNSET,
        owner=UNSET if owner is None else projections.workload(owner.ref),
        number=UNSET if owner is None else owner.revision or UNSET,
        counts=_listed(counts, spread),
        skew=spread.without(rest).skew,
    )


def _listed(counts: Mapping[str, int], spread: Spread) -> dict[str, int]:
    """Return counts by eligible domain; with many domains those without pods are left out."""
    many = len(spread.match_num) > projections.MANY_DOMAINS
    return {value: counts.get(value, 0) for value in sorted(spread.match_num) if counts.get(value, 0) or not many}
