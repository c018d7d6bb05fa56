"""Capacity: the resources and host ports that nodes have left."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Final, TypeAlias

from kubectl_spread.kube.api.types import Node, PodSpec
from kubectl_spread.kube.scheduler import nodeports, resources
from kubectl_spread.kube.scheduler.resources import Amounts
from kubectl_spread.phrases import listed

_LISTED: Final = 3
Requests: TypeAlias = frozenset[tuple[str, int]]
"""The amount of each resource that a pod requests, and 1 for each host port that it takes."""


def requests_of(spec: PodSpec) -> Amounts | None:
    """Return the requests of a pod; None where a quantity is not valid."""
    try:
        return resources.pod_requests(spec)
    except ValueError:
        return None


def usage_of(spec: PodSpec, requests: Amounts | None) -> Requests | None:
    """Return the resources and host ports of a node that a pod takes; None where its requests are unknown."""
    if requests is None:
        return None
    return frozenset((*requests.items(), *((name, 1) for port in nodeports.host_ports(spec) for name in port.taken)))


def lacking(
    requests: Amounts | None, excluding: Iterable[str], allocatable: Amounts | None, used: Amounts
) -> tuple[str, ...]:
    """Return the host ports and resources that a node lacks for a pod, in words; unknown amounts suffice.

    Args:
        requests: The requests of the pod.
        excluding: The names of the host ports with which it cannot be on one node.
        allocatable: The amounts that the pods of the node may request together.
        used: What its pods take, host ports included.
    """
    ports = [name for name in excluding if used.get(name)]
    texts = (f"{listed(ports, _LISTED)} is taken",) if ports else ()
    return texts if requests is None or allocatable is None else (*texts, *resources.fits(requests, allocatable, used))


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

    def lacks(self, requests: Amounts | None, excluding: Sequence[str], node: str) -> tuple[str, ...]:
        """Return the resources that a node lacks for a pod, as ``lacking``."""
        return lacking(requests, excluding, self.allocatable(node), self.requested(node))
