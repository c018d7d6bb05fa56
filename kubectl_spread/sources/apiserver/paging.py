"""The pages of one list, one after another, each requested while those before it are worked on."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Final, TypeAlias, TypeVar

import msgspec

from kubectl_spread.errors import SourceError
from kubectl_spread.kube.api.types import Message
from kubectl_spread.sources.apiserver.responses import ExpiredError
from kubectl_spread.sources.apiserver.transport import Response
from kubectl_spread.sources.decode.page import Page

T = TypeVar("T", bound=Message)
R = TypeVar("R")
Request: TypeAlias = Callable[[str, Callable[[bytes], None]], Response]
"""Asks for the page that a token names ("": the first one), and hands over how its body begins as soon as it does."""

_UNEXPECTED: Final = "Server returned an unexpected response: "
_AHEAD: Final = 2
"""How many pages may be there or on their way, next to the one that is worked on."""


def follow(
    request: Request, decode: Callable[[Response], Page[T]], token_in: Callable[[bytes], str | None]
) -> Iterator[Page[T]]:
    """Yield all pages of a list; one without objects is not the last one if another follows.

    Args:
        request: Asks for a page.
        decode: Reads a page.
        token_in: Returns the token of the next page that stands in the beginning of a body; None: it cannot be told.

    Raises:
        ExpiredError: A page is of another state of the cluster than those before it.
        SourceError: The API server repeated a continue token.
    """
    revision, tokens = "", {""}
    reader = Reader(request, token_in)
    asked = reader.ask("")
    try:
        while True:
            page = decode(reader.take(asked))
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
            asked = reader.after(asked, token)
            yield page
    finally:
        reader.stop()


class _Room:
    """Space for as many pages as may be there or on their way; once it is closed nobody enters."""

    def __init__(self) -> None:
        self._free = threading.Semaphore(_AHEAD)
        self._closed = False

    def enter(self) -> bool:
        """Wait for space; tell whether it was given."""
        self._free.acquire()
        closed = self._closed
        if closed:
            # For the next one that waits.
            self._free.release()
        return not closed

    def leave(self) -> None:
        """Make space for another page."""
        self._free.release()

    def close(self) -> None:
        """Send away whoever waits."""
        self._closed = True
        self._free.release()


class _Asked(msgspec.Struct, eq=False):
    """A page that was asked for, and the one that is asked for because of how it begins."""

    token: str
    room: _Room
    answer: Future[Response] = msgspec.field(default_factory=Future)
    next: _Asked | None = None


class Reader:
    """Asks for pages before they are needed, the next one as soon as a page begins to arrive.

    Most of the time that an apiserver takes for a page passes before its first byte.
    """

    def __init__(self, request: Request, token_in: Callable[[bytes], str | None]) -> None:
        self._request = request
        self._token_in = token_in
        self._room = _Room()

    def ask(self, token: str) -> _Asked:
        """Ask for a page when there is room for it."""
        return self._ask(token, self._room)

    def take(self, asked: _Asked) -> Response:
        """Wait for a page; it makes room for another one."""
        answer = asked.answer.result()
        asked.room.leave()
        return answer

    def after(self, asked: _Asked, token: str) -> _Asked:
        """Return what was asked for after a page, or ask for it now."""
        if asked.next is None:
            return self.ask(token)
        if asked.next.token == token:
            return asked.next
        # The page was sent twice, and the second time another one followed. Nobody will take the first, nor those
        # after it, which would never free their room.
        self._room.close()
        self._room = _Room()
        return self.ask(token)

    def stop(self) -> None:
        """Ask for nothing more."""
        self._room.close()

    def _ask(self, token: str, room: _Room) -> _Asked:
        asked = _Asked(token, room)
        threading.Thread(target=self._run, args=(asked,), daemon=True).start()
        return asked

    def _run(self, asked: _Asked) -> None:
        def begun(start: bytes) -> None:
            token = self._token_in(start)
            if token and asked.next is None:
                asked.next = self._ask(token, asked.room)

        if asked.room.enter():
            _settle(asked.answer, lambda: self._request(asked.token, begun))


def background(work: Callable[[], R]) -> Future[R]:
    """Work in a thread that does not keep an interrupted program from ending."""
    future: Future[R] = Future()
    threading.Thread(target=_settle, args=(future, work), daemon=True).start()
    return future


def _settle(future: Future[R], work: Callable[[], R]) -> None:
    try:
        future.set_result(work())
    except BaseException as error:  # noqa: BLE001 - it is raised where the result is asked for
        future.set_exception(error)
