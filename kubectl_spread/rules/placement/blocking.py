"""SPR303 and SPR308: pods that no node accepts, because of their constraints."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from kubectl_spread.audit.evaluation.evaluate import Audit, EvaluatedGroup
from kubectl_spread.audit.evaluation.obstacles import ObstacleKind
from kubectl_spread.audit.snapshot.records import PodRecord
from kubectl_spread.kube.api.fieldpath import FieldPath
from kubectl_spread.kube.api.types import Node
from kubectl_spread.kube.scheduler.podtopologyspread.filtering import FilterAnswer, feasible_nodes
from kubectl_spread.kube.scheduler.podtopologyspread.spread import Spread
from kubectl_spread.phrases import plural
from kubectl_spread.report.severity import Severity
from kubectl_spread.rules.model import FILTERING, Evidence, Rule, names
from kubectl_spread.rules.remedy import literal
from kubectl_spread.rules.rule_input import InputPart, RuleInput


def _blocked(rule_input: RuleInput) -> Iterator[Evidence]:
    """Yield a group that no node accepts, at the path of the first constraint that refuses a node."""
    for group in _blocked_groups(rule_input, conflict=False):
        values = {"who": _who(group), "answer": _answer(group)}
        yield Evidence(_affected(group), values, fix=_fix(group, rule_input))


def _answer(group: EvaluatedGroup) -> str:
    """Return the number of nodes that refuse the pods of a group, with the reasons."""
    answers = group.evaluation.node_answers or Counter[FilterAnswer]()
    texts = {
        FilterAnswer.NOT_MATCHING: "would exceed maxSkew",
        FilterAnswer.MISSING_LABEL: "without a topology key",
        FilterAnswer.FEASIBLE: "that the pod cannot use",
    }
    numbers = {text: answers[answer] for answer, text in texts.items()}
    return ", ".join(f"{plural(number, 'node')} {text}" for text, number in numbers.items() if number)


def _fix(group: EvaluatedGroup, rule_input: RuleInput) -> str | None:
    """Return the fix for the refusal of the constraint at the path; None stands for the rule's own fix."""
    spread = next(
        spread
        for term, spread in zip(group.evaluation.pod_class.terms, group.evaluation.spreads, strict=True)
        if term.path == rule_input.path and spread is not None
    )
    constraint = spread.constraint
    if not spread.match_num:
        return f"label the nodes with {literal(constraint.topology_key)}, or take a topology key that they have"
    if spread.short_of_domains:
        return "add nodes in another domain, or lower minDomains in the pod template"
    least = spread.match_num.least
    lowest = [node for node, domain in spread.domains.value_of.items() if spread.match_num[domain] == least]
    refusals = (rule_input.audit.obstacles.of(group.evaluation.pod_class, node) for node in lowest)
    causes = {obstacle.cause for obstacle in refusals if obstacle is not None}
    if ObstacleKind.FULL in causes:
        return "make room in the domain at the minimum, or let the pods ask for less"
    if ObstacleKind.EXCLUDED in causes:
        return "set nodeAffinityPolicy: Honor in the pod template, so that nodes the pods cannot use do not count"
    return None if causes else "see kubectl spread explain for the domains and their counts"


def _conflicting(rule_input: RuleInput) -> Iterator[Evidence]:
    """Yield a group whose constraints each allow nodes, but not the same ones."""
    for group in _blocked_groups(rule_input, conflict=True):
        constraints = [term for term in group.evaluation.pod_class.terms if term.spread and term.required]
        keys = " and ".join(term.topology_key for term in constraints)
        yield Evidence(_affected(group), {"who": _who(group), "keys": keys})


def _blocked_groups(rule_input: RuleInput, *, conflict: bool) -> list[EvaluatedGroup]:
    """Return at most one group that the constraint at the path blocks, preferably a group with pending pods."""
    blockage = _Blockage(rule_input.path, conflict)
    groups = [
        group
        for group in rule_input.groups
        if (_pending(group) or rule_input.followed(group.pods)) and _blockage_of(group, rule_input) == blockage
    ]
    return sorted(groups, key=lambda group: not _pending(group))[:1]


