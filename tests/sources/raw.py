"""A server that sends scripted bytes, be they HTTP or not."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

Script = Callable[[socket.socket, threading.Event], None]
"""Talks to one client; ends when the event is set."""


def sends(*parts: bytes) -> Script:
    """Read the head of a request, send ``parts``, and hang up."""

    def script(client: socket.socket, _stopped: threading.Event) -> None:
        client.recv(65536)
        for part in parts:
            client.sendall(part)

    return script


def drips(start: bytes, again: bytes, pause: float = 0.05) -> Script:
    """Read the head of a request, send ``start``, and then ``again`` bit by bit, without end."""

    def script(client: socket.socket, stopped: threading.Event) -> None:
        client.recv(65536)
        client.sendall(start)
        while not stopped.wait(pause):
            client.sendall(again)

    return script


@contextmanager
def talking(script: Script) -> Iterator[int]:
    """Run a server on loopback that talks to every client by ``script``; yield its port."""
    stopped = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def talk(client: socket.socket) -> None:
            with client, suppress(OSError):
                script(client, stopped)

        def accept() -> None:
            with suppress(OSError):
                while not stopped.is_set():
                    client, _ = server.accept()
                    threading.Thread(target=talk, args=(client,), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        try:
            yield server.getsockname()[1]
        finally:
            stopped.set()
            server.shutdown(socket.SHUT_RDWR)
