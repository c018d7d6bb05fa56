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
from kubectl_spread.kube.api.labelindex import LabelIndex, bitmap
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
        self.everything = (1 << len(nodes)) - 1
        self._uncordoned = self.everything & ~bitmap(
            (number for number, node in enumerate(nodes) if node.spec.unschedulable), len(nodes)
        )
        by_taints: dict[tuple[Taint, ...], list[int]] = {}
        for number, node in enumerate(nodes):
            filtering = tuple(taint for taint in node.spec.taints if taint.effect in taints.FILTERING_EFFECTS)
            by_taints.setdefault(filtering, []).append(number)
        self._nodes_with = {tainted: bitmap(numbers, len(nodes)) for tainted, numbers in by_taints.items()}

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
