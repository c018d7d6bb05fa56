"""A list that is kept current: read once, then followed by a watch, which is started again whenever it ends."""

from __future__ import annotations

import math
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import lru_cache
from typing import Any, Final, Generic, NamedTuple, TypeVar

import msgspec
from msgspec.structs import replace

from kubectl_spread.errors import ForbiddenError, SourceError
from kubectl_spread.kube.api.types import Object
from kubectl_spread.sources.apiserver import transport
from kubectl_spread.sources.apiserver.responses import ExpiredError, UnauthorizedError
from kubectl_spread.sources.apiserver.transport import elapsed
from kubectl_spread.sources.apiserver.watch_events import BOOKMARK, DELETED, WatchEvent
from kubectl_spread.sources.decode.resources import Page
from kubectl_spread.sources.exchange import Again, ConnectionFailedError

T = TypeVar("T", bound=Object)
R = TypeVar("R")
"""What is stored of an object."""

_NUMBER: Final = re.compile(r"[1-9][0-9]*")
_NO_VERSIONS: Final = ("", "0")
_LABELS: Final = b'"f:labels"'


class Listed(msgspec.Struct, Generic[R]):
    """The records of a list by the keys of their objects, and the revision of the list.

    Attributes:
        record: Returns the record of an object, of a page or of an event.
        records: The records.
        version: The revision.
    """

    record: Callable[[Any], R]
    records: dict[str, R] = msgspec.field(default_factory=dict)
    version: str = ""

    def add(self, page: Page[Any]) -> None:
        """Store the objects of one page."""
        self.version = page.resource_version
        for listed_object in page:
            self.records[listed_object.key] = self.record(listed_object)

    def apply(self, event: WatchEvent[Any]) -> bool:
        """Apply an event; tell whether a record has changed."""
        self.version = event.version
        if event.type == BOOKMARK:
            return False
        key = event.object.key
        before = self.records.pop(key, None) if event.type == DELETED else self.records.get(key)
        after = None
        if event.type != DELETED:
            after = self.records[key] = self.record(event.object)
        return before != after


class Signals:
    """The signals from the threads of several watches to the thread that waits for them.

    Attributes:
        changed: Is set when a list has changed.
        suspect: Whether another cluster may answer now: the client has reconnected, or has read a list again.
        failure: The error that ends watching, or None.
    """

    def __init__(self) -> None:
        self.changed = threading.Event()
        self.suspect = False
        self.failure: BaseException | None = None

    def fail(self, failure: BaseException) -> None:
        """End the waiting."""
        self.failure = failure
        self.changed.set()


class State(NamedTuple, Generic[R]):
    """The records of a list at one revision."""

    records: list[R]
    version: str


