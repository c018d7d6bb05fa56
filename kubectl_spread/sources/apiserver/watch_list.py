"""A list that is kept current: read once, then followed by a watch, which is started again whenever it ends."""

from __future__ import annotations

import math
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import lru_cache
from typing import Any, Final, Generic, Protocol, TypeVar

import msgspec
from msgspec.structs import replace

from kubectl_spread.errors import ForbiddenError, SourceError
from kubectl_spread.kube.api.types import ListMeta, ManagedFieldsEntry, Object
from kubectl_spread.sources.apiserver import retries
from kubectl_spread.sources.apiserver.responses import ExpiredError, UnauthorizedError
from kubectl_spread.sources.apiserver.watch_events import BOOKMARK, DELETED, WatchEvent
from kubectl_spread.sources.decode.page import Page
from kubectl_spread.sources.failures import Again, ConnectionFailedError

T = TypeVar("T", bound=Object)

_NUMBER: Final = re.compile(r"[1-9][0-9]*")
_LABELS: Final = b'"f:labels"'


class Listed(msgspec.Struct, Generic[T]):
    """The objects of a list by namespace and name, and the revision of the list."""

    objects: dict[tuple[str, str], T] = msgspec.field(default_factory=dict)
    version: str = ""

    def add(self, page: Page[T]) -> None:
        """Store the objects of one page."""
        self.version = page.resource_version
        for listed_object in page:
            self.objects[_identity(listed_object)] = detached(listed_object)

    def apply(self, event: WatchEvent[T]) -> bool:
        """Apply an event; tell whether an object has changed in a field that is read."""
        self.version = event.version
        if event.type == BOOKMARK:
            return False
        identity = _identity(event.object)
        before = self.objects.pop(identity, None) if event.type == DELETED else self.objects.get(identity)
        after = None
        if event.type != DELETED:
            after = self.objects[identity] = detached(event.object)
        return before != after


class Store(Protocol):
    """The objects of a list, in any form, which events keep current."""

    @property
    def version(self) -> str:
        """The revision of the list, or of the last event."""

    def apply(self, event: WatchEvent[Any]) -> bool:
        """Apply an event; tell whether anything has changed."""


S = TypeVar("S", bound=Store)


class Signals:
    """The signals from the threads of several watches to the thread that waits for them.

    Attributes:
        changed: Is set when a list has changed, or the client reconnected.
        regained: Whether the client reconnected.
        failure: The error that ends watching, or None.
    """

    def __init__(self) -> None:
        """Start without signals."""
        self.changed = threading.Event()
        self.regained = False
        self.failure: BaseException | None = None
        self._lost: dict[int, str] = {}

    @property
    def lost(self) -> str:
        """The reason why some watch has no connection, or ""."""
        return next(iter(self._lost.copy().values()), "")

    def lose(self, watch: object, reason: str) -> None:
        """Remember that a watch has no connection."""
        self._lost.setdefault(id(watch), reason)

    def has_lost(self, watch: object) -> bool:
        """Tell whether a watch has no connection."""
        return id(watch) in self._lost

    def regain(self, watch: object) -> None:
        """Remember that a watch has a connection."""
        if self._lost.pop(id(watch), None) is not None and not self._lost:
            self.regained = True
            self.changed.set()

    def fail(self, failure: BaseException) -> None:
        """End the waiting."""
        self.failure = failure
        self.changed.set()


