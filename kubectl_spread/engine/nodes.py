"""Nodes: the answers about nodes that do not change while pods come and go, computed once for each kind of pods."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Final

import msgspec

from kubectl_spread.engine.kinds import SchedulingKind
from kubectl_spread.kube.api.labels import HOSTNAME, ascending
from kubectl_spread.kube.api.types import Node, NodeInclusionPolicy, NodeSelector, Taint, Toleration
from kubectl_spread.kube.features import Behaviour
from kubectl_spread.kube.scheduler import resources, scores, taints
from kubectl_spread.kube.scheduler.podtopologyspread.constraints import Constraint
from kubectl_spread.kube.scheduler.podtopologyspread.domains import NO_VALUE, NodeSets, UsableNodes
from kubectl_spread.memoization import memoized

_PREFER_NO_SCHEDULE: Final = "PreferNoSchedule"
Values = Sequence[str | None]
"""The value of a topology key of each node, by the node's number; None for a node that does not count."""


class CountedNodes(msgspec.Struct, frozen=True, eq=False):
    """The nodes that count for a constraint.

    Attributes:
        bits: The nodes, as a bitmap.
        values: The values of their topology key.
        domains: The number of distinct values.
    """

    bits: int
    values: Values
    domains: int


class KindAnswers(msgspec.Struct, frozen=True, eq=False):
    """The answers about all nodes for one kind of pods.

    Attributes:
        usable: Which nodes node affinity, taints and cordons allow.
        allowed: The nodes that all of these allow, as a bitmap.
        hard: The nodes that count for each hard constraint.
        soft: The nodes that count for each soft constraint.
        ranked: The nodes that the soft constraints rank, as a bitmap.
        avoided: The number of PreferNoSchedule taints that are not tolerated on each node; None without any.
        preferred: The sum of the weights of the preferred terms of node affinity on each node; None without any.
    """

    usable: UsableNodes
    allowed: int
    hard: tuple[CountedNodes, ...]
    soft: tuple[CountedNodes, ...]
    ranked: int
    avoided: Sequence[int] | None
    preferred: Sequence[int] | None


def by_age(node: Node) -> tuple[float, str]:
    """Return the order of nodes in which the newest comes last."""
    created = node.metadata.creation_timestamp
    return created.timestamp() if created else 0.0, node.metadata.name


