"""The HTTP servers of the monitor: uvicorn, with limits that keep one client from stopping the others."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import socket
import ssl
import sys
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final, cast

import msgspec
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.utils import get_remote_addr

from kubectl_spread.errors import SourceError, UsageError
from kubectl_spread.follow.asgi import ANY_HOST, HostNames, Pages
from kubectl_spread.kube.api.quantity import whole_number

MOST_CONNECTIONS: Final = 32
"""The connections of one port, each with half a megabyte for TLS; for each further one another is closed."""
LONGEST_REQUEST: Final = 30.0
"""Seconds from a connection, TLS included, or from the first byte of a further request, to the end of its response."""
MOST_HEADER_BYTES: Final = 16 << 10
_BACKLOG: Final = 128
"""The connections that are accepted before the first of them is counted; each has a descriptor until then."""
_GRACE: Final = 2
"""Seconds for responses to end after SIGTERM."""
_SWITCH: Final = 0.0005
"""Seconds after which a thread lets others run; Python's 5 ms make a scrape ten times slower."""
_MOST_PORT: Final = 65535
_LOOPBACK_NAMES: Final = r"^(localhost|127(\.\d{1,3}){3}|::1)$"
_LOOK: Final = 10.0
"""Seconds between two looks at the files of the certificate, which its issuer replaces."""


