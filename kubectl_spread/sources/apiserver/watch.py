"""A live cluster whose lists are read once and followed from then on, so that they can be read again and again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, TypeVar

from kubectl_spread.errors import ForbiddenError
from kubectl_spread.kube.api.types import Message, Object
from kubectl_spread.sources.apiserver import responses, retries
from kubectl_spread.sources.apiserver.cluster import LiveCluster, ServerVersion
from kubectl_spread.sources.apiserver.resources import NODES, PODS, SERVICES, WORKLOADS, Resource
from kubectl_spread.sources.apiserver.transport import Transport
from kubectl_spread.sources.apiserver.watch_events import ACCEPT, EventReader, WatchEvent
from kubectl_spread.sources.apiserver.watch_list import Listed, Signals, WatchedList
from kubectl_spread.sources.decode.page import Page

T = TypeVar("T", bound=Message)
F = TypeVar("F")

WATCHED: Final[tuple[Resource[Any], ...]] = (PODS, NODES, SERVICES, *WORKLOADS)
_LONGEST: Final = 480
"""Seconds after which the apiserver is asked to end a watch, at the latest; half of them at the earliest."""
_SILENCE: Final = 150.0
"""Seconds without an event or a bookmark, of which there is one a minute, after which a watch is begun again."""


class WatchedCluster(LiveCluster):
    """A cluster that is read from as any other, with lists that follow what happens; ``wait`` tells when that is."""

    def __init__(
        self,
        transport: Transport,
        namespace: str,
        chunk_size: int,
        say: Callable[[str], None] = lambda _: None,
        progress: Callable[[str], None] = lambda _: None,
        *,
        context: str = "",
        name: str = "",
    ) -> None:
        """Read through ``transport``; see ``Cluster``."""
        super().__init__(transport, namespace, chunk_size, say, progress, context=context, name=name)
        self._signals = Signals()
        self._lists: dict[tuple[str, str], WatchedList[Any]] = {}
        self._forbidden: dict[tuple[str, str], ForbiddenError] = {}
        self._known: ServerVersion | None = None
        self._gates: list[dict[str, bool] | None] = []
        self._uid: str | None = None

    @property
    def lost(self) -> str:
        """Why the connection is lost; "": it is there."""
        return self._signals.lost

    def wait(self, seconds: float) -> bool:
        """Wait until what is kept has changed; tell whether it has.

        Raises:
            ForbiddenError: The user may not watch what was listed.
            SourceError: Watching ended for another reason that does not pass.
        """
        changed = self._signals.changed.wait(seconds)
        self._signals.changed.clear()
        if self._signals.failure is not None:
            raise self._signals.failure
        if self._signals.regained:
            # The apiserver may be another than before.
            self._signals.regained = False
            self._known = self._uid = None
            self._gates.clear()
        return changed

    def version(self) -> ServerVersion:
        """Return the apiserver's version, asked for once; see ``Cluster``."""
        if self._known is None:
            self._known = super().version()
        return self._known

    def uid(self) -> str:
        """Return the UID of the namespace ``kube-system``, asked for once; see ``Cluster``."""
        uid = self._uid
        if uid is None:
            uid = self._uid = super().uid()
        return uid

    def feature_gates(self) -> dict[str, bool] | None:
        """Return the apiserver's feature gates, asked for once; see ``Cluster``."""
        if not self._gates:
            self._gates.append(super().feature_gates())
        return self._gates[0]

    def fold(
        self,
        resource: Resource[T],
        begin: Callable[[], F],
        add: Callable[[F, Page[T]], object],
        namespace: str | None = None,
        *,
        field_selector: str = "",
    ) -> F:
        """Return what ``begin`` makes after ``add`` was called on it with the list as it is now; see ``Cluster``.

        The first time the list is read, and a watch of it begins. A list that may not be read is asked for once.
        """
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

    def _begin(self, resource: Resource[Any], namespace: str | None, field_selector: str) -> WatchedList[Any]:
        reader: EventReader[Any] = EventReader(resource.type)
        query: dict[str, str | int] = {"watch": "true", "allowWatchBookmarks": "true"}
        if field_selector:
            query["fieldSelector"] = field_selector

        def read() -> Listed[Object]:
            return super(WatchedCluster, self).fold(
                resource, Listed[Object], Listed.add, namespace, field_selector=field_selector
            )

        @contextmanager
        def follow(version: str) -> Iterator[Iterator[WatchEvent[Any]]]:
            # Not all at once, some minutes later.
            longest = retries.JITTER.randint(_LONGEST // 2, _LONGEST)
            asked = {**query, "resourceVersion": version, "timeoutSeconds": longest}
            path, most = resource.path(namespace), longest + _SILENCE
            with self._transport.stream(path, asked, ACCEPT, _SILENCE, most) as (head, parts):
                responses.check(head, verb="watch", resource=resource.plural)
                yield reader.read(head, parts)

        return WatchedList(read, follow, self._signals)
