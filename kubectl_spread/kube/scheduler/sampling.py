"""Sampling: in which order does the scheduler look at nodes, and after how many feasible ones does it stop?

Source: kubernetes v1.37.1 pkg/scheduler/backend/cache/node_tree.go, list, and pkg/scheduler/schedule_one.go,
numFeasibleNodesToFind.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import zip_longest
from typing import Final

from kubectl_spread.kube.api.types import Node

_LEAST: Final = 100
_LEAST_PERCENT: Final = 5
_MOST_PERCENT: Final = 50
_NODES_FOR_A_PERCENT: Final = 125
_HUNDRED: Final = 100
_ZONE: Final = ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone")
_REGION: Final = ("failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region")
"""The labels of a node that may name its zone and its region; the first that it has does, even where it is empty.

Source: kubernetes v1.37.1 staging/src/k8s.io/component-helpers/node/topology/helpers.go, GetZoneKey.
"""


def nodes_to_find(nodes: int) -> int:
    """Return the number of feasible nodes after which the scheduler stops looking for more."""
    if nodes < _LEAST:
        return nodes
    percent = max(_MOST_PERCENT - nodes // _NODES_FOR_A_PERCENT, _LEAST_PERCENT)
    return max(nodes * percent // _HUNDRED, _LEAST)


def in_visiting_order(nodes: Iterable[Node]) -> list[Node]:
    """Return nodes as the scheduler visits them: in turn one of each zone."""
    by_zone: dict[tuple[str, str], list[Node]] = {}
    for node in nodes:
        labels = node.metadata.labels
        zone = next((labels[key] for key in _ZONE if key in labels), "")
        region = next((labels[key] for key in _REGION if key in labels), "")
        by_zone.setdefault((region, zone), []).append(node)
    return [node for turn in zip_longest(*by_zone.values()) for node in turn if node is not None]
