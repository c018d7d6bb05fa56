"""The pages of one list, in order; each is requested while earlier pages are processed."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import suppress
from typing import Final, TypeAlias, TypeVar

import msgspec

from kubectl_spread.errors import SourceError
from kubectl_spread.frames import in_one_chunk
from kubectl_spread.kube.api.types import Message
from kubectl_spread.sources.apiserver.responses import ExpiredError
from kubectl_spread.sources.apiserver.transport import Response
from kubectl_spread.sources.decode.page import Page

T = TypeVar("T", bound=Message)
R = TypeVar("R")
Request: TypeAlias = Callable[[str, Callable[[bytes], None], bytearray], Response]
"""Requests the page that a token names ("" for the first), passes on the beginning of its body as soon as it arrives,
and reads the body into a bytearray."""

_UNEXPECTED: Final = "Server returned an unexpected response: "
_AHEAD: Final = 2
"""The number of pages that may be requested ahead of the page that is processed."""


def follow(
    request: Request, prepare: Callable[[], Callable[[Response], Page[T]]], token_in: Callable[[bytes], str | None]
) -> Iterator[Page[T]]:
    """Yield all pages of a list; a page without objects is not the last if another follows.

    Args:
        request: Requests a page.
        prepare: Returns a decoder of pages. It is called after the first request is sent, because it takes some of
            the time until the response arrives.
        token_in: Returns the continue token in the beginning of a body; None if it is not there yet.

    Raises:
        ExpiredError: A page is of another state of the cluster than earlier pages.
        SourceError: The API server repeated a continue token.
    """
    revision, tokens = "", {""}
    reader = Reader(request, token_in)
    pending = reader.ask("")
    decode = prepare()
    try:
        while True:
            response = reader.take(pending)
            page = decode(response)
            revision = revision or page.resource_version
            if page.resource_version != revision:
                raise ExpiredError(f"{_UNEXPECTED}pages of the revisions {revision} and {page.resource_version}")
            token = page.metadata.continue_
            if token and token in tokens:
                raise SourceError(f"{_UNEXPECTED}the API server repeated a continue token")
            tokens.add(token)
            if not token:
                yield page
                return
            pending = reader.after(pending, token)
            yield page
            del page
            reader.bodies.give(response.body)
    finally:
        reader.stop()


class Bodies:
    """The memory of the pages of one list, used again after a page was processed; may be used from several threads.

    Used again because the system clears new memory, which takes longer than to receive a page into it.
    """

    def __init__(self) -> None:
        """Start without any."""
        self._free: deque[bytearray] = deque()

    def take(self) -> bytearray:
        """Return memory for a page, with any content."""
        with suppress(IndexError):
            return self._free.popleft()
        return bytearray()

    def give(self, body: bytes | bytearray) -> None:
        """Take the memory of a processed page, unless there is still a view of it."""
        if isinstance(body, bytearray):
            with suppress(BufferError):
                # A bytearray cannot be resized while there are views of it.
                body.append(0)
                self._free.append(body)


class _Room:
    """Slots for the pages that may be requested ahead; after it is closed there are no more."""

    def __init__(self) -> None:
        self._free = threading.Semaphore(_AHEAD)
        self._closed = False

    def enter(self) -> bool:
        """Wait for a slot; tell whether there was one."""
        self._free.acquire()
        closed = self._closed
        if closed:
            # For the next thread that waits.
            self._free.release()
        return not closed

    def leave(self) -> None:
        """Free a slot."""
        self._free.release()

    def close(self) -> None:
        """Let all threads that wait give up."""
        self._closed = True
        self._free.release()


class _PageRequest(msgspec.Struct, eq=False):
    """A requested page, and the next page, which is requested when this one begins to arrive."""

    token: str
    room: _Room
    response: Future[Response] = msgspec.field(default_factory=Future)
    next: _PageRequest | None = None


class Reader:
    """Requests pages before they are needed, each as soon as the page before it begins to arrive.

    Requested early because most of a page's latency is before its first byte.

    Attributes:
        bodies: The memory for the pages.
    """

    def __init__(self, request: Request, token_in: Callable[[bytes], str | None]) -> None:
        self._request = request
        self._token_in = token_in
        self._room = _Room()
        self.bodies = Bodies()

    def ask(self, token: str) -> _PageRequest:
        """Request a page as soon as there is a slot."""
        return self._ask(token, self._room)

    def take(self, pending: _PageRequest) -> Response:
        """Wait for a page, and free its slot."""
        response = pending.response.result()
        pending.room.leave()
        return response

    def after(self, pending: _PageRequest, token: str) -> _PageRequest:
        """Return the request of the page after another one, which is sent now unless it was before."""
        if pending.next is None:
            return self.ask(token)
        if pending.next.token == token:
            return pending.next
        # The page was sent twice, and the second time with another token. Nobody will take the pages that were
        # requested with the first token, and they would never free their slots.
        self._room.close()
        self._room = _Room()
        return self.ask(token)

    def stop(self) -> None:
        """Send no more requests."""
        self._room.close()

    def _ask(self, token: str, room: _Room) -> _PageRequest:
        pending = _PageRequest(token, room)
        threading.Thread(target=self._run, args=(pending,), daemon=True).start()
        return pending

    def _run(self, pending: _PageRequest) -> None:
        def begun(start: bytes) -> None:
            token = self._token_in(start)
            if token and pending.next is None:
                pending.next = self._ask(token, pending.room)

        if pending.room.enter():
            _settle(pending.response, lambda: self._request(pending.token, begun, self.bodies.take()))


def background(work: Callable[[], R]) -> Future[R]:
    """Run ``work`` in a thread that does not stop an interrupted program from ending."""
    future: Future[R] = Future()
    threading.Thread(target=_settle, args=(future, work), daemon=True).start()
    return future


@in_one_chunk
def _result(work: Callable[[], R]) -> R:
    return work()


def _settle(future: Future[R], work: Callable[[], R]) -> None:
    try:
        # The frames need memory too, and the thread that waits has to learn of a lack of it.
        future.set_result(_result(work))
    except BaseException as error:  # noqa: BLE001 - ``result`` raises it
        future.set_exception(error)
