"""Eligible domains: which nodes count for a constraint of a pod, and which of them could the pod use?

Source: kubernetes v1.37.1 pkg/scheduler/framework/plugins/podtopologyspread/filtering.go, calPreFilterState.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Final, NamedTuple

import msgspec

from kubectl_spread.kube.api import content, labels
from kubectl_spread.kube.api.labels import LabelIndex, Labels, bitmap
from kubectl_spread.kube.api.types import (
    Affinity,
    Node,
    NodeInclusionPolicy,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    Taint,
    Toleration,
)
from kubectl_spread.kube.features import Behaviour
from kubectl_spread.kube.scheduler import nodeaffinity, taints
from kubectl_spread.kube.scheduler.podtopologyspread.constraints import Constraint
from kubectl_spread.memoization import memoized

_CORDON: Final = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")


class NodeLabels:
    """The nodes by their labels and names."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self._nodes = nodes
        self._labels = LabelIndex([node.metadata.labels for node in nodes])
        self._numeric: dict[str, tuple[list[int], list[str]]] = {}
        self.everything = self._labels.everything

    def labels(self, number: int) -> Labels:
        """Return the labels of the node with a number."""
        return self._nodes[number].metadata.labels

    def carrying(self, keys: Iterable[str]) -> int:
        """Return the nodes that have all labels."""
        bits = self.everything
        for key in keys:
            bits &= self._labels.having_bits(key)
            if not bits:
                break
        return bits

    def named(self, name: str) -> int:
        """Return the node with a name."""
        return self._names.value_bits(nodeaffinity.NAME_FIELD, (name,))

    def fitting(self, node_selector: Labels, affinity: Affinity | None) -> int:
        """Return the nodes that match both a pod's nodeSelector and its required node affinity."""
        bits = self.everything
        for key, value in node_selector.items():
            bits &= self._labels.value_bits(key, (value,))
        selector = nodeaffinity.required(affinity)
        return bits if selector is None else bits & self.matching(selector)

    def matching(self, selector: NodeSelector, *, unnamed: bool = False) -> int:
        """Return the nodes that match one of the terms; with ``unnamed`` terms see nodes without their names."""
        bits = 0
        for term in selector.node_selector_terms:
            bits |= self._matching(term, unnamed=unnamed)
        return bits

    def with_value(self, key: str, values: Iterable[str]) -> int:
        """Return the nodes whose value for a label is one of ``values``."""
        return self._labels.value_bits(key, values)

    def _matching(self, term: NodeSelectorTerm, *, unnamed: bool) -> int:
        """Return the nodes that match a term; an empty term and a term that cannot be parsed match none."""
        if not term.match_expressions and not term.match_fields:
            return 0
        bits = self.everything
        for requirement in term.match_expressions:
            bits &= self._satisfying(requirement)
        for requirement in term.match_fields:
            bits &= self._named(requirement, unnamed=unnamed)
        return bits

    def _satisfying(self, requirement: NodeSelectorRequirement) -> int:
        if any(content.label_value_problems(value) for value in requirement.values):
            # A requirement with an invalid label value, such as +1, cannot be parsed.
            return 0
        key, values, labels = requirement.key, requirement.values, self._labels
        match requirement.operator:
            case "In":
                return labels.value_bits(key, values)
            case "NotIn" if values:
                return self.everything & ~labels.value_bits(key, values)
            case "Exists" if not values:
                return labels.having_bits(key)
            case "DoesNotExist" if not values:
                return self.everything & ~labels.having_bits(key)
            case "Gt" | "Lt" if len(values) == 1:
                return labels.value_bits(key, self._beyond(requirement))
        return 0

    def _beyond(self, requirement: NodeSelectorRequirement) -> Sequence[str]:
        """Return the values of a label that are numbers above the limit of Gt, or below that of Lt."""
        limit = nodeaffinity.parse_int(requirement.values[0])
        if limit is None:
            return ()
        if requirement.key not in self._numeric:
            parsed = ((nodeaffinity.parse_int(value), value) for value in self._labels.values(requirement.key))
            ascending = sorted((number, value) for number, value in parsed if number is not None)
            self._numeric[requirement.key] = ([number for number, _ in ascending], [value for _, value in ascending])
        limits, values = self._numeric[requirement.key]
        if requirement.operator == "Gt":
            return values[bisect_right(limits, limit) :]
        return values[: bisect_left(limits, limit)]

    def _named(self, requirement: NodeSelectorRequirement, *, unnamed: bool) -> int:
        if requirement.key != nodeaffinity.NAME_FIELD or len(requirement.values) != 1:
            return 0
        bits = 0 if unnamed else self._names.value_bits(nodeaffinity.NAME_FIELD, requirement.values)
        match requirement.operator:
            case "In":
                return bits
            case "NotIn":
                return self.everything & ~bits
        return 0

    @cached_property
    def _names(self) -> LabelIndex:
        return LabelIndex([{nodeaffinity.NAME_FIELD: node.metadata.name} for node in self._nodes])


