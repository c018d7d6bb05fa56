"""A live cluster whose lists can be followed: they are read once and then watched."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any, Final, Literal, Protocol, TypeVar

from kubectl_spread.errors import SourceError
from kubectl_spread.kube.api.objects import ALL_NAMESPACES
from kubectl_spread.sources.apiserver import responses, transport
from kubectl_spread.sources.apiserver.cluster import LiveCluster, ServerVersion
from kubectl_spread.sources.apiserver.transport import elapsed
from kubectl_spread.sources.apiserver.watch_events import ACCEPT, EventReader, WatchEvent
from kubectl_spread.sources.apiserver.watch_list import FollowedList, Listed, Signals
from kubectl_spread.sources.decode.resources import Resource

R = TypeVar("R")
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


class Observe(Protocol):
    """Receives the result of each list and watch that was requested."""

    def __call__(self, verb: Literal["list", "watch"], resource: str, *, success: bool) -> None:
        """Take the result."""


class WatchedCluster(LiveCluster):
    """A cluster whose lists can be followed; what it tells about itself is remembered until ``look``.

    Attributes:
        observe: Receives the result of each list that is followed, and of each watch.
        reached_etcd_at: The last ``elapsed`` at which the API server certainly had a connection to etcd.
    """

    observe: Observe

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        # A request for a list on a connection that was silently dropped would never end.
        self._transport.silence = _SILENCE
        self.observe = lambda *_, **__: None
        self.reached_etcd_at = -math.inf
        self._signals = Signals()
        self._lists: list[FollowedList[Any]] = []
        self._version: ServerVersion | None = None
        self._gates: list[dict[str, bool] | None] = []
        self._gates_until = 0.0
        self._uid: str | None = None

    @property
    def lost(self) -> str:
        """The reason why the connection of a watch is lost, or ""."""
        return next((followed.lost for followed in self._lists if followed.lost), "")

    @property
    def changed(self) -> bool:
        """Whether anything has changed since ``take_changes``."""
        return self._signals.changed.is_set()

    @property
    def suspect(self) -> bool:
        """Whether another cluster may answer now, so that ``look`` has to find out."""
        return self._signals.suspect

    def take_changes(self) -> None:
        """Take all changes so far; whoever reads the lists after this has them."""
        self._signals.changed.clear()

    def wait(self, seconds: float) -> None:
        """Wait until something changes, for some seconds at most.

        Raises:
            ForbiddenError: The user may list but not watch a resource.
            SourceError: A watch failed for a reason that does not pass.
        """
        self._signals.changed.wait(seconds)
        if self._signals.failure is not None:
            raise self._signals.failure

    def look(self) -> None:
        """Look which cluster answers, and what it is now; another one is read again from the beginning.

        The UID comes from etcd, because a GET is never answered from the API server's cache.

        Raises:
            SourceError: The API server does not answer.
        """
        began, self._signals.suspect = elapsed(), False
        try:
            uid, version = super().uid(), super().version()
            expired = bool(self._gates) and (began > self._gates_until or version != self._version)
            gates = [super().feature_gates()] if expired else self._gates
        except SourceError:
            self._signals.suspect = True
            raise
        before = self._uid, self._version, self._gates
        if expired:
            self._gates_until = began + _GATES_LAST
        if uid and self._uid and uid != self._uid:
            for followed in self._lists:
                followed.distrust()
        if uid:
            self.reached_etcd_at = began
        self._uid, self._version, self._gates = uid or self._uid, version, gates
        if before != (self._uid, self._version, self._gates):
            self._signals.changed.set()

    def version(self) -> ServerVersion:
        """Return the API server's version as of the last ``look``; see ``LiveCluster``."""
        self._version = self._version or super().version()
        return self._version

    def uid(self) -> str:
        """Return the UID of the namespace ``kube-system`` as of the last ``look``; see ``LiveCluster``."""
        if self._uid is None:
            self._uid = super().uid()
        return self._uid

    def feature_gates(self) -> dict[str, bool] | None:
        """Return the API server's feature gates as of the last ``look``; see ``LiveCluster``."""
        if not self._gates:
            self._gates, self._gates_until = [super().feature_gates()], elapsed() + _GATES_LAST
        return self._gates[0]

    def follow(
        self,
        resource: Resource[Any],
        record: Callable[[Any], R],
        namespace: str = ALL_NAMESPACES,
        *,
        watched: Resource[Any] | None = None,
        field_selector: str = "",
    ) -> FollowedList[R]:
        """Read a list, and keep it current until the process ends.

        Args:
            resource: The resource.
            record: Returns what is stored of an object.
            namespace: The namespace, or ``ALL_NAMESPACES``.
            watched: The resource whose type events are decoded to; None for the same.
            field_selector: Selects the objects.

        Raises:
            ForbiddenError: The user may not list it.
            SourceError: It cannot be read for another reason.
        """

        def begin() -> Listed[R]:
            return Listed(record)

        def read() -> Listed[R]:
            with self._observed("list", resource):
                return self.fold(resource, begin, Listed.add, namespace, field_selector=field_selector)

        watch = self._watch(watched or resource, namespace, field_selector)
        followed = FollowedList(read, watch, self._signals, _SILENCE)
        self._lists.append(followed)
        return followed

    def _watch(
        self, resource: Resource[Any], namespace: str, field_selector: str
    ) -> Callable[[str], AbstractContextManager[Iterator[WatchEvent[Any]]]]:
        """Return the function that starts a watch from a revision on."""
        reader: EventReader[Any] = EventReader(resource.type)
        query: dict[str, str | int] = {"watch": "true", "allowWatchBookmarks": "true"}
        if field_selector:
            query["fieldSelector"] = field_selector

        @contextmanager
        def follow(version: str) -> Iterator[Iterator[WatchEvent[Any]]]:
            # The watches must not all end in the same moment.
            longest = transport.JITTER.randint(_LONGEST // 2, _LONGEST)
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
