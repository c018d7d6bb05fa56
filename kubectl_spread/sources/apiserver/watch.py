"""A live cluster whose lists are read once and then watched, so that they can be read again and again."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any, Final, Literal, Protocol, TypeVar

from kubectl_spread.errors import ForbiddenError
from kubectl_spread.kube.api import sparse
from kubectl_spread.kube.api.types import Message, Object
from kubectl_spread.sources.apiserver import responses, retries
from kubectl_spread.sources.apiserver.cluster import LiveCluster, ServerVersion
from kubectl_spread.sources.apiserver.resources import NODES, PODS, SERVICES, SPARSE_PODS, WORKLOADS, Resource
from kubectl_spread.sources.apiserver.watch_events import ACCEPT, EventReader, WatchEvent
from kubectl_spread.sources.apiserver.watch_list import FollowedList, Listed, Signals, Store, WatchedList
from kubectl_spread.sources.decode.page import Page

T = TypeVar("T", bound=Message)
F = TypeVar("F")

WATCHED: Final[tuple[Resource[Any], ...]] = (PODS, NODES, SERVICES, *WORKLOADS)
_LONGEST: Final = 480
"""The longest time that a watch is requested for, in seconds; the shortest is half of it."""
_SILENCE: Final = 150.0
"""Seconds without a byte after which a request is repeated, and a watch is started again; there is a bookmark a minute.

An API server ends other requests after one minute.
"""

_GATES_LAST: Final = 600.0
"""Seconds for which feature gates are remembered, because reading them takes all metrics of the API server.