class NodeTaints:
    """The nodes by the taints that keep pods away, and by cordons."""

    def __init__(self, nodes: Sequence[Node], behaviour: Behaviour) -> None:
        """Index ``nodes``; tolerations are read by ``behaviour``."""
        self._comparison = behaviour.toleration_comparison
        self.everything = (1 << len(nodes)) - 1
        cordoned = (number for number, node in enumerate(nodes) if node.spec.unschedulable)
        self._uncordoned = self.everything & ~bitmap(cordoned)
        by_taints: dict[tuple[Taint, ...], list[int]] = {}
        for number, node in enumerate(nodes):
            filtering = tuple(taint for taint in node.spec.taints if taint.effect in taints.FILTERING_EFFECTS)
            by_taints.setdefault(filtering, []).append(number)
        self._nodes_with = {tainted: bitmap(numbers) for tainted, numbers in by_taints.items()}

    def passing(self, tolerations: Iterable[Toleration]) -> int:
        """Return the nodes where no cordon keeps a pod with these tolerations away; a cordon counts as its taint.

        Source: kubernetes v1.37.1 pkg/scheduler/framework/plugins/nodeunschedulable/node_unschedulable.go, Filter.
        """
        passes = any(
            taints.tolerates(toleration, _CORDON, comparison_operators=self._comparison) for toleration in tolerations
        )
        return self.everything if passes else self._uncordoned

    def tolerated(self, tolerations: Sequence[Toleration]) -> tuple[int, tuple[Taint, ...]]:
        """Return the nodes without untolerated NoSchedule or NoExecute taints, and the taints that obstacles name."""
        tolerated, named = 0, []
        for tainted, nodes in self._nodes_with.items():
            taint = taints.find_untolerated(tainted, tolerations, comparison_operators=self._comparison)
            if taint is None:
                tolerated |= nodes
            else:
                named.append(taint)
        return tolerated, tuple(named)


NO_VALUE: Final = ""
"""The domain of nodes that lack the topology key of one of the system's default constraints."""


class Placement(msgspec.Struct, frozen=True):
    """The parts of a pod's spec that decide which nodes it could use."""

    node_selector: Labels
    affinity: Affinity | None
    tolerations: tuple[Toleration, ...]

    def restricts(self, constraint: Constraint) -> bool:
        """Tell whether ``constraint`` may leave out nodes because of this placement."""
        selects = bool(self.node_selector) or nodeaffinity.required(self.affinity) is not None
        return (selects and constraint.node_affinity_policy is NodeInclusionPolicy.HONOR) or (
            constraint.node_taints_policy is NodeInclusionPolicy.HONOR
        )


class Domains(msgspec.Struct, frozen=True, eq=False, dict=True):
    """The eligible domains of one constraint: topology value to number of nodes, and each eligible node's value.

    Compared by identity, because ``NodeSets`` makes the domains of each distinct set of nodes once.
    """

    nodes: Mapping[str, int]
    value_of: Mapping[str, str]

    @cached_property
    def members(self) -> Mapping[str, Sequence[str]]:
        """The names of the eligible nodes of each domain."""
        members: dict[str, list[str]] = {}
        for node, value in self.value_of.items():
            members.setdefault(value, []).append(node)
        return members


class Usability(NamedTuple):
    """Whether a pod could use a node: node affinity fits, taints are tolerated, no cordon keeps it away."""

    fits: bool
    tolerated: bool
    open: bool

    @property
    def schedulable(self) -> bool:
        """Whether all three hold."""
        return self.fits and self.tolerated and self.open


