"""Spread scores: how does the scheduler rank the nodes that a pod may go to by its soft constraints?

Source: kubernetes v1.37.1 pkg/scheduler/framework/plugins/podtopologyspread/scoring.go.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Final, NamedTuple

from kubectl_spread.kube.api.labels import HOSTNAME
from kubectl_spread.kube.api.types import NodeInclusionPolicy
from kubectl_spread.kube.scheduler.podtopologyspread.constraints import Constraint
from kubectl_spread.kube.scheduler.podtopologyspread.domains import NO_VALUE, Domains, NodeSets, UsableNodes
from kubectl_spread.kube.scheduler.scores import MAX_NODE_SCORE, Weights

WEIGHT: Final = Weights().pod_topology_spread
"""The weight of the plugin's score among those of the default plugins."""


class RankedCount(NamedTuple):
    """The count of a soft constraint among the ranked nodes.

    Attributes:
        pods: The matching pods in the domain of each ranked node, for hostname those on it; None without the key.
        domains: The number of domains of the ranked nodes.
        max_skew: maxSkew of the constraint.
    """

    pods: Sequence[int | None]
    domains: int
    max_skew: int


def normalized(counts: Sequence[RankedCount]) -> list[int]:
    """Return the score of each ranked node, from 0 to 100, the best; ``counts`` are those of all soft constraints."""
    cells = [*zip(*(count.pods for count in counts), strict=True)]
    weights = [(math.log(count.domains + 2), count.max_skew - 1) for count in counts]
    raw = {cell: _raw_score(cell, weights) for cell in set(cells)}
    least, most = min(raw.values(), default=0), max(raw.values(), default=0)
    scores_by_cell = {
        cell: MAX_NODE_SCORE * (most + least - score) // most if most else MAX_NODE_SCORE for cell, score in raw.items()
    }
    return [scores_by_cell[cell] for cell in cells]


def _raw_score(cell: Sequence[int | None], weights: Sequence[tuple[float, int]]) -> int:
    """Return the raw score of nodes with these counts, where less is better; a key that they lack adds nothing."""
    score = sum(pods * weight + rest for pods, (weight, rest) in zip(cell, weights, strict=True) if pods is not None)
    # Go rounds halves away from zero.
    return math.floor(score + 0.5)


def lenient_domains(constraint: Constraint, nodes: NodeSets, usable: UsableNodes) -> Domains:
    """Return the eligible domains of one of the system's default constraints.

    The nodes without the topology key are one domain, "", except for hostname, where each node is scored by itself.
    """
    honors = constraint.node_affinity_policy is NodeInclusionPolicy.HONOR
    value_of = {
        node.metadata.name: node.metadata.labels.get(constraint.topology_key, NO_VALUE)
        for node in nodes.nodes
        if (usable[node.metadata.name].fits or not honors)
        and (constraint.topology_key != HOSTNAME or HOSTNAME in node.metadata.labels)
    }
    return Domains(nodes=Counter(value_of.values()), value_of=value_of)