Behind a load balancer, API servers are restarted one after the other without a connection that is lost for long.
"""


class FedStore(Store, Protocol[T]):
    """A store that takes the pages of a list."""

    def add(self, page: Page[T]) -> None:
        """Take a page."""

    def end(self) -> None:
        """Take the list, of which all pages have come, as complete."""


class Observe(Protocol):
    """Receives the result of each list and watch that was requested."""

    def __call__(self, verb: Literal["list", "watch"], resource: str, *, success: bool) -> None:
        """Take the result."""


def _observe_nothing(verb: Literal["list", "watch"], resource: str, *, success: bool) -> None:
    """Take no notice."""


class WatchedCluster(LiveCluster):
    """A cluster that is read as any other, with lists that are watched; ``wait`` tells when they change.

    Attributes:
        observe: Receives the result of each list of ``keep``, and of each watch.
    """

    observe: Observe

    def __init__(self, *arguments: Any) -> None:
        """Take the arguments of ``LiveCluster``."""
        super().__init__(*arguments)
        # A request for a list on a connection that was silently dropped would never end.
        self._transport.silence = _SILENCE
        self.observe = _observe_nothing
        self._signals = Signals()
        self._lists: dict[tuple[str, str], WatchedList[Any]] = {}
        self._forbidden: dict[tuple[str, str], ForbiddenError] = {}
        self._version: ServerVersion | None = None
        self._gates: list[dict[str, bool] | None] = []
        self._gates_of: ServerVersion | None = None
        self._gates_until = 0.0
        self._uid: str | None = None

    @property
    def lost(self) -> str:
        """The reason why the connection is lost, or ""."""
        return self._signals.lost

    def wait(self, seconds: float) -> bool:
        """Wait until a list changes; tell whether one has.

        Raises:
            ForbiddenError: The user may list but not watch a resource.
            SourceError: A watch failed for a reason that does not pass.
        """
        changed = self._signals.changed.wait(seconds)
        self._signals.changed.clear()
        if self._signals.failure is not None:
            raise self._signals.failure
        if self._signals.regained:
            # The API server may be another one than before.
            self._signals.regained = False
            self._version = self._uid = None
            self._gates.clear()
        return changed

    def forget_version(self) -> None:
        """Request the version of the API server again, which another one may have replaced."""
        self._version = None

    def version(self) -> ServerVersion:
        """Return the API server's version, requested once; see ``LiveCluster``."""
        version = self._version
        if version is None:
            version = self._version = super().version()
            if version != self._gates_of:
                self._gates.clear()
                self._gates_of = version
        return version

    def uid(self) -> str:
        """Return the UID of the namespace ``kube-system``, requested once; see ``LiveCluster``."""
        uid = self._uid
        if uid is None:
            uid = self._uid = super().uid()
        return uid

    def feature_gates(self) -> dict[str, bool] | None:
        """Return the API server's feature gates, requested again after some minutes; see ``LiveCluster``."""
        remembered, now = [*self._gates], time.monotonic()
        if remembered and now < self._gates_until:
            return remembered[0]
        gates = super().feature_gates()
        self._gates, self._gates_until = [gates], now + _GATES_LAST
        return gates

    def fold(
        self,
        resource: Resource[T],
        begin: Callable[[], F],
        add: Callable[[F, Page[T]], object],
        namespace: str | None = None,
        *,
        field_selector: str = "",
    ) -> F:
        """Return the value of ``begin`` after ``add`` was called on it with the current list; see ``LiveCluster``.

        The first call reads the list and starts a watch. A list that may not be read is requested once.
        """
        if resource is SPARSE_PODS:
            # A pod that may change is kept in full.
            alone: Any = sparse.alone
            return self.fold(
                PODS,
                begin,
                lambda folded, page: add(folded, page.map(alone)),
                namespace,
                field_selector=field_selector,
            )
        if resource not in WATCHED:
            return super().fold(resource, begin, add, namespace, field_selector=field_selector)
        key = (resource.path(namespace), field_selector)
        if key in self._forbidden:
            raise self._forbidden[key]
        if key not in self._lists:
            try:
                self._lists[key] = self._begin(resource, namespace, field_selector)
            except ForbiddenError as error:
                self._forbidden[key] = error
                raise
        folded = begin()
        add(folded, self._lists[key].page())
        return folded

    def keep(
        self,
        resource: Resource[T],
        begin: Callable[[], FedStore[T]],
        namespace: str | None = None,
        *,
        watched: Resource[Any] | None = None,
        field_selector: str = "",
    ) -> FollowedList[FedStore[T]]:
        """Read a list into a store, and keep the store current until the process ends.

        Args:
            resource: The resource.
            begin: Returns the store, ready for the first page of a list; it is called for each list.
            namespace: The namespace; None for all.
            watched: The resource whose type events are decoded to; None for the same.
            field_selector: Selects the objects.
        """

        def read() -> FedStore[T]:
            with self._observed("list", resource):
                store = super(WatchedCluster, self).fold(
                    resource, begin, lambda fed, page: fed.add(page), namespace, field_selector=field_selector
                )
            store.end()
            return store

        return FollowedList(read, self._follow(watched or resource, namespace, field_selector), self._signals, _SILENCE)

    def _begin(self, resource: Resource[Any], namespace: str | None, field_selector: str) -> WatchedList[Any]:
        def read() -> Listed[Object]:
            return super(WatchedCluster, self).fold(
                resource, Listed[Object], Listed.add, namespace, field_selector=field_selector
            )

        return WatchedList(read, self._follow(resource, namespace, field_selector), self._signals, _SILENCE)

    def _follow(
        self, resource: Resource[Any], namespace: str | None, field_selector: str
    ) -> Callable[[str], AbstractContextManager[Iterator[WatchEvent[Any]]]]:
        """Return the function that starts a watch from a revision on."""
        reader: EventReader[Any] = EventReader(resource.type)
        query: dict[str, str | int] = {"watch": "true", "allowWatchBookmarks": "true"}
        if field_selector:
            query["fieldSelector"] = field_selector

        @contextmanager
        def follow(version: str) -> Iterator[Iterator[WatchEvent[Any]]]:
            # The watches must not all end in the same moment.
            longest = retries.JITTER.randint(_LONGEST // 2, _LONGEST)
            watch_query = {**query, "resourceVersion": version, "timeoutSeconds": longest}
            path, most = resource.path(namespace), longest + _SILENCE
            with ExitStack() as stack:
                with self._observed("watch", resource):
                    head, parts = stack.enter_context(self._transport.stream(path, watch_query, ACCEPT, _SILENCE, most))
                    responses.check(head, verb="watch", resource=resource.plural)
                yield reader.read(head, parts)

        return follow

    @contextmanager
    def _observed(self, verb: Literal["list", "watch"], resource: Resource[Any]) -> Iterator[None]:
        success = False
        try:
            yield
            success = True
        finally:
            self.observe(verb, resource.plural, success=success)
