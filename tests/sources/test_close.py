"""A connection that is closed wakes the threads that wait for the server, and sends no more requests."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from typing import Final

import pytest

from kubectl_spread.errors import SourceError
from kubectl_spread.sources import exchange
from kubectl_spread.sources.apiserver.cluster import LiveCluster
from kubectl_spread.sources.apiserver.paging import background
from kubectl_spread.sources.apiserver.resources import PODS
from kubectl_spread.sources.apiserver.watch import WatchedCluster
from kubectl_spread.sources.auth.connection import ConnectionFlags
from tests.sources.raw import talking
from tests.sources.server import Reply, connect, serve

HEAD: Final = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
UNFINISHED: Final = {
    "no head": ("http", b""),
    "half a head": ("http", HEAD),
    "half a body": ("http", HEAD + b"Content-Length: 100\r\n\r\n{"),
    "half a body of a connection that is not kept": (
        "http",
        HEAD + b"Connection: close\r\nContent-Length: 100\r\n\r\n{",
    ),
    "no handshake": ("https", b""),
    "half a handshake": ("https", b"\x16\x03\x03\x40\x00"),
}


def stalling(start: bytes, connected: threading.Event) -> Callable[[socket.socket, threading.Event], None]:
    """Return a script that sends the start of an answer, and nothing after it."""

    def script(client: socket.socket, stopped: threading.Event) -> None:
        client.recv(65536)
        client.sendall(start)
        connected.set()
        stopped.wait()

    return script


@pytest.mark.parametrize("name", UNFINISHED)
def test_a_request_in_flight_ends_when_its_connection_is_closed(name: str) -> None:
    scheme, start = UNFINISHED[name]
    connected, notes = threading.Event(), list[str]()
    with talking(stalling(start, connected)) as port:
        cluster = LiveCluster.connect(ConnectionFlags(server=f"{scheme}://127.0.0.1:{port}"), notes.append)
        version = background(cluster.version)
        assert connected.wait(10)
        cluster.close()
        with pytest.raises(SourceError, match="the run has ended"):
            version.result(10)
    assert not notes


def test_a_closed_connection_sends_no_more_requests() -> None:
    with serve(Reply(body=b'{"major": "1", "minor": "37"}')) as server:
        cluster = connect(server)
        cluster.version()
        cluster.close()
        with pytest.raises(SourceError, match="the run has ended"):
            cluster.version()
    assert len(server.requests) == 1


def test_a_watch_ends_when_its_connection_is_closed() -> None:
    watching = threading.Event()
    page = b'{"kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": "7"}, "items": []}'

    def script(client: socket.socket, stopped: threading.Event) -> None:
        if b"watch=true" in client.recv(65536):
            client.sendall(HEAD + b"\r\n")
            watching.set()
            stopped.wait()
        client.sendall(HEAD + b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(page) + page)

    with talking(script) as port:
        cluster = WatchedCluster.connect(ConnectionFlags(server=f"http://127.0.0.1:{port}"))
        cluster.fold(PODS, list[str], lambda _names, _page: None)
        assert watching.wait(10)
        cluster.close()
        with pytest.raises(SourceError, match="the run has ended"):
            cluster.wait(10)


def test_a_socket_that_is_opened_after_the_end_is_shut_down() -> None:
    """A thread may have been inside connect() when the run ended."""
    sockets = exchange.Sockets()
    sockets.shut_down()
    ours, theirs = socket.socketpair()
    with ours, theirs:
        with pytest.raises(ConnectionAbortedError):
            sockets.add(ours)
        assert theirs.recv(1) == b""
