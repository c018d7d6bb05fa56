"""The report of ``check`` and ``simulate`` on several clusters; its JSON form is a contract (docs/json.md)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Literal

from msgspec import UNSET, UnsetType

from kubectl_spread.report.model import API_VERSION, FindingCounts, Part, Report, Severity
from kubectl_spread.report.simulation import SpreadSimulation

KIND = "SpreadFleet"


class FleetCluster(Part, frozen=True, kw_only=True):
    """One cluster of several; ``uid`` is that of its namespace ``kube-system``.

    ``incomplete`` reports lack what ``errors`` name. A ``failed`` cluster has no report.
    """

    context: str
    uid: str | UnsetType = UNSET
    server_version: str | UnsetType = UNSET
    status: Literal["complete", "incomplete", "failed"]
    errors: list[str]
    report: Any | UnsetType = UNSET


class FleetSummary(Part, frozen=True, kw_only=True):
    """Totals of several clusters."""

    clusters: int
    incomplete: int
    failed: int
    findings: FindingCounts


class SpreadFleet(Part, frozen=True, kw_only=True):
    """The reports of several clusters."""

    api_version: str = API_VERSION
    kind: str = KIND
    clusters: list[FleetCluster]
    summary: FleetSummary


def answered(context: str, report: Report | SpreadSimulation, errors: Sequence[str]) -> FleetCluster:
    """Return a cluster with its report."""
    return FleetCluster(
        context=context,
        uid=report.cluster.uid,
        server_version=report.cluster.server_version,
        status="incomplete" if errors else "complete",
        errors=list(errors),
        report=report,
    )


def failed(context: str, errors: Sequence[str]) -> FleetCluster:
    """Return a cluster without a report."""
    return FleetCluster(context=context, status="failed", errors=list(errors))


def fleet(clusters: Sequence[FleetCluster]) -> SpreadFleet:
    """Return the report of all clusters."""
    statuses = Counter(cluster.status for cluster in clusters)
    summary = FleetSummary(
        clusters=len(clusters),
        incomplete=statuses["incomplete"],
        failed=statuses["failed"],
        findings=findings_of(clusters),
    )
    return SpreadFleet(clusters=list(clusters), summary=summary)


def severities(clusters: Iterable[FleetCluster]) -> list[Severity]:
    """Return the severity of each finding in the reports of clusters."""
    reports = (cluster.report for cluster in clusters if not isinstance(cluster.report, UnsetType))
    return [finding.severity for report in reports for finding in report.findings]


def findings_of(clusters: Iterable[FleetCluster]) -> FindingCounts:
    """Return the number of findings in the reports of clusters, by severity."""
    return FindingCounts(**Counter(severity.value for severity in severities(clusters)))


def same_clusters(clusters: Sequence[FleetCluster]) -> list[list[str]]:
    """Return the contexts that lead to one cluster, where there are several."""
    contexts: dict[str, list[str]] = {}
    for cluster in clusters:
        if not isinstance(cluster.uid, UnsetType):
            contexts.setdefault(cluster.uid, []).append(cluster.context)
    return [names for names in contexts.values() if len(names) > 1]
