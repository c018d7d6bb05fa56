"""Node answers: would a node take a pod, alone or after other pods have left, and which filter refuses it if not?"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import islice
from typing import Final, TypeAlias

import msgspec
from msgspec.structs import replace

from kubectl_spread.audit.evaluation import obstacles
from kubectl_spread.audit.evaluation.affinity import NO_REFUSALS, UNKNOWN_NAMESPACES, AffinityRefusals
from kubectl_spread.audit.evaluation.evaluate import Audit, EvaluatedConstraint
from kubectl_spread.audit.evaluation.evaluators import ClassEvaluation
from kubectl_spread.audit.evaluation.obstacles import AFFINITY_WORDS, Obstacle, ObstacleKind
from kubectl_spread.audit.evaluation.volumes import VolumeNodes
from kubectl_spread.audit.snapshot.records import PodClass, PodRecord
from kubectl_spread.kube.api import labels as labelselectors
from kubectl_spread.kube.scheduler.interpodaffinity import AffinityAnswer
from kubectl_spread.kube.scheduler.podtopologyspread.spread import Spread, feasible_nodes

FirstRefusal: TypeAlias = Obstacle | Spread | AffinityAnswer
"""An obstacle, the first hard constraint that does not allow the node, or the answer of the filter of pod affinity."""


class NodeAnswers(msgspec.Struct, frozen=True, dict=True):
    """Would nodes take a pod of one class, and which filter refuses it if not? All filters are asked.

    Attributes:
        pod_class: The class of the pod, or one with the same obstacles where pod affinity does not concern its pods.
        hard: The counts of its hard constraints.
        concerned: Whether pod affinity decides where it may go.
        volumes: The nodes that its volumes refuse.
        audit: The cluster.
        gone: A pod that has left its node; None: one more pod is placed.
        lost: The domain of each count that loses that pod; None for none.
    """

    pod_class: PodClass
    hard: Sequence[Spread]
    concerned: bool
    volumes: VolumeNodes
    audit: Audit
    gone: PodRecord | None = None
    lost: Sequence[str | None] = ()

    @property
    def question(self) -> object:
        """A value that is equal for equal answers."""
        gone = self.gone if self.concerned else None
        return (self.pod_class, self.concerned, self.volumes, gone, *self.hard, *self.lost)

    @property
    def unknown(self) -> str:
        """What was not read of all that decides; "" if everything was."""
        return self.volumes.unknown or ("" if self._repelled is not None else UNKNOWN_NAMESPACES)

    def obstacle(self, node: str) -> Obstacle | None:
        """Return the first obstacle on a node, before constraints and pod affinity decide; None: there is none."""
        return self.audit.obstacles.of(self.pod_class, node) or self.volumes.obstacle(node)

    def obstacles(self, nodes: Iterable[str]) -> list[Obstacle]:
        """Return the obstacles on the nodes that have one."""
        return [obstacle for node in nodes if (obstacle := self.obstacle(node)) is not None]

    def first_refusal(self, node: str) -> FirstRefusal | None:
        """Return the refusal of the first filter that refuses a node; None: the node would take the pod."""
        return self.obstacle(node) or self._later_refusal(node)

    def refusal_when_open(self, node: str) -> FirstRefusal | None:
        """Return what refuses a node without its cordon and its taints; None: the node would take the pod then."""
        obstacle = self.audit.obstacles.when_open(self.pod_class, node) or self.volumes.obstacle(node)
        return obstacle or self._later_refusal(node)

    def _later_refusal(self, node: str) -> Spread | AffinityAnswer | None:
        """Return the refusal by constraints and pod affinity, which the scheduler asks last."""
        labels = self.audit.nodes.labels_of(node)
        for spread in self._after:
            if not spread.allows(labels.get(spread.constraint.topology_key)):
                return spread
        return None if self._repelled is None else self._repelled.get(node)

    def free(self) -> Iterator[str]:
        """Yield the nodes that would take the pod, by name."""
        allowed = (node.metadata.name for node in feasible_nodes(self._after, self.audit.nodes))
        return (node for node in allowed if self.first_refusal(node) is None)

    def unobstructed(self) -> Iterator[str]:
        """Yield the nodes without an obstacle, before constraints and pod affinity decide, by name."""
        names = (node.metadata.name for node in self.audit.nodes.nodes)
        return (node for node in names if self.obstacle(node) is None)

    @cached_property
    def _after(self) -> Sequence[Spread]:
        """The counts without the pod that has left."""
        lost = self.lost or [None] * len(self.hard)
        return [
            spread if domain is None else spread.without({domain: 1})
            for spread, domain in zip(self.hard, lost, strict=True)
        ]

    @cached_property
    def _repelled(self) -> AffinityRefusals | None:
        """The nodes that pod affinity refuses, with its answer; None where it is unknown."""
        return self.audit.affinity.refusals(self.pod_class, self.gone) if self.concerned else NO_REFUSALS


def answers_of(evaluation: ClassEvaluation, pod: PodRecord, audit: Audit) -> NodeAnswers:
    """Return the answers about a pending pod; about one more pod like it where it has a node."""
    volumes = audit.volumes.of_next(pod) if pod.node else audit.volumes.of(pod)
    return _kind_of(evaluation, volumes, audit)


def _kind_of(evaluation: ClassEvaluation, volumes: VolumeNodes, audit: Audit) -> NodeAnswers:
    """Return the answers about one more pod of a class, which are equal for pods that filters cannot tell apart."""
    concerned = audit.affinity.concerns(evaluation.pod_class)
    pod_class = evaluation.pod_class if concerned else audit.obstacles.representative(evaluation.pod_class)
    return NodeAnswers(pod_class, evaluation.hard, concerned, volumes, audit)


_LEAVERS: Final = 32
"""The most pods that are tried as the evicted pod where pod affinity decides too."""


def departures(
    evaluations: Iterable[ClassEvaluation], pods: Iterable[PodRecord], audit: Audit
) -> Iterator[NodeAnswers]:
    """Yield the answers about pods of one workload after one of them has left, for pods that filters can tell apart.

    Args:
        evaluations: The evaluations of the classes of the pods.
        pods: The pods that may leave their domains.
        audit: The cluster.
    """
    records = list(pods)
    any_volumes = audit.volumes.of_any(records)
    kinds = {each.question: each for each in (_kind_of(evaluation, any_volumes, audit) for evaluation in evaluations)}
    for kind in kinds.values():
        leavers: dict[object, list[PodRecord]] = {}
        for pod in records:
            lost = tuple(domain_of(pod, spread) for spread in kind.hard)
            leavers.setdefault((lost, (pod.pod_class, pod.node) if kind.concerned else None), []).append(pod)
        for gone in islice(leavers.values(), _LEAVERS if kind.concerned else None):
            lost = tuple(domain_of(gone[0], spread) for spread in kind.hard)
            yield replace(kind, volumes=audit.volumes.of_any(gone), gone=gone[0], lost=lost)


def domain_of(pod: PodRecord, spread: Spread) -> str | None:
    """Return the domain in which a constraint counts a bound pod of its namespace; None: it does not."""
    counts = spread.constraint.counts and labelselectors.matches(spread.constraint.selector, pod.pod_class.labels)
    return spread.domains.value_of.get(pod.node) if counts else None


class PlacementCheck:
    """The check whether nodes would take a pod of a row; equal for pods to which all nodes give equal answers."""

    def __init__(self, row: EvaluatedConstraint, spread: Spread, audit: Audit, *, moving: bool) -> None:
        """Check a pod that has left the fullest domain if it is ``moving``, else the next pod.

        The next pod is checked by its other constraints alone, as ``spread`` itself is what refuses it.
        """
        left = _in_the_fullest(row, spread) if moving else []
        evaluations = [evaluation for evaluation, _ in row.evaluations]
        if left:
            self._answers = list(departures(evaluations, left, audit))
        else:
            without = None if moving else spread.constraint
            self._answers = [
                replace(each, hard=[other for other in each.hard if other.constraint != without])
                for each in (answers_of(evaluation, row.pods[0], audit) for evaluation in evaluations)
            ]
        self._question = tuple(answers.question for answers in self._answers)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PlacementCheck) and self._question == other._question

    def __hash__(self) -> int:
        return hash(self._question)

    def obstacles(self, nodes: Iterable[str]) -> list[Obstacle] | None:
        """Return the obstacles that keep the pods from ``nodes``, by node; None: some node would take a pod."""
        return _refusals([answers.first_refusal for answers in self._answers], nodes)


def obstacles_on(row: EvaluatedConstraint, nodes: Iterable[str], audit: Audit) -> list[Obstacle] | None:
    """Return the obstacles that keep the row's pods from ``nodes`` before constraints decide; None: a node is free."""
    first = {pod.pod_class: pod for pod in reversed(row.pods)}
    answers = (answers_of(evaluation, first[evaluation.pod_class], audit) for evaluation, _ in row.evaluations)
    return _refusals([each.obstacle for each in {each.question: each for each in answers}.values()], nodes)


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
            why = "has fewer domains than minDomains" if refusal.lowered else "allows no more"
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
