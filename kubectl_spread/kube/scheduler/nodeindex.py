"""Node index: which nodes do the node affinity, labels and tolerations of a pod allow?

The answers are bitmaps with one bit for each node, because each of many pods may restrict its nodes differently: the
cost of an answer grows with the terms and tolerations of the pod, not with the nodes.

Source: kubernetes v1.37.1 staging/src/k8s.io/component-helpers/scheduling/corev1/nodeaffinity/nodeaffinity.go,
RequiredNodeAffinity.Match.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Final

from kubectl_spread.kube.api import content
from kubectl_spread.kube.api.labelindex import LabelIndex, bitmap, numbers
from kubectl_spread.kube.api.labels import Labels
from kubectl_spread.kube.api.types import (
    Affinity,
    Node,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    Taint,
    Toleration,
)
from kubectl_spread.kube.features import Behaviour
from kubectl_spread.kube.scheduler import nodeaffinity, taints

_CORDON: Final = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")


class NodeLabels:
    """The nodes by their labels and names."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self._nodes = nodes
        self._labels = LabelIndex([node.metadata.labels for node in nodes])
        self._numeric: dict[str, tuple[list[int], list[str]]] = {}
        self.everything = self._labels.everything

    def carrying(self, keys: Iterable[str]) -> int:
        """Return the nodes that have all labels."""
        bits = self.everything
        for key in keys:
            bits &= self._labels.having_bits(key)
            if not bits:
                break
        return bits

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
        self._size = len(nodes)
        self.everything = (1 << len(nodes)) - 1
        self._uncordoned = self.everything & ~bitmap(
            (number for number, node in enumerate(nodes) if node.spec.unschedulable), len(nodes)
        )
        self._taints: dict[Taint, int] = {}
        by_taints: dict[tuple[int, ...], list[int]] = {}
        for number, node in enumerate(nodes):
            filtering = (taint for taint in node.spec.taints if taint.effect in taints.FILTERING_EFFECTS)
            tainted = tuple(dict.fromkeys(self._taints.setdefault(taint, len(self._taints)) for taint in filtering))
            by_taints.setdefault(tainted, []).append(number)
        self._lists = list(by_taints)
        """The distinct lists of taints that nodes have; a taint is a number."""
        self._nodes_of = list(by_taints.values())
        self._lists_with: list[list[int]] = [[] for _ in self._taints]
        for index, tainted in enumerate(self._lists):
            for taint_number in tainted:
                self._lists_with[taint_number].append(index)
        self._by_key: dict[str, list[tuple[int, Taint]]] = {}
        for taint, number in self._taints.items():
            self._by_key.setdefault(taint.key, []).append((number, taint))
        self._several = [tainted for tainted in self._lists if len(tainted) > 1]
        self._tolerated: dict[Toleration, int] = {}

    def passing(self, tolerations: Iterable[Toleration]) -> int:
        """Return the nodes where no cordon keeps a pod with these tolerations away; a cordon counts as its taint.

        Source: kubernetes v1.37.1 pkg/scheduler/framework/plugins/nodeunschedulable/node_unschedulable.go, Filter.
        """
        passes = any(
            taints.tolerates(toleration, _CORDON, comparison_operators=self._comparison) for toleration in tolerations
        )
        return self.everything if passes else self._uncordoned

    def tolerated(self, tolerations: Iterable[Toleration]) -> tuple[int, tuple[int | None, ...]]:
        """Return the nodes without untolerated NoSchedule or NoExecute taints.

        The second value is the first untolerated taint of each list of several taints, which obstacles name.
        """
        tolerated = 0
        for toleration in tolerations:
            tolerated |= self._tolerated_by(toleration)
        untolerated = ((1 << len(self._taints)) - 1) & ~tolerated
        first = tuple(next((taint for taint in several if untolerated >> taint & 1), None) for several in self._several)
        if 2 * untolerated.bit_count() <= len(self._taints):
            lists = {index for taint in numbers(untolerated) for index in self._lists_with[taint]}
            return self.everything & ~self._nodes(lists), first
        lists = {index for taint in numbers(tolerated) for index in self._lists_with[taint]}
        lists = {index for index in lists if all(tolerated >> taint & 1 for taint in self._lists[index])}
        return self._untainted | self._nodes(lists), first

    @cached_property
    def _untainted(self) -> int:
        return self._nodes(index for index, tainted in enumerate(self._lists) if not tainted)

    def _nodes(self, lists: Iterable[int]) -> int:
        return bitmap((node for index in lists for node in self._nodes_of[index]), self._size)

    def _tolerated_by(self, toleration: Toleration) -> int:
        """Return the taints that a toleration tolerates, as a bitmap."""
        if toleration not in self._tolerated:
            candidates = (
                self._by_key.get(toleration.key, ())
                if toleration.key
                else ((number, taint) for taint, number in self._taints.items())
            )
            self._tolerated[toleration] = bitmap(
                (
                    number
                    for number, taint in candidates
                    if taints.tolerates(toleration, taint, comparison_operators=self._comparison)
                ),
                len(self._taints),
            )
        return self._tolerated[toleration]
