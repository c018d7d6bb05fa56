"""Closing a skew: could any node of a lower domain take one of the pods, and if not, why not?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Final

from kubectl_spread.audit.evaluation import obstacles
from kubectl_spread.audit.evaluation.evaluate import Audit, EvaluatedConstraint
from kubectl_spread.audit.evaluation.obstacles import Obstacle, ObstacleKind
from kubectl_spread.audit.snapshot.records import PodClass, PodRecord
from kubectl_spread.diagnosis.node_filters import AFFINITY_WORDS, FirstRefusal, NodeFilters
from kubectl_spread.kube.api import labels as labelselectors
from kubectl_spread.kube.scheduler.podtopologyspread import Spread

_LEAVERS: Final = 32
"""Where pod affinity decides too, no more pods than this are tried as the one that has left."""


class Closing:
    """Asks nodes whether they would take a pod of a row."""

    def __init__(self, row: EvaluatedConstraint, spread: Spread, audit: Audit, *, moving: bool) -> None:
        """Ask for one that has left the fullest domain before; or, not ``moving``, for the next pod.

        Of the next pod the other constraints are asked: ``spread`` itself refuses it, wherever it is free to go.
        """
        left = _in_the_fullest(row, spread) if moving else []
        self._filters = [
            filters
            for shape, hard in _kinds(row, audit)
            for filters in _after_leaving(
                shape, [other for other in hard if moving or other.constraint != spread.constraint], left, audit
            )
        ]

    def obstacles(self, nodes: Iterable[str]) -> list[Obstacle] | None:
        """Return what keeps the pods from each of ``nodes``, by node; None: some node would take one."""
        found: list[Obstacle] = []
        for node in nodes:
            refusals = [filters.first_refusal(node) for filters in self._filters]
            if None in refusals:
                return None
            found += [_obstacle(refusal) for refusal in refusals[:1] if refusal is not None]
        return found


def _obstacle(refusal: FirstRefusal) -> Obstacle:
    match refusal:
        case Obstacle():
            return refusal
        case Spread():
            why = "has fewer domains than minDomains" if refusal.short_of_domains else "allows no more"
            text = f"their constraint on {refusal.constraint.topology_key} {why}"
            return Obstacle(ObstacleKind.CONSTRAINED, text)
        case _:
            return Obstacle(ObstacleKind.REPELLED, AFFINITY_WORDS[refusal])


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


def _in_the_fullest(row: EvaluatedConstraint, spread: Spread) -> list[PodRecord]:
    """Return the pods of the row in the fullest domains."""
    value_of, most = spread.domains.value_of, spread.match_num.most
    bound = (pod for pod in row.pods if not pod.terminating and pod.node in value_of)
    return [pod for pod in bound if spread.match_num[value_of[pod.node]] == most]


def _kinds(row: EvaluatedConstraint, audit: Audit) -> Iterable[tuple[PodClass, list[Spread]]]:
    """Return the shapes of a row that filters can tell apart, with the counts of their hard constraints."""
    kinds: dict[object, tuple[PodClass, list[Spread]]] = {}
    for view, _ in row.views:
        concerned = audit.affinity.concerns(view.shape)
        shape = view.shape if concerned else audit.obstacles.kind(view.shape)
        hard = [spread for spread in view.spreads if spread is not None and spread.constraint.hard]
        kinds[shape, *map(id, hard)] = (shape, hard)
    return kinds.values()


def _after_leaving(
    shape: PodClass, hard: Sequence[Spread], left: Iterable[PodRecord], audit: Audit
) -> Iterator[NodeFilters]:
    """Yield the filters for a pod of ``shape`` after one of the pods in ``left``, if there are any, is gone."""
    concerned = audit.affinity.concerns(shape)
    leavers: dict[object, PodRecord] = {}
    for pod in left:
        domains = tuple(spread.domains.value_of.get(pod.node) for spread in hard)
        leavers.setdefault((domains, pod.shape, pod.node if concerned else ""), pod)
    for gone in islice(leavers.values(), _LEAVERS) if concerned and leavers else leavers.values() or (None,):
        after = hard if gone is None else [_without(spread, gone) for spread in hard]
        yield NodeFilters(shape, after, (audit.affinity.refusals(shape, gone) or {}) if concerned else {}, audit)


def _without(spread: Spread, gone: PodRecord) -> Spread:
    """Return a count after a bound pod of its namespace is gone."""
    domain = spread.domains.value_of.get(gone.node)
    counts = spread.constraint.counts and labelselectors.matches(spread.constraint.selector, gone.shape.labels)
    return spread.without({domain: 1}) if counts and domain is not None else spread
