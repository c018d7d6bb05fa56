"""Node answers: would a node take a pod, alone or after other pods have left, and which filter refuses it if not?"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from typing import Final, TypeAlias

import msgspec

from kubectl_spread.audit.evaluation import obstacles
from kubectl_spread.audit.evaluation.affinity import UNKNOWN_NAMESPACES
from kubectl_spread.audit.evaluation.evaluate import Audit, EvaluatedConstraint
from kubectl_spread.audit.evaluation.evaluators import ClassEvaluation
from kubectl_spread.audit.evaluation.obstacles import AFFINITY_WORDS, Obstacle, ObstacleKind
from kubectl_spread.audit.evaluation.volumes import VolumeNodes
from kubectl_spread.audit.snapshot.records import PodClass, PodRecord
from kubectl_spread.kube.api import labels as labelselectors
from kubectl_spread.kube.scheduler.interpodaffinity import AffinityAnswer
from kubectl_spread.kube.scheduler.podtopologyspread.constraints import Constraint
from kubectl_spread.kube.scheduler.podtopologyspread.spread import Spread, feasible_nodes

FirstRefusal: TypeAlias = Obstacle | Spread | AffinityAnswer
"""An obstacle, the first hard constraint that does not allow the node, or the answer of the filter of pod affinity."""


class NodeAnswers(msgspec.Struct, frozen=True):
    """Would nodes take a pod of one class, and which filter refuses it if not?

    Of the filters of volumes, constraints and pod affinity only those ask whose attributes are given.

    Attributes:
        pod_class: The class of the pod.
        audit: The cluster.
        hard: The counts of its hard constraints.
        repelled: Maps the name of each node that pod affinity refuses to the answer; its length needs all answers.
        volumes: The nodes that its volumes refuse; None for a pod without volumes.
    """

    pod_class: PodClass
    audit: Audit
    hard: Sequence[Spread] = ()
    repelled: Mapping[str, AffinityAnswer] | None = None
    volumes: VolumeNodes | None = None

    def obstacle(self, node: str) -> Obstacle | None:
        """Return the first obstacle on a node, before constraints and pod affinity decide; None: there is none."""
        obstacle = self.audit.obstacles.of(self.pod_class, node)
        return self.volumes.obstacle(node) if obstacle is None and self.volumes is not None else obstacle

    def obstacles(self, nodes: Iterable[str]) -> list[Obstacle]:
        """Return the obstacles on the nodes that have one."""
        return [obstacle for node in nodes if (obstacle := self.obstacle(node)) is not None]

    def first_refusal(self, node: str) -> FirstRefusal | None:
        """Return the refusal of the first filter that refuses a node; None: the node would take the pod."""
        if obstacle := self.obstacle(node):
            return obstacle
        labels = self.audit.nodes.labels_of(node)
        for spread in self.hard:
            if not spread.allows(labels.get(spread.constraint.topology_key)):
                return spread
        return None if self.repelled is None else self.repelled.get(node)

    def free(self) -> Iterator[str]:
        """Yield the nodes that would take the pod, by name."""
        allowed = (node.metadata.name for node in feasible_nodes(self.hard, self.audit.nodes))
        repelled = {} if self.repelled is None else self.repelled
        return (node for node in allowed if node not in repelled and self.obstacle(node) is None)


_LEAVERS: Final = 32
"""The most pods that are tried as the evicted pod where pod affinity decides too."""


class PlacementCheck:
    """The check whether nodes would take a pod of a row."""

    def __init__(self, row: EvaluatedConstraint, spread: Spread, audit: Audit, *, moving: bool) -> None:
        """Check a pod that has left the fullest domain if it is ``moving``, else the next pod.

        The next pod is checked by its other constraints alone, as ``spread`` itself is what refuses it.
        """
        left = _in_the_fullest(row, spread) if moving else []
        evaluations = [evaluation for evaluation, _ in row.evaluations]
        without = None if moving else spread.constraint
        self._departures = list(departures(evaluations, left or row.pods[:1], audit, without, leaving=bool(left)))
        self.question = tuple(departure.question for departure in self._departures)
        """A value that is equal for pods of any workload to which all nodes give equal answers."""

    def obstacles(self, nodes: Iterable[str]) -> list[Obstacle] | None:
        """Return the obstacles that keep the pods from ``nodes``, by node; None: some node would take a pod."""
        return _refusals([departure.first_refusal for departure in self._departures], nodes)


def obstacles_on(row: EvaluatedConstraint, nodes: Iterable[str], audit: Audit) -> list[Obstacle] | None:
    """Return the obstacles that keep the row's pods from ``nodes`` before constraints decide; None: a node is free."""
    kinds = dict.fromkeys(audit.obstacles.representative(evaluation.pod_class) for evaluation, _ in row.evaluations)
    return _refusals([NodeAnswers(kind, audit).obstacle for kind in kinds], nodes)


def _refusals(filters: Sequence[Callable[[str], FirstRefusal | None]], nodes: Iterable[str]) -> list[Obstacle] | None:
    """Return the refusal of the first pod on each node, as obstacles; None: a node would take a pod."""
    refusing: list[Obstacle] = []
    for node in nodes:
        refusals: list[FirstRefusal] = []
        for refuses in filters:
            refusal = refuses(node)
            if refusal is None:
                return None
            refusals.append(refusal)
        refusing += [as_obstacle(refusal) for refusal in refusals[:1]]
    return refusing


