"""The document of several clusters, and the heading of each of their reports."""

from __future__ import annotations

from typing import Final

from msgspec import UnsetType

from kubectl_spread.phrases import plural
from kubectl_spread.render import words
from kubectl_spread.render.document import Document, Table
from kubectl_spread.render.screen import STYLES
from kubectl_spread.render.terminal import Cell, Column
from kubectl_spread.report.fleet import FleetCluster, SpreadFleet, findings_of
from kubectl_spread.report.model import Severity

_COLUMNS: Final = (
    Column("Context", fit="middle", least=12),
    Column("UID", fit="end"),
    Column("Kubernetes", fit="end", short="Version"),
    Column("Pods", "right"),
    Column("Workloads", "right"),
    Column("Errors", "right"),
    Column("Warnings", "right"),
    Column("Status", fit="wrap", least=24),
)
_NONE: Final = "-"


def heading(cluster: FleetCluster) -> str:
    """Return the line above the report of a cluster."""
    uid = "" if isinstance(cluster.uid, UnsetType) else f" (UID {words.safe(cluster.uid)})"
    return f"=== {words.safe(cluster.context)}{uid}\n"


def document(fleet: SpreadFleet) -> Document:
    """Return a row for each cluster, and a sentence with the totals."""
    summary = fleet.summary
    text = f"{plural(summary.findings.error, 'error')} and {plural(summary.findings.warning, 'warning')}"
    text += f" in {plural(summary.clusters, 'cluster')}."
    text += f" {plural(summary.failed, 'cluster')} could not be checked." if summary.failed else ""
    text += f" {plural(summary.incomplete, 'cluster')} could not be checked completely." if summary.incomplete else ""
    return Document(
        command="check",
        title="Clusters",
        cluster="",
        header=[],
        headline=text,
        tables=[Table("Clusters", _COLUMNS, [*map(_row, fleet.clusters)])],
        conclusion_last=True,
    )


def _row(cluster: FleetCluster) -> list[Cell]:
    status = ": ".join([cluster.status, *cluster.errors[:1]])
    if isinstance(cluster.report, UnsetType):
        return [Cell(cluster.context), *[Cell(_NONE)] * 6, Cell(status, STYLES[Severity.ERROR])]
    counts, summary = findings_of([cluster]), cluster.report.summary
    return [
        Cell(cluster.context),
        Cell(cluster.uid or _NONE),
        Cell(cluster.server_version or _NONE),
        Cell(str(summary.pods)),
        Cell(str(summary.workloads)),
        Cell(str(counts.error), STYLES[Severity.ERROR] if counts.error else ""),
        Cell(str(counts.warning), STYLES[Severity.WARNING] if counts.warning else ""),
        Cell(status),
    ]
