"""The table of several clusters, and the heading of each of their reports."""

from __future__ import annotations

from typing import Final

from msgspec import UnsetType

from kubectl_spread.phrases import plural
from kubectl_spread.render import words
from kubectl_spread.render.screen import STYLES
from kubectl_spread.render.terminal import Cell, Column, Terminal
from kubectl_spread.render.terminal import table as terminal_table
from kubectl_spread.report.fleet import FleetCluster, SpreadFleet, findings_of
from kubectl_spread.report.model import Severity

_COLUMNS: Final = (
    Column("CONTEXT", fit="middle", least=12),
    Column("UID", fit="end"),
    Column("KUBERNETES", fit="end", short="VERSION"),
    Column("PODS", "right"),
    Column("WORKLOADS", "right"),
    Column("ERRORS", "right"),
    Column("WARNINGS", "right"),
    Column("STATUS", fit="wrap", least=24),
)
_NONE: Final = "-"


def heading(cluster: FleetCluster) -> str:
    """Return the line above the report of a cluster."""
    uid = "" if isinstance(cluster.uid, UnsetType) else f" (UID {words.safe(cluster.uid)})"
    return f"=== {words.safe(cluster.context)}{uid}\n"


def table(fleet: SpreadFleet, terminal: Terminal) -> str:
    """Return a row for each cluster, and a sentence with the totals."""
    rows = [_row(cluster) for cluster in fleet.clusters]
    summary = fleet.summary
    text = f"{plural(summary.findings.error, 'error')} and {plural(summary.findings.warning, 'warning')}"
    text += f" in {plural(summary.clusters, 'cluster')}."
    text += f" {plural(summary.failed, 'cluster')} could not be checked." if summary.failed else ""
    text += f" {plural(summary.incomplete, 'cluster')} could not be checked completely." if summary.incomplete else ""
    return f"{terminal_table(_COLUMNS, rows, terminal)}\n{text}\n"


def _row(cluster: FleetCluster) -> list[Cell | str]:
    counts = findings_of([cluster])
    errors, warnings = str(counts.error), str(counts.warning)
    status = words.safe(": ".join([cluster.status, *cluster.errors[:1]]))
    if isinstance(cluster.report, UnsetType):
        cell = Cell(status, style=STYLES[Severity.ERROR])
        return [words.safe(cluster.context), _NONE, _NONE, _NONE, _NONE, _NONE, _NONE, cell]
    summary, version = cluster.report.summary, cluster.server_version
    return [
        words.safe(cluster.context),
        _NONE if isinstance(cluster.uid, UnsetType) else words.safe(cluster.uid),
        _NONE if isinstance(version, UnsetType) else words.safe(version),
        str(summary.pods),
        str(summary.workloads),
        Cell(errors, style=STYLES[Severity.ERROR]) if counts.error else errors,
        Cell(warnings, style=STYLES[Severity.WARNING]) if counts.warning else warnings,
        status,
    ]
