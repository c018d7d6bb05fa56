"""Room: what do nodes still have for pods that ask for resources?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

from kubectl_spread.kube.api.types import Node, PodSpec
from kubectl_spread.kube.scheduler import resources
from kubectl_spread.kube.scheduler.resources import Amounts

_REMEMBERED: Final = 1_000
"""For how many distinct pods what they ask for is remembered."""


class Requests:
    """What pods ask for; containers that are decoded once are added up once."""

    def __init__(self) -> None:
        """Start without any."""
        self._known: dict[tuple[object, ...], tuple[Amounts | None, PodSpec]] = {}

    def of(self, spec: PodSpec) -> Amounts | None:
        """Return what a pod asks for; None where a quantity is none."""
        key = (
            *(id(container.resources) for container in spec.containers),
            *((id(one.resources), one.restart_policy) for one in spec.init_containers),
            id(spec.overhead) if spec.overhead else None,
            id(spec.resources),
        )
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            # The spec is kept, so that none of these identities is given to another object.
            known = self._known[key] = (_requests(spec), spec)
        return known[0]


def _requests(spec: PodSpec) -> Amounts | None:
    try:
        return resources.pod_requests(spec)
    except ValueError:
        return None


class NodeCapacity:
    """What is allocatable on each node and what bound pods ask for; a node that does not say has room for anything."""

    def __init__(self, nodes: Iterable[Node], requested: Mapping[str, Amounts]) -> None:
        """Take the nodes and, for each by name, the sum of what the pods on it ask for."""
        self._allocatable = {node.metadata.name: _allocatable(node) for node in nodes}
        self._requested = requested

    def lacks(self, asked: Amounts | None, node: str) -> tuple[str, ...]:
        """Return what a node has too little of, in the scheduler's words; of what is not known it has enough."""
        has = self._allocatable.get(node)
        if asked is None or has is None:
            return ()
        return resources.fits(asked, has, self._requested.get(node, Counter()))

    def holds(self, asked: Amounts | None, node: str, *, most: int) -> int:
        """Return how many pods that ask for so much a node still has room for, up to ``most``."""
        has = self._allocatable.get(node)
        if asked is None or has is None:
            return most
        taken = self._requested.get(node, Counter())
        left = ((has.get(name, 0) - taken.get(name, 0)) // amount for name, amount in asked.items() if amount > 0)
        return max(0, min((most, *left)))


def _allocatable(node: Node) -> Amounts | None:
    listed = node.status.allocatable or node.status.capacity
    try:
        return resources.allocatable(listed) if listed else None
    except ValueError:
        return None