class FollowedList(Generic[R]):
    """A list that a thread keeps current: read once, then followed by watches.

    Attributes:
        lost: The reason why its watch has no connection, or "".
    """

    def __init__(
        self,
        read: Callable[[], Listed[R]],
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
        self.lost = ""
        self._read = read
        self._follow = follow
        self._signals = signals
        self._silence = silence
        self._lock = threading.Lock()
        self._known_at = self._heard_at = elapsed()
        self._listed = _versioned(read())
        self._expired = self._allowed = False
        self._distrusts = 0
        threading.Thread(target=self._run, daemon=True).start()

    def state(self) -> State[R]:
        """Return the current records."""
        with self._lock:
            return State([*self._listed.records.values()], self._listed.version)

    @property
    def version(self) -> str:
        """The revision of the current records; all changes up to it have been signalled."""
        with self._lock:
            return self._listed.version

    def known_at(self, reached_etcd_at: float) -> float:
        """Return the last ``elapsed`` at which the records were certainly those of the API server.

        A list, an event or a bookmark with a newer revision proves it. A bookmark with the same revision only proves
        that the watch is open: an API server that has lost etcd sends them too. So it counts up to ``reached_etcd_at``,
        when the API server last answered from etcd.
        """
        return max(self._known_at, min(self._heard_at, reached_etcd_at))

    def distrust(self) -> None:
        """Take the records as those of another cluster: they have to be read again, and are not known until then."""
        with self._lock:
            self._distrusts += 1
            self._expired, self._known_at, self._heard_at = True, -math.inf, -math.inf

    def _run(self) -> None:
        nothing_came = 0
        try:
            while True:
                was_lost = self.lost
                came = self._watch()
                regained = was_lost and not self.lost
                # The pauses before the API server was back say nothing about the one that has started.
                nothing_came = 0 if came else 1 if regained else nothing_came + 1
                # A watch ends every few minutes. Watches that end without an event are started again after a pause.
                time.sleep(transport.backoff(max(nothing_came - 1, 0), transport.JITTER.random()))
        except BaseException as error:  # noqa: BLE001 - ``wait`` raises it
            self._signals.fail(error)

    def _watch(self) -> bool:
        """Watch until the connection ends; tell whether there was an event, and the next watch needs no list.

        Raises:
            ForbiddenError: The user may not watch it.
            UnauthorizedError: The credentials are not accepted.
            ConnectionFailedError: The server is not the same one any more.
        """
        came = begun = False
        try:
            self._list_again()
            with self._follow(self._listed.version) as events:
                begun = self._allowed = True
                self._signals.suspect |= bool(self.lost)
                self.lost = ""
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
            self.lost = self.lost or str(error)
        except ConnectionFailedError as error:
            if error.again is Again.NEVER:
                raise
            if not begun:
                self.lost = self.lost or str(error)
        except SourceError as error:
            # The API server may not know the revision, for example after a restore from a backup.
            self._expired = True
            self.lost = self.lost or str(error)
        return came and not self._expired

    def _list_again(self) -> None:
        """Read the whole list if the API server no longer has the changes since its revision, or has long been silent.

        An API server that has restarted sends no bookmark before the first change of a resource, or before a list.
        """
        began, distrusts = elapsed(), self._distrusts
        if not self._expired and began - self._heard_at < self._silence:
            return
        listed = _versioned(self._read())
        with self._lock:
            if distrusts != self._distrusts:
                raise ExpiredError("another cluster answers since the list began")
            self._listed, self._expired = listed, False
            self._known_at = self._heard_at = began
            self._signals.suspect = True
            self._signals.changed.set()

    def _apply(self, event: WatchEvent[Any]) -> None:
        """Apply an event.

        Raises:
            ExpiredError: The list has to be read again: it is of another cluster, or the event has no revision, or is
                about a change that came before.
        """
        before, version = self._listed.version, event.version
        if self._expired or version in _NO_VERSIONS:
            raise ExpiredError(f"an event of version {version!r} cannot be applied")
        newer = is_newer(version, before)
        if not newer and event.type != BOOKMARK:
            raise ExpiredError(f"an event has version {version}, and version {before} came before")
        with self._lock:
            if self._expired or not (newer or version == before):
                return
            self._heard_at = elapsed()
            if newer:
                self._known_at = self._heard_at
                # Most events change only fields that are not read, such as a status. Whoever sees the new revision
                # has the signal already.
                if self._listed.apply(event):
                    self._signals.changed.set()


def _versioned(listed: Listed[R]) -> Listed[R]:
    """Return a list that has a revision; a watch from none would begin anywhere.

    Raises:
        SourceError: It has none.
    """
    if listed.version in _NO_VERSIONS:
        raise SourceError("Server returned an unexpected response: a list without a resourceVersion")
    return listed


def is_newer(version: str, than: str) -> bool:
    """Tell whether a resourceVersion is newer than another one; without numbers, the one that came later is newer.

    Source: kubernetes v1.37.1 staging/src/k8s.io/apimachinery/pkg/util/resourceversion/resourceversion.go,
    CompareResourceVersion, which compares the digits.
    """
    if not (_NUMBER.fullmatch(version) and _NUMBER.fullmatch(than)):
        return True
    return (len(version), version) > (len(than), than)


def detached(listed_object: T) -> T:
    """Return an object without its page in memory, and with the managedFields of its labels only."""
    fields = tuple(
        replace(entry, fields_v1=_shared(bytes(entry.fields_v1)))
        for entry in listed_object.metadata.managed_fields
        if _LABELS in bytes(entry.fields_v1)
    )
    return replace(listed_object, metadata=replace(listed_object.metadata, managed_fields=fields))


@lru_cache(maxsize=4096)
def _shared(fields: bytes) -> msgspec.Raw:
    """Return the fields, stored once for all objects of one template."""
    return msgspec.Raw(fields)
