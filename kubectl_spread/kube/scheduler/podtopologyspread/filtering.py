"""The Filter: which nodes do all spread constraints of a pod allow?

Source: kubernetes v1.37.1 pkg/scheduler/framework/plugins/podtopologyspread/filtering.go, Filter.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from enum import StrEnum

from kubectl_spread.kube.api import labels
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


def filter_nodes(spreads: Iterable[Spread], nodes: NodeSets) -> dict[FilterAnswer, int]:
    """Return the nodes with each answer, as bitmaps; the first hard constraint that a node fails decides."""
    missing = refused = 0
    left = nodes.index.everything
    for spread in spreads:
        if not spread.constraint.hard:
            continue
        key = spread.constraint.topology_key
        labelled = left & nodes.carrying([key])
        passing = 0 if spread.most_allowed < 0 else labelled & ~nodes.index.with_value(key, spread.blocked)
        missing |= left & ~labelled
        refused |= labelled & ~passing
        left = passing
    return {FilterAnswer.FEASIBLE: left, FilterAnswer.NOT_MATCHING: refused, FilterAnswer.MISSING_LABEL: missing}


def count_answers(spreads: Iterable[Spread], nodes: NodeSets) -> Counter[FilterAnswer]:
    """Count the answers for all nodes."""
    return +Counter({answer: bits.bit_count() for answer, bits in filter_nodes(spreads, nodes).items()})


def feasible_nodes(spreads: Iterable[Spread], nodes: NodeSets) -> Iterator[Node]:
    """Yield the nodes that pass all of the pod's hard constraints, by name; most callers need only the first ones."""
    feasible = filter_nodes(spreads, nodes)[FilterAnswer.FEASIBLE]
    return (nodes.nodes[number] for number in labels.ascending(feasible))
