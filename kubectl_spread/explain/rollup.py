"""Roll-up: which owners and revisions have pods in each domain, and which running pods do not count?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from msgspec import UNSET, UnsetType

from kubectl_spread.audit.evaluation.evaluate import Audit, EvaluatedConstraint
from kubectl_spread.audit.snapshot.records import OwnerRecord
from kubectl_spread.explain.uneven_rows import PodsByWorkload, Revision, WorkloadPods, others, per_domain
from kubectl_spread.kube.api.objects import ObjectRef
from kubectl_spread.kube.scheduler.podtopologyspread.spread import Spread
from kubectl_spread.report import model, projections


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
