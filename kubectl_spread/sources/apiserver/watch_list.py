"""One list that is kept as it is now: read once, then followed by a watch that is begun again whenever it ends."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import lru_cache
from typing import Final, Generic, TypeVar

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

_LABELS: Final = b'"f:labels"'


class Listed(msgspec.Struct, Generic[T]):
    """The objects of a list by namespace and name, and the revision that they are of."""

    objects: dict[tuple[str, str], T] = msgspec.field(default_factory=dict)
    version: str = ""

    def add(self, page: Page[T]) -> None:
        """Keep the objects of one page."""
        self.version = page.resource_version
        for found in page:
            self.objects[_identity(found)] = kept(found)


class Signals:
    """What the threads of several watches tell the one that waits for them.

    Attributes:
        changed: Is set when anything that is kept has changed, or the connection is back.
        regained: Whether the connection was lost and is back.
        failure: What ends watching; None: nothing.
    """

    def __init__(self) -> None:
        """Begin with nothing to tell."""
        self.changed = threading.Event()
        self.regained = False
        self.failure: BaseException | None = None
        self._lost: dict[int, str] = {}

    @property
    def lost(self) -> str:
        """Why some watch has no connection; "": all have one."""
        return next(iter(self._lost.copy().values()), "")

    def lose(self, watch: object, reason: str) -> None:
        """Remember that a watch has no connection."""
        self._lost.setdefault(id(watch), reason)

    def regain(self, watch: object) -> None:
        """Remember that it has one."""
        if self._lost.pop(id(watch), None) is not None and not self._lost:
            self.regained = True
            self.changed.set()

    def fail(self, failure: BaseException) -> None:
        """End the waiting."""
        self.failure = failure
        self.changed.set()


class WatchedList(Generic[T]):
    """A list that a thread keeps as it is now."""

    def __init__(
        self,
        read: Callable[[], Listed[T]],
        follow: Callable[[str], AbstractContextManager[Iterator[WatchEvent[T]]]],
        signals: Signals,
    ) -> None:
        """Read the list and begin to follow it.

        Args:
            read: Reads the whole list.
            follow: Begins to watch from a revision on.
            signals: Is notified of changes and of trouble.

        Raises:
            ForbiddenError: The user may not list it.
            SourceError: It cannot be read for another reason.
        """
        self._read = read
        self._follow = follow
        self._signals = signals
        self._lock = threading.Lock()
        self._listed = read()
        self._expired = self._allowed = False
        threading.Thread(target=self._run, daemon=True).start()

    def page(self) -> Page[T]:
        """Return the list as it is now, as one page."""
        with self._lock:
            objects, version = list(self._listed.objects.values()), self._listed.version
        return Page(ListMeta(resource_version=version), objects, lambda found: found)

    def _run(self) -> None:
        nothing_came = 0
        try:
            while True:
                nothing_came = 0 if self._watch() else nothing_came + 1
                # A watch ends every few minutes; many that end at once are not begun again at once.
                time.sleep(retries.backoff(max(nothing_came - 1, 0), retries.JITTER.random()))
        except BaseException as error:  # noqa: BLE001 - it is raised where somebody waits
            self._signals.fail(error)

    def _watch(self) -> bool:
        """Watch until the connection ends; tell whether anything came.

        Raises:
            ForbiddenError: The user may not watch it.
            UnauthorizedError: The credentials are not taken.
            ConnectionFailedError: The server is not the one that it was.
        """
        came = begun = False
        try:
            self._list_again()
            with self._follow(self._listed.version) as events:
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
            # An apiserver that has just started forbids what it allows a moment later.
            if not self._allowed:
                raise
            self._signals.lose(self, str(error))
        except ConnectionFailedError as error:
            if error.again is Again.NEVER:
                raise
            if not begun:
                self._signals.lose(self, str(error))
        except SourceError as error:
            # It may not know the revision, as after it was restored from a backup.
            self._expired = True
            self._signals.lose(self, str(error))
        return came

    def _list_again(self) -> None:
        """Read the whole list where the apiserver has forgotten what has changed since."""
        if not self._expired:
            return
        listed = self._read()
        with self._lock:
            self._listed, self._expired = listed, False
        self._signals.changed.set()

    def _apply(self, event: WatchEvent[T]) -> None:
        identity, objects = _identity(event.object), self._listed.objects
        with self._lock:
            self._listed.version = event.version
            before = objects.get(identity)
            if event.type == BOOKMARK:
                return
            if event.type == DELETED:
                objects.pop(identity, None)
                after = None
            else:
                after = objects[identity] = kept(event.object)
        # Most events tell of what is not read, such as a status.
        if before != after:
            self._signals.changed.set()


def _identity(found: Object) -> tuple[str, str]:
    """Return what tells an object from the others of its kind at one time."""
    return found.metadata.namespace, found.metadata.name


def kept(found: T) -> T:
    """Return an object that holds neither its page nor the managed fields that tell nothing about its labels."""
    fields = tuple(_entry(entry) for entry in found.metadata.managed_fields if _LABELS in bytes(entry.fields_v1))
    return replace(found, metadata=replace(found.metadata, managed_fields=fields))


def _entry(entry: ManagedFieldsEntry) -> ManagedFieldsEntry:
    return replace(entry, fields_v1=_shared(bytes(entry.fields_v1)))


@lru_cache(maxsize=4096)
def _shared(fields: bytes) -> msgspec.Raw:
    """Return fields that exist once for all objects of one template."""
    return msgspec.Raw(fields)
