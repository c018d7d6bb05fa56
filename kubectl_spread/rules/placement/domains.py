"""SPR304, SPR306, SPR311 and SPR313: too few domains, and domains with an empty value."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kubectl_spread.audit.evaluation.evaluate import Audit, EvaluatedConstraint
from kubectl_spread.audit.evaluation.obstacles import only_pinned
from kubectl_spread.kube.api.topologykeys import HOSTNAME
from kubectl_spread.kube.scheduler.podtopologyspread.spread import Spread
from kubectl_spread.phrases import capitalized, plural, value
from kubectl_spread.phrases import domains as domains_in_words
from kubectl_spread.report.model import Severity
from kubectl_spread.rules.model import Evidence, InputPart, Rule, RuleInput, Values, names
from kubectl_spread.rules.placement.closed import (
    UNPIN,
    fewer_domains,
    left_out,
    left_out_in_words,
    obstacles_outside,
    shortage,
)

_MORE_NODES: Final = "add nodes in the missing domains"


def _too_few_domains(rule_input: RuleInput) -> Iterator[Evidence]:
    for row, spread in rule_input.awaiting:
        if spread.short_of_domains and spread.constraint.min_domains > 1:
            values: Values = {
                "domains": plural(len(spread.match_num), "domain"),
                "left_out": left_out_in_words(row.evaluations[0][0].pod_class, spread, rule_input.audit),
                "shortage": shortage(spread, row.evaluations[0][0], rule_input.audit),
                "min_domains": spread.constraint.min_domains,
                "topology_key": spread.constraint.topology_key,
                "max_skew": spread.constraint.max_skew,
            }
            if spread.allows_all:
                yield Evidence(names(row.pods), values, Severity.INFO)
            else:
                pod_class = row.evaluations[0][0].pod_class
                fix, shut = fewer_domains(spread, pod_class, rule_input), left_out(spread, pod_class, rule_input)
                yield Evidence(names(row.pods), values, fix=fix, closed=shut)
            return


def _empty_value(rule_input: RuleInput) -> Iterator[Evidence]:
    for row, spread in rule_input.counted:
        if nodes := _with_empty_value(spread, rule_input.audit):
            values: Values = {
                "topology_key": spread.constraint.topology_key,
                "nodes": plural(nodes, "node"),
                "have": "has" if nodes == 1 else "have",
            }
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
            }
            fix = _MORE_NODES if spread.constraint.min_domains > len(domains) else None
            yield Evidence(names(row.pods), values, _at_most_info(row), fix)
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
                "only": _with_nodes(spread, domain),
            }
            outside = obstacles_outside(row.evaluations[0][0].pod_class, spread, rule_input.audit)
            fix = UNPIN if any(map(only_pinned, outside.values())) else None
            yield Evidence(names(row.pods), values, fix=fix, exposes=constraint.topology_key)
            return


def _with_nodes(spread: Spread, domain: str) -> str:
    """Return a domain in words, with its number of nodes if it is not one node."""
    key = spread.constraint.topology_key
    number = "" if key == HOSTNAME else f" ({plural(spread.domains.nodes[domain], 'node')})"
    return capitalized(domains_in_words(key, [domain])) + number


TOO_FEW_DOMAINS: Final = Rule(
    code="SPR304",
    name="too-few-domains",
    severity=Severity.WARNING,
    summary="Fewer domains are eligible than minDomains asks for",
    message="{shortage}",
    why=(
        "Until as many domains as minDomains are eligible, the scheduler takes 0 for the global minimum. Each domain "
        "may then have at most maxSkew pods and further pods stay pending, which makes a cluster autoscaler add nodes "
        "elsewhere. Where no node takes the pods because of this, SPR303 says so and this finding is left out."
    ),
    fix="add nodes in another domain, or lower minDomains in the pod template",
    source="https://kep.k8s.io/3022",
    cases=(
        (Severity.WARNING, "Some domain refuses the next pod because of it."),
        (Severity.INFO, "Every domain still allows the next pod."),
    ),
    remedies=("command", "patch"),
    no_remedy=(
        "Every domain still allows the next pod, the pod template cannot change, or an object of another kind owns it."
    ),
    needs_nodes=True,
    parts=InputPart.COUNTS,
    check=_too_few_domains,
)

EMPTY_VALUE: Final = Rule(
    code="SPR306",
    name="empty-topology-value",
    severity=Severity.WARNING,
    summary="The topology key has the empty string as a value on some nodes",
    message='{nodes} {have} the empty value "" of {topology_key}. The scheduler counts "" as one more domain.',
    why=(
        "The empty string is a value like any other. Some cloud integrations write it where they do not know the zone, "
        "and pods are then spread over a domain that does not exist."
    ),
    fix=(
        "set the right value (kubectl label --overwrite node NODE {topology_key}=VALUE) on the nodes that "
        "kubectl get nodes -l {topology_key}= lists, or remove the label"
    ),
    source="https://github.com/Azure/karpenter-provider-azure/issues/1384",
    cases=(
        (Severity.WARNING, "The constraint is in the pod template."),
        (Severity.INFO, "The constraint is a ScheduleAnyway default of the scheduler."),
    ),
    no_remedy=(
        "The right value is known only to the operator of the nodes, and nodes without the label refuse the pods."
    ),
    needs_nodes=True,
    parts=InputPart.COUNTS,
    check=_empty_value,
)

MISSING_DOMAINS: Final = Rule(
    code="SPR311",
    name="missing-domains",
    severity=Severity.WARNING,
    summary="Fewer domains have nodes than --expect-domains says",
    message="Only {domains} of the {expected} domains of {topology_key} have nodes.",
    why=(
        "The scheduler knows a domain by its nodes. A zone whose last node is gone is not an empty domain, it is none: "
        "pods look well spread over the remaining zones."
    ),
    fix=f"{_MORE_NODES}, and set minDomains in the pod template if pods should wait for them",
    source="https://kep.k8s.io/3022",
    cases=(
        (Severity.WARNING, "The constraint is in the pod template."),
        (Severity.INFO, "The constraint is a ScheduleAnyway default of the scheduler."),
    ),
    no_remedy=(
        "Only nodes in the missing domains help, and a higher minDomains keeps pods pending until they are there."
    ),
    needs_nodes=True,
    parts=InputPart.COUNTS,
    check=_missing_domains,
)

SINGLE_DOMAIN: Final = Rule(
    code="SPR313",
    name="single-domain",
    severity=Severity.INFO,
    summary="Only one domain is eligible, so pods cannot be spread",
    message="{only} is the only eligible domain of {topology_key}, so all pods have to be in it.",
    why=(
        "The count of a single domain is the global minimum too, so its skew is 0 and maxSkew keeps no pod away. "
        "minDomains makes pods wait for more domains. This is a note, because nothing in the pod template can spread "
        "the pods until there are more domains."
    ),
    fix="add nodes in other domains, or set minDomains if the pods must not start without them",
    source="https://kubernetes.io/docs/concepts/scheduling-eviction/topology-spread-constraints/",
    no_remedy="Only nodes in other domains help, and minDomains keeps pods pending until they are there.",
    needs_nodes=True,
    parts=InputPart.COUNTS,
    check=_single_domain,
)
