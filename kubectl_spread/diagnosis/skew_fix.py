"""Closing a skew: could any node of a lower domain take one of the pods, and if not, why not?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import islice
from typing import Final

import msgspec

from kubectl_spread.audit.evaluation import obstacles
from kubectl_spread.audit.evaluation.evaluate import Audit, EvaluatedConstraint
from kubectl_spread.audit.evaluation.obstacles import Obstacle, ObstacleKind
from kubectl_spread.audit.snapshot.records import PodClass, PodRecord
from kubectl_spread.diagnosis.node_filters import AFFINITY_WORDS, FirstRefusal, NodeFilters
from kubectl_spread.kube.api import labels as labelselectors
from kubectl_spread.kube.scheduler.podtopologyspread.constraints import Constraint
from kubectl_spread.kube.scheduler.podtopologyspread.spread import Spread

_LEAVERS: Final = 32
"""Where pod affinity decides too, no more pods than this are tried as the one that has left."""


class Closing:
    """Asks nodes whether they would take a pod of a row."""

    def __init__(self, row: EvaluatedConstraint, spread: Spread, audit: Audit, *, moving: bool) -> None:
        """Ask for one that has left the fullest domain before; or, not ``moving``, for the next pod.

        Of the next pod the other constraints are asked: ``spread`` itself refuses it, wherever it is free to go.
        """
        left = _in_the_fullest(row, spread) if moving else []
        self._departures = [
            departure
            for kind in _kinds(row, audit)
            for departure in _departures(kind, None if moving else spread.constraint, left, audit)
        ]
        self.question = tuple(departure.question for departure in self._departures)
        """Equal for pods that get equal answers from all nodes, of whichever workload they are."""

    def obstacles(self, nodes: Iterable[str]) -> list[Obstacle] | None:
        """Return what keeps the pods from each of ``nodes``, by node; None: some node would take one."""
        refusing: list[Obstacle] = []
        for node in nodes:
            refusals: list[FirstRefusal] = []
            for departure in self._departures:
                refusal = departure.filters.first_refusal(node)
                if refusal is None:
                    return None
                refusals.append(refusal)
            refusing += [_obstacle(refusal) for refusal in refusals[:1]]
        return refusing


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


def obstacles_on(row: EvaluatedConstraint, nodes: Iterable[str], audit: Audit) -> list[Obstacle] | None:
    """Return what keeps the row's pods from each of ``nodes`` whatever their constraints say; None: some node is free.

    The obstacles are by node.
    """
    kinds = dict.fromkeys(audit.obstacles.kind(evaluation.pod_class) for evaluation, _ in row.evaluations)
    refusing: list[Obstacle] = []
    for node in nodes:
        kept_away = [audit.obstacles.of(kind, node) for kind in kinds]
        if None in kept_away:
            return None
        refusing += [obstacle for obstacle in kept_away[:1] if obstacle is not None]
    return refusing


def why_not(refusing: list[Obstacle]) -> str:
    """Return the obstacles in words; without any there is no lower domain with a node at all."""
    return obstacles.summary(refusing) or "no lower domain has a node"


def _in_the_fullest(row: EvaluatedConstraint, spread: Spread) -> list[PodRecord]:
    """Return the pods of the row in the fullest domains."""
    value_of, most = spread.domains.value_of, spread.match_num.most
    bound = (pod for pod in row.pods if not pod.terminating and pod.node in value_of)
    return [pod for pod in bound if spread.match_num[value_of[pod.node]] == most]


class _Kind(msgspec.Struct, frozen=True):
    """Pods of a row that filters cannot tell apart.

    Attributes:
        pod_class: A class of pods with the same obstacles; the pods' own class where pod affinity concerns them.
        hard: The counts of their hard constraints.
        concerned: Whether pod affinity decides where they may go.
    """

    pod_class: PodClass
    hard: Sequence[Spread]
    concerned: bool


def _kinds(row: EvaluatedConstraint, audit: Audit) -> Iterable[_Kind]:
    kinds: dict[object, _Kind] = {}
    for evaluation, _ in row.evaluations:
        concerned = audit.affinity.concerns(evaluation.pod_class)
        pod_class = evaluation.pod_class if concerned else audit.obstacles.kind(evaluation.pod_class)
        hard = [spread for spread in evaluation.spreads if spread is not None and spread.constraint.hard]
        kinds[pod_class, concerned, *hard] = _Kind(pod_class, hard, concerned)
    return kinds.values()


class _Departure(msgspec.Struct, frozen=True, dict=True):
    """Pods of one class after one of them, which may be ``None``, has left its domains.

    ``lost`` names the domain of each count in which one pod less is counted.
    """

    kind: _Kind
    gone: PodRecord | None
    hard: Sequence[Spread]
    lost: Sequence[str | None]
    audit: Audit

    @property
    def question(self) -> object:
        """A value that is equal for equal filters."""
        gone = self.gone if self.kind.concerned else None
        return (self.kind.pod_class, self.kind.concerned, gone, *self.hard, *self.lost)

    @cached_property
    def filters(self) -> NodeFilters:
        """The filters that the pods have to pass, made only for as many departures as a node has to be asked about."""
        after = [
            spread if domain is None else spread.without({domain: 1})
            for spread, domain in zip(self.hard, self.lost, strict=True)
        ]
        pod_class = self.kind.pod_class
        repelled = self.audit.affinity.refusals(pod_class, self.gone) if self.kind.concerned else None
        return NodeFilters(pod_class, after, repelled or {}, self.audit)


def _departures(
    kind: _Kind, without: Constraint | None, left: Iterable[PodRecord], audit: Audit
) -> Iterator[_Departure]:
    """Yield the ways in which one of the pods in ``left``, if there are any, may be gone.

    The constraint ``without`` is not asked.
    """
    hard = [spread for spread in kind.hard if spread.constraint != without]
    leavers: dict[object, PodRecord] = {}
    for pod in left:
        lost = tuple(_domain_of(pod, spread) for spread in hard)
        leavers.setdefault((lost, (pod.pod_class, pod.node) if kind.concerned else None), pod)
    for gone in islice(leavers.values(), _LEAVERS if kind.concerned else None) if leavers else (None,):
        lost = tuple(None if gone is None else _domain_of(gone, spread) for spread in hard)
        yield _Departure(kind, gone, hard, lost, audit)


def _domain_of(pod: PodRecord, spread: Spread) -> str | None:
    """Return the domain in which a constraint counts a bound pod of its namespace; None: it does not."""
    counts = spread.constraint.counts and labelselectors.matches(spread.constraint.selector, pod.pod_class.labels)
    return spread.domains.value_of.get(pod.node) if counts else None
