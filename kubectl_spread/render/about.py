"""The header of a report: the cluster, its Kubernetes, the number of objects, the time, and closed zones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import UnsetType

from kubectl_spread.audit.merge.verdicts import GATED
from kubectl_spread.kube.api.labels import HOSTNAME, ZONE
from kubectl_spread.kube.api.objects import ObjectRef
from kubectl_spread.phrases import capitalized, domains, listed, plural
from kubectl_spread.report.domains import ReadCluster
from kubectl_spread.report.model import ClosedDomains, Cluster, Finding, Severity, Summary
from kubectl_spread.report.simulation import AUTOSCALERS, NODES_TO_COME

_NODES: Final = 6
"""The most nodes of closed domains that are named; the command has all of them."""
_BLOCKED: Final = "SPR303"
"""The rule about pods that no node takes; the others are about domains that refuse a pod."""
EXPLAIN: Final = "kubectl spread explain TYPE/NAME -n NAMESPACE prints the patch"


def autoscaling(left_out: Sequence[str]) -> list[str]:
    """Return whether new nodes are simulated for pods that wait, where autoscalers may make some."""
    if NODES_TO_COME in left_out:
        return ["without and with new nodes"]
    return [f"{AUTOSCALERS} not simulated"] if AUTOSCALERS in left_out else []


def not_simulated(left_out: Sequence[str]) -> list[str]:
    """Return a sentence on what a simulation leaves out, if that could matter."""
    return [f"Not simulated: {'; '.join(left_out)}."] if left_out else []


def closed_domains(findings: Sequence[Finding]) -> ClosedDomains | None:
    """Return the closed domains for which the pods of all findings of a cause wait."""
    return findings[0].closed or None


def message(findings: Sequence[Finding]) -> str:
    """Return the message of a cause: that of its only finding, or a sentence about all workloads that wait."""
    closed = closed_domains(findings)
    if closed is None or len(findings) == 1:
        return findings[0].message
    text = f"{summary(closed, findings)}."
    pods, workloads = waiting(findings)
    others = len({finding.ref for finding in findings}) - workloads
    if pods and others:
        which = "another workload" if others == 1 else f"any of {others} other workloads"
        text += f" One more pod of {which} {_auxiliary(findings)} wait, too."
    return text


def summary(closed: ClosedDomains, findings: Sequence[Finding]) -> str:
    """Return how domains are closed and how many pods wait for them, without the full stop."""
    nodes = "" if closed.topology_key == HOSTNAME else f" ({_named(closed.nodes)})"
    verb, whom = ("is", "it") if len(closed.domains) == 1 else ("are", "them")
    state = f"{capitalized(domains(closed.topology_key, closed.domains))} {verb} {closed.state}{nodes}"
    pods, workloads = waiting(findings)
    if pods:
        return f"{state}: {plural(pods, 'pod')} of {plural(workloads, 'workload')} wait{'s' * (pods == 1)} for {whom}"
    others = len({finding.ref for finding in findings})
    which = f"{'any of ' * (others > 1)}{plural(others, 'workload')}"
    return f"{state}: one more pod of {which} {_auxiliary(findings)} wait for {whom}"


def _auxiliary(findings: Sequence[Finding]) -> str:
    """Return "would" if no node takes one more pod of any workload without pending pods; else some domain may."""
    with_pending = {finding.ref for finding in findings if finding.severity is Severity.ERROR and finding.pending}
    refused = {finding.ref for finding in findings if finding.code == _BLOCKED}
    return "would" if {finding.ref for finding in findings} <= with_pending | refused else "could"


def _named(nodes: Sequence[str]) -> str:
    return ", ".join(nodes) if len(nodes) <= _NODES else listed(nodes, _NODES)


def waiting(findings: Sequence[Finding]) -> tuple[int, int]:
    """Return the number of pending pods of errors, and of their workloads."""
    errors = [finding for finding in findings if finding.severity is Severity.ERROR and finding.pending]
    pods = {(finding.namespace, pod) for finding in errors for pod in finding.pods}
    return len(pods), len({finding.ref for finding in errors})


def alternative(findings: Sequence[Finding], others: Iterable[Finding]) -> str:
    """Return what to do if the domains stay closed, and how many of the workloads that helps.

    Args:
        findings: The findings of the cause.
        others: Those with a fix for the case that the domains stay closed.
    """
    fixes: dict[str, set[ObjectRef]] = {}
    for finding in others:
        fixes.setdefault(finding.fix, set()).add(finding.ref)
    fix, helped = max(fixes.items(), key=lambda item: len(item[1]))
    total = len({finding.ref for finding in findings})
    which = f"{len(helped)} of {plural(total, 'workload')}" if len(helped) < total else f"all {total}"
    return f"{fix} This helps {which}: {EXPLAIN} of each."


_ASSUMED: Final = " (newest known; --server-version changes it)"


def label(cluster: Cluster | ReadCluster) -> str:
    """Return a label for a cluster: the name from the user, the context, or its name; "" where all are unknown."""
    if isinstance(cluster.name, str) and cluster.name_source == "flag":
        return cluster.name
    return next((name for name in (cluster.context, cluster.name) if isinstance(name, str)), "")


def identity(cluster: Cluster) -> dict[str, str]:
    """Return the known identity of a cluster, with the names of its fields in JSON."""
    fields: dict[str, str | UnsetType] = {
        "context": cluster.context,
        "name": cluster.name,
        "uid": cluster.uid,
        "readAt": cluster.read_at,
        "serverVersion": cluster.server_version,
        "evaluatedAs": cluster.evaluated_as,
        "namespace": cluster.namespace,
    }
    return {name: value for name, value in fields.items() if isinstance(value, str)}


def header(cluster: Cluster, summary: Summary, findings: Iterable[Finding], *, scope: bool = True) -> list[str]:
    """Return the parts of the header.

    Assumed feature gates are mentioned only if one of the ``findings`` depends on them. ``scope`` tells whether the
    report is about a namespace or a cluster, and not about one workload in the line above.
    """
    version = _kubernetes(cluster) + _gates(cluster, findings)
    return [*filter(None, (label(cluster), version, _read(cluster, summary, scope=scope), cluster.read_at or ""))]


def identified(cluster: Cluster) -> list[str]:
    """Return the label of a cluster, if it has any, and its Kubernetes, or the version whose rules decide."""
    return [*filter(None, [label(cluster), _kubernetes(cluster)])]


def _kubernetes(cluster: Cluster) -> str:
    """Return the version of the server, and the version whose rules decide if it differs."""
    if isinstance(cluster.server_version, UnsetType):
        assumed = _ASSUMED if cluster.version_source == "default" else ""
        text = f"evaluated as Kubernetes {cluster.evaluated_as}{assumed}"
    else:
        text = f"Kubernetes {cluster.server_version}"
        if cluster.evaluated_as != _minor(cluster.server_version):
            text += f", evaluated as {cluster.evaluated_as}"
    return text + (f", compared with {cluster.compared_with}" if _compares(cluster) else "")


def _compares(cluster: Cluster) -> bool:
    return isinstance(cluster.compared_with, str)


def _minor(version: str) -> str:
    """Return the minor of a version: ``1.37`` of ``1.37.1``."""
    return ".".join(version.split(".")[:2])


def _gates(cluster: Cluster, findings: Iterable[Finding]) -> str:
    match cluster.gates_source:
        case "flag":
            return ", with --feature-gates"
        case "version" if _compares(cluster) or any(finding.name in GATED for finding in findings):
            return ", default feature gates"
    return ""


def _read(cluster: Cluster, summary: Summary, *, scope: bool) -> str:
    where = _scope(cluster) if scope else ""
    counts = (_pods(summary, workloads=scope), nodes(cluster))
    return f"{where}{': ' if where else ''}{', '.join(counts)}"


def _scope(cluster: Cluster) -> str:
    """Return the namespaces in scope; "" for files, of which all namespaces are."""
    if isinstance(cluster.namespace, str):
        return f"namespace {cluster.namespace}"
    return "" if isinstance(cluster.server_version, UnsetType) else "all namespaces"


def _pods(summary: Summary, *, workloads: bool) -> str:
    """Return the number of pods and workloads, or of pod templates where there are no pods."""
    if summary.pods:
        without = f", {plural(summary.without_pods, 'workload')} without pods" if summary.without_pods else ""
        of = f" in {plural(summary.workloads, 'workload')}{without}" if workloads else ""
        return f"{plural(summary.pods, 'pod')}{of}"
    return plural(summary.templates, "pod template") if isinstance(summary.templates, int) else "0 pods"


def nodes(cluster: Cluster) -> str:
    """Return the number of nodes and zones, or how domains are known without nodes."""
    if cluster.nodes == "inferred":
        return "domains inferred from pods' labels"
    if cluster.nodes == "none":
        return "no nodes"
    nodes = plural(cluster.node_count or 0, "node")
    if not cluster.zone_count:
        return nodes
    closed = f" ({text})" if (text := closed_zones(cluster)) else ""
    return f"{nodes} in {plural(cluster.zone_count, 'zone')}{closed}"


def closed_zones(cluster: Cluster) -> str:
    """Return the zones whose nodes all keep pods away: ``zone b is cordoned, zones c and d are tainted``; or ""."""
    states: dict[str, list[str]] = {}
    for zone in cluster.zones or ():
        if zone.closed:
            states.setdefault(zone.closed, []).append(zone.zone)
    return ", ".join(
        f"{domains(ZONE, states[state])} {'is' if len(states[state]) == 1 else 'are'} {state}"
        for state in sorted(states)
    )
