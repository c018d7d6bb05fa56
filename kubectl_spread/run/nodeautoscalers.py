"""The objects of Karpenter and cluster-autoscaler in a live cluster, which say why no node is made for a pod."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Final

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
from kubectl_spread.sources.apiserver.resources import CONFIG_MAPS, NODE_CLAIMS, NODE_CLASSES, NODE_POOLS, Resource
from kubectl_spread.sources.decode import config_maps

_UNKNOWN: Final = "answers about new nodes are not complete"


def add_node_autoscalers(cluster: LiveCluster, snapshot: Snapshot) -> list[str]:
    """Read the objects of node autoscalers into a snapshot, where they exist, and return notes on what was not read.

    None of them is required. Without permission the API server does not tell whether they exist, so that a missing
    permission is noted only where nodes have a label of the autoscaler.
    """
    labels = {key for node in snapshot.nodes for key in node.metadata.labels}
    forbidden, notes = list[str](), list[str]()

    @contextmanager
    def optional(request: str, keys: Iterable[str]) -> Iterator[None]:
        try:
            yield
        except NotFoundError:
            pass
        except ForbiddenError:
            forbidden.extend([] if labels.isdisjoint(keys) else [request])
        except SpreadError as error:
            notes.append(f"could not {request}: {error}: {_UNKNOWN}")

    status = background(lambda: _status(cluster))
    for resource in (NODE_POOLS, NODE_CLAIMS, NODE_CLASSES):
        with optional(f"list {resource.full_name}", [NODE_POOL_LABEL]):
            for read in _objects(cluster, resource):
                snapshot.node_autoscalers.add(read)
        if not snapshot.node_autoscalers.pools:
            break
    with optional(f"get the ConfigMap {STATUS_NAME}", GROUP_LABELS):
        if (config_map := status.result()) is not None:
            snapshot.node_autoscalers.add(config_map)
    if forbidden:
        notes.append(f"this user may not {listed(forbidden, len(forbidden))}: {_UNKNOWN}")
    return notes


def _objects(cluster: LiveCluster, resource: Resource[AutoscalerObject]) -> list[AutoscalerObject]:
    def begin() -> list[AutoscalerObject]:
        return []

    return cluster.fold(resource, begin, lambda objects, page: objects.extend(page))


def _status(cluster: LiveCluster) -> ConfigMap | None:
    """Return the status of cluster-autoscaler; None where it is not YAML."""
    read = cluster.get(CONFIG_MAPS, STATUS_NAMESPACE, STATUS_NAME)
    return config_maps.with_status(read) if read.is_status else None
