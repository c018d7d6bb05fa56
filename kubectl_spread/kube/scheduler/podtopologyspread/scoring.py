"""Spread scores: how does the scheduler rank the nodes that a pod may go to by its soft constraints?

Source: kubernetes v1.37.1 pkg/scheduler/framework/plugins/podtopologyspread/scoring.go.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from kubectl_spread.kube.api.labels import HOSTNAME
from kubectl_spread.kube.api.types import Node, NodeInclusionPolicy
from kubectl_spread.kube.scheduler.podtopologyspread.constraints import Constraint
from kubectl_spread.kube.scheduler.podtopologyspread.domains import NO_VALUE, Domains, NodeSets, UsableNodes
from kubectl_spread.kube.scheduler.scores import MAX_NODE_SCORE, Weights, weight_of_domains

WEIGHT: Final = Weights().pod_topology_spread
"""The weight of the plugin's score among those of the default plugins."""


class SoftConstraint(msgspec.Struct, frozen=True):
    """A soft constraint with its eligible domains and the number of matching pods on each node, eligible or not."""

    constraint: Constraint
    domains: Domains
    matching: Mapping[str, int]


class _Ranking(msgspec.Struct, frozen=True):
    """A constraint among the ranked nodes: the matching pods of each of their domains, and the weight of a pod."""

    soft: SoftConstraint
    match_num: Mapping[str, int]
    weight: float

    def score(self, node: Node) -> float:
        """Return the raw score of a node, where less is better; 0 for a node without the topology key."""
        constraint = self.soft.constraint
        value = node.metadata.labels.get(constraint.topology_key)
        if value is None:
            return 0
        if constraint.topology_key == HOSTNAME:
            count = self.soft.matching.get(node.metadata.name, 0)
        else:
            count = self.match_num[value]
        return count * self.weight + (constraint.max_skew - 1)


def scores(softs: Sequence[SoftConstraint], feasible: Sequence[Node], *, all_keys: bool = True) -> dict[str, int]:
    """Map the names of feasible nodes to scores from 0 to 100, the best; nothing without soft constraints.

    Args:
        softs: The pod's soft constraints.
        feasible: The nodes that are ranked.
        all_keys: Whether a node without the topology key of any of the constraints has 0. For the system's default
            constraints this is false: the nodes without a key are one domain.

    Source: kubernetes v1.37.1 pkg/scheduler/framework/plugins/podtopologyspread/scoring.go, PreScore, Score and
    NormalizeScore.
    """
    if not softs:
        return {}
    keys = [soft.constraint.topology_key for soft in softs] if all_keys else []
    ranked = [node for node in feasible if all(key in node.metadata.labels for key in keys)]
    rankings = [_ranking(soft, ranked) for soft in softs]
    # Go rounds halves away from zero.
    raw = {node.metadata.name: math.floor(sum(ranking.score(node) for ranking in rankings) + 0.5) for node in ranked}
    ignored = dict.fromkeys((node.metadata.name for node in feasible), 0)
    return {**ignored, **_normalized(raw)}


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


def _ranking(soft: SoftConstraint, ranked: Sequence[Node]) -> _Ranking:
    key = soft.constraint.topology_key
    match_num = {node.metadata.labels.get(key, NO_VALUE): 0 for node in ranked}
    for node, value in soft.domains.value_of.items():
        if value in match_num:
            match_num[value] += soft.matching.get(node, 0)
    size = len(ranked) if key == HOSTNAME else len(match_num)
    return _Ranking(soft, match_num, weight_of_domains(size))


def _normalized(raw: Mapping[str, int]) -> dict[str, int]:
    most, least = max(raw.values(), default=0), min(raw.values(), default=0)
    if most == 0:
        return dict.fromkeys(raw, MAX_NODE_SCORE)
    return {name: MAX_NODE_SCORE * (most + least - score) // most for name, score in raw.items()}
