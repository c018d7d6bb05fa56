"""Further reads of a live cluster that only ``explain`` needs."""

from __future__ import annotations

from typing import Final

from kubectl_spread.audit.snapshot.ownership import REASONS
from kubectl_spread.audit.snapshot.scope import Scope
from kubectl_spread.audit.snapshot.snapshot import Snapshot
from kubectl_spread.kube.api.sparse import SparsePod
from kubectl_spread.kube.api.types import Event
from kubectl_spread.sources.apiserver.cluster import LiveCluster
from kubectl_spread.sources.apiserver.resources import EVENTS, SPARSE_PODS
from kubectl_spread.sources.decode.page import Page

_FREQUENT: Final = ("BackOff", "Created", "Pulled", "Pulling", "Scheduled", "Started", "SuccessfulCreate", "Unhealthy")
EVENTS_BUT: Final = ",".join(f"reason!={reason}" for reason in _FREQUENT)
"""A field selector without the most frequent events; a field selector cannot name several reasons to include."""
_BOUND: Final = "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed"


def events(cluster: LiveCluster, namespace: str | None, selector: str) -> list[Event]:
    """Return the events about scheduling and scaling.

    Raises:
        ForbiddenError: the user may not list events.
        SourceError: the list cannot be read for another reason.
    """

    def begin() -> list[Event]:
        return []

    def add(events: list[Event], page: Page[Event]) -> None:
        events.extend(event for event in page if event.reason in REASONS)

    return cluster.fold(EVENTS, begin, add, namespace, field_selector=selector)


def pods_elsewhere(cluster: LiveCluster, namespace: str) -> Snapshot:
    """Return a snapshot of the bound pods of all other namespaces, which are counted but not evaluated.

    Raises:
        ForbiddenError: the user may not list the pods of all namespaces.
        SourceError: the list cannot be read for another reason.
    """

    def begin() -> Snapshot:
        return Snapshot(Scope(namespace=namespace), for_explain=True)

    def add(snapshot: Snapshot, page: Page[SparsePod]) -> None:
        for pod in page:
            snapshot.add_sparse(pod)

    return cluster.fold(SPARSE_PODS, begin, add, field_selector=f"metadata.namespace!={namespace},{_BOUND}")
