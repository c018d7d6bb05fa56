"""SPR305 and SPR307: nodes and domains that pods of a constraint cannot reach."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kubectl_spread.audit.evaluation import obstacles
from kubectl_spread.audit.evaluation.obstacles import Obstacle, ObstacleKind
from kubectl_spread.diagnosis import skew_fix
from kubectl_spread.phrases import some, value
from kubectl_spread.report.severity import Severity
from kubectl_spread.rules.model import FILTERING, Evidence, Rule, Values, names
from kubectl_spread.rules.rule_input import InputPart, RuleInput


def _keyless_nodes(rule_input: RuleInput) -> Iterator[Evidence]:
    for row, spread in rule_input.awaiting:
        constraint, nodes = spread.constraint, rule_input.audit.nodes
        if constraint.lenient:
            continue
        usable = nodes.usable(row.evaluations[0][0].pod_class.placement)
        keyless = [node for node in nodes.lacking(constraint.topology_key) if usable[node].schedulable]
        all_of_them = len(keyless) == len(nodes.nodes)
        # SPR303 reports pods of a hard constraint that refuses every node.
        if keyless and not (all_of_them and constraint.hard):
            values: Values = {
                "nodes": "every node" if all_of_them else some(keyless),
                "topology_key": constraint.topology_key,
                "effect": "never get such a pod" if constraint.hard else "score lowest for such a pod",
            }
            yield Evidence(names(row.pods), values, Severity.WARNING if constraint.hard else Severity.INFO)
            return


def _held_down(rule_input: RuleInput) -> Iterator[Evidence]:
    """Yield domains that no pod can use and that keep the minimum below the other domains."""
    for row, spread in rule_input.awaiting:
        if not spread.constraint.hard and not spread.exceeds_max_skew:
            continue
        least = spread.match_num.least
        nodes = (node for node, domain in spread.domains.value_of.items() if spread.match_num[domain] == least)
        refusals = skew_fix.obstacles_on(row, nodes, rule_input.audit)
        fuller = sum(number > least for number in spread.match_num.values()) if refusals else 0
        if not refusals or not fuller or fuller < spread.constraint.min_domains:
            continue
        lowest = sorted(domain for domain, number in spread.match_num.items() if number == least)
        values: Values = {
            "domains": ", ".join(value(domain) for domain in lowest),
            "topology_key": spread.constraint.topology_key,
            "minimum": least,
            "why": obstacles.summary(refusals),
        }
        yield Evidence(
            names(row.pods), values, Severity.INFO if spread.allows_all else Severity.WARNING, _fix(refusals)
        )
        return


def _fix(refusals: list[Obstacle]) -> str | None:
    """Return the fix for the obstacles; None stands for the rule's fix, which is about taints."""
    causes = {obstacle.cause for obstacle in refusals}
    if ObstacleKind.FULL in causes:
        return "make room in the domain, or let the pods ask for less"
    if ObstacleKind.EXCLUDED in causes:
        return "set nodeAffinityPolicy: Honor in the pod template, so that nodes the pods cannot use do not count"
    return None


KEYLESS_NODES: Final = Rule(
    code="SPR305",
    name="nodes-without-key",
    severity=Severity.WARNING,
    summary="Nodes that the pod could use lack the topology key",
    message="nodes without the label {topology_key} {effect}: {nodes}",
    why=(
        "A node that lacks any topology key of a pod's hard constraints is refused by them, and its pods count in none "
        "of them. With soft constraints such a node gets the lowest score."
    ),
    fix="label the nodes, or take a topology key that every node has",
    source=FILTERING,
    needs_nodes=True,
    parts=InputPart.COUNTS,
    check=_keyless_nodes,
)

HELD_DOWN: Final = Rule(
    code="SPR307",
    name="unreachable-minimum",
    severity=Severity.WARNING,
    summary="A domain where no pod can go holds the global minimum down",
    message="{topology_key} {domains} at the minimum of {minimum} can take no pod: {why}",
    why=(
        "A domain counts as long as one of its nodes is there, tainted, cordoned or full as it may be, unless the "
        "constraint's policies leave the node out. All other domains may then hold no more than maxSkew above it."
    ),
    fix="bring the domain back, or set nodeTaintsPolicy: Honor in the pod template, so that it does not count",
    source="https://github.com/kubernetes/kubernetes/issues/80921",
    needs_nodes=True,
    parts=InputPart.COUNTS,
    check=_held_down,
)
