"""SPR305 and SPR307: nodes and domains that pods of a constraint cannot reach."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kubectl_spread.audit.evaluation import obstacles
from kubectl_spread.audit.evaluation.evaluate import Audit
from kubectl_spread.audit.evaluation.obstacles import only_pinned
from kubectl_spread.audit.snapshot.records import PodRecord
from kubectl_spread.diagnosis.node_answers import NodeAnswers, obstacles_on
from kubectl_spread.kube.api.topologykeys import HOSTNAME
from kubectl_spread.kube.scheduler.podtopologyspread.spread import Spread
from kubectl_spread.phrases import capitalized, domains, plural, value
from kubectl_spread.report.model import Severity
from kubectl_spread.rules.model import FILTERING, Evidence, InputPart, Rule, RuleInput, Values, names
from kubectl_spread.rules.placement.closed import UNPIN, closed, closed_domains, lowest, opening
from kubectl_spread.rules.remedy import labelled

_NOTHING_NOW: Final = "nothing to do now, because every other domain still allows the next pod"


def _keyless_nodes(rule_input: RuleInput) -> Iterator[Evidence]:
    for row, spread in rule_input.awaiting:
        constraint, nodes = spread.constraint, rule_input.audit.nodes
        if constraint.lenient:
            continue
        usable = nodes.usable(row.evaluations[0][0].pod_class.placement)
        keyless = [node for node in nodes.lacking(constraint.topology_key) if usable[node].schedulable]
        all_of_them = len(keyless) == len(nodes.nodes)
        # SPR303 reports pods of a hard constraint that refuses every node on which they could run.
        if keyless and not (constraint.hard and len(keyless) == sum(node.schedulable for node in usable.values())):
            values: Values = {
                "nodes": _nodes(keyless, all_of_them=all_of_them),
                "topology_key": constraint.topology_key,
                "effect": _effect(hard=constraint.hard, single=len(keyless) == 1),
            }
            severity = Severity.WARNING if constraint.hard else Severity.INFO
            fix = labelled(keyless, constraint.topology_key, rule_input)
            yield Evidence(names(row.pods), values, severity, fix)
            return


def _nodes(keyless: list[str], *, all_of_them: bool) -> str:
    """Return the subject of the message with its verb."""
    if all_of_them:
        return "All nodes lack"
    return f"{capitalized(domains(HOSTNAME, keyless))} {'lacks' if len(keyless) == 1 else 'lack'}"


def _effect(*, hard: bool, single: bool) -> str:
    if hard:
        return "it never gets one of these pods" if single else "they never get one of these pods"
    return "its score is the lowest" if single else "their scores are the lowest"


def _held_down(rule_input: RuleInput) -> Iterator[Evidence]:
    """Yield domains that no pod can use and that keep the minimum below the other domains."""
    for row, spread in rule_input.awaiting:
        if not spread.constraint.hard and not spread.exceeds_max_skew:
            continue
        refusals = obstacles_on(row, lowest(spread), rule_input.audit)
        least = spread.match_num.least
        fuller = sum(number > least for number in spread.match_num.values()) if refusals else 0
        if not refusals or not fuller or fuller < spread.constraint.min_domains:
            continue
        shut = closed(spread, refusals)
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
            evaluation = next(each for each, _ in row.evaluations if each.spreads[row.index] is spread)
            waiting = names(pod for pod in row.pods if not pod.node and _fits_nowhere(pod, rule_input.audit))
            if waiting:
                values["effect"] = f"{values['effect']}, and no node takes {_pending(len(waiting))}"
            fix = opening(shut, evaluation, rule_input, blocked=bool(waiting))
            severity = Severity.ERROR if waiting else Severity.WARNING
            for_all = closed_domains(shut, evaluation, rule_input)
            yield Evidence(waiting or names(row.pods), values, severity, fix, closed=for_all)
        return


def _fits_nowhere(pod: PodRecord, audit: Audit) -> bool:
    """Tell whether every node refuses a pod, by its hard constraints or before these decide."""
    spreads = [spread for spread in audit.evaluator.of(pod.pod_class).spreads if spread and spread.constraint.hard]
    return not any(NodeAnswers(pod.pod_class, audit, spreads).free())


def _pending(number: int) -> str:
    return "the pending pod" if number == 1 else f"the {number} pending pods"


def _effect_on_others(spread: Spread) -> str:
    """Return what the closed domains do to the pods of the others."""
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
    why=(
        "DoNotSchedule constraints refuse a node that lacks the topology key of one of them, and pods on such a node "
        "count for none of them. With ScheduleAnyway constraints the node gets the lowest score."
    ),
    fix="label the nodes, or use a topology key that they have",
    source=FILTERING,
    cases=(
        (Severity.WARNING, "A DoNotSchedule constraint refuses the nodes."),
        (Severity.INFO, "The constraint is ScheduleAnyway, so the pods may still use the nodes."),
    ),
    remedies=("command",),
    no_remedy=(
        "The value of the label is known only to the operator of the node, unless it is the name of the node or the "
        "value of the label that the key replaced."
    ),
    needs_nodes=True,
    parts=InputPart.COUNTS,
    check=_keyless_nodes,
)

HELD_DOWN: Final = Rule(
    code="SPR307",
    name="unreachable-minimum",
    severity=Severity.WARNING,
    summary="A domain that takes no pod holds the global minimum down",
    message="{closed}. {effect}.",
    why=(
        "A domain counts as long as it has a node, even a tainted, cordoned or full one, unless the policies of the "
        "constraint leave the node out. All other domains may have at most maxSkew pods more than it has. Where no "
        "node takes the pods because of this, SPR303 says so and this finding is left out."
    ),
    fix=(
        "open the domain, or set nodeTaintsPolicy: Honor in the pod template, so that nodes with taints that the pods "
        "do not tolerate no longer count"
    ),
    source="https://github.com/kubernetes/kubernetes/issues/80921",
    cases=(
        (Severity.ERROR, "Some domains refuse pending pods because of it, and no node takes these pods."),
        (Severity.WARNING, "Some domains refuse the next pod because of it."),
        (Severity.INFO, "Every other domain still allows the next pod, or the constraint is ScheduleAnyway."),
    ),
    remedies=("command", "patch"),
    no_remedy=(
        "Room on nodes and the end of a taint are for the operator of the nodes to decide. A patch is given where "
        "nodeTaintsPolicy or nodeAffinityPolicy leaves out the domain and no pod."
    ),
    needs_nodes=True,
    parts=InputPart.COUNTS,
    check=_held_down,
)
