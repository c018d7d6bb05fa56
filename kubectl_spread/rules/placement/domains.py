"""SPR304 to SPR307, SPR311 and SPR313: too few domains, and nodes and domains that pods cannot reach."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final

from kubectl_spread.audit.evaluation import obstacles
from kubectl_spread.audit.evaluation.evaluate import Audit, EvaluatedConstraint
from kubectl_spread.audit.evaluation.obstacles import only_pinned
from kubectl_spread.audit.snapshot.records import PodClass, PodRecord
from kubectl_spread.engine.node_answers import answers_of, obstacles_on
from kubectl_spread.kube.api import labels
from kubectl_spread.kube.api.labels import HOSTNAME
from kubectl_spread.kube.scheduler import nodeaffinity
from kubectl_spread.kube.scheduler.podtopologyspread.domains import NodeSets, Placement
from kubectl_spread.kube.scheduler.podtopologyspread.spread import Spread
from kubectl_spread.phrases import capitalized, domains, plural, value
from kubectl_spread.phrases import domains as domains_in_words
from kubectl_spread.report.model import Severity
from kubectl_spread.rules.inputs import PodsInput
from kubectl_spread.rules.model import Evidence, Rule, Values, names
from kubectl_spread.rules.placement.closed import (
    UNPIN,
    closed,
    closed_domains,
    fewer_domains,
    left_out,
    left_out_in_words,
    lowest,
    obstacles_outside,
    once_open,
    opening,
    shortage,
)
from kubectl_spread.rules.remedy import labelled

_MORE_NODES: Final = "add nodes in the missing domains"
_NAMED_ONES: Final = " The nodeSelector or node affinity of these pods allows only domains that do."
_NONE_OF_ITS_OWN: Final = "nothing to do for these pods, which a node in a missing domain could not take"


def _too_few_domains(rule_input: PodsInput) -> Iterator[Evidence]:
    for row, spread in rule_input.awaiting:
        if spread.short_of_domains and spread.constraint.min_domains > 1:
            answers = answers_of(row.evaluations[0][0], row.pods[0], rule_input.audit)
            values: Values = {
                "domains": plural(len(spread.match_num), "domain"),
                "left_out": left_out_in_words(spread, answers),
                "shortage": shortage(spread, answers),
                "min_domains": spread.constraint.min_domains,
                "topology_key": spread.constraint.topology_key,
                "max_skew": spread.constraint.max_skew,
            }
            if spread.allows_all:
                yield Evidence(names(row.pods), values, Severity.INFO)
            else:
                fix, shut = fewer_domains(spread, answers, rule_input), left_out(spread, answers)
                yield Evidence(names(row.pods), values, fix=fix, closed=shut)
            return


def _empty_value(rule_input: PodsInput) -> Iterator[Evidence]:
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


def _missing_domains(rule_input: PodsInput) -> Iterator[Evidence]:
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
                "needless": "",
            }
            fix = _MORE_NODES if spread.constraint.min_domains > len(domains) else None
            severity = _at_most_info(row)
            if all(domains.issuperset(_named(key, each.pod_class.placement) or ("",)) for each, _ in row.evaluations):
                values["needless"] = _NAMED_ONES
                severity, fix = Severity.INFO, _NONE_OF_ITS_OWN
            yield Evidence(names(row.pods), values, severity, fix)
            return


def _named(key: str, placement: Placement) -> frozenset[str]:
    """Return the values of a label of which nodeSelector or each term of node affinity requires one; empty for any."""
    if key in placement.node_selector:
        return frozenset((placement.node_selector[key],))
    selector = nodeaffinity.required(placement.affinity)
    named: set[str] = set()
    for term in () if selector is None else selector.node_selector_terms:
        required = [each.values for each in term.match_expressions if (each.key, each.operator) == (key, "In")]
        if not required:
            return frozenset()
        named.update(required[0])
    return frozenset(named)


def _single_domain(rule_input: PodsInput) -> Iterator[Evidence]:
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
            outside = obstacles_outside(spread, answers_of(row.evaluations[0][0], row.pods[0], rule_input.audit))
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
    fix="add nodes in another domain, or lower minDomains in the pod template",
    recommends=True,
    of_counts=_too_few_domains,
)

EMPTY_VALUE: Final = Rule(
    code="SPR306",
    name="empty-topology-value",
    severity=Severity.WARNING,
    summary="The topology key has the empty string as a value on some nodes",
    message='{nodes} {have} the empty value "" of {topology_key}. The scheduler counts "" as one more domain.',
    fix=(
        "set the right value (kubectl label --overwrite node NODE {topology_key}=VALUE) on the nodes that "
        "kubectl get nodes -l {topology_key}= lists, or remove the label"
    ),
    of_counts=_empty_value,
)

MISSING_DOMAINS: Final = Rule(
    code="SPR311",
    name="missing-domains",
    severity=Severity.WARNING,
    summary="Fewer domains have nodes than --expect-domains says",
    message="Only {domains} of the {expected} domains of {topology_key} have nodes.{needless}",
    fix=f"{_MORE_NODES}, and set minDomains in the pod template if pods should wait for them",
    of_counts=_missing_domains,
)

SINGLE_DOMAIN: Final = Rule(
    code="SPR313",
    name="single-domain",
    severity=Severity.INFO,
    summary="Only one domain is eligible, so pods cannot be spread",
    message="{only} is the only eligible domain of {topology_key}, so all pods have to be in it.",
    fix="add nodes in other domains, or set minDomains if the pods must not start without them",
    of_counts=_single_domain,
)


_NOT_RANKED: Final = (
    "no node that these pods could use has the keys of all their ScheduleAnyway constraints, and none of these has an "
    "effect"
)
_NOTHING_NOW: Final = "nothing to do now, because every other domain still allows the next pod"


def _keyless_nodes(rule_input: PodsInput) -> Iterator[Evidence]:
    for row, spread in rule_input.awaiting:
        constraint, nodes = spread.constraint, rule_input.audit.nodes
        lacking = nodes.lacking(constraint.topology_key)
        if constraint.lenient or not lacking:
            continue
        pod_class = row.evaluations[0][0].pod_class
        usable = nodes.usable(pod_class.placement)
        schedulable = {node for node, usability in usable.items() if usability.schedulable}
        keyless = [node for node in lacking if node in schedulable]
        # SPR303 reports pods of a hard constraint that refuses every node on which they could run.
        if keyless and not (constraint.hard and len(keyless) == len(schedulable)):
            all_of_them = len(keyless) == len(nodes.nodes)
            single = len(keyless) == 1 and not all_of_them
            useless = not (constraint.hard or _ranked(pod_class, schedulable, nodes))
            values: Values = {
                "nodes": _nodes(keyless, all_of_them=all_of_them),
                "topology_key": constraint.topology_key,
                "effect": _NOT_RANKED if useless else _effect(hard=constraint.hard, single=single),
            }
            severity = Severity.WARNING if constraint.hard or useless else Severity.INFO
            fix = labelled(keyless, constraint.topology_key, rule_input)
            explains = _soft_keys(pod_class) if useless else ()
            yield Evidence(names(row.pods), values, _at_most_info(row) or severity, fix, explains=explains)
            return


def _soft_keys(pod_class: PodClass) -> tuple[str, ...]:
    return tuple(term.topology_key for term in pod_class.terms if term.spread and not term.required)


def _ranked(pod_class: PodClass, schedulable: Collection[str], nodes: NodeSets) -> bool:
    """Tell whether a node that the pods could use has the topology keys of all their soft constraints."""
    complete = labels.ascending(nodes.carrying(_soft_keys(pod_class)))
    return any(nodes.nodes[number].metadata.name in schedulable for number in complete)


def _nodes(keyless: list[str], *, all_of_them: bool) -> str:
    """Return the subject of the message with its verb."""
    if all_of_them:
        return "All nodes lack"
    return f"{capitalized(domains(HOSTNAME, keyless))} {'lacks' if len(keyless) == 1 else 'lack'}"


def _effect(*, hard: bool, single: bool) -> str:
    if hard:
        return "it never gets one of these pods" if single else "they never get one of these pods"
    score = "its score is" if single else "their scores are"
    where = "it" if single else "them"
    return f"{score} the lowest for all ScheduleAnyway constraints of these pods, and pods on {where} are not counted"


def _held_down(rule_input: PodsInput) -> Iterator[Evidence]:
    """Yield domains that no pod can use and that keep the minimum below the other domains."""
    for row, spread in rule_input.awaiting:
        if not spread.constraint.hard and not spread.exceeds_max_skew:
            continue
        least = spread.match_num.least
        fuller = sum(number > least for number in spread.match_num.values())
        if not fuller or fuller < spread.constraint.min_domains:
            continue
        refusals = obstacles_on(row, lowest(spread), rule_input.audit)
        if not refusals:
            continue
        evaluation = next(each for each, _ in row.evaluations if each.spreads[row.index] is spread)
        shut = closed(spread, answers_of(evaluation, row.pods[0], rule_input.audit), refusals)
        values: Values = {
            "domains": ", ".join(value(domain) for domain in shut.values),
            "topology_key": spread.constraint.topology_key,
            "minimum": least,
            "why": obstacles.summary(refusals),
            "closed": shut.sentence,
            "effect": _effect_on_others(spread),
        }
        if spread.allows_all:
            yield Evidence(names(row.pods), values, Severity.INFO, UNPIN if only_pinned(refusals) else _NOTHING_NOW)
        else:
            waiting = names(pod for pod in row.pods if pod.waits and _fits_nowhere(pod, rule_input))
            for_all = closed_domains(shut)
            if waiting:
                after = once_open(for_all, rule_input)
                values["effect"] = f"{values['effect']}, and no node takes {_pending(len(waiting))}{after}"
            fix = opening(shut, evaluation, rule_input, blocked=bool(waiting))
            severity = Severity.ERROR if waiting else Severity.WARNING
            yield Evidence(waiting or names(row.pods), values, severity, fix, closed=for_all)
        return


def _fits_nowhere(pod: PodRecord, rule_input: PodsInput) -> bool:
    """Tell whether every node refuses a pod."""
    return not rule_input.engine.wait_of(pod).free


def _pending(number: int) -> str:
    return "the pending pod" if number == 1 else f"the {number} pending pods"


def _effect_on_others(spread: Spread) -> str:
    """Return the effect of closed domains on the other domains, as a sentence."""
    if not spread.constraint.hard:
        return f"The skew is {spread.skew}, and no new pod can lower it"
    most = plural(spread.constraint.limit(spread.match_num.least), "matching pod")
    return f"Each other domain may have at most {most}"


KEYLESS_NODES: Final = Rule(
    code="SPR305",
    name="nodes-without-key",
    severity=Severity.WARNING,
    summary="Nodes that the pods could use lack the topology key",
    message="{nodes} the label {topology_key}, so {effect}.",
    fix="label the nodes, or use a topology key that they have",
    of_counts=_keyless_nodes,
)

HELD_DOWN: Final = Rule(
    code="SPR307",
    name="unreachable-minimum",
    severity=Severity.WARNING,
    summary="A domain that takes no pod holds the global minimum down",
    message="{closed}. {effect}.",
    fix=(
        "open the domain, or set nodeTaintsPolicy: Honor in the pod template, so that nodes with taints that the pods "
        "do not tolerate no longer count"
    ),
    recommends=True,
    of_counts=_held_down,
)