def as_obstacle(refusal: FirstRefusal) -> Obstacle:
    """Return the refusal of any filter as an obstacle, in words."""
    match refusal:
        case Obstacle():
            return refusal
        case Spread():
            why = "has fewer domains than minDomains" if refusal.short_of_domains else "allows no more"
            text = f"their constraint on {refusal.constraint.topology_key} {why}"
            return Obstacle(ObstacleKind.CONSTRAINED, text)
        case _:
            return Obstacle(ObstacleKind.REPELLED, AFFINITY_WORDS[refusal])


def why_not(refusing: list[Obstacle]) -> str:
    """Return the obstacles in words; without any there is no lower domain with a node at all."""
    return obstacles.summary(refusing) or "no lower domain has a node"


def _in_the_fullest(row: EvaluatedConstraint, spread: Spread) -> list[PodRecord]:
    value_of, most = spread.domains.value_of, spread.match_num.most
    bound = (pod for pod in row.pods if not pod.terminating and pod.node in value_of)
    return [pod for pod in bound if spread.match_num[value_of[pod.node]] == most]


class _PodKind(msgspec.Struct, frozen=True):
    """Pods of one workload that filters cannot tell apart.

    Attributes:
        pod_class: A class with the same obstacles; the pods' own class where pod affinity concerns them.
        hard: The counts of their hard constraints.
        concerned: Whether pod affinity decides where they may go.
    """

    pod_class: PodClass
    hard: Sequence[Spread]
    concerned: bool


def _kinds(evaluations: Iterable[ClassEvaluation], audit: Audit) -> Iterable[_PodKind]:
    kinds: dict[object, _PodKind] = {}
    for evaluation in evaluations:
        concerned = audit.affinity.concerns(evaluation.pod_class)
        pod_class = evaluation.pod_class if concerned else audit.obstacles.representative(evaluation.pod_class)
        kinds[pod_class, concerned, *evaluation.hard] = _PodKind(pod_class, evaluation.hard, concerned)
    return kinds.values()


class Departure(msgspec.Struct, frozen=True, dict=True):
    """Pods of one class after ``gone``, one of them or None, has left its domains.

    ``lost`` has the domain of each count that loses a pod; ``volumes`` are the nodes that the pods' volumes refuse.
    """

    kind: _PodKind
    gone: PodRecord | None
    hard: Sequence[Spread]
    lost: Sequence[str | None]
    volumes: VolumeNodes
    audit: Audit

    @property
    def question(self) -> object:
        """A value that is equal for equal answers."""
        gone = self.gone if self.kind.concerned else None
        return (self.kind.pod_class, self.kind.concerned, self.volumes, gone, *self.hard, *self.lost)

    def first_refusal(self, node: str) -> FirstRefusal | None:
        """Return the refusal of the first filter that refuses a node; None: the node would take one of the pods."""
        return self._answers.first_refusal(node)

    @cached_property
    def _answers(self) -> NodeAnswers:
        """The answers of nodes; computed late because an early departure often settles a node."""
        after = [
            spread if domain is None else spread.without({domain: 1})
            for spread, domain in zip(self.hard, self.lost, strict=True)
        ]
        return NodeAnswers(self.kind.pod_class, self.audit, after, self._repelled, self.volumes)

    @property
    def unknown(self) -> str:
        """What was not read of all that decides; "" if everything was."""
        return self.volumes.unknown or ("" if self._repelled is not None else UNKNOWN_NAMESPACES)

    @cached_property
    def _repelled(self) -> Mapping[str, AffinityAnswer] | None:
        return self.audit.affinity.refusals(self.kind.pod_class, self.gone) if self.kind.concerned else {}


def departures(
    evaluations: Iterable[ClassEvaluation],
    pods: Iterable[PodRecord],
    audit: Audit,
    without: Constraint | None = None,
    *,
    leaving: bool = True,
) -> Iterator[Departure]:
    """Yield the departures of pods of one workload that filters can tell apart.

    Args:
        evaluations: The evaluations of the classes of the pods.
        pods: The pods that may leave their domains.
        audit: The cluster.
        without: A constraint that is left out.
        leaving: Whether one of the pods leaves; else one more pod like the first of them is placed.
    """
    records = list(pods)
    for kind in _kinds(evaluations, audit):
        if leaving:
            yield from _departures(kind, without, records, audit)
        else:
            hard = _without(kind.hard, without)
            yield Departure(kind, None, hard, [None] * len(hard), audit.volumes.of_next(records[0]), audit)


def _without(hard: Iterable[Spread], constraint: Constraint | None) -> list[Spread]:
    return [spread for spread in hard if spread.constraint != constraint]


def _departures(
    kind: _PodKind, without: Constraint | None, left: Iterable[PodRecord], audit: Audit
) -> Iterator[Departure]:
    """Yield the departure of each distinct pod in ``left``.

    The constraint ``without`` is left out.
    """
    hard = _without(kind.hard, without)
    leavers: dict[object, list[PodRecord]] = {}
    for pod in left:
        lost = tuple(domain_of(pod, spread) for spread in hard)
        leavers.setdefault((lost, (pod.pod_class, pod.node) if kind.concerned else None), []).append(pod)
    for pods in islice(leavers.values(), _LEAVERS if kind.concerned else None):
        lost = tuple(domain_of(pods[0], spread) for spread in hard)
        yield Departure(kind, pods[0], hard, lost, audit.volumes.of_any(pods), audit)


def domain_of(pod: PodRecord, spread: Spread) -> str | None:
    """Return the domain in which a constraint counts a bound pod of its namespace; None: it does not."""
    counts = spread.constraint.counts and labelselectors.matches(spread.constraint.selector, pod.pod_class.labels)
    return spread.domains.value_of.get(pod.node) if counts else None
