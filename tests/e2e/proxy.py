"""A proxy on loopback that speaks SOCKS5, CONNECT, or CONNECT inside TLS, and resolves names of its own."""

from __future__ import annotations

import socket
import threading
from base64 import b64encode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from socketserver import StreamRequestHandler, ThreadingTCPServer
from typing import Literal

from tests.controlplane.certificates import KeyPair
from tests.controlplane.processes import LOOPBACK
from tests.loopback import server_context, serving

_SOCKS5, _NO_AUTHENTICATION, _PASSWORD, _CONNECT, _NAME = 5, 0, 2, 1, 3
_REFUSED = b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n"


class Proxy:
    """The address of the proxy and its connections.

    Attributes:
        asked: The ``host:port`` of every connection, as the client named it.
        scheme: The scheme of its address.
    """

    def __init__(self, scheme: Literal["http", "https", "socks5"], routes: Mapping[str, int], who: str) -> None:
        """Lead each name of ``routes`` to a port of loopback; ``who``: the user that may, ``name:password`` or ""."""
        self.scheme = scheme
        self.targets: list[str] = []
        self.port = 0
        self.routes = routes
        self.who = who

    @property
    def url(self) -> str:
        """The address of the proxy, without credentials."""
        return f"{self.scheme}://{LOOPBACK}:{self.port}"

    @property
    def url_with_credentials(self) -> str:
        """The address of the proxy, with valid credentials."""
        return f"{self.scheme}://{self.who}@{LOOPBACK}:{self.port}"

    def connect(self, host: str, port: int) -> socket.socket:
        """Connect to the target of a client."""
        self.targets.append(f"{host}:{port}")
        return socket.create_connection((LOOPBACK, self.routes[host]), timeout=10)


@contextmanager
def running(
    scheme: Literal["http", "https", "socks5"],
    routes: Mapping[str, int],
    *,
    who: str = "",
    pair: KeyPair | None = None,
) -> Iterator[Proxy]:
    """Run a proxy; ``pair`` is its certificate where it speaks TLS."""
    proxy = Proxy(scheme, routes, who)

    class Handler(StreamRequestHandler):
        def handle(self) -> None:
            with suppress(OSError, KeyError):
                expected = _socks(self, proxy) if scheme == "socks5" else _http(self, proxy)
                if expected:
                    with expected:
                        _pass_on(self.connection, expected)

    class Server(ThreadingTCPServer):
        daemon_threads = True

        def handle_error(self, request: object, client_address: object) -> None:
            """Print nothing: clients that do not trust the certificate break off."""

    with serving(Server((LOOPBACK, 0), Handler), server_context(pair) if pair else None) as proxy.port:
        yield proxy


def _http(handler: StreamRequestHandler, proxy: Proxy) -> socket.socket | None:
    """Answer CONNECT; return None if the client is refused."""
    _, target, _ = handler.rfile.readline().decode().split()
    headers = {}
    while line := handler.rfile.readline().decode().strip():
        name, _, value = line.partition(":")
        headers[name.lower()] = value.strip()
    expected = f"Basic {b64encode(proxy.who.encode()).decode()}"
    if proxy.who and headers.get("proxy-authorization") != expected:
        handler.wfile.write(_REFUSED)
        return None
    host, _, port = target.rpartition(":")
    connection = proxy.connect(host, int(port))
    handler.wfile.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
    return connection


def _socks(handler: StreamRequestHandler, proxy: Proxy) -> socket.socket | None:
    """Answer a SOCKS5 client (RFC 1928, RFC 1929); return None if it is refused."""
    read, write = handler.rfile.read, handler.wfile.write
    _, number = read(2)
    method = _PASSWORD if proxy.who else _NO_AUTHENTICATION
    if method not in read(number):
        write(bytes([_SOCKS5, 0xFF]))
        return None
    write(bytes([_SOCKS5, method]))
    if proxy.who:
        read(1)
        name, word = (read(read(1)[0]).decode() for _ in range(2))
        refused = f"{name}:{word}" != proxy.who
        write(bytes([1, refused]))
        if refused:
            return None
    _, _, _, kind = read(4)
    host = read(read(1)[0]).decode() if kind == _NAME else socket.inet_ntoa(read(4))
    port = int.from_bytes(read(2))
    expected = proxy.connect(host, port)
    write(bytes([_SOCKS5, 0, 0, 1]) + bytes(6))
    return expected


def _pass_on(client: socket.socket, server: socket.socket) -> None:
    """Pass bytes in both directions until both sides have ended."""
    thread = threading.Thread(target=_copy, args=(client, server), daemon=True)
    thread.start()
    _copy(server, client)
    thread.join(timeout=10)


def _copy(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while part := source.recv(1 << 16):
            target.sendall(part)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)
