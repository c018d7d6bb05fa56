"""Capacity: the resources that nodes have left."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from kubectl_spread.kube.api.types import Node, PodSpec
from kubectl_spread.kube.scheduler import resources
from kubectl_spread.kube.scheduler.resources import Amounts


def requests_of(spec: PodSpec) -> Amounts | None:
    """Return the requests of a pod; None where a quantity is not valid."""
    try:
        return resources.pod_requests(spec)
    except ValueError:
        return None


class NodeCapacity:
    """The allocatable resources of each node and the requests of its pods; any pod fits on a node without resources."""

    def __init__(
        self,
        nodes: Iterable[Node],
        requested: Mapping[str, Amounts],
        unknown_requests: Mapping[str, int] = MappingProxyType({}),
    ) -> None:
        """Take the nodes, the sum of their pods' requests, and the number of pods whose requests are unknown."""
        self._allocatable = {node.metadata.name: _allocatable(node) for node in nodes}
        self._requested = requested
        self._unknown_requests = unknown_requests

    def allocatable(self, node: str) -> Amounts | None:
        """Return the amounts that the pods of a node may request together; None where they are unknown."""
        return self._allocatable.get(node)

    def requested(self, node: str) -> Amounts:
        """Return the sum of the known requests of a node's pods."""
        return self._requested.get(node, {})

    def unknown_requests(self, node: str) -> int:
        """Return the number of a node's pods whose requests are unknown."""
        return self._unknown_requests.get(node, 0)

    def lacks(self, requests: Amounts | None, node: str) -> tuple[str, ...]:
        """Return the resources that a node lacks, in the scheduler's words; unknown amounts suffice."""
        has = self._allocatable.get(node)
        if requests is None or has is None:
            return ()
        return resources.fits(requests, has, self._requested.get(node, Counter()))

    def holds(self, requests: Amounts | None, node: str, *, most: int) -> int:
        """Return the number of pods with these requests that still fit on a node, up to ``most``."""
        has = self._allocatable.get(node)
        if requests is None or has is None:
            return most
        taken = self._requested.get(node, Counter())
        left = ((has.get(name, 0) - taken.get(name, 0)) // amount for name, amount in requests.items() if amount > 0)
        return max(0, min((most, *left)))


def _allocatable(node: Node) -> Amounts | None:
    listed = node.status.allocatable or node.status.capacity
    try:
        return resources.allocatable(listed) if listed else None
    except ValueError:
        return None
