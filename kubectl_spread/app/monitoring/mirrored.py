"""Mirrored resources: the lists and watches of an API server, applied to the monitor's world."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Generic, NamedTuple, TypeVar

from kubectl_spread.app.cluster.requests import UNFINISHED
from kubectl_spread.errors import ForbiddenError
from kubectl_spread.kube.api import sparse
from kubectl_spread.kube.api.sparse import SparsePod
from kubectl_spread.kube.api.types import Message, Node, Object
from kubectl_spread.kube.api.workloads import WorkloadObject
from kubectl_spread.kube.disruption import PodDisruptionBudget
from kubectl_spread.kube.scheduler.defaultconstraints import Service
from kubectl_spread.kube.scheduler.volumebinding import PersistentVolume, PersistentVolumeClaim
from kubectl_spread.monitor.mirror import Mirror, ObjectName, StoredObjects
from kubectl_spread.monitor.world import World
from kubectl_spread.sources.apiserver.resources import (
    BUDGETS,
    CLAIMS,
    NODES,
    PODS,
    SERVICES,
    SPARSE_PODS,
    VOLUMES,
    WORKLOADS,
    Resource,
)
from kubectl_spread.sources.apiserver.watch import WatchedCluster
from kubectl_spread.sources.apiserver.watch_events import BOOKMARK, DELETED, WatchEvent
from kubectl_spread.sources.decode.page import Page

T = TypeVar("T", bound=Message)


def _same(read: Any) -> Any:
    return read


def _name_of(read: Object) -> ObjectName:
    return ObjectName(read.metadata.namespace, read.metadata.name)


class MirroredResource(NamedTuple, Generic[T]):
    """One resource, and the part of the world that has its objects.

    Attributes:
        target: Receives the objects.
        name_of: Returns the name of an object.
        of_event: Returns the object of an event as one of those that the world takes.
        of_list: Returns the object of a list as one of these.
    """

    target: StoredObjects[T]
    name_of: Callable[[Any], ObjectName] = _name_of
    of_event: Callable[[Any], T] = _same
    of_list: Callable[[Any], T] = _same


class MirrorStore(Generic[T]):
    """One resource of an API server, as a store of a followed list.

    Attributes:
        mirror: The state of the resource in the world.
        version: The revision of the list, or of the last event that came.
        known_at: The ``time.monotonic`` at which the API server last told the state: by a list, an event or a bookmark.
    """

    def __init__(self, resource: MirroredResource[T], lock: threading.Lock, *, holds: bool = False) -> None:
        """Mirror ``resource``; ``lock`` is held while the world changes.

        With ``holds`` the world gets events only by ``release``.
        """
        self.mirror: Mirror[T] = Mirror(resource.target)
        self.version = ""
        self._resource = resource
        self._lock = lock
        self._listed_version = ""
        self._holds = holds
        self._held: list[WatchEvent[Any]] = []
        self.known_at = self._began = self._told_at = time.monotonic()

    def age(self) -> float:
        """Return the seconds since the API server last told the state."""
        return time.monotonic() - self.known_at

    def begin(self) -> MirrorStore[T]:
        """Expect the first page of a list; return the same store."""
        with self._lock:
            self.mirror.begin_list()
            self._held.clear()
            self._began = time.monotonic()
        return self

    def add(self, page: Page[T]) -> None:
        """Take a page."""
        with self._lock:
            objects = map(self._resource.of_list, page)
            self.mirror.add_page((self._resource.name_of(listed), listed) for listed in objects)
            self._listed_version = page.resource_version

    def end(self) -> None:
        """Remove what the list does not have."""
        with self._lock:
            self.version = self._listed_version
            self.mirror.end_list(self.version)
            self.known_at = self._told_at = self._began

    def apply(self, event: WatchEvent[Any]) -> bool:
        """Apply an event; tell whether it is about an object."""
        with self._lock:
            self.version, self._told_at = event.version, time.monotonic()
            self._held.append(event)
            if not self._holds or (event.type == BOOKMARK and len(self._held) == 1):
                self.release()
            return event.type != BOOKMARK

    def release(self) -> bool:
        """Apply the events that are held; tell whether there were any. The caller has the lock."""
        held, self._held = self._held, []
        for event in held:
            if event.type == BOOKMARK:
                self.mirror.advance(event.version)
                continue
            changed = self._resource.of_event(event.object)
            if event.type == DELETED:
                self.mirror.remove(self._resource.name_of(changed), event.version)
            else:
                self.mirror.put(changed, event.version)
        if held:
            self.known_at = self._told_at
        return bool(held)


def mirrored(
    cluster: WatchedCluster, world: World, lock: threading.Lock, namespace: str | None
) -> Mapping[str, MirrorStore[Any]]:
    """Read pods, nodes, claims, volumes, budgets and workloads into a world, and keep it current from then on.

    Pods are read completely if the scope selects fields. Services are read if there are default constraints. Budgets
    are left out if the user may not list them.

    Returns:
        The store of each resource; that of the nodes holds its events.

    Raises:
        ForbiddenError: The user may not list one of them.
        SourceError: One of them cannot be read for another reason.
    """
    pods, nodes = MirrorStore(pods_of(world), lock), MirrorStore(nodes_of(world), lock, holds=True)
    listed: Resource[Any] = PODS if world.scope.fields else SPARSE_PODS
    cluster.keep(listed, pods.begin, namespace, watched=PODS, field_selector=UNFINISHED)
    cluster.keep(NODES, nodes.begin)
    claims, volumes = MirrorStore(claims_of(world), lock), MirrorStore(volumes_of(world), lock)
    cluster.keep(CLAIMS, claims.begin, namespace)
    cluster.keep(VOLUMES, volumes.begin)
    stores: dict[str, MirrorStore[Any]] = {
        PODS.plural: pods,
        NODES.plural: nodes,
        CLAIMS.plural: claims,
        VOLUMES.plural: volumes,
    }
    with suppress(ForbiddenError):
        budgets = MirrorStore(budgets_of(world), lock)
        cluster.keep(BUDGETS, budgets.begin, namespace)
        stores[BUDGETS.plural] = budgets
        world.budgets.read = True
    if world.defaults.enabled:
        services = stores[SERVICES.plural] = MirrorStore(services_of(world), lock)
        cluster.keep(SERVICES, services.begin, namespace)
    for resource in WORKLOADS:
        store = stores[resource.plural] = MirrorStore(workloads_of(world, resource.kind), lock)
        cluster.keep(resource, store.begin, namespace)
    return stores


def pods_of(world: World) -> MirroredResource[SparsePod]:
    """Return the pods of a world."""
    target = StoredObjects(world.put_pod, lambda name: world.remove_pod(*name), world.pod_names)
    of_list = sparse.alone if world.scope.fields else _same
    return MirroredResource(
        target, lambda pod: ObjectName(pod.like.metadata.namespace, pod.name), sparse.alone, of_list
    )


def nodes_of(world: World) -> MirroredResource[Node]:
    """Return the nodes of a world."""
    target = StoredObjects(world.put_node, lambda name: world.remove_node(name.name), world.node_names)
    return MirroredResource(target)


def claims_of(world: World) -> MirroredResource[PersistentVolumeClaim]:
    """Return the claims of a world."""
    claims = world.claims
    target = StoredObjects(
        claims.put_claim,
        lambda name: claims.remove_claim(*name),
        lambda: itertools.starmap(ObjectName, claims.claim_names()),
    )
    return MirroredResource(target)


def volumes_of(world: World) -> MirroredResource[PersistentVolume]:
    """Return the volumes of a world."""
    claims = world.claims
    target = StoredObjects(
        claims.put_volume,
        lambda name: claims.remove_volume(name.name),
        lambda: (ObjectName("", name) for name in claims.volume_names()),
    )
    return MirroredResource(target)


def budgets_of(world: World) -> MirroredResource[PodDisruptionBudget]:
    """Return the PodDisruptionBudgets of a world."""
    target = StoredObjects(world.put_budget, lambda name: world.remove_budget(*name), world.budget_names)
    return MirroredResource(target)


def services_of(world: World) -> MirroredResource[Service]:
    """Return the Services of a world."""
    target = StoredObjects(world.put_service, lambda name: world.remove_service(*name), world.service_names)
    return MirroredResource(target)


def workloads_of(world: World, kind: str) -> MirroredResource[WorkloadObject]:
    """Return the workloads of one kind in a world."""
    target: StoredObjects[WorkloadObject] = StoredObjects(
        lambda workload: world.put_workload(kind, workload),
        lambda name: world.remove_workload(kind, *name),
        lambda: world.workload_names(kind),
    )
    return MirroredResource(target)
