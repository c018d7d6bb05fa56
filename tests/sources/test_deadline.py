"""``--request-timeout`` holds for the whole request, although each read has a timeout of its own."""

from __future__ import annotations

import socket
import threading
import time
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from kubectl_spread.errors import SourceError
from kubectl_spread.sources.apiserver import watch
from kubectl_spread.sources.apiserver.cluster import LiveCluster
from kubectl_spread.sources.apiserver.responses import UnauthorizedError
from kubectl_spread.sources.apiserver.watch import WatchedCluster
from kubectl_spread.sources.auth import oidc
from kubectl_spread.sources.auth.connection import ConnectionFlags
from kubectl_spread.sources.decode.resources import PODS
from kubectl_spread.sources.exchange import ConnectionFailedError
from tests.sources.raw import Script, drips, sends, talking
from tests.sources.server import serving
from tests.sources.test_oidc import jwt

OK: Final = b"HTTP/1.1 200 OK\r\n"
VERSION: Final = b'{"major": "1", "minor": "37"}'
CHUNKED: Final = OK + b"Transfer-Encoding: chunked\r\n\r\n"
WHOLE: Final = b"%x\r\n%b\r\n0\r\n" % (len(VERSION), VERSION)


@contextmanager
def in_time(limit: float = 20) -> Iterator[None]:
    """Nothing here takes more than a second or two; without a deadline it would never end."""
    start = time.monotonic()
    yield
    assert time.monotonic() - start < limit


def sends_and_stalls(start: bytes) -> Script:
    def script(client: socket.socket, stopped: threading.Event) -> None:
        client.recv(65536)
        client.sendall(start)
        stopped.wait()

    return script


silent: Final = sends_and_stalls(b"")


SLOW: Final = {
    "nothing": silent,
    "half a status line": sends_and_stalls(b"HTTP/1.1 2"),
    "half a body": sends_and_stalls(OK + b"Content-Length: 100000\r\n\r\n{"),
    "a body bit by bit": drips(OK + b"Content-Length: 100000\r\n\r\n", b"{"),
    "a body until the end of the connection": drips(OK + b"\r\n", b" "),
    "chunks": drips(CHUNKED, b"1\r\n \r\n"),
}


@pytest.mark.parametrize("script", [pytest.param(script, id=name) for name, script in SLOW.items()])
def test_a_request_ends_in_time(script: Script) -> None:
    with talking(script) as port, in_time():
        cluster = LiveCluster.connect(ConnectionFlags(server=f"http://127.0.0.1:{port}", request_timeout="1s"))
        with pytest.raises(SourceError, match="no answer within 1s"):
            cluster.version()


def test_a_retry_without_a_response_in_time_says_what_the_server_had_said() -> None:
    """That a server had too many requests says more than that the time was over while it was asked again."""
    answers = iter([b"HTTP/1.1 429 Too Many Requests\r\nContent-Length: 5\r\nConnection: close\r\n\r\nlater"])

    def script(client: socket.socket, stopped: threading.Event) -> None:
        client.recv(65536)
        client.sendall(next(answers, b""))
        stopped.wait()

    with talking(script) as port, in_time():
        cluster = LiveCluster.connect(ConnectionFlags(server=f"http://127.0.0.1:{port}", request_timeout="2s"))
        with pytest.raises(SourceError, match=r"^Error from server \(TooManyRequests\): later$"):
            cluster.version()


def test_a_server_that_falls_silent_has_only_the_time_that_is_left() -> None:
    def script(client: socket.socket, stopped: threading.Event) -> None:
        client.recv(65536)
        client.sendall(OK + b"Content-Length: 100000\r\n\r\n")
        for _ in range(15):
            time.sleep(0.1)
            client.sendall(b"{")
        stopped.wait()

    with talking(script) as port, in_time(3.2):
        cluster = LiveCluster.connect(ConnectionFlags(server=f"http://127.0.0.1:{port}", request_timeout="2s"))
        with pytest.raises(SourceError, match="no answer within 2s"):
            cluster.version()