def _blockage_of(group: EvaluatedGroup, rule_input: RuleInput) -> _Blockage | None:
    return rule_input.answers.remember((_blockage, group), lambda: _blockage(group, rule_input.audit))


def _pending(group: EvaluatedGroup) -> list[PodRecord]:
    return [pod for pod in group.pods if not pod.node]


def _affected(group: EvaluatedGroup) -> tuple[str, ...]:
    return names(_pending(group) or group.pods)


def _who(group: EvaluatedGroup) -> str:
    return "the pending pods find" if _pending(group) else "one more such pod would find"


class _Blockage(msgspec.Struct, frozen=True):
    """The refusal of every usable node by the hard constraints of pods.

    Attributes:
        path: The path of the first constraint that refuses a node.
        conflict: Whether each constraint alone would allow some node.
    """

    path: FieldPath
    conflict: bool


def _blockage(group: EvaluatedGroup, audit: Audit) -> _Blockage | None:
    """Return how the hard constraints keep a group from every node that it could use; None if they do not.

    A pending pod cannot use a full node; a later pod may, because the node may have room again by then.
    """
    evaluation = group.evaluation
    hard = [
        (term.path, spread)
        for term, spread in zip(evaluation.pod_class.terms, evaluation.spreads, strict=True)
        if spread is not None and spread.constraint.hard
    ]
    if not hard or evaluation.node_answers is None:
        return None
    pending = any(not pod.node for pod in group.pods)

    def usable(node: Node) -> bool:
        obstacle = audit.obstacles.of(evaluation.pod_class, node.metadata.name)
        return obstacle is None or (obstacle.cause is ObstacleKind.FULL and not pending)

    if any(usable(node) for node in feasible_nodes([spread for _, spread in hard], audit.nodes)):
        return None
    refusing = [
        {path for path, spread in hard if not _lets_in(spread, node)} for node in audit.nodes.nodes if usable(node)
    ]
    if not refusing:
        return None
    first = next(path for path, _ in hard if any(path in paths for paths in refusing))
    return _Blockage(first, conflict=not set.intersection(*refusing) and _each_allows_a_node(hard, refusing))


def _each_allows_a_node(hard: Sequence[tuple[FieldPath, Spread]], refusing: Sequence[set[FieldPath]]) -> bool:
    return all(any(path not in paths for paths in refusing) for path, _ in hard)


def _lets_in(spread: Spread, node: Node) -> bool:
    return spread.allows(node.metadata.labels.get(spread.constraint.topology_key))


BLOCKED: Final = Rule(
    code="SPR303",
    name="blocked",
    severity=Severity.ERROR,
    summary="No node that the pod could use is allowed by its DoNotSchedule constraints",
    message="{who} no node: {answer}",
    why=(
        "A domain whose nodes are all tainted, cordoned or full still sets the minimum unless "
        "nodeTaintsPolicy is Honor, and a node without the topology key is never allowed."
    ),
    fix=(
        "bring the domain at the minimum back, or set nodeTaintsPolicy: Honor in the pod template, so that nodes with "
        "untolerated taints do not count"
    ),
    source=FILTERING,
    needs_nodes=True,
    parts=InputPart.COUNTS,
    check=_blocked,
)

CONFLICTING: Final = Rule(
    code="SPR308",
    name="conflicting-constraints",
    severity=Severity.ERROR,
    summary="Each DoNotSchedule constraint leaves nodes, but no node passes all of them",
    message="{who} no node: the constraints on {keys} each allow some, but not the same ones",
    why=(
        "A node has to pass every hard constraint. Where zones differ in their number of nodes, or one zone has "
        "lost some, the zone that must get the next pod may have no host that the other constraint allows."
    ),
    fix=(
        "make one of the constraints ScheduleAnyway or raise its maxSkew in the pod template, or add nodes to the "
        "domains that kubectl spread explain shows at the minimum"
    ),
    source=FILTERING,
    needs_nodes=True,
    parts=InputPart.COUNTS,
    check=_conflicting,
)
