"""CSV for spreadsheets: a line for each row with its worst finding, or for each domain or workload of ``domains``."""

from __future__ import annotations

import csv as comma_separated
import io
from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

from msgspec import UNSET, UnsetType

from kubectl_spread.kube.api import labels
from kubectl_spread.kube.api.objects import ObjectRef
from kubectl_spread.render.ci import common
from kubectl_spread.render.domain_figures import NONE
from kubectl_spread.render.figures import by_place, domain_counts, matches_nothing, unchecked
from kubectl_spread.render.words import safe
from kubectl_spread.report.domains import DomainRow, LostWorkload, SpreadDomains
from kubectl_spread.report.model import FieldRef, Finding, Report, Row, Severity

COLUMNS: Final = (
    "namespace",
    "kind",
    "workload",
    "path",
    "topology_key",
    "when_unsatisfiable",
    "pods",
    "pending",
    "terminating",
    "verdict",
    "verdicts",
    "max_skew",
    "skew",
    "lower_bound",
    "domains",
    "min_match",
    "effective_selector",
    "findings",
    "codes",
    "severity",
    "code",
    "name",
    "message",
    "fix",
    "commands",
    "patch",
)
_FORMULA: Final = tuple("=+-@\uff1d\uff0b\uff0d\uff20")
"""The characters that begin a formula in a spreadsheet, and their wide forms."""
Cells: TypeAlias = Mapping[str, str | float | bool | UnsetType]
"""The contents of the cells of a line, by column."""


def csv(report: Report) -> str:
    """Return a report as CSV (RFC 4180) with a head; cells that do not apply are empty.

    Findings are in the lines of the rows with their pods; those of templates without rows have lines of their own, and
    so has everything that could not be checked.
    """
    rows_at: dict[FieldRef, list[int]] = {}
    for index, row in enumerate(report.constraints):
        rows_at.setdefault(row.place, []).append(index)
    row_findings: dict[int, list[Finding]] = {}
    for finding in report.findings:
        for index in rows_at.get(finding.place, ()) if isinstance(finding.rows, UnsetType) else finding.rows:
            row_findings.setdefault(index, []).append(finding)
    text = io.StringIO()
    writer = comma_separated.DictWriter(text, COLUMNS, restval="")
    writer.writeheader()
    for index, row in enumerate(report.constraints):
        writer.writerow(written({**_row(row), **_finding_cells(row_findings.get(index, []))}))
    for place, findings in by_place(report.findings).items():
        if place not in rows_at:
            writer.writerow(written({**_at(place), **_finding_cells(findings)}))
    for each in unchecked(report):
        writer.writerow(written(_unchecked_cells(each.reason, each.message, each.ref, each.path)))
    named = {each.reason for each in unchecked(report)}
    for reason, lines in common.unanswered(report).items():
        if reason not in named:
            writer.writerow(written(_unchecked_cells(reason, lines[0])))
    return text.getvalue()


def _unchecked_cells(reason: str, message: str, ref: ObjectRef | None = None, path: str | UnsetType = UNSET) -> Cells:
    """Return the cells about an object that could not be checked, or about several without names."""
    identity = {} if ref is None else {"namespace": ref.namespace, "kind": ref.kind, "workload": ref.name}
    return {**identity, "path": path, "severity": Severity.ERROR.value, "name": reason, "message": message}


def written(contents: Cells) -> dict[str, str]:
    """Return the texts of the cells that apply."""
    return {name: _cell(content) for name, content in contents.items() if not isinstance(content, UnsetType)}


def _cell(content: str | float | bool) -> str:
    """Return the text of a cell, quoted if a spreadsheet would read it as a formula."""
    if isinstance(content, str):
        text = safe(content)
        return f"'{text}" if text.startswith(_FORMULA) else text
    return str(content).lower()


def _at(place: FieldRef) -> Cells:
    ref = place.object
    return {"namespace": ref.namespace, "kind": ref.kind, "workload": ref.name, "path": place.path}


def _row(row: Row) -> Cells:
    selects_pods, domains = not matches_nothing(row), domain_counts(row)
    return {
        **_at(row.place),
        "topology_key": row.topology_key,
        "when_unsatisfiable": row.when_unsatisfiable,
        "pods": row.pod_count,
        "pending": row.pending,
        "terminating": row.terminating,
        "verdict": next(iter(row.verdicts), ""),
        "verdicts": " ".join(f"{verdict}={number}" for verdict, number in row.verdicts.items()),
        "max_skew": row.max_skew,
        "skew": row.skew if selects_pods else UNSET,
        "lower_bound": row.lower_bound,
        "domains": domains.number if domains else UNSET,
        "min_match": row.min_match_num if selects_pods else UNSET,
        "effective_selector": labels.describe(row.selector.effective),
    }


def _finding_cells(findings: Sequence[Finding]) -> Cells:
    """Return the number of findings, their codes, and the fields of the worst finding."""
    if not findings:
        return {"findings": 0}
    worst = max(findings, key=lambda finding: finding.severity)
    commands = [*worst.opening, *worst.own_commands]
    fixes = [line for line in worst.fixes if line not in commands]
    return {
        "findings": len(findings),
        "codes": " ".join(sorted({finding.code for finding in findings})),
        "severity": worst.severity.value,
        "code": worst.code,
        "name": worst.name,
        "message": worst.message,
        "fix": " ".join(fixes),
        "commands": "\n".join(commands),
        "patch": common.patch(worst),
    }


_COUNTS: Final = ("nodes", "ready", "cordoned", "pods", "share", "terminating", "workloads", "only_here", "half_here")
_REQUESTS: Final = ("cpu_requested", "cpu_allocatable", "memory_requested", "memory_allocatable", "unknown_requests")
DOMAIN_COLUMNS: Final = ("topology_key", "value", *_COUNTS, *_REQUESTS)
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


def domains_csv(report: SpreadDomains) -> str:
    """Return a report as CSV (RFC 4180) with a head; cells that do not apply are empty."""
    text = io.StringIO()
    if isinstance(report.workloads, UnsetType):
        writer = comma_separated.DictWriter(text, DOMAIN_COLUMNS, restval="")
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
    cells = {**_place(report, domain), **{name: getattr(domain, name) for name in _COUNTS}}
    if isinstance(domain.requests, UnsetType):
        return cells
    cpu, memory = domain.requests.cpu, domain.requests.memory
    amounts = (cpu.requested, cpu.allocatable, memory.requested, memory.allocatable, domain.requests.unknown_pods)
    return {**cells, **dict(zip(_REQUESTS, amounts, strict=True))}


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
