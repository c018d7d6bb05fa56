"""SPR304, SPR306, SPR311 and SPR313: too few domains, and domains with an empty value."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kubectl_spread.audit.evaluation import obstacles
from kubectl_spread.audit.evaluation.evaluate import Audit, EvaluatedConstraint
from kubectl_spread.audit.evaluation.obstacles import Obstacle
from kubectl_spread.kube.scheduler.podtopologyspread.spread import Spread
from kubectl_spread.phrases import plural, value
from kubectl_spread.report.severity import Severity
from kubectl_spread.rules.model import Evidence, Rule, Values, names
from kubectl_spread.rules.rule_input import InputPart, RuleInput


def _too_few_domains(rule_input: RuleInput) -> Iterator[Evidence]:
    for row, spread in rule_input.awaiting:
        if spread.short_of_domains and spread.constraint.min_domains > 1:
            values: Values = {
                "domains": plural(len(spread.match_num), "domain"),
                "left_out": _left_out(row, spread, rule_input.audit),
                "min_domains": spread.constraint.min_domains,
                "topology_key": spread.constraint.topology_key,
                "max_skew": spread.constraint.max_skew,
            }
            yield Evidence(names(row.pods), values, Severity.INFO if spread.allows_all else Severity.WARNING)
            return


def _left_out(row: EvaluatedConstraint, spread: Spread, audit: Audit) -> str:
    """Return the domains whose nodes the constraint's policies leave out, each with the reasons."""
    pod_class, key = row.evaluations[0][0].pod_class, spread.constraint.topology_key
    obstacles_by_domain: dict[str, list[Obstacle]] = {}
    for node in audit.nodes.nodes:
        domain = node.metadata.labels.get(key)
        if domain is not None and domain not in spread.match_num:
            obstacle = audit.obstacles.of(pod_class, node.metadata.name)
            if obstacle is not None:
                obstacles_by_domain.setdefault(domain, []).append(obstacle)
    texts = [
        f"{value(domain)} ({obstacles.summary(obstacles_by_domain[domain])})" for domain in sorted(obstacles_by_domain)
    ]
    return f"; left out: {', '.join(texts)}" if texts else ""


def _empty_value(rule_input: RuleInput) -> Iterator[Evidence]:
    for row, spread in rule_input.counted:
        if nodes := _with_empty_value(spread, rule_input.audit):
            values: Values = {"topology_key": spread.constraint.topology_key, "nodes": plural(nodes, "node")}
            yield Evidence(names(row.pods), values, _at_most_info(row))
            return


def _at_most_info(row: EvaluatedConstraint) -> Severity | None:
    """Return info for one of the scheduler's soft default constraints; None stands for the rule's severity."""
    return Severity.INFO if row.term.default and not row.term.required else None


def _with_empty_value(spread: Spread, audit: Audit) -> int:
    """Return the number of nodes with the value ""; a system default has nodes without the label in this domain too."""
    if not spread.constraint.lenient or "" not in spread.match_num:
        return spread.domains.nodes.get("", 0)
    key, inside = spread.constraint.topology_key, spread.domains.value_of
    return sum(node.metadata.name in inside and node.metadata.labels.get(key) == "" for node in audit.nodes.nodes)


def _missing_domains(rule_input: RuleInput) -> Iterator[Evidence]:
    expected = rule_input.audit.context.extra_checks.expected_domains
    for row, spread in rule_input.counted:
        key = spread.constraint.topology_key
        if key not in expected:
            continue
        labels_of_nodes = (node.metadata.labels for node in rule_input.audit.nodes.nodes)
        domains = {labels[key] for labels in labels_of_nodes if key in labels}
        if len(domains) < expected[key]:
            values: Values = {
                "topology_key": key,
                "domains": len(domains),
                "expected": expected[key],
                "bound": "" if spread.constraint.min_domains > len(domains) else "; minDomains does not ask for more",
            }
            yield Evidence(names(row.pods), values, _at_most_info(row))
            return


def _single_domain(rule_input: RuleInput) -> Iterator[Evidence]:
    for row, spread in rule_input.counted:
        constraint = spread.constraint
        if constraint.hard and constraint.min_domains == 1 and len(spread.match_num) == 1 and len(row.pods) > 1:
            (domain,) = spread.match_num
            values: Values = {
                "domain": value(domain),
                "nodes": plural(spread.domains.nodes[domain], "node"),
                "topology_key": constraint.topology_key,
            }
            yield Evidence(names(row.pods), values)
            return


TOO_FEW_DOMAINS: Final = Rule(
    code="SPR304",
    name="too-few-domains",
    severity=Severity.WARNING,
    summary="Fewer domains are eligible than minDomains asks for",
    message=(
        "eligible: {domains} of {topology_key}; minDomains is {min_domains}, so the global minimum counts as 0 and no "
        "domain may hold more than {max_skew}{left_out}"
    ),
    why=(
        "Until there are as many eligible domains as minDomains, the scheduler takes the minimum for 0. Each domain "
        "then holds at most maxSkew pods and further ones stay pending, which is what makes a cluster autoscaler add "
        "nodes elsewhere."
    ),
    fix="add nodes in another domain, or lower minDomains in the pod template",
    source="https://kep.k8s.io/3022",
    needs_nodes=True,
    parts=InputPart.COUNTS,
    check=_too_few_domains,
)

EMPTY_VALUE: Final = Rule(
    code="SPR306",
    name="empty-topology-value",
    severity=Severity.WARNING,
    summary="The topology key has the empty string as a value on some nodes",
    message='{nodes} with the empty value "" of {topology_key}: a domain of its own',
    why=(
        "The empty string is a value like any other. Some cloud integrations write it where they do not know the zone, "
        "and then pods are spread over a domain that does not exist."
    ),
    fix="set the right value on these nodes, or remove the label",
    source="https://github.com/Azure/karpenter-provider-azure/issues/1384",
    needs_nodes=True,
    parts=InputPart.COUNTS,
    check=_empty_value,
)

MISSING_DOMAINS: Final = Rule(
    code="SPR311",
    name="missing-domains",
    severity=Severity.WARNING,
    summary="The nodes show fewer domains than --expect-domains says there are",
    message="{domains} of {expected} domains of {topology_key} have nodes{bound}",
    why=(
        "The scheduler knows a domain by its nodes. A zone whose last node is gone is not empty, it does not exist: "
        "pods look well spread over what is left."
    ),
    fix="bring nodes up in the missing domains; minDomains in the pod template keeps pods waiting for them",
    source="https://kep.k8s.io/3022",
    needs_nodes=True,
    parts=InputPart.COUNTS,
    check=_missing_domains,
)

SINGLE_DOMAIN: Final = Rule(
    code="SPR313",
    name="single-domain",
    severity=Severity.INFO,
    summary="Only one domain is eligible, so there is nothing to spread over",
    message="{domain} is the only eligible domain of {topology_key}, with {nodes}: nothing is spread",
    why=(
        "With one domain its count is the minimum too, and skew is never above selfMatchNum. minDomains makes the "
        "scheduler wait for more domains."
    ),
    fix="add nodes in other domains, or set minDomains if the pods must not start without them",
    source="https://kubernetes.io/docs/concepts/scheduling-eviction/topology-spread-constraints/",
    needs_nodes=True,
    parts=InputPart.COUNTS,
    check=_single_domain,
)