class NodeTable:
    """The nodes of a cluster, numbered in the order in which the scheduler visits them.

    Attributes:
        sets: The nodes by their labels and taints.
        names: Their names.
        allocatable: The amounts that the pods of each node may request together; None where they are unknown.
        to_find: The number of feasible nodes that the scheduler looks for.
    """

    def __init__(self, nodes: Iterable[Node], behaviour: Behaviour) -> None:
        """Take nodes in the order of their names; tolerations are read by ``behaviour``."""
        self.sets = NodeSets(scores.in_visiting_order(nodes), behaviour, in_order=True)
        self.names = [node.metadata.name for node in self.sets.nodes]
        self.allocatable = [resources.allocatable_of(node) for node in self.sets.nodes]
        self.to_find = scores.nodes_to_find(len(self.names))
        self._behaviour = behaviour

    @property
    def numbers(self) -> dict[str, int]:
        """Maps the name of each node to its number."""
        return self.sets.numbers

    @property
    def everything(self) -> int:
        """All nodes, as a bitmap."""
        return self.sets.index.everything

    @cached_property
    def resources(self) -> Collection[str]:
        """The names of all resources that a node lists."""
        return {name for amounts in self.allocatable for name in amounts or ()}

    @memoized
    def mask(self, key: str, value: str) -> int:
        """Return the nodes with a value of a label, as a bitmap."""
        return self.sets.index.with_value(key, (value,))

    @memoized
    def values(self, key: str) -> Values:
        """Return the value of a label of each node."""
        return [node.metadata.labels.get(key) for node in self.sets.nodes]

    def is_too_large(self, kind: SchedulingKind) -> bool:
        """Tell whether no node that pods of a kind may use has what one requests, even without other pods."""
        usable = self.answers(kind).usable
        return self._is_too_large(usable.fits & usable.tolerated, kind.requests)

    @memoized
    def _is_too_large(self, nodes: int, requests: tuple[tuple[str, int], ...]) -> bool:
        allocatable = [self.allocatable[number] for number in ascending(nodes)]
        return bool(allocatable) and all(
            amounts is not None and any(amount > amounts.get(name, 0) for name, amount in requests)
            for amounts in allocatable
        )

    def untolerated(self, kind: SchedulingKind) -> Mapping[Taint, int]:
        """Map each taint that pods of a kind do not tolerate to the nodes that have it first, as a bitmap."""
        return self._first_taints(self.answers(kind).usable, kind.pod_class.placement.tolerations)

    @memoized
    def _first_taints(self, usable: UsableNodes, tolerations: Sequence[Toleration]) -> Mapping[Taint, int]:
        by_taint: dict[Taint, int] = {}
        comparison = self._behaviour.toleration_comparison
        for number in ascending(self.everything & ~usable.tolerated):
            spec = self.sets.nodes[number].spec
            taint = taints.find_untolerated(spec.taints, tolerations, comparison_operators=comparison)
            if taint is not None:
                by_taint[taint] = by_taint.get(taint, 0) | 1 << number
        return by_taint

    @memoized
    def answers(self, kind: SchedulingKind) -> KindAnswers:
        """Return the answers for a kind."""
        usable = self.sets.usable(kind.pod_class.placement)
        carrying_hard = self.sets.carrying(constraint.topology_key for constraint in kind.hard)
        soft_keys = [constraint.topology_key for constraint in kind.soft]
        carrying_soft = self.sets.carrying(soft_keys) if kind.all_keys else self.everything
        return KindAnswers(
            usable=usable,
            allowed=usable.fits & usable.tolerated & usable.uncordoned,
            hard=tuple(self._nodes_of(constraint, carrying_hard, usable) for constraint in kind.hard),
            soft=tuple(self._nodes_of(constraint, carrying_soft, usable) for constraint in kind.soft),
            ranked=carrying_soft,
            avoided=self._avoided(kind),
            preferred=self._preferred(kind),
        )

    def _nodes_of(self, constraint: Constraint, carrying: int, usable: UsableNodes) -> CountedNodes:
        bits = carrying
        if constraint.node_affinity_policy is NodeInclusionPolicy.HONOR:
            bits &= usable.fits
        if constraint.node_taints_policy is NodeInclusionPolicy.HONOR:
            bits &= usable.tolerated
        return self._counted(constraint.topology_key, bits, constraint.lenient and constraint.topology_key != HOSTNAME)

    @memoized
    def _counted(self, key: str, bits: int, everywhere: bool) -> CountedNodes:
        values = [NO_VALUE if value is None and everywhere else value for value in self.values(key)]
        counted: list[str | None] = [None] * len(values)
        for number in ascending(bits):
            counted[number] = values[number]
        return CountedNodes(bits, counted, len({value for value in counted if value is not None}))

    @cached_property
    def _has_avoided(self) -> bool:
        return any(taint.effect == _PREFER_NO_SCHEDULE for node in self.sets.nodes for taint in node.spec.taints)

    def _avoided(self, kind: SchedulingKind) -> Sequence[int] | None:
        if not self._has_avoided:
            return None
        tolerations = [
            toleration
            for toleration in kind.pod_class.placement.tolerations
            if toleration.effect in ("", _PREFER_NO_SCHEDULE)
        ]
        comparison = self._behaviour.toleration_comparison
        numbers = [
            sum(
                taint.effect == _PREFER_NO_SCHEDULE
                and not any(taints.tolerates(each, taint, comparison_operators=comparison) for each in tolerations)
                for taint in node.spec.taints
            )
            for node in self.sets.nodes
        ]
        return numbers if any(numbers) else None

    def _preferred(self, kind: SchedulingKind) -> Sequence[int] | None:
        affinity = kind.pod_class.placement.affinity
        node_affinity = None if affinity is None else affinity.node_affinity
        terms = () if node_affinity is None else node_affinity.preferred_during_scheduling_ignored_during_execution
        weights = [0] * len(self.names)
        for term in terms:
            if term.weight:
                for number in ascending(self.sets.index.matching(NodeSelector(node_selector_terms=(term.preference,)))):
                    weights[number] += term.weight
        return weights if any(weights) else None
