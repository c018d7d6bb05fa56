"""Closing a skew: could any node of a lower domain take one of the pods, and if not, why not?"""

from __future__ import annotations

from collections.abc import Iterable

from kubectl_spread.audit import obstacles
from kubectl_spread.audit.evaluate import Audit, Row
from kubectl_spread.audit.obstacles import Cause, Obstacle
from kubectl_spread.kube.labels import Labels
from kubectl_spread.kube.podtopologyspread import Spread


def obstacles_below(row: Row, spread: Spread, audit: Audit) -> list[Obstacle] | None:
    """Return what keeps the row's pods from every node of the domains where one of them would lessen the skew.

    That may be another hard constraint of the pods. None: some node would take one.
    """
    most = spread.match_num.most
    lower = (node for node, domain in spread.domains.value_of.items() if spread.match_num[domain] < most - 1)
    fullest = [pod.node for pod in row.pods if spread.match_num.get(spread.domains.value_of.get(pod.node, "")) == most]
    others = [(other, _least_without_one(other, fullest)) for other in _other_hard_constraints(row)]
    found: list[Obstacle] = []
    for node in lower:
        kept_away = obstacles_on(row, [node], audit) or _of_others(others, audit.nodes.labels_of(node))
        if not kept_away:
            return None
        found += kept_away
    return found


def _other_hard_constraints(row: Row) -> list[Spread]:
    spreads = enumerate(row.views[0][0].spreads)
    return [one for index, one in spreads if one is not None and index != row.index and one.constraint.hard]


def _least_without_one(spread: Spread, nodes: Iterable[str]) -> int:
    """Return the global minimum after a pod has left one of ``nodes``, chosen so that it stays the highest."""
    domains = {spread.domains.value_of.get(node) for node in nodes}
    leaves_a_minimum = all(spread.match_num.get(one or "", 0) == spread.min_match_num for one in domains)
    return max(0, spread.min_match_num - (spread.self_match_num if leaves_a_minimum else 0))


def _of_others(others: Iterable[tuple[Spread, int]], labels: Labels) -> list[Obstacle]:
    """Return the first other hard constraint that would keep a pod from a node with ``labels``, were one evicted."""
    for spread, least in others:
        key = spread.constraint.topology_key
        number = spread.match_num.get(labels.get(key, ""), 0) + spread.self_match_num - least
        if key not in labels or number > spread.constraint.max_skew:
            return [Obstacle(Cause.CONSTRAINED, f"their constraint on {key} allows no more")]
    return []


def obstacles_on(row: Row, nodes: Iterable[str], audit: Audit) -> list[Obstacle] | None:
    """Return what keeps the row's pods from each of ``nodes``, by node; None: some node would take one."""
    kinds = {id(kind): kind for view, _ in row.views for kind in (audit.obstacles.kind(view.shape),)}.values()
    found: list[Obstacle] = []
    for node in nodes:
        kept_away = [audit.obstacles.of(kind, node) for kind in kinds]
        if None in kept_away:
            return None
        found += [obstacle for obstacle in kept_away[:1] if obstacle is not None]
    return found


def why_not(found: list[Obstacle]) -> str:
    """Return the obstacles in words; without any there is no lower domain with a node at all."""
    return obstacles.summary(found) or "no lower domain has a node"
