"""The report of `domains`; its JSON form is a contract (docs/json.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import UNSET, UnsetType

from kubectl_spread.audit.evaluation.domains import (
    BudgetLoss,
    CountedDomain,
    CountedDomains,
    ResourceUse,
    WorkloadLoss,
)
from kubectl_spread.report import projections
from kubectl_spread.report.model import API_VERSION, CORDONED, Closed, NamedCluster, Part, Workload, unset_none

KIND = "SpreadDomains"
_TENTHS = 1000


class ReadCluster(NamedCluster, frozen=True, kw_only=True):
    """The cluster that was read; a report of files has only what the user says about it."""

    namespace: str | UnsetType = UNSET
    resource_versions: dict[str, str]


class Amount(Part, frozen=True, kw_only=True):
    """The requests for a resource, and the amount that the nodes allow, in the same unit."""

    requested: int
    allocatable: int | UnsetType = UNSET


class DomainRequests(Part, frozen=True, kw_only=True):
    """The requests of all pods on the nodes of a domain; CPU in thousandths of a core, memory in bytes."""

    cpu: Amount
    memory: Amount
    unknown_pods: int


class DomainRow(Part, frozen=True, kw_only=True):
    """The nodes of a domain, and the running pods in scope on them; ``value`` is None for nodes without the key.

    ``closed`` is set where every node is cordoned or has a taint that keeps pods away; ``commands`` end the cordon.
    """

    value: str | None
    nodes: int
    ready: int
    cordoned: int
    pods: int
    share: float
    terminating: int
    workloads: int
    only_here: int
    half_here: int
    closed: Closed | UnsetType = UNSET
    commands: list[str] | UnsetType = UNSET
    requests: DomainRequests | UnsetType = UNSET


class LostBudget(Part, frozen=True, kw_only=True):
    """A PodDisruptionBudget that selects running pods of the workload in the domain."""

    name: str
    minimum: int | UnsetType = UNSET
    left: int
    below: bool | UnsetType = UNSET


class LostWorkload(Part, frozen=True, kw_only=True):
    """A workload with running pods in the domain."""

    namespace: str
    workload: Workload
    here: int
    running: int
    left: int
    budgets: list[LostBudget] | UnsetType = UNSET


class UnlistedNode(Part, frozen=True, kw_only=True):
    """A node that has running pods and was not listed."""

    name: str
    pods: int


class DomainTotals(Part, frozen=True, kw_only=True):
    """Totals of the pods in scope; ``skipped`` maps a reason to a number of objects or lists."""

    pods: int
    workloads: int
    pending: int
    terminating: int
    unlisted: list[UnlistedNode]
    skipped: dict[str, int]


class SpreadDomains(Part, frozen=True, kw_only=True):
    """The report of ``domains``: all domains of a topology key, or one with the workloads in it."""

    api_version: str = API_VERSION
    kind: str = KIND
    cluster: ReadCluster
    topology_key: str
    domains: list[DomainRow]
    workloads: list[LostWorkload] | UnsetType = UNSET
    totals: DomainTotals


def domains(
    cluster: ReadCluster,
    key: str,
    counts: CountedDomains,
    skipped: Mapping[str, int],
    *,
    with_requests: bool,
) -> SpreadDomains:
    """Return the report on all domains of a topology key.

    Args:
        cluster: The cluster.
        key: The topology key.
        counts: The counts of its domains.
        skipped: The number of objects that were left out, by reason.
        with_requests: Whether the pods of all namespaces were read, so that the requests are known.
    """
    return SpreadDomains(
        cluster=cluster,
        topology_key=key,
        domains=[_row(domain, counts.pods, with_requests=with_requests) for domain in counts.domains],
        totals=_totals(counts, skipped),
    )


def domain(report: SpreadDomains, place: int, losses: Sequence[WorkloadLoss]) -> SpreadDomains:
    """Return a report on one of the domains of another, by its index, and on the workloads in it."""
    return SpreadDomains(
        cluster=report.cluster,
        topology_key=report.topology_key,
        domains=[report.domains[place]],
        workloads=[_lost(loss) for loss in losses],
        totals=report.totals,
    )


def _row(count: CountedDomain, total: int, *, with_requests: bool) -> DomainRow:
    return DomainRow(
        value=count.value,
        nodes=len(count.nodes),
        ready=count.ready,
        cordoned=count.cordoned,
        pods=count.pods,
        share=round(count.pods * _TENTHS / total) / 10 if total else 0.0,
        terminating=count.terminating,
        workloads=count.workloads,
        only_here=count.only_here,
        half_here=count.half_here,
        closed=CORDONED
        if count.cordoned == len(count.nodes)
        else "tainted"
        if count.closed == len(count.nodes)
        else UNSET,
        requests=DomainRequests(
            cpu=_amount(count.use.cpu), memory=_amount(count.use.memory), unknown_pods=count.use.unknown
        )
        if with_requests
        else UNSET,
    )


def _amount(use: ResourceUse) -> Amount:
    return Amount(requested=use.requested, allocatable=unset_none(use.allocatable))


def _lost(loss: WorkloadLoss) -> LostWorkload:
    return LostWorkload(
        namespace=loss.workload.namespace,
        workload=projections.workload(loss.workload),
        here=loss.here,
        running=loss.running,
        left=loss.left,
        budgets=UNSET if loss.budgets is None else [_budget(budget) for budget in loss.budgets],
    )


def _budget(loss: BudgetLoss) -> LostBudget:
    return LostBudget(
        name=loss.name,
        minimum=unset_none(loss.minimum),
        left=loss.left,
        below=UNSET if loss.minimum is None else loss.below,
    )


def _totals(counts: CountedDomains, skipped: Mapping[str, int]) -> DomainTotals:
    return DomainTotals(
        pods=counts.pods,
        workloads=len(counts.workloads),
        pending=counts.pending,
        terminating=counts.terminating,
        unlisted=[UnlistedNode(name=node, pods=counts.unlisted[node]) for node in sorted(counts.unlisted)],
        skipped={reason: skipped[reason] for reason in sorted(skipped) if skipped[reason]},
    )
