"""The answer to ``explain``: a report of one pod or workload, and why its next pod may go here and not there."""

from __future__ import annotations

from msgspec import UNSET, UnsetType

from kubectl_spread.audit import report
from kubectl_spread.audit.evaluate import Audit, Group
from kubectl_spread.kube import taints
from kubectl_spread.kube.model import Node
from kubectl_spread.kube.podtopologyspread import Placement, Spread


class Refusal(report.Part, frozen=True, kw_only=True):
    """Nodes that will not take the next pod, all for the same reason."""

    reason: str
    nodes: list[str]


class Placing(report.Part, frozen=True, kw_only=True):
    """Where the next pod of one group may go; nodes are held against taints.

    Node affinity and hard constraints, in this order.
    """

    pods: list[str]
    allowed: list[str]
    refused: list[Refusal]


class Explanation(report.Part, frozen=True, kw_only=True):
    """Everything about one pod or workload."""

    api_version: str = report.API_VERSION
    kind: str = "SpreadExplanation"
    cluster: report.Cluster
    namespace: str
    object: report.Workload
    constraints: list[report.Row]
    groups: list[report.Group]
    pods: list[report.Pod]
    placing: list[Placing] | UnsetType = UNSET
    findings: list[report.Finding]
    summary: report.Summary


def explain(audit: Audit, found: report.Report, namespace: str, target: report.Workload) -> Explanation:
    """Return the explanation of what an audit and its report say about ``target``."""
    return Explanation(
        cluster=found.cluster,
        namespace=namespace,
        object=target,
        constraints=found.constraints,
        groups=found.groups,
        pods=found.pods,
        placing=[_placing(group, audit) for group in audit.groups if group.view.node_answer is not None],
        findings=found.findings,
        summary=found.summary,
    )


def _placing(group: Group, audit: Audit) -> Placing:
    shape = group.view.shape
    hard = [spread for spread in group.view.spreads if spread is not None and spread.constraint.hard]
    allowed: list[str] = []
    refused: dict[str, list[str]] = {}
    for node in audit.nodes.nodes:
        reason = _first_refusal(node, shape.placement, hard, audit)
        (allowed if reason is None else refused.setdefault(reason, [])).append(node.metadata.name)
    return Placing(
        pods=[pod.name for pod in group.pods],
        allowed=allowed,
        refused=[Refusal(reason=reason, nodes=refused[reason]) for reason in sorted(refused)],
    )


def _first_refusal(node: Node, placement: Placement, hard: list[Spread], audit: Audit) -> str | None:
    """Return why a node will not take the pod, by the first filter of the scheduler's order that refuses, or None."""
    comparison = audit.context.behaviour.toleration_comparison
    if not placement.opens(node, audit.context.behaviour):
        return "cordoned"
    taint = taints.find_untolerated(node.spec.taints, placement.tolerations, comparison_operators=comparison)
    if taint is not None:
        value = f"={taint.value}" if taint.value else ""
        return f"untolerated taint {taint.key}{value}:{taint.effect}"
    if not placement.fits(node):
        return "node affinity or nodeSelector does not match"
    for spread in hard:
        key = spread.constraint.topology_key
        if key not in node.metadata.labels:
            return f"no label {key}"
        value = node.metadata.labels[key]
        if not spread.allows(value):
            return f"{key} {value or chr(34) * 2}: {formula(spread, value)}"
    return None


def formula(spread: Spread, value: str) -> str:
    """Return the Filter's comparison with its numbers, for one domain."""
    match_num = spread.match_num.get(value, 0)
    left = match_num + spread.self_match_num - spread.min_match_num
    sign = ">" if left > spread.constraint.max_skew else "<="
    numbers = f"{match_num} + {spread.self_match_num} - {spread.min_match_num}"
    return f"{numbers} = {left} {sign} {spread.constraint.max_skew}"
