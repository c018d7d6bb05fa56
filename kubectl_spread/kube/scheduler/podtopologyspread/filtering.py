"""The Filter: which nodes do all spread constraints of a pod allow?

Source: kubernetes v1.37.1 pkg/scheduler/framework/plugins/podtopologyspread/filtering.go, Filter.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum

from kubectl_spread.kube.api.types import Node
from kubectl_spread.kube.scheduler.podtopologyspread.domains import NodeSets
from kubectl_spread.kube.scheduler.podtopologyspread.spread import Spread


def allow(spreads: Iterable[Spread], values: Iterable[str | None]) -> bool:
    """Tell whether one more such pod may go to nodes with these ``values`` for the constraints' topology keys."""
    return all(spread.allows(value) for spread, value in zip(spreads, values, strict=True))


def place(spreads: Iterable[Spread], values: Iterable[str | None], pods: int = 1) -> list[Spread]:
    """Return the counts after this number of such pods is placed on nodes with these ``values``; negative: removed."""
    return [spread.placed(value, pods) for spread, value in zip(spreads, values, strict=True)]


class FilterAnswer(StrEnum):
    """The Filter's answer for one node."""

    FEASIBLE = "feasible"
    NOT_MATCHING = "not matching"
    MISSING_LABEL = "missing label"


def filter_nodes(spreads: Sequence[Spread], nodes: NodeSets) -> Counter[FilterAnswer]:
    """Count the answers for all nodes; the first hard constraint that a node fails decides."""
    numbers: Counter[FilterAnswer] = Counter()
    for answer, alike in _answers(spreads, nodes):
        numbers[answer] += len(alike)
    return numbers


def feasible_nodes(spreads: Sequence[Spread], nodes: NodeSets) -> Iterator[Node]:
    """Yield the nodes that pass all of the pod's hard constraints."""
    for answer, alike in _answers(spreads, nodes):
        if answer is FilterAnswer.FEASIBLE:
            yield from alike


def _answers(spreads: Sequence[Spread], nodes: NodeSets) -> Iterator[tuple[FilterAnswer, Sequence[Node]]]:
    hard = [spread for spread in spreads if spread.constraint.hard]
    for values, alike in nodes.cells([spread.constraint.topology_key for spread in hard]).items():
        yield filter_node(hard, values), alike


def filter_node(hard: Sequence[Spread], values: Sequence[str | None]) -> FilterAnswer:
    """Filter a node by its ``values`` for the topology keys of the pod's hard constraints, in the pod's order."""
    for spread, value in zip(hard, values, strict=True):
        if value is None:
            return FilterAnswer.MISSING_LABEL
        if not spread.allows(value):
            return FilterAnswer.NOT_MATCHING
    return FilterAnswer.FEASIBLE
