"""Following a cluster: lists that watches keep, and the run of `check` again on them whenever something has changed."""

from __future__ import annotations

import concurrent.futures
import math
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from typing import Any, Final

from kubectl_spread.audit.snapshot.podclasses import PodReader, StoredPod
from kubectl_spread.audit.snapshot.scope import Scope
from kubectl_spread.audit.snapshot.snapshot import Snapshot
from kubectl_spread.errors import ForbiddenError, SourceError
from kubectl_spread.kube.api.sparse import SparsePod
from kubectl_spread.kube.api.types import Pod
from kubectl_spread.kube.scheduler.configuration import Profile
from kubectl_spread.run import schedulers
from kubectl_spread.run.live import LiveRun
from kubectl_spread.run.options import CheckOptions
from kubectl_spread.run.requests import UNFINISHED, Requests
from kubectl_spread.run.run import CheckRun
from kubectl_spread.sources.apiserver.paging import background
from kubectl_spread.sources.apiserver.transport import elapsed
from kubectl_spread.sources.apiserver.watch import WatchedCluster
from kubectl_spread.sources.apiserver.watch_list import FollowedList, State, detached
from kubectl_spread.sources.decode import resources
from kubectl_spread.sources.decode.resources import Resource

_REST: Final = 3.0
"""An evaluation waits for so many times the length of the last one, so that all of them take a quarter of a core."""
_LOOK: Final = 60.0
"""Seconds between two looks at the API server itself, which an upgrade or another cluster replaces."""
_LOOK_AGAIN: Final = 1.0
"""Seconds between two looks while it may be another one, or does not answer."""
_TICK: Final = 0.05


class Following:
    """One cluster that is followed with the options of a check.

    Attributes:
        store: The lists of the cluster.
    """

    def __init__(self, options: CheckOptions, cluster: WatchedCluster, *, interval: float, events: bool) -> None:
        """Read nothing yet.

        Args:
            options: The options of the check.
            cluster: The connection.
            interval: The least number of seconds between the beginnings of two evaluations.
            events: Whether to read the events about pods that were refused; they are of no revision.

        Raises:
            UsageError: Options contradict each other.
            CombinedError: The scheduler's configuration has errors.
        """
        self._options = options
        self._cluster = cluster
        self._interval = interval
        self._events = events
        self.store = Store(cluster, options.scope(cluster.namespace), schedulers.profiles(options))
        self._again = self._failed = self._expects_gates = False
        self._earliest = -math.inf
        self._looking: Future[None] | None = None
        self._looked_at = elapsed()

    @property
    def unchanged(self) -> bool:
        """Whether an evaluation would give the answer of the last one."""
        return not (self._cluster.changed or self._failed or self._unsure)

    @property
    def due(self) -> bool:
        """Whether to evaluate again: there are changes, and the last evaluation was long enough ago."""
        if self._unsure or elapsed() < self._earliest or self.store.known_at() == -math.inf:
            return False
        return self._cluster.changed or self._failed

    @property
    def _unsure(self) -> bool:
        """Whether the lists may be those of two clusters."""
        return self._cluster.suspect or self._looking is not None

    @contextmanager
    def evaluation(self) -> Iterator[CheckRun]:
        """Evaluate what is stored now; the ``with`` block belongs to the evaluation.

        Raises:
            SourceError: Something else was needed, and could not be read.
        """
        began, again = elapsed(), self._again
        self._cluster.take_changes()
        self._failed = True
        try:
            requests = StoredRequests(self._cluster, self._options, self.store)
            live = LiveRun(
                self._options,
                self._cluster,
                requests,
                again=again,
                events=self._events,
                expects_gates=self._expects_gates,
            )
            yield live.collect()
            self._again, self._expects_gates, self._failed = True, live.needed_gates, False
        finally:
            ended = elapsed()
            # The first evaluation begins with the lists, and most of its length is theirs.
            self._earliest = max(began + self._interval, ended + _REST * (ended - began) * again)

    def wait(self, seconds: float) -> None:
        """Wait until an evaluation may be due, for some seconds at most.

        Raises:
            ForbiddenError: The user may list but not watch a resource.
            SourceError: A watch failed for a reason that does not pass.
        """
        rest = self._earliest - elapsed()
        if self._looking is not None:
            concurrent.futures.wait([self._looking], seconds)
        elif rest > 0 or self._cluster.suspect:
            time.sleep(min(seconds, max(rest, _TICK)))
        self._cluster.wait(0 if rest > 0 or self._unsure else seconds)
        self._look()

    def _look(self) -> None:
        """Look at the API server itself from time to time, in the background, and whenever it may be another one."""
        now = elapsed()
        if self._looking is None and now - self._looked_at > (_LOOK_AGAIN if self._cluster.suspect else _LOOK):
            self._looking, self._looked_at = background(self._cluster.look), now
        if self._looking is not None and self._looking.done():
            looking, self._looking = self._looking, None
            # While the API server is away its watches say so, and it is looked at again later.
            with suppress(SourceError):
                looking.result()


NEEDED: Final[tuple[Resource[Any], ...]] = (
    *(resources.PODS, resources.NODES, resources.CLAIMS, resources.VOLUMES),
    *resources.WORKLOADS,
)
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
        for resource in (*NEEDED, *([resources.SERVICES] if with_defaults else [])):
            self._followed(resource)
        with suppress(ForbiddenError):
            self._followed(resources.BUDGETS)
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
            try:
                if resource is resources.PODS:
                    # An event is about one pod, so it is decoded completely. A field may differ between similar pods.
                    listed: Resource[Any] = resources.PODS if self.scope.fields else resources.SPARSE_PODS
                    self._lists[name] = self._cluster.follow(
                        listed, self._pod, self.scope.namespace, watched=resources.PODS, field_selector=UNFINISHED
                    )
                else:
                    self._lists[name] = self._cluster.follow(resource, detached, self.scope.namespace)
            except ForbiddenError as error:
                self._forbidden[name] = error
                raise
        return self._lists[name]

    def _pod(self, pod: Pod | SparsePod) -> StoredPod:
        return self._pods.read(pod) if isinstance(pod, SparsePod) else self._pods.read_alone(pod)


class StoredRequests(Requests):
    """The requests of one run, answered from a store."""

    def __init__(self, cluster: WatchedCluster, options: CheckOptions, store: Store) -> None:
        """Prepare the requests; ``send`` answers them."""
        super().__init__(cluster, options, store.scope, store.schedulers)
        self._store = store

    def add_storage_classes(self, snapshot: Snapshot) -> None:
        """Leave the place of new volumes unknown: following two more lists for it needs more permissions."""

    def _read_pods(self) -> Snapshot:
        state = self._store.state(resources.PODS)
        self.read_at = self._cluster.now()
        self.resource_versions[resources.PODS.plural] = state.version
        snapshot = Snapshot(self.scope, schedulers=self._store.schedulers)
        for pod in state.records:
            snapshot.add_stored(pod)
        return snapshot

    def _read(self, resource: Resource[Any]) -> list[Any]:
        state = self._store.state(resource)
        self.resource_versions[resource.plural] = state.version
        return state.records
