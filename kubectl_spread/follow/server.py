"""The HTTP servers of the monitor: uvicorn, with limits that keep one client from stopping the others."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import ssl
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from kubectl_spread.errors import SourceError, UsageError
from kubectl_spread.follow.asgi import Pages

MOST_CONNECTIONS: Final = 64
"""The connections of one port; more are closed at once."""
MOST_OF_CLIENT: Final = 16
"""The connections of one address to one port."""
LONGEST_REQUEST: Final = 30.0
"""Seconds from a connection, or from the end of a response, to the end of the next response."""
MOST_HEADER_BYTES: Final = 16 << 10
_GRACE: Final = 2
"""Seconds for responses to end after SIGTERM."""
_SWITCH: Final = 0.0005
"""Seconds after which a thread lets others run; Python's 5 ms make a scrape ten times slower."""
_ANY_PORT: Final = 65535
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


class LimitedConnection(H11Protocol):
    """A connection that is closed if there are too many, or if a request or its response takes too long."""

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Count the connection, and wait for its first request."""
        super().connection_made(transport)
        addresses = [each.client[:1] for each in self.connections if isinstance(each, H11Protocol) and each.client]
        of_client = addresses.count(self.client[:1]) if self.client else 0
        if len(addresses) > MOST_CONNECTIONS or of_client > MOST_OF_CLIENT:
            transport.abort()
        else:
            self._expect()

    def data_received(self, received: bytes) -> None:
        """Take a part of a request."""
        self._expect()
        super().data_received(received)

    def on_response_complete(self) -> None:
        """Take the response as sent, and begin with the next request if it has come already."""
        self._settle()
        super().on_response_complete()
        if not self.cycle.response_complete:
            self._expect()

    def connection_lost(self, exc: Exception | None) -> None:
        """Take the connection as closed."""
        self._settle()
        super().connection_lost(exc)

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


class _RenewedContext:
    """The TLS context of a port, which follows its files: each connection begins with the content of that time."""

    def __init__(self, files: TlsFiles) -> None:
        """Load the files.

        Raises:
            SourceError: A certificate or key cannot be used.
        """
        self._files = files
        self._latest = self.first = _context(files)
        self._loaded_at: tuple[int, ...] = ()
        self.first.sni_callback = self._choose

    def _choose(self, connection: ssl.SSLObject, _name: str | None, _context: ssl.SSLContext) -> None:
        connection.context = self._latest

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
            self._latest = _context(self._files)
            self._loaded_at = changed_at


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
        # A client that sends nonsense must not fill the log.
        logging.getLogger("uvicorn").setLevel(logging.CRITICAL)
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
        tls: dict[str, Any] = {}
        if port.tls is not None:
            renewed = _RenewedContext(port.tls)
            self._contexts.append(renewed)
            tls = {"ssl_certfile": port.tls.certificate, "ssl_context_factory": lambda *_: renewed.first}
        config = uvicorn.Config(
            port.pages,
            loop="asyncio",
            http=LimitedConnection,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            timeout_graceful_shutdown=_GRACE,
            h11_max_incomplete_event_size=MOST_HEADER_BYTES,
            **tls,
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
    host, colon, port = address.rpartition(":")
    if not colon or not port.isascii() or not port.isdigit() or int(port) > _ANY_PORT:
        raise UsageError(f'{option}: "{address}" is not HOST:PORT or :PORT')
    host = host.removeprefix("[").removesuffix("]")
    try:
        if not host and socket.has_dualstack_ipv6():
            return socket.create_server(("", int(port)), family=socket.AF_INET6, dualstack_ipv6=True)
        addresses = socket.getaddrinfo(host or None, int(port), type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        return socket.create_server(addresses[0][4][:2], family=addresses[0][0])
    except OSError as error:
        # Python adds the address to the text of the system.
        reason = os.strerror(error.errno) if error.errno and error.errno > 0 else error.strerror or str(error)
        raise SourceError(f"{option}: cannot listen at {address}: {reason.lower()}") from None


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
