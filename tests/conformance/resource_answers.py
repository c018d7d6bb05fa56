"""The answers of kubectl_spread to questions about resources, in the oracle's format."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from kubectl_spread.kube.api import quantity
from kubectl_spread.kube.api.types import Node, Pod
from kubectl_spread.kube.scheduler import resources
from kubectl_spread.sources.decode import json_objects
from tests.builders import Json

_FINISHED: Final = frozenset({"Succeeded", "Failed"})


def answer(texts: Iterable[str], pod: msgspec.Raw, nodes: Iterable[msgspec.Raw], pods: Iterable[msgspec.Raw]) -> Json:
    """Return the numbers of the texts, the requests of the pod, and the reasons why each node has no room for it."""
    requests = resources.pod_requests(json_objects.decode(pod, Pod).spec)
    running = [json_objects.decode(raw, Pod) for raw in pods]
    return {
        "quantities": {text: _thousandths(text) for text in texts},
        "requests": {name: amount for name, amount in requests.items() if amount},
        "nodes": {
            node.metadata.name: list(_reasons(requests, node, running))
            for node in (json_objects.decode(node, Node) for node in nodes)
        },
    }


def _reasons(requests: resources.Amounts, node: Node, pods: Iterable[Pod]) -> tuple[str, ...]:
    requested: dict[str, int] = {}
    for pod in pods:
        if pod.spec.node_name == node.metadata.name and pod.status.phase not in _FINISHED:
            resources.add(requested, resources.pod_requests(pod.spec))
    listed = node.status.allocatable or node.status.capacity
    return resources.fits(requests, resources.allocatable(listed), requested)


def _thousandths(text: str) -> str | None:
    try:
        return str(quantity.thousandths(text))
    except ValueError:
        return None
