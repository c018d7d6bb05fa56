"""The HTTP servers of the monitor: pages that can only be read, uvicorn, and a deadline for each request."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import socket
import sys
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from ipaddress import ip_address
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeAlias
from urllib.parse import urlsplit

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from kubectl_spread.errors import SourceError, UsageError
from kubectl_spread.kube.api.quantity import whole_number

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


HostNames: TypeAlias = Sequence[re.Pattern[str]]
"""The host names of the requests that are answered: those in which one of these is found.

A web page may point a name of its own at a loopback address, and then ask as if it came from there.
"""
ANY_HOST: Final = (re.compile(""),)


def _accepts(hosts: HostNames, header: str) -> bool:
    """Tell whether to answer a request with this Host header."""
    try:
        name = urlsplit(f"//{header}").hostname or ""
    except ValueError:
        return False
    return any(pattern.search(name) for pattern in hosts)


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
        if not _accepts(self._hosts, host):
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


MOST_CONNECTIONS: Final = 800
"""The connections of one port; further requests are answered by 503. Most systems give a process 1,024 descriptors."""
LONGEST_REQUEST: Final = 30.0
"""Seconds from the start of a connection to the end of its only response."""
MOST_HEADER_BYTES: Final = 16 << 10
_BACKLOG: Final = 128
_SEND_BUFFER: Final = 64 << 10
"""Without it, Linux keeps 4 MB of a response for each client that does not read."""
_GRACE: Final = 2
"""Seconds for responses to end after SIGTERM."""
_SWITCH: Final = 0.0005
"""Seconds after which a thread lets others run; Python's 5 ms make a scrape ten times slower."""
_MOST_PORT: Final = 65535
_LOOPBACK_NAMES: Final = re.compile(r"^(localhost|127(\.\d{1,3}){3}|::1)$")


class _Connection(H11Protocol):
    """A connection with a deadline, which uvicorn does not have for clients that send or read nothing."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the deadline."""
        super().connection_made(transport)
        # A client that reads slowly has one piece of its response in memory, and few in the system's.
        transport.set_write_buffer_limits(0)
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER)
        self._deadline = self.loop.call_later(LONGEST_REQUEST, transport.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the deadline, which would keep the connection in memory."""
        self._deadline.cancel()
        super().connection_lost(exc)


class Servers:
    """The servers of several sockets that listen, which run in one thread."""

    def __init__(self, pages: Mapping[socket.socket, Pages], ended: Callable[[], None]) -> None:
        """Prepare the servers of these pages; ``ended`` is called when they no longer serve."""
        self._servers = {listening: uvicorn.Server(_config(each)) for listening, each in pages.items()}
        self._ended = ended
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        """Answer from now on."""
        # While a report is evaluated, a response waits so long before each piece that it sends.
        sys.setswitchinterval(_SWITCH)
        # A client that sends nonsense, or closes its connection during a response, must not fill the log.
        for name in ("uvicorn", "asyncio"):
            logging.getLogger(name).setLevel(logging.CRITICAL)
        self._thread.start()

    def stop(self) -> None:
        """Let current responses end for a moment, and close all connections.

        Raises:
            SourceError: They ended before by themselves.
        """
        for server in self._servers.values():
            server.should_exit = True
        self._thread.join(2 * _GRACE)
        if self._failure is not None:
            raise SourceError(f"the HTTP server failed: {self._failure}")

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as error:  # noqa: BLE001 - ``stop`` raises it
            self._failure = error
        finally:
            self._ended()

    async def _serve(self) -> None:
        await asyncio.gather(*(server.serve(sockets=[listening]) for listening, server in self._servers.items()))


def _config(pages: Pages) -> uvicorn.Config:
    return uvicorn.Config(
        pages,
        loop="asyncio",
        http=_Connection,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        # Each response closes its connection, so that one deadline is enough.
        headers=[("connection", "close")],
        limit_concurrency=MOST_CONNECTIONS,
        backlog=_BACKLOG,
        timeout_graceful_shutdown=_GRACE,
        h11_max_incomplete_event_size=MOST_HEADER_BYTES,
    )


def listen(option: str, address: str) -> socket.socket:
    """Return a socket that listens at ``HOST:PORT``; without a host at all addresses, of IPv6 as well.

    Raises:
        UsageError: The address has another form.
        SourceError: Nothing can listen there.
    """
    host, colon, text = address.rpartition(":")
    port = whole_number(text, _MOST_PORT)
    if not colon or port is None:
        raise UsageError(f'{option}: "{address}" is not HOST:PORT or :PORT')
    host = host.removeprefix("[").removesuffix("]")
    try:
        if not host and socket.has_dualstack_ipv6():
            return socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True)
        addresses = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        return socket.create_server(addresses[0][4][:2], family=addresses[0][0])
    except OSError as error:
        # Python adds the address to the text of the system.
        reason = os.strerror(error.errno) if error.errno and error.errno > 0 else error.strerror or str(error)
        raise SourceError(f"{option}: cannot listen at {address}: {reason.lower()}") from None


def accepted_hosts(listening: socket.socket, patterns: str) -> HostNames:
    """Return the host names of the requests that a port answers.

    Args:
        listening: Its socket.
        patterns: Regular expressions with commas between them, as of ``kubectl proxy``; by default a loopback address
            answers to loopback names, and any other address to each name.

    Raises:
        UsageError: One is not a regular expression.
    """
    if not patterns:
        return [_LOOPBACK_NAMES] if ip_address(listening.getsockname()[0]).is_loopback else ANY_HOST
    try:
        return [re.compile(pattern) for pattern in patterns.split(",")]
    except re.error as error:
        raise UsageError(f'--accept-hosts: "{patterns}" is not a list of regular expressions: {error}') from None