class UsableNodes(Mapping[str, Usability]):
    """The usability of each node, by its name, for all placements that have the same answers."""

    def __init__(self, numbers: Mapping[str, int], fits: int, tolerated: int, uncordoned: int) -> None:
        self._numbers = numbers
        self.fits = fits
        self.tolerated = tolerated
        self.uncordoned = uncordoned

    __eq__ = object.__eq__
    __hash__ = object.__hash__

    def __getitem__(self, name: str) -> Usability:
        number = self._numbers[name]
        return Usability(
            bool(self.fits >> number & 1), bool(self.tolerated >> number & 1), bool(self.uncordoned >> number & 1)
        )

    def __iter__(self) -> Iterator[str]:
        return iter(self._numbers)

    def __len__(self) -> int:
        return len(self._numbers)


class NodeSets:
    """The nodes of a cluster; the domains of each distinct set of nodes are computed once.

    Attributes:
        nodes: The nodes, by name.
        numbers: Maps the name of each node to its number in bitmaps.
        index: The nodes by their labels.
    """

    def __init__(self, nodes: Iterable[Node], behaviour: Behaviour, *, in_order: bool = False) -> None:
        """Take the nodes in any order, which is kept if ``in_order``; tolerations are read by ``behaviour``."""
        self.nodes = tuple(nodes if in_order else sorted(nodes, key=lambda node: node.metadata.name))
        self.numbers = {node.metadata.name: number for number, node in enumerate(self.nodes)}
        self.index = NodeLabels(self.nodes)
        self._taints = NodeTaints(self.nodes, behaviour)
        self._placements: dict[bytes, UsableNodes] = {}
        self._outcomes: dict[object, UsableNodes] = {}

    @cached_property
    def by_name(self) -> Mapping[str, Node]:
        """The nodes by their names."""
        return {node.metadata.name: node for node in self.nodes}

    @cached_property
    def own_names(self) -> Mapping[str, str]:
        """Maps the name of each node to itself: each node is a domain of its own."""
        return {name: name for name in self.numbers}

    @memoized
    def value_of(self, key: str) -> Mapping[str, str]:
        """Map the name of each node with a label to the value of the label."""
        metadatas = (node.metadata for node in self.nodes)
        return {each.name: each.labels[key] for each in metadatas if key in each.labels}

    @memoized
    def number_of_values(self, key: str) -> int:
        """Return the number of distinct values of a label."""
        return len(set(self.value_of(key).values()))

    def usable(self, placement: Placement) -> UsableNodes:
        """Return the usability of each node for pods with a placement."""
        key = msgspec.json.encode(
            (placement.node_selector, nodeaffinity.required(placement.affinity), placement.tolerations),
            order="deterministic",
        )
        if key not in self._placements:
            fits = self.index.fitting(placement.node_selector, placement.affinity)
            tolerated, first = self._taints.tolerated(placement.tolerations)
            uncordoned = self._taints.passing(placement.tolerations)
            self._placements[key] = self._outcomes.setdefault(
                (fits, tolerated, first, uncordoned), UsableNodes(self.numbers, fits, tolerated, uncordoned)
            )
        return self._placements[key]

    def carrying(self, keys: Iterable[str]) -> int:
        """Return the nodes that have all of some labels, as a bitmap."""
        return self.index.carrying(keys)

    def eligible_domains(self, constraint: Constraint, carrying: int, usable: UsableNodes) -> Domains:
        """Return the eligible domains of a pod's constraint.

        Args:
            constraint: The constraint.
            carrying: The nodes that have the topology keys of all of the pod's constraints with the same
                whenUnsatisfiable, as a bitmap.
            usable: The usability of each node for the pod.
        """
        eligible = carrying
        if constraint.node_affinity_policy is NodeInclusionPolicy.HONOR:
            eligible &= usable.fits
        if constraint.node_taints_policy is NodeInclusionPolicy.HONOR:
            eligible &= usable.tolerated
        return self._domains_of(constraint.topology_key, eligible)

    @memoized
    def _domains_of(self, key: str, eligible: int) -> Domains:
        metadatas = (self.nodes[number].metadata for number in labels.ascending(eligible))
        value_of = {metadata.name: metadata.labels[key] for metadata in metadatas}
        return Domains(nodes=Counter(value_of.values()), value_of=value_of)

    def labels_of(self, name: str) -> Labels:
        """Return the labels of a node."""
        return self.nodes[self.numbers[name]].metadata.labels

    def lacking(self, key: str) -> tuple[str, ...]:
        """Return the names of the nodes without a label."""
        numbers = labels.ascending(self.index.everything & ~self.carrying([key]))
        return tuple(self.nodes[number].metadata.name for number in numbers)
