"""Pages that can only be read, as an ASGI application."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeAlias
from urllib.parse import urlsplit

_PLAIN: Final = "text/plain; charset=utf-8"
_METHODS: Final = ("GET", "HEAD")
_PIECE: Final = 32 << 10
"""The most bytes that are sent at once; a connection that reads slowly has only one piece in its buffer."""


class Request(NamedTuple):
    """The headers that decide the form of an answer; "" without them."""

    accept: str
    accept_encoding: str


class ServedPage(NamedTuple):
    """An answer: a status, the content type, the body, and further headers."""

    status: int
    content_type: str
    body: bytes
    headers: Mapping[str, str] = MappingProxyType({})


Handler: TypeAlias = Callable[[Request], ServedPage]
Scope: TypeAlias = Mapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Mapping[str, Any]]]
Send: TypeAlias = Callable[[dict[str, Any]], Awaitable[None]]


class HostNames:
    """The host names of the requests that are answered.

    A web page may point a name of its own at a loopback address, and then ask as if it came from there.
    """

    def __init__(self, patterns: Sequence[str]) -> None:
        """Accept names in which one of these regular expressions is found.

        Raises:
            re.error: One is not a regular expression.
        """
        self._patterns = [re.compile(pattern) for pattern in patterns]

    def accept(self, host: str) -> bool:
        """Tell whether to answer a request with this Host header."""
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:
            return False
        return any(pattern.search(name) for pattern in self._patterns)


ANY_HOST: Final = HostNames([""])


class Pages:
    """An ASGI application that only reads: GET and HEAD of some paths."""

    def __init__(
        self,
        handlers: Mapping[str, Handler],
        slow: Mapping[str, Handler] = MappingProxyType({}),
        *,
        hosts: HostNames = ANY_HOST,
    ) -> None:
        """Answer by the handler of a path; ``slow`` ones run in a thread, one after the other.

        Requests of other ``hosts`` are refused.
        """
        self._handlers = handlers
        self._slow = slow
        self._hosts = hosts
        self._thread = ThreadPoolExecutor(1)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002 - ASGI's form
        """Answer one request."""
        page = await self._page(scope)
        headers = {
            "content-type": page.content_type,
            "content-length": str(len(page.body)),
            "cache-control": "no-store",
            "x-content-type-options": "nosniff",
            "x-frame-options": "DENY",
            **page.headers,
        }
        raw = [(name.encode(), text.encode()) for name, text in headers.items()]
        await send({"type": "http.response.start", "status": page.status, "headers": raw})
        for start in range(0, len(page.body) if scope["method"] != "HEAD" else 0, _PIECE):
            piece = page.body[start : start + _PIECE]
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body"})

    async def _page(self, scope: Scope) -> ServedPage:
        headers = {name: text.decode("latin-1") for name, text in scope["headers"]}
        host = headers.get(b"host", "")
        if not self._hosts.accept(host):
            return message(403, f'the host name "{host}" is not accepted: ask localhost, or set --accept-hosts')
        path = scope["path"]
        if path not in self._handlers and path not in self._slow:
            return message(404, "not found")
        if scope["method"] not in _METHODS:
            return message(405, "only GET and HEAD", {"allow": ", ".join(_METHODS)})
        request = Request(headers.get(b"accept", ""), headers.get(b"accept-encoding", ""))
        if path in self._handlers:
            return self._handlers[path](request)
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._slow[path], request)


def message(status: int, text: str, headers: Mapping[str, str] | None = None) -> ServedPage:
    """Return a line of text as an answer."""
    return ServedPage(status, _PLAIN, f"{text}\n".encode(), headers or {})
