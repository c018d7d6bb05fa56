"""SPR3xx: pods that no node will take, because of their constraints."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final

import msgspec

from kubectl_spread.audit.evaluation.evaluate import Audit, EvaluatedGroup
from kubectl_spread.audit.evaluation.obstacles import ObstacleKind
from kubectl_spread.kube.api.fieldpath import FieldPath
from kubectl_spread.kube.api.types import Node
from kubectl_spread.kube.scheduler.podtopologyspread import Spread, let_in
from kubectl_spread.phrases import plural
from kubectl_spread.rules.model import Evidence, Rule, Severity, Subject, SubjectPart, literal
from kubectl_spread.rules.placement.counts import followed

_FILTERING: Final = "https://github.com/kubernetes/kubernetes/blob/v1.37.1/pkg/scheduler/framework/plugins/podtopologyspread/filtering.go"


def _blocked(subject: Subject) -> Iterator[Evidence]:
    """Name the groups that no node will take, on the path of the first constraint that refuses."""
    for group, jam in _jams(subject):
        if not jam.conflict and subject.path == jam.path:
            values: dict[str, str | int] = {"who": _who(group), "answer": _answer(group)}
            yield Evidence(_waiting(group), values, fix=_remedy(group, jam, subject.audit))


def _answer(group: EvaluatedGroup) -> str:
    """Return how many nodes refuse the pods of a group, and why."""
    answer = group.view.node_answer
    if answer is None:
        return ""
    parts = [
        f"{plural(answer.not_matching, 'node')} would exceed maxSkew" if answer.not_matching else "",
        f"{plural(answer.missing_label, 'node')} without a topology key" if answer.missing_label else "",
        f"{plural(answer.feasible, 'node')} that the pod cannot use" if answer.feasible else "",
    ]
    return ", ".join(part for part in parts if part)


def _remedy(group: EvaluatedGroup, jam: _Jam, audit: Audit) -> str | None:
    """Return what helps against the refusal of one constraint; None: what helps most often."""
    spread = next(
        found
        for clause, found in zip(group.view.shape.clauses, group.view.spreads, strict=True)
        if clause.path == jam.path and found is not None
    )
    constraint = spread.constraint
    if not spread.match_num:
        return f"label the nodes with {literal(constraint.topology_key)}, or take a topology key that they have"
    if spread.short_of_domains:
        return "add nodes in another domain, or lower minDomains in the pod template"
    least = spread.match_num.least
    lowest = [node for node, domain in spread.domains.value_of.items() if spread.match_num[domain] == least]
    causes = {one.cause for node in lowest if (one := audit.obstacles.of(group.view.shape, node)) is not None}
    if ObstacleKind.FULL in causes:
        return "make room in the domain at the minimum, or let the pods ask for less"
    if ObstacleKind.EXCLUDED in causes:
        return "set nodeAffinityPolicy: Honor in the pod template, so that nodes the pods cannot use do not count"
    return None if causes else "see kubectl spread explain for the domains and their counts"


def _conflicting(subject: Subject) -> Iterator[Evidence]:
    """Name the groups whose constraints each leave nodes, but not the same ones."""
    for group, jam in _jams(subject):
        if jam.conflict and subject.path == jam.path:
            constraints = [clause for clause in group.view.shape.clauses if clause.spread and clause.required]
            keys = " and ".join(clause.topology_key for clause in constraints)
            yield Evidence(_waiting(group), {"who": _who(group), "keys": keys})


class _Jam(msgspec.Struct, frozen=True):
    """No node that the pods could use passes their hard constraints.

    ``path`` is that of the first constraint that refuses one; a ``conflict`` is where every constraint alone would
    leave some node.
    """

    path: FieldPath
    conflict: bool


def _jams(subject: Subject) -> Iterator[tuple[EvaluatedGroup, _Jam]]:
    """Yield one blocked group of the subject's workload, rather one with pending pods."""
    found = [
        (group, jam)
        for group in subject.groups
        if (_pending(group) or followed(subject, group.pods)) and (jam := _jam(group, subject.audit)) is not None
    ]
    for conflict in (False, True):
        alike = [item for item in found if item[1].conflict is conflict and item[1].path == subject.path]
        if alike:
            group = max(alike, key=lambda item: bool(_pending(item[0])))
            yield group


def _pending(group: EvaluatedGroup) -> list[str]:
    return [pod.name for pod in group.pods if not pod.node]


def _waiting(group: EvaluatedGroup) -> tuple[str, ...]:
    return tuple(sorted(_pending(group) or [pod.name for pod in group.pods]))


def _who(group: EvaluatedGroup) -> str:
    return "the pending pods find" if _pending(group) else "one more such pod would find"


@lru_cache(maxsize=16)
def _jam(group: EvaluatedGroup, audit: Audit) -> _Jam | None:
    """Tell how the hard constraints keep a group from every node that it could use; None: they do not.

    A full node keeps a pending pod away; another one may have left until the next pod comes.
    """
    view = group.view
    hard = [
        (clause.path, spread)
        for clause, spread in zip(view.shape.clauses, view.spreads, strict=True)
        if spread is not None and spread.constraint.hard
    ]
    if not hard or view.node_answer is None:
        return None

    def usable(node: Node) -> bool:
        obstacle = audit.obstacles.of(view.shape, node.metadata.name)
        return obstacle is None or (obstacle.cause is ObstacleKind.FULL and not _pending(group))

    if any(usable(node) for node in let_in([spread for _, spread in hard], audit.nodes)):
        return None
    refusing = [
        {path for path, spread in hard if not _lets_in(spread, node)} for node in audit.nodes.nodes if usable(node)
    ]
    if not refusing:
        return None
    first = next(path for path, _ in hard if any(path in refused for refused in refusing))
    return _Jam(first, conflict=not set.intersection(*refusing) and _each_leaves_a_node(hard, refusing))


def _each_leaves_a_node(hard: Sequence[tuple[FieldPath, Spread]], refusing: Sequence[set[FieldPath]]) -> bool:
    return all(any(path not in refused for refused in refusing) for path, _ in hard)


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
    source=_FILTERING,
    needs_nodes=True,
    of=frozenset({SubjectPart.COUNTS}),
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
    source=_FILTERING,
    needs_nodes=True,
    of=frozenset({SubjectPart.COUNTS}),
    check=_conflicting,
)
