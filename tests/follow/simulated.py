"""A simulated cluster: it answers as a followed one does, and its objects change when a test says so."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import datetime
from typing import Any, Final, cast

from kubectl_spread.follow.following import Following
from kubectl_spread.kube.api import sparse
from kubectl_spread.kube.features import gates
from kubectl_spread.run.options import CheckOptions
from kubectl_spread.sources.apiserver.cluster import ServerVersion
from kubectl_spread.sources.apiserver.transport import elapsed
from kubectl_spread.sources.apiserver.watch import WatchedCluster
from kubectl_spread.sources.apiserver.watch_events import DELETED, WatchEvent
from kubectl_spread.sources.apiserver.watch_list import Listed, State
from kubectl_spread.sources.decode.resources import (
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
from tests.builders import Json, decode
from tests.follow.worlds import Key

_BY_KIND: Final[dict[str, Resource[Any]]] = {
    resource.kind: resource for resource in (PODS, NODES, CLAIMS, VOLUMES, BUDGETS, SERVICES, *WORKLOADS)
}


class SimulatedList:
    """The records of one resource, as a list and events make them."""

    def __init__(self, record: Callable[[Any], Any], namespace: str) -> None:
        self.listed: Listed[Any] = Listed(record)
        self.namespace = namespace

    @property
    def version(self) -> str:
        return self.listed.version

    def state(self) -> State[Any]:
        return State([*self.listed.records.values()], self.version)

    def known_at(self, _reached_etcd_at: float) -> float:
        return elapsed()


class SimulatedCluster:
    """A cluster of some minor, without connections and threads.

    Attributes:
        objects: The objects, by kind, namespace and name.
        changed: Whether a record has changed since ``take_changes``.
        minor: The minor of the API server.
        gates: Its feature gates.
    """

    namespace = "default"
    context = name = lost = ""
    reached_etcd_at = 0.0
    suspect = False

    def __init__(self, objects: dict[Key, Json]) -> None:
        self.objects = dict(objects)
        self.changed = False
        self.minor = 37
        self.gates = gates(37, {})
        self._revision = 1
        self._decoding = threading.Lock()
        self._lists: dict[str, SimulatedList] = {}

    def names(self, *_: object) -> list[str]:
        """Return the names of all namespaces."""
        return sorted({self.namespace, *(namespace for _kind, namespace, _name in self.objects if namespace)})

    def following(self, options: CheckOptions) -> Following:
        """Return what follows this cluster."""
        return Following(options, cast(WatchedCluster, self), interval=0.0, events=False)

    def set(self, objects: dict[Key, Json]) -> None:
        """Change the objects, and send the events."""
        before, self.objects = self.objects, dict(objects)
        for key in before.keys() - objects.keys():
            self._send(DELETED, before[key])
        for key, manifest in objects.items():
            if before.get(key) is not manifest:
                self._send("MODIFIED" if key in before else "ADDED", manifest)

    def _send(self, type_: str, manifest: Json) -> None:
        resource = _BY_KIND[manifest["kind"]]
        self._revision += 1
        followed = self._lists.get(resource.plural)
        if followed is not None and followed.namespace in ("", manifest["metadata"].get("namespace")):
            event = WatchEvent(type_, decode(manifest, resource.type), str(self._revision))
            self.changed |= followed.listed.apply(event)

    def follow(
        self,
        resource: Resource[Any],
        record: Callable[[Any], Any],
        namespace: str = "",
        **_: object,
    ) -> SimulatedList:
        """Return the current list."""
        # msgspec must not learn a type in two threads at once.
        with self._decoding:
            return self._read(resource, record, namespace)

    def _read(self, resource: Resource[Any], record: Callable[[Any], Any], namespace: str) -> SimulatedList:
        namespace = namespace if resource.namespaced else ""
        followed = self._lists[resource.plural] = SimulatedList(record, namespace)
        type_ = _BY_KIND[resource.kind].type
        for (kind, of_namespace, _name), manifest in self.objects.items():
            if kind == resource.kind and namespace in ("", of_namespace):
                read = decode(manifest, type_)
                read = sparse.alone(read) if resource is SPARSE_PODS else read
                followed.listed.records[read.key] = record(read)
        followed.listed.version = str(self._revision)
        return followed

    def take_changes(self) -> None:
        self.changed = False

    def wait(self, _seconds: float) -> None:
        """Return at once: the test makes the changes."""

    def version(self) -> ServerVersion:
        return ServerVersion(1, self.minor, None, f"v1.{self.minor}.0")

    def feature_gates(self) -> dict[str, bool]:
        return self.gates

    def uid(self) -> str:
        return "1"

    def now(self) -> datetime | None:
        return None