class FollowedList(Generic[S]):
    """A list that a thread keeps current."""

    def __init__(
        self,
        read: Callable[[], S],
        follow: Callable[[str], AbstractContextManager[Iterator[WatchEvent[Any]]]],
        signals: Signals,
        silence: float = math.inf,
    ) -> None:
        """Read the list and start to follow it.

        Args:
            read: Reads the whole list.
            follow: Starts a watch from a revision on.
            signals: Receives changes and failures.
            silence: Seconds without a list, an event or a bookmark after which the next watch begins with a list.

        Raises:
            ForbiddenError: The user may not list it.
            SourceError: It cannot be read for another reason.
        """
        self._read = read
        self._follow = follow
        self._signals = signals
        self._silence = silence
        self._lock = threading.Lock()
        self._told_at = time.monotonic()
        self._store = read()
        self._expired = self._allowed = False
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        nothing_came = 0
        try:
            while True:
                was_lost = self._signals.has_lost(self)
                came = self._watch()
                regained = was_lost and not self._signals.has_lost(self)
                # The pauses before the API server was back say nothing about the one that has started.
                nothing_came = 0 if came else 1 if regained else nothing_came + 1
                # A watch ends every few minutes. Watches that end without an event are started again after a pause.
                time.sleep(retries.backoff(max(nothing_came - 1, 0), retries.JITTER.random()))
        except BaseException as error:  # noqa: BLE001 - ``wait`` raises it
            self._signals.fail(error)

    def _watch(self) -> bool:
        """Watch until the connection ends; tell whether there was an event.

        Raises:
            ForbiddenError: The user may not watch it.
            UnauthorizedError: The credentials are not accepted.
            ConnectionFailedError: The server is not the same one any more.
        """
        came = begun = False
        try:
            self._list_again()
            with self._follow(self._store.version) as events:
                begun = self._allowed = True
                self._signals.regain(self)
                for event in events:
                    came = True
                    self._apply(event)
        except ExpiredError:
            self._expired = True
        except UnauthorizedError:
            raise
        except ForbiddenError as error:
            # An API server that has just started refuses requests that it allows a moment later.
            if not self._allowed:
                raise
            self._signals.lose(self, str(error))
        except ConnectionFailedError as error:
            if error.again is Again.NEVER:
                raise
            if not begun:
                self._signals.lose(self, str(error))
        except SourceError as error:
            # The API server may not know the revision, for example after a restore from a backup.
            self._expired = True
            self._signals.lose(self, str(error))
        return came

    def _list_again(self) -> None:
        """Read the whole list if the API server no longer has the changes since its revision, or has long been silent.

        An API server that has restarted sends no bookmark before the first change of a resource, or before a list.
        """
        began = time.monotonic()
        if not self._expired and began - self._told_at < self._silence:
            return
        store = self._read()
        with self._lock:
            self._store, self._expired, self._told_at = store, False, began
        self._signals.changed.set()

    def _apply(self, event: WatchEvent[Any]) -> None:
        """Apply an event.

        Raises:
            ExpiredError: It is about a change that came before, so that the list has to be read again.
        """
        before = self._store.version
        # A bookmark with the same version says that nothing has changed.
        if not (is_newer(event.version, before) or (event.type == BOOKMARK and event.version == before)):
            if event.type == BOOKMARK:
                return
            raise ExpiredError(f"an event has version {event.version}, and version {before} came before")
        with self._lock:
            changed = self._store.apply(event)
        self._told_at = time.monotonic()
        # Most events change only fields that are not read, such as a status.
        if changed:
            self._signals.changed.set()


class WatchedList(FollowedList[Listed[T]]):
    """A list that is stored, and that a thread keeps current."""

    def page(self) -> Page[T]:
        """Return the current list as one page."""
        with self._lock:
            objects, version = list(self._store.objects.values()), self._store.version
        return Page(ListMeta(resource_version=version), objects, lambda listed_object: listed_object)


def is_newer(version: str, than: str) -> bool:
    """Tell whether a resourceVersion is newer than another one; without numbers, the one that came later is newer.

    Source: kubernetes v1.37.1 staging/src/k8s.io/apimachinery/pkg/util/resourceversion/resourceversion.go,
    CompareResourceVersion, which compares the digits.
    """
    if not (_NUMBER.fullmatch(version) and _NUMBER.fullmatch(than)):
        return True
    return (len(version), version) > (len(than), than)


def _identity(listed_object: Object) -> tuple[str, str]:
    """Return the namespace and name of an object."""
    return listed_object.metadata.namespace, listed_object.metadata.name


def detached(listed_object: T) -> T:
    """Return an object without its page in memory, and with the managedFields of its labels only."""
    fields = tuple(
        _entry(entry) for entry in listed_object.metadata.managed_fields if _LABELS in bytes(entry.fields_v1)
    )
    return replace(listed_object, metadata=replace(listed_object.metadata, managed_fields=fields))


def _entry(entry: ManagedFieldsEntry) -> ManagedFieldsEntry:
    return replace(entry, fields_v1=_shared(bytes(entry.fields_v1)))


@lru_cache(maxsize=4096)
def _shared(fields: bytes) -> msgspec.Raw:
    """Return the fields, stored once for all objects of one template."""
    return msgspec.Raw(fields)
