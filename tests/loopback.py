"""HTTP and TCP servers of the tests, on free ports of the loopback interface."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from threading import Thread

from tests.controlplane.certificates import KeyPair
from tests.controlplane.processes import LOOPBACK


class QuietRequests:
    """Has a handler of requests print no line for each of them."""

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as the base class calls it
        """Print nothing."""


class QuietServer(ThreadingHTTPServer):
    """Prints no traceback when a client breaks off, which is what several tests are about."""

    def __init__(self, handler: type[BaseHTTPRequestHandler]) -> None:
        """Listen on a free port."""
        super().__init__((LOOPBACK, 0), handler)

    def handle_error(self, request: object, client_address: object) -> None:
        """Print nothing."""


def server_context(pair: KeyPair) -> ssl.SSLContext:
    """Return the server's side of TLS with a certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.certificate, pair.key)
    return context


@contextmanager
def serving(server: TCPServer, tls: ssl.SSLContext | None = None) -> Iterator[int]:
    """Serve in a thread for as long as the ``with`` block lasts, and yield the port."""
    with server:
        if tls:
            # The handshake is left to the thread of the request: a client that breaks it off does not stop the others.
            server.socket = tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        # A server that a cache keeps until the end does not keep the process alive.
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()
