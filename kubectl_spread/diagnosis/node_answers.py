"""Node answers: would a node take a pod, alone or after other pods have left, and which filter refuses it if not?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain, islice
from typing import Final, TypeAlias

import msgspec

from kubectl_spread.audit.evaluation import obstacles
from kubectl_spread.audit.evaluation.affinity import UNKNOWN_NAMESPACES, own_terms
from kubectl_spread.audit.evaluation.evaluate import Audit, EvaluatedConstraint
from kubectl_spread.audit.evaluation.evaluators import ClassEvaluation
from kubectl_spread.audit.evaluation.obstacles import AFFINITY_WORDS, Obstacle, ObstacleKind
from kubectl_spread.audit.evaluation.volumes import VolumeNodes
from kubectl_spread.audit.snapshot.records import PodClass, PodRecord
from kubectl_spread.kube.api import labels as labelselectors
from kubectl_spread.kube.scheduler.interpodaffinity import AffinityAnswer
from kubectl_spread.kube.scheduler.podtopologyspread.constraints import Constraint
from kubectl_spread.kube.scheduler.podtopologyspread.domains import Cell
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


class Replacement(msgspec.Struct, frozen=True):
    """The pods that replace evicted ones, as far as nodes tell them apart.

    Attributes:
        pod_class: Their class.
        repelled: The nodes that they cannot use because of the anti-affinity of pods that stay.
        certain: Whether everything that decides ``repelled`` was read.
    """

    pod_class: PodClass
    repelled: frozenset[str]
    certain: bool

    def room(self, node: str, audit: Audit, most: int) -> int:
        """Return the number of replacements that a node takes, up to ``most``."""
        if node in self.repelled or audit.obstacles.of(self.pod_class, node):
            return 0
        return audit.obstacles.takes(self.pod_class, node, most=most)

    def loses_room(self, pod: PodRecord, audit: Audit) -> bool:
        """Tell whether no replacement could use the room that a pod leaves on its node."""
        obstacle = audit.obstacles.of(pod.pod_class, pod.node)
        return pod.node in self.repelled or (obstacle is not None and obstacle.cause is not ObstacleKind.FULL)


def replacement_of(pod_class: PodClass, audit: Audit) -> Replacement:
    """Return the replacement of pods of ``pod_class``; pods with required terms of their own may repel each other."""
    repelled = audit.affinity.refusals(pod_class)
    nodes = frozenset[str]() if repelled is None or own_terms(pod_class) else frozenset(repelled)
    return Replacement(audit.obstacles.representative(pod_class), nodes, repelled is not None)


class FreeCells:
    """The room for replacements on nodes with equal values of the topology keys; a node is asked when it matters."""

    def __init__(
        self, replacement: Replacement, spreads: Sequence[Spread], decisive: int, enough: int, audit: Audit
    ) -> None:
        """Take the nodes that have the topology keys of all hard constraints of a replacement.

        Args:
            replacement: The pods to place.
            spreads: The counts of all their hard constraints.
            decisive: The index of the constraint by whose domains ``choose`` does.
            enough: The room of which the rest is not asked.
            audit: The audit.
        """
        self._keys = [each.constraint.topology_key for each in spreads]
        self._decisive = decisive
        self._replacement = replacement
        self._enough = enough
        self._audit = audit
        self._nodes = audit.nodes.cells(self._keys)
        self._cells, self._of_value = audit.nodes.complete_cells(self._keys, decisive)
        self._room: dict[Cell, int] = {}

    def left_by(self, pods: Iterable[PodRecord]) -> Counter[Cell]:
        """Return the room that removed pods leave to their replacements."""
        by_name, replacement = self._audit.nodes.by_name, self._replacement
        bound = (pod for pod in pods if pod.node in by_name and not replacement.loses_room(pod, self._audit))
        labels = (by_name[pod.node].metadata.labels for pod in bound)
        return Counter(tuple(map(of_node.get, self._keys)) for of_node in labels)

    def choose(
        self, spreads: Sequence[Spread], left: Mapping[Cell, int], volumes: VolumeNodes | None = None, *, fullest: bool
    ) -> Cell | None:
        """Return a cell in the fullest, or the emptiest, domain that all constraints allow.

        In the fullest one more pod is worst for the skew. ``left`` is further room, or less if negative; ``volumes``
        are those of the pod. Of several cells it is the first one; None: there is none.
        """
        return next(self._allowed(spreads, left, volumes, fullest=fullest), None)

    def _allowed(
        self, spreads: Sequence[Spread], left: Mapping[Cell, int], volumes: VolumeNodes | None, *, fullest: bool
    ) -> Iterator[Cell]:
        """Yield the first allowed cell of the domains with each number of pods."""
        if not spreads:
            yield from self._first(self._cells, (), left, volumes)
            return
        limits = [(each.match_num.occupied, each.most_allowed) for each in spreads]
        occupied, limit = limits[self._decisive]
        by_count: dict[int, list[str]] = {}
        for domain, number in occupied.items():
            if number <= limit and domain in self._of_value:
                by_count.setdefault(number, []).append(domain)
        if limit >= 0 and not occupied.keys() >= self._of_value.keys():
            by_count[0] = []
        for number in sorted(by_count, reverse=fullest):
            if number:
                firsts = (self._first(self._of_value[domain], limits, left, volumes) for domain in by_count[number])
                yield from sorted(chain.from_iterable(firsts), key=str)
            else:
                empty = (cell for cell in self._cells if cell[self._decisive] not in occupied)
                yield from self._first(empty, limits, left, volumes)

    def _first(
        self,
        cells: Iterable[Cell],
        limits: Sequence[tuple[Mapping[str, int], int]],
        left: Mapping[Cell, int],
        volumes: VolumeNodes | None,
    ) -> Iterator[Cell]:
        """Yield the first cell, if any, with room in domains that have no more pods than each limit."""
        for cell in cells:
            allowed = all(
                occupied.get(value or "", 0) <= limit for value, (occupied, limit) in zip(cell, limits, strict=True)
            )
            if allowed and self._room_of(cell) + left.get(cell, 0) > 0 and self._holds(cell, volumes):
                yield cell
                return

    def _holds(self, cell: Cell, volumes: VolumeNodes | None) -> bool:
        if volumes is None or not volumes.refusals:
            return True
        return any(volumes.obstacle(node.metadata.name) is None for node in self._nodes[cell])

    def _room_of(self, cell: Cell) -> int:
        """Return the replacements that the nodes of a cell take."""
        if cell not in self._room:
            room = 0
            for node in self._nodes[cell]:
                if room >= self._enough:
                    break
                room += self._replacement.room(node.metadata.name, self._audit, self._enough)
            self._room[cell] = room
        return self._room[cell]
