"""SPR3xx: nodes and domains that pods of a constraint cannot reach."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kubectl_spread.audit.evaluation import obstacles
from kubectl_spread.audit.evaluation.evaluate import Audit
from kubectl_spread.audit.evaluation.obstacles import Obstacle, ObstacleKind
from kubectl_spread.diagnosis import skew_fix
from kubectl_spread.kube.scheduler.podtopologyspread.domains import Placement
from kubectl_spread.kube.scheduler.podtopologyspread.spread import Spread
from kubectl_spread.phrases import some, value
from kubectl_spread.report.severity import Severity
from kubectl_spread.rules.model import FILTERING, Evidence, Rule
from kubectl_spread.rules.placement.counts import names
from kubectl_spread.rules.rule_input import InputPart, RuleInput


def _keyless_nodes(rule_input: RuleInput) -> Iterator[Evidence]:
    for row, spread in rule_input.awaiting:
        key = spread.constraint.topology_key
        if spread.constraint.lenient:
            continue
        pod_classes = [evaluation.pod_class for evaluation, _ in row.evaluations]
        lacking = rule_input.audit.nodes.lacking(key)
        keyless = [node for node in lacking if _schedulable(rule_input.audit, pod_classes[0].placement, node)]
        all_of_them = len(keyless) == len(rule_input.audit.nodes.nodes)
        # Where a hard constraint refuses every node, the pods find none: SPR303 says so.
        if keyless and not (all_of_them and spread.constraint.hard):
            values: dict[str, str | int] = {
                "nodes": "every node" if all_of_them else some(keyless),
                "topology_key": key,
                "effect": "never get such a pod" if spread.constraint.hard else "score lowest for such a pod",
            }
            yield Evidence(names(row), values, Severity.WARNING if spread.constraint.hard else Severity.INFO)
            return


def _schedulable(audit: Audit, placement: Placement, node: str) -> bool:
    return audit.nodes.usable(placement)[node].schedulable


def _held_down(rule_input: RuleInput) -> Iterator[Evidence]:
    """Yield domains at the minimum where no pod can go, if the minimum of the others would be higher."""
    for row, spread in rule_input.awaiting:
        if not spread.constraint.hard and not spread.exceeds_max_skew:
            continue
        least = spread.match_num.least
        holders = (node for node, domain in spread.domains.value_of.items() if spread.match_num[domain] == least)
        kept_away = skew_fix.obstacles_on(row, holders, rule_input.audit)
        others = sum(number > least for number in spread.match_num.values()) if kept_away else 0
        if not kept_away or not others or others < spread.constraint.min_domains:
            continue
        holding = sorted(domain for domain, number in spread.match_num.items() if number == least)
        limits = not spread.allows_all
        severity = Severity.WARNING if limits else Severity.INFO
        yield Evidence(names(row), _held_values(spread, holding, kept_away), severity, _remedy(kept_away))
        return


def _held_values(spread: Spread, holding: list[str], kept_away: list[Obstacle]) -> dict[str, str | int]:
    return {
        "domains": ", ".join(value(domain) for domain in holding),
        "topology_key": spread.constraint.topology_key,
        "minimum": spread.match_num.least,
        "why": obstacles.summary(kept_away),
    }


def _remedy(kept_away: list[Obstacle]) -> str | None:
    """Return the fix for the obstacles; None stands for the rule's own, which is about taints."""
    causes = {obstacle.cause for obstacle in kept_away}
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
    of=InputPart.COUNTS,
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
    of=InputPart.COUNTS,
    check=_held_down,
)
