"""Closing a skew: could any node of a lower domain take one of the pods, and if not, why not?"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from kubectl_spread.audit.evaluation import obstacles
from kubectl_spread.audit.evaluation.evaluate import Audit, EvaluatedConstraint
from kubectl_spread.audit.evaluation.obstacles import Obstacle, ObstacleKind
from kubectl_spread.audit.snapshot.records import PodClass
from kubectl_spread.kube.scheduler.podtopologyspread import Spread


class _Mover(msgspec.Struct, frozen=True):
    """Pods of a row that nodes cannot tell apart; ``after`` has the counts of each hard constraint once one has left.

    Pods may leave several domains of a constraint, each with its own counts after that.
    """

    shape: PodClass
    after: tuple[tuple[Spread, ...], ...]


class Closing:
    """Asks nodes whether they would take a pod of a row: by obstacles, and by all hard constraints of the pod."""

    def __init__(self, row: EvaluatedConstraint, spread: Spread, audit: Audit, *, moving: bool) -> None:
        """Ask for one that has left the fullest domain before; or, not ``moving``, for the next pod.

        Of the next pod the other constraints are asked: ``spread`` itself refuses it, wherever it is free to go.
        """
        self._audit = audit
        left = tuple(dict.fromkeys(_in_the_fullest(row, spread))) if moving else ()
        self._movers = tuple(
            _Mover(shape, tuple(_after(one, left) for one in hard if moving or one.constraint != spread.constraint))
            for shape, hard in _kinds(row, audit)
        )

    def obstacles(self, nodes: Iterable[str]) -> list[Obstacle] | None:
        """Return what keeps the pods from each of ``nodes``, by node; None: some node would take one."""
        found: list[Obstacle] = []
        for node in nodes:
            obstacle = self._of(node)
            if obstacle is None:
                return None
            found.append(obstacle)
        return found

    def _of(self, node: str) -> Obstacle | None:
        found: list[Obstacle] = []
        for mover in self._movers:
            obstacle = self._audit.obstacles.of(mover.shape, node) or self._refusal(mover, node)
            if obstacle is None:
                return None
            found.append(obstacle)
        return found[0]

    def _refusal(self, mover: _Mover, node: str) -> Obstacle | None:
        """Return the first hard constraint that refuses a node, whichever pod has left."""
        labels = self._audit.nodes.labels_of(node)
        for after in mover.after:
            key = after[0].constraint.topology_key
            if not any(spread.allows(labels.get(key)) for spread in after):
                why = "has fewer domains than minDomains" if after[0].short_of_domains else "allows no more"
                return Obstacle(ObstacleKind.CONSTRAINED, f"their constraint on {key} {why}")
        return None


def obstacles_below(row: EvaluatedConstraint, spread: Spread, audit: Audit) -> list[Obstacle] | None:
    """Return what keeps the row's pods from every node of the domains where one of them would lessen the skew.

    That may be a hard constraint of the pods. None: some node would take one.
    """
    most = spread.match_num.most
    lower = (node for node, domain in spread.domains.value_of.items() if spread.match_num[domain] < most - 1)
    return Closing(row, spread, audit, moving=True).obstacles(lower)


def obstacles_on(row: EvaluatedConstraint, nodes: Iterable[str], audit: Audit) -> list[Obstacle] | None:
    """Return what keeps the row's pods from each of ``nodes`` whatever their constraints say; None: some node is free.

    The obstacles are by node.
    """
    kinds = dict.fromkeys(audit.obstacles.kind(view.shape) for view, _ in row.views)
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


def _in_the_fullest(row: EvaluatedConstraint, spread: Spread) -> list[str]:
    """Return the nodes in the fullest domains on which pods of the row are."""
    value_of, most = spread.domains.value_of, spread.match_num.most
    bound = (pod.node for pod in row.pods if not pod.terminating and pod.node in value_of)
    return [node for node in bound if spread.match_num[value_of[node]] == most]


def _kinds(row: EvaluatedConstraint, audit: Audit) -> Iterable[tuple[PodClass, list[Spread]]]:
    """Return the shapes of a row that nodes or counts tell apart, with the counts of their hard constraints."""
    found: dict[object, tuple[PodClass, list[Spread]]] = {}
    for view, _ in row.views:
        shape = audit.obstacles.kind(view.shape)
        hard = [one for one in view.spreads if one is not None and one.constraint.hard]
        found.setdefault((id(shape), *map(id, hard)), (shape, hard))
    return found.values()


def _after(spread: Spread, left: tuple[str, ...]) -> tuple[Spread, ...]:
    """Return the counts of a constraint after a pod has left one of some nodes, once for each domain these are in."""
    value_of = spread.domains.value_of
    domains = dict.fromkeys(value_of.get(node) for node in left)
    return tuple(spread if domain is None else spread.placed(domain, -1) for domain in domains) or (spread,)
