"""SPR3xx: how the pods are spread now, and whether one more would find a place."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kubectl_spread.audit.evaluate import Group, Row
from kubectl_spread.kube.podtopologyspread import NodeSets, Spread
from kubectl_spread.rules.model import Evidence, Rule, Severity, Subject

_FILTERING: Final = "https://github.com/kubernetes/kubernetes/blob/v1.37.1/pkg/scheduler/framework/plugins/podtopologyspread/filtering.go"


def _hard_skew(subject: Subject) -> Iterator[Evidence]:
    for row, spread in _uneven(subject, hard=True):
        closable = _closable(row, spread, subject.audit.nodes)
        yield _skew_evidence(row, spread, Severity.WARNING if closable else Severity.INFO, closable=closable)


def _soft_skew(subject: Subject) -> Iterator[Evidence]:
    for row, spread in _uneven(subject, hard=False):
        closable = _closable(row, spread, subject.audit.nodes)
        yield _skew_evidence(row, spread, Severity.INFO, closable=closable)


def _uneven(subject: Subject, *, hard: bool) -> Iterator[tuple[Row, Spread]]:
    """Yield the row of the subject with the largest skew, if that is above maxSkew."""
    found = [
        (row, row.spread)
        for row in subject.rows
        if row.spread is not None
        and row.spread.constraint.hard is hard
        and row.spread.skew > row.spread.constraint.max_skew
    ]
    if found:
        yield max(found, key=lambda item: item[1].skew)


def _skew_evidence(row: Row, spread: Spread, severity: Severity, *, closable: bool) -> Evidence:
    fullest = min(spread.match_num, key=lambda value: (-spread.match_num[value], value))
    node_values = spread.domains.value_of
    pods = [pod.name for pod in row.pods if node_values.get(pod.node) == fullest]
    values: dict[str, str | int] = {
        "domain": fullest or '""',
        "match_num": spread.match_num[fullest],
        "min_match_num": spread.min_match_num,
        "skew": spread.skew,
        "max_skew": spread.constraint.max_skew,
        "topology_key": spread.constraint.topology_key,
        "closable": "" if closable else "; no schedulable node of a lower domain could take one of them",
    }
    return Evidence(tuple(pods), values, severity)


def _closable(row: Row, spread: Spread, nodes: NodeSets) -> bool:
    """Tell whether a node of a domain below the fullest could take one of the pods.

    Affinity fits and taints are tolerated.
    """
    limit = max(spread.match_num.values()) - 1
    lower = [node for node, value in spread.domains.value_of.items() if spread.match_num[value] < limit]
    placements = [nodes.usable(view.shape.placement) for view, _ in row.views]
    return any(usable[node].schedulable for usable in placements for node in lower)


def _blocked(subject: Subject) -> Iterator[Evidence]:
    """Name the groups that no node will take, on the path of the first constraint that refuses.

    A pod without owner has no next one, so it counts only while it is pending.
    """
    refused = [group for group in subject.groups if subject.path == _refusing_path(group, subject.audit.nodes)]
    pending = [pod.name for group in refused for pod in group.pods if not pod.node]
    bare = subject.workload.kind == "Pod"
    names = pending or [pod.name for group in refused for pod in group.pods if not bare]
    if names:
        answer = refused[0].view.node_answer
        values: dict[str, str | int] = {
            "who": "the pending pods find" if pending else "one more such pod would find",
            "not_matching": answer.not_matching if answer else 0,
            "missing_label": answer.missing_label if answer else 0,
        }
        yield Evidence(tuple(sorted(names)), values)


def _refusing_path(group: Group, nodes: NodeSets) -> str | None:
    """Return the path of the first hard constraint that a usable node fails, if every usable node fails one."""
    view = group.view
    usable = nodes.usable(view.shape.placement)
    hard = [
        (clause.path, spread)
        for clause, spread in zip(view.shape.clauses, view.spreads, strict=True)
        if spread is not None and spread.constraint.hard
    ]
    if not hard or view.node_answer is None:
        return None
    first = None
    for node in nodes.nodes:
        if not usable[node.metadata.name].schedulable:
            continue
        labels = node.metadata.labels
        refusing = next(
            (
                path
                for path, spread in hard
                if spread.constraint.topology_key not in labels
                or not spread.allows(labels[spread.constraint.topology_key])
            ),
            None,
        )
        if refusing is None:
            return None
        first = first or refusing
    return first


HARD_SKEW: Final = Rule(
    code="SPR301",
    name="hard-skew",
    severity=Severity.WARNING,
    summary="A domain holds more matching pods than a DoNotSchedule constraint allows",
    message=(
        "{topology_key} {domain} holds {match_num} pods, the global minimum is {min_match_num}: skew "
        "{skew}, maxSkew {max_skew}{closable}"
    ),
    why=(
        "The scheduler holds each new pod to maxSkew, but never moves one: scale-down, rollouts, evictions "
        "and nodes that come late leave a skew behind. Losing the fullest domain then loses more pods than "
        "the constraint promises."
    ),
    fix="evict pods of the named domain; their owner replaces them where the constraint allows",
    source=_FILTERING,
    needs_nodes=True,
    check=_hard_skew,
)
SOFT_SKEW: Final = Rule(
    code="SPR302",
    name="soft-skew",
    severity=Severity.INFO,
    summary="A domain holds more matching pods than a ScheduleAnyway constraint asks for",
    message=(
        "{topology_key} {domain} holds {match_num} pods, the global minimum is {min_match_num}: skew "
        "{skew}, maxSkew {max_skew}{closable}"
    ),
    why="ScheduleAnyway is a preference: other scores may outweigh it, and nothing moves pods that run.",
    fix="use DoNotSchedule if the spread must hold; else evict pods of the named domain when convenient",
    source="https://kep.k8s.io/895",
    needs_nodes=True,
    check=_soft_skew,
)
BLOCKED: Final = Rule(
    code="SPR303",
    name="blocked",
    severity=Severity.ERROR,
    summary="No node that the pod could use is allowed by its DoNotSchedule constraints",
    message=(
        "{who} no node: {not_matching} would exceed maxSkew, {missing_label} are without a topology key, and "
        "the rest the pod cannot use"
    ),
    why=(
        "A domain whose nodes are all tainted, cordoned or full still sets the minimum unless "
        "nodeTaintsPolicy is Honor, and a node without the topology key is never allowed."
    ),
    fix="see kubectl spread explain for the domains; often nodeTaintsPolicy: Honor in the pod template is the remedy",
    source=_FILTERING,
    needs_nodes=True,
    check=_blocked,
)
