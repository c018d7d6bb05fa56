"""The objects of Karpenter and cluster-autoscaler in a live cluster, which say why no node is made for a pod."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple

from kubectl_spread.audit.snapshot.snapshot import Snapshot
from kubectl_spread.errors import ForbiddenError, NotFoundError, SpreadError
from kubectl_spread.kube.nodeautoscaling import (
    GROUP_LABELS,
    NODE_POOL_LABEL,
    STATUS_NAME,
    STATUS_NAMESPACE,
    AutoscalerObject,
    ConfigMap,
)
from kubectl_spread.phrases import listed
from kubectl_spread.sources.apiserver.cluster import LiveCluster
from kubectl_spread.sources.apiserver.paging import background
from kubectl_spread.sources.decode import config_maps
from kubectl_spread.sources.decode.resources import CONFIG_MAPS, NODE_CLAIMS, NODE_CLASSES, NODE_POOLS, Resource

_UNKNOWN: Final = "answers about new nodes are not complete"
_LONGEST: Final = 10.0
"""Seconds after which a report no longer waits for objects that it does not require."""


class _Read(NamedTuple):
    """The objects that were read, the requests that are forbidden, and sentences about others that failed."""

    objects: list[AutoscalerObject]
    forbidden: list[str]
    failed: list[str]


def add_node_autoscalers(cluster: LiveCluster, snapshot: Snapshot, *, alone: bool) -> tuple[list[str], int]:
    """Read the objects of node autoscalers into a snapshot, where they exist.

    None of them is required. Without permission the API server does not tell whether they exist, so that a missing
    permission is reported only where nodes have a label of the autoscaler, or where the user asks about nothing else.

    Returns:
        What was not read, and the number of forbidden requests.
    """
    labels = frozenset(key for node in snapshot.nodes for key in node.metadata.labels)
    reading = background(lambda: _read(cluster, None if alone else labels))
    try:
        read = reading.result(_LONGEST)
    except TimeoutError:
        return [f"no answer about NodePools and cluster-autoscaler in {_LONGEST:.0f} seconds: {_UNKNOWN}"], 0
    for each in read.objects:
        snapshot.node_autoscalers.add(each)
    forbidden = f"this user may not {listed(read.forbidden, len(read.forbidden))}: {_UNKNOWN}"
    return [*read.failed, *([forbidden] if read.forbidden else [])], len(read.forbidden)


def _read(cluster: LiveCluster, labels: frozenset[str] | None) -> _Read:
    """Read the objects; with the labels of nodes, say nothing of forbidden ones of which no node has a label."""
    read = _Read([], [], [])

    @contextmanager
    def optional(request: str, keys: Iterable[str]) -> Iterator[None]:
        try:
            yield
        except NotFoundError:
            pass
        except ForbiddenError:
            read.forbidden.extend([] if labels is not None and labels.isdisjoint(keys) else [request])
        except SpreadError as error:
            read.failed.append(f"could not {request}: {error}: {_UNKNOWN}")

    status = background(lambda: _status(cluster))
    for resource in (NODE_POOLS, NODE_CLAIMS, NODE_CLASSES):
        with optional(f"list {resource.full_name}", [NODE_POOL_LABEL]):
            read.objects.extend(_objects(cluster, resource))
        if not read.objects:
            break
    with optional(f"get the ConfigMap {STATUS_NAME}", GROUP_LABELS):
        if (config_map := status.result()) is not None:
            read.objects.append(config_map)
    return read


def _objects(cluster: LiveCluster, resource: Resource[AutoscalerObject]) -> list[AutoscalerObject]:
    return cluster.fold(resource, list[AutoscalerObject], lambda objects, page: objects.extend(page))


def _status(cluster: LiveCluster) -> ConfigMap | None:
    """Return the status of cluster-autoscaler; None where it is not YAML."""
    read = cluster.get(CONFIG_MAPS, STATUS_NAMESPACE, STATUS_NAME)
    return config_maps.with_status(read) if read.is_status else None
