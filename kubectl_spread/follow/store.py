"""The store: one record of each object that the options need, kept current by lists and watches."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final

from kubectl_spread.audit.snapshot.podclasses import PodReader, StoredPod
from kubectl_spread.audit.snapshot.scope import Scope
from kubectl_spread.audit.snapshot.snapshot import Snapshot
from kubectl_spread.errors import ForbiddenError
from kubectl_spread.kube.api import sparse
from kubectl_spread.kube.api.sparse import SparsePod
from kubectl_spread.kube.api.types import Pod
from kubectl_spread.kube.scheduler.configuration import Profile
from kubectl_spread.run.options import CheckOptions
from kubectl_spread.run.requests import UNFINISHED, Requests
from kubectl_spread.sources.apiserver.clock import elapsed
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
from kubectl_spread.sources.apiserver.watch_list import FollowedList, State, detached

NEEDED: Final[tuple[Resource[Any], ...]] = (PODS, NODES, CLAIMS, VOLUMES, *WORKLOADS)
"""The resources that the monitor cannot do without; budgets and Services are followed too where that is possible."""


class Store:
    """The lists of one cluster; each is read when it is first needed, and followed from then on.

    Attributes:
        scope: The pods that are evaluated.
        schedulers: The known spread configurations of schedulers, by name.
    """

    def __init__(self, cluster: WatchedCluster, scope: Scope, schedulers: Mapping[str, Profile]) -> None:
        self.scope = scope
        self.schedulers = schedulers
        self._cluster = cluster
        self._pods = PodReader(scope, schedulers)
        self._lists: dict[str, FollowedList[Any]] = {}
        self._forbidden: dict[str, ForbiddenError] = {}

    def follow_all(self, expect: Callable[[str, Callable[[], float]], None]) -> None:
        """Follow all lists that the options may need; budgets only if the user may list them.

        ``expect`` receives each resource, and a function that returns the age of its state in seconds.

        Raises:
            ForbiddenError: The user may not list one of them.
            SourceError: One of them cannot be read for another reason.
        """
        with_defaults = any(profile.defaults for profile in self.schedulers.values())
        for resource in (*NEEDED, *([SERVICES] if with_defaults else [])):
            self._followed(resource)
        with suppress(ForbiddenError):
            self._followed(BUDGETS)
        for name in self._lists:
            expect(name, lambda name=name: elapsed() - self._known_at(name))  # type: ignore[misc]

    def state(self, resource: Resource[Any]) -> State[Any]:
        """Return the records of a list. A pod is a ``StoredPod``, any other object is as the API server sent it.

        Raises:
            ForbiddenError: The user may not list it.
            SourceError: It cannot be read for another reason.
        """
        return self._followed(resource).state()

    def versions(self) -> dict[str, str]:
        """Return the revision of each list; a change up to it has been signalled already."""
        return {name: followed.version for name, followed in self._lists.items()}

    def known_at(self) -> float:
        """Return the last ``elapsed`` at which all lists were certainly those of the API server.

        It is minus infinity while a list of another cluster is still there.
        """
        return min(map(self._known_at, self._lists), default=-math.inf)

    def _known_at(self, name: str) -> float:
        return self._lists[name].known_at(self._cluster.reached_etcd_at)

    def _followed(self, resource: Resource[Any]) -> FollowedList[Any]:
        name = resource.plural
        if name in self._forbidden:
            raise self._forbidden[name]
        if name not in self._lists:
            namespace = self.scope.namespace if resource.namespaced else None
            try:
                if resource is PODS:
                    # An event is about one pod, so it is decoded completely. A field may differ between similar pods.
                    listed: Resource[Any] = PODS if self.scope.fields else SPARSE_PODS
                    self._lists[name] = self._cluster.follow(
                        listed, self._pod, namespace, watched=PODS, field_selector=UNFINISHED
                    )
                else:
                    self._lists[name] = self._cluster.follow(resource, detached, namespace)
            except ForbiddenError as error:
                self._forbidden[name] = error
                raise
        return self._lists[name]

    def _pod(self, pod: Pod | SparsePod) -> StoredPod:
        return self._pods.read(pod) if isinstance(pod, SparsePod) else self._pods.read_alone(sparse.alone(pod))


class StoredRequests(Requests):
    """The requests of one run, answered from a store."""

    def __init__(self, cluster: WatchedCluster, options: CheckOptions, store: Store) -> None:
        """Prepare the requests; ``send`` answers them."""
        super().__init__(cluster, options, store.scope, store.schedulers)
        self._store = store

    def _read_pods(self) -> Snapshot:
        state = self._store.state(PODS)
        self.read_at = self._cluster.now()
        self.resource_versions[PODS.plural] = state.version
        snapshot = Snapshot(self.scope, schedulers=self._store.schedulers)
        for pod in state.records:
            snapshot.add_stored(pod)
        return snapshot

    def _read(self, resource: Resource[Any], _namespace: str | None) -> list[Any]:
        state = self._store.state(resource)
        self.resource_versions[resource.plural] = state.version
        return state.records
