"""Capacity: the resources that nodes have left."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import TypeAlias

from kubectl_spread.kube.api.types import Node, PodSpec
from kubectl_spread.kube.scheduler import resources
from kubectl_spread.kube.scheduler.resources import Amounts

Requests: TypeAlias = frozenset[tuple[str, int]]
"""The amount of each resource that a pod requests."""


def requests_of(spec: PodSpec) -> Amounts | None:
    """Return the requests of a pod; None where a quantity is not valid."""
    try:
        return resources.pod_requests(spec)
    except ValueError:
        return None


class NodeCapacity:
    """The allocatable resources of each node and the requests of its pods; any pod fits on a node without resources."""

    def __init__(self, nodes: Iterable[Node], requests: Mapping[Requests | None, Mapping[str, int]]) -> None:
        """Take the nodes, and the number of pods on each node for each distinct request; None is an unknown one."""
        self._nodes = {node.metadata.name: node for node in nodes}
        self._requests = requests

    def allocatable(self, node: str) -> Amounts | None:
        """Return the amounts that the pods of a node may request together; None where they are unknown."""
        return resources.allocatable_of(self._nodes[node]) if node in self._nodes else None

    def requested(self, node: str) -> Amounts:
        """Return the sum of the known requests of a node's pods."""
        return self._requested.get(node, {})

    def unknown_requests(self, node: str) -> int:
        """Return the number of a node's pods whose requests are unknown."""
        return self._requests.get(None, {}).get(node, 0)

    @cached_property
    def _requested(self) -> Mapping[str, Amounts]:
        """The sum of the known requests of each node's pods."""
        requested: dict[str, dict[str, int]] = {}
        for requests, pods_on in self._requests.items():
            for name, amount in requests or ():
                for node, pods in pods_on.items():
                    amounts = requested.setdefault(node, {})
                    amounts[name] = amounts.get(name, 0) + pods * amount
        return requested

    def lacks(self, requests: Amounts | None, node: str) -> tuple[str, ...]:
        """Return the resources that a node lacks, in the scheduler's words; unknown amounts suffice."""
        has = self.allocatable(node)
        if requests is None or has is None:
            return ()
        return resources.fits(requests, has, self.requested(node))
