"""CSV of ``domains``: a line for each domain, or for each workload in one."""

from __future__ import annotations

import csv as comma_separated
import io
from typing import Final

from msgspec import UNSET, UnsetType

from kubectl_spread.render.domains.figures import NONE
from kubectl_spread.render.spreadsheet import Cells, written
from kubectl_spread.report.domains import DomainRow, LostWorkload, SpreadDomains

COLUMNS: Final = (
    "topology_key",
    "value",
    "nodes",
    "ready",
    "cordoned",
    "pods",
    "share",
    "terminating",
    "workloads",
    "only_here",
    "half_here",
    "cpu_requested",
    "cpu_allocatable",
    "memory_requested",
    "memory_allocatable",
    "unknown_requests",
)
WORKLOAD_COLUMNS: Final = (
    "topology_key",
    "value",
    "namespace",
    "kind",
    "workload",
    "here",
    "running",
    "left",
    "budgets",
    "below",
)


def csv(report: SpreadDomains) -> str:
    """Return a report as CSV (RFC 4180) with a head; cells that do not apply are empty."""
    text = io.StringIO()
    if isinstance(report.workloads, UnsetType):
        writer = comma_separated.DictWriter(text, COLUMNS, restval="")
        lines = [_domain(report, domain) for domain in report.domains]
    else:
        writer = comma_separated.DictWriter(text, WORKLOAD_COLUMNS, restval="")
        lines = [_workload(report, workload) for workload in report.workloads]
    writer.writeheader()
    writer.writerows(written(line) for line in lines)
    return text.getvalue()


def _place(report: SpreadDomains, domain: DomainRow) -> Cells:
    return {"topology_key": report.topology_key, "value": NONE if domain.value is None else domain.value}


def _domain(report: SpreadDomains, domain: DomainRow) -> Cells:
    cells: Cells = {
        **_place(report, domain),
        "nodes": domain.nodes,
        "ready": domain.ready,
        "cordoned": domain.cordoned,
        "pods": domain.pods,
        "share": domain.share,
        "terminating": domain.terminating,
        "workloads": domain.workloads,
        "only_here": domain.only_here,
        "half_here": domain.half_here,
    }
    if isinstance(domain.requests, UnsetType):
        return cells
    cpu, memory = domain.requests.cpu, domain.requests.memory
    return {
        **cells,
        "cpu_requested": cpu.requested,
        "cpu_allocatable": cpu.allocatable,
        "memory_requested": memory.requested,
        "memory_allocatable": memory.allocatable,
        "unknown_requests": domain.requests.unknown_pods,
    }


def _workload(report: SpreadDomains, lost: LostWorkload) -> Cells:
    (domain,) = report.domains
    budgets = [] if isinstance(lost.budgets, UnsetType) else lost.budgets
    unread = isinstance(lost.budgets, UnsetType)
    minimums = " ".join(
        f"{budget.name}={'unknown' if isinstance(budget.minimum, UnsetType) else budget.minimum}" for budget in budgets
    )
    return {
        **_place(report, domain),
        "namespace": lost.namespace,
        "kind": lost.workload.kind,
        "workload": lost.workload.name,
        "here": lost.here,
        "running": lost.running,
        "left": lost.left,
        "budgets": UNSET if unread else minimums,
        "below": UNSET if unread else " ".join(budget.name for budget in budgets if budget.below is True),
    }