class TlsFiles(msgspec.Struct, frozen=True):
    """The files of a server's certificate and key, and of the authorities of its clients' certificates, or ""."""

    certificate: str
    key: str
    client_authority: str = ""

    @property
    def without_clients(self) -> TlsFiles:
        """The same for clients without a certificate."""
        return TlsFiles(self.certificate, self.key)

    @property
    def changed_at(self) -> tuple[int, ...]:
        """When each of the files was written, in nanoseconds."""
        return tuple(Path(name).stat().st_mtime_ns for name in self.names)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the files."""
        return tuple(filter(None, (self.certificate, self.key, self.client_authority)))


class _RenewedContext:
    """The TLS context of a port, which follows its files: each connection begins with the content of that time.

    Attributes:
        latest: The context of the files that could be used last.
    """

    def __init__(self, files: TlsFiles) -> None:
        """Load the files.

        Raises:
            SourceError: A certificate or key cannot be used.
        """
        self._files = files
        self.latest = _context(files)
        self._loaded_at: tuple[int, ...] = ()

    def look(self) -> None:
        """Load the files again if they have changed; files that do not fit each other yet are tried again later.

        Raises:
            SourceError: The files that are there now cannot be used, so those from before still are.
        """
        try:
            changed_at = self._files.changed_at
        except OSError as error:
            raise SourceError(_unusable(self._files, error)) from None
        if changed_at != self._loaded_at:
            self.latest = _context(self._files)
            self._loaded_at = changed_at


class _Connection(H11Protocol):
    """A connection, which is counted before its TLS handshake.

    uvicorn would leave the handshake to asyncio, which tells a protocol of a connection only after it.

    Attributes:
        accepted_at: The time of the event loop when it was accepted.
    """

    _deadline: asyncio.TimerHandle | None = None
    _handshake: asyncio.Task[None] | None = None
    _early = b""

    def __init__(self, context: _RenewedContext | None, **arguments: Any) -> None:
        super().__init__(**arguments)
        self._context = context
        self.accepted_at = self.loop.time()

    @property
    def address(self) -> str:
        """The address of the client."""
        return self.client[0] if self.client else ""

    @property
    def answers(self) -> bool:
        """Whether it has a whole request without its whole response."""
        return self.cycle is not None and not self.cycle.response_complete

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Count the connection, and begin with TLS, or wait for its first request."""
        self.transport = transport
        self.client = get_remote_addr(transport)
        self.connections.add(self)
        self._expect()
        if len(self.connections) > MOST_CONNECTIONS:
            self._make_room()
        if transport.is_closing():
            return
        if self._context is None:
            super().connection_made(transport)
        else:
            self._handshake = self.loop.create_task(self._secure(transport, self._context.latest))

    def data_received(self, received: bytes) -> None:
        """Take a part of a request; the first may come together with the end of the handshake."""
        if self.flow is None:
            self._early += received
            return
        self._expect()
        super().data_received(received)

    def on_response_complete(self) -> None:
        """Take the response as sent, and begin with the next request if it has come already."""
        self._settle()
        super().on_response_complete()
        if self.answers:
            self._expect()

    def connection_lost(self, exc: Exception | None) -> None:
        """Take the connection as closed."""
        self._settle()
        super().connection_lost(exc)

    async def _secure(self, transport: asyncio.Transport, context: ssl.SSLContext) -> None:
        secured = None
        with suppress(OSError):
            if not transport.is_closing():
                secured = await self.loop.start_tls(transport, self, context, server_side=True)
        if secured is None:
            self.connections.discard(self)
            self._settle()
        else:
            super().connection_made(secured)
            if self._early:
                super().data_received(self._early)

    def _make_room(self) -> None:
        """Close a connection of the address that has most: the oldest without a whole request, or else the oldest."""
        connections = cast("set[_Connection]", self.connections)
        numbers = Counter(each.address for each in connections)
        most = max(numbers.values())
        candidates = (each for each in connections if numbers[each.address] == most)
        last = min(candidates, key=lambda each: (each.answers, each.accepted_at))
        self.connections.discard(last)
        last.transport.abort()

    def _expect(self) -> None:
        if self._deadline is None:
            self._deadline = self.loop.call_later(LONGEST_REQUEST, self.transport.abort)

    def _settle(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


class Port(msgspec.Struct, frozen=True):
    """A socket that listens, its pages, and its certificate."""

    listening: socket.socket
    pages: Pages
    tls: TlsFiles | None


class Servers:
    """The servers of several ports, which run in one thread."""

    def __init__(self, ports: Sequence[Port], ended: Callable[[], None], say: Callable[[str], None]) -> None:
        """Prepare the servers; ``ended`` is called when they no longer serve, and ``say`` prints a message.

        Raises:
            SourceError: A certificate or key cannot be used.
        """
        self._ports = ports
        self._contexts: list[_RenewedContext] = []
        self._servers = [uvicorn.Server(self._config(port)) for port in ports]
        self._ended = ended
        self._say = say
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
        for server in self._servers:
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
        renewing = asyncio.create_task(self._renew())
        await asyncio.gather(
            *(server.serve(sockets=[port.listening]) for server, port in zip(self._servers, self._ports, strict=True))
        )
        renewing.cancel()

    def _config(self, port: Port) -> uvicorn.Config:
        context = None if port.tls is None else _RenewedContext(port.tls)
        if context is not None:
            self._contexts.append(context)
        config = uvicorn.Config(
            port.pages,
            loop="asyncio",
            http=cast("type[asyncio.Protocol]", partial(_Connection, context)),
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            backlog=_BACKLOG,
            timeout_graceful_shutdown=_GRACE,
            h11_max_incomplete_event_size=MOST_HEADER_BYTES,
        )
        config.load()
        return config

    async def _renew(self) -> None:
        """Follow the files of the certificates."""
        told_errors: set[str] = set()
        while True:
            await asyncio.sleep(_LOOK)
            errors = dict.fromkeys(filter(None, map(_error_of_look, self._contexts)))
            for error in errors.keys() - told_errors:
                self._say(f"the certificate from before is still served: {error}")
            told_errors = set(errors)


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
        return HostNames([_LOOPBACK_NAMES]) if ip_address(listening.getsockname()[0]).is_loopback else ANY_HOST
    try:
        return HostNames(patterns.split(","))
    except re.error as error:
        raise UsageError(f'--accept-hosts: "{patterns}" is not a list of regular expressions: {error}') from None


def _error_of_look(context: _RenewedContext) -> str:
    try:
        context.look()
    except SourceError as error:
        return str(error)
    return ""


def _context(files: TlsFiles) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(files.certificate, files.key, _no_pass_phrase)
        if files.client_authority:
            context.load_verify_locations(files.client_authority)
            context.verify_mode = ssl.CERT_REQUIRED
            # A session that is resumed needs no certificate of the present authority. Python can prevent that only so.
            context.minimum_version = ssl.TLSVersion.TLSv1_3
            context.num_tickets = 0
    except (OSError, ssl.SSLError) as error:
        raise SourceError(_unusable(files, error)) from None
    return context


def _no_pass_phrase() -> str:
    """Refuse a key with a pass phrase, for which OpenSSL would wait at the terminal.

    Raises:
        SourceError: Always.
    """
    raise SourceError("--tls-private-key-file is encrypted: only a key without a pass phrase can be used")


def _unusable(files: TlsFiles, error: OSError) -> str:
    reason = (error.strerror or str(error)).lower()
    return f"the certificate cannot be used ({', '.join(files.names)}): {reason}"