def test_the_failure_before_the_last_attempt_is_told() -> None:
    """A retry that is cut off by the end of the time says nothing of why there was one."""
    attempts: list[socket.socket] = []

    def script(client: socket.socket, stopped: threading.Event) -> None:
        attempts.append(client)
        if len(attempts) == 1:
            sends(OK + b"Content-Length: 100\r\n\r\n{")(client, stopped)
        else:
            silent(client, stopped)

    with talking(script) as port, in_time():
        cluster = LiveCluster.connect(ConnectionFlags(server=f"http://127.0.0.1:{port}", request_timeout="2s"))
        with pytest.raises(SourceError, match="Unable to connect to the server: unexpected EOF"):
            cluster.version()
    assert len(attempts) == 2


def test_a_slow_answer_that_comes_in_time_is_read() -> None:
    def script(client: socket.socket, _stopped: threading.Event) -> None:
        client.recv(65536)
        for byte in CHUNKED + WHOLE + b"\r\n":
            client.sendall(bytes([byte]))
            time.sleep(0.001)

    with talking(script) as port:
        cluster = LiveCluster.connect(ConnectionFlags(server=f"http://127.0.0.1:{port}", request_timeout="30s"))
        assert cluster.version().minor == 37


def wait_for_failure(cluster: WatchedCluster) -> None:
    """Wait past changes; after a silence the list is read again."""
    while True:
        cluster.wait(30)
        cluster.take_changes()


def test_a_watch_ends_with_its_window(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bytes without a whole event would keep the displayed report old without end."""
    monkeypatch.setattr(watch, "_LONGEST", 2)
    monkeypatch.setattr(watch, "_SILENCE", 0.5)
    requests: list[bytes] = []
    page = b'{"kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": "7"}, "items": []}'

    def script(client: socket.socket, stopped: threading.Event) -> None:
        requests.append(client.recv(65536).split(b"\r\n")[0])
        if b"watch=true" not in requests[-1]:
            client.sendall(OK + b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(page) + page)
            return
        if sum(b"watch=true" in request for request in requests) > 1:
            # This ends the watch, which would otherwise continue during other tests.
            client.sendall(b"HTTP/1.1 401 Unauthorized\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
            return
        client.sendall(OK + b"Content-Type: application/json\r\n\r\n")
        while not stopped.wait(0.1):
            client.sendall(b"{")

    with talking(script) as port:
        cluster = WatchedCluster.connect(ConnectionFlags(server=f"http://127.0.0.1:{port}"))
        cluster.follow(PODS, lambda pod: pod)
        with pytest.raises(UnauthorizedError):
            wait_for_failure(cluster)
    assert sum(b"watch=true" in request for request in requests) == 2


def test_a_list_on_a_silent_connection_is_requested_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is watched is read again and again, without anybody who could interrupt it."""
    monkeypatch.setattr(watch, "_SILENCE", 0.5)
    attempts: list[socket.socket] = []

    def script(client: socket.socket, stopped: threading.Event) -> None:
        attempts.append(client)
        if len(attempts) == 2:
            silent(client, stopped)
        sends(OK + b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(VERSION) + VERSION)(client, stopped)

    with talking(script) as port, in_time():
        cluster = WatchedCluster.connect(ConnectionFlags(server=f"http://127.0.0.1:{port}"))
        assert cluster.version().minor == 37
        cluster._version = None
        assert cluster.version().minor == 37
    assert len(attempts) == 3


def test_a_watch_whose_head_does_not_come() -> None:
    with talking(silent) as port, in_time():
        cluster = LiveCluster.connect(ConnectionFlags(server=f"http://127.0.0.1:{port}", request_timeout="1s"))
        stream = cluster._transport.stream("/api/v1/pods", {"watch": "true"}, "application/json", 60, 60)
        with pytest.raises(ConnectionFailedError, match="no answer within 1s"), stream:
            pass


def test_an_issuer_ends_in_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(oidc, "_TIMEOUT", 1.0)
    context = serving(tmp_path)

    def script(client: socket.socket, stopped: threading.Event) -> None:
        with context.wrap_socket(client, server_side=True) as secure:
            SLOW["half a body"](secure, stopped)

    with talking(script) as port, in_time():
        config = {
            "idp-issuer-url": f"https://127.0.0.1:{port}",
            "client-id": "c",
            "refresh-token": "r",
            "id-token": jwt(5),
            "idp-certificate-authority-data": b64encode((tmp_path / "pki" / "ca.crt").read_bytes()).decode(),
        }
        with pytest.raises(SourceError, match="no answer within 1s"):
            oidc.id_token(config, {}, lambda _: None)
