"""However slowly a server talks, ``--request-timeout`` holds for the whole request."""

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
from kubectl_spread.sources.apiserver.resources import PODS
from kubectl_spread.sources.apiserver.responses import UnauthorizedError
from kubectl_spread.sources.apiserver.watch import WatchedCluster
from kubectl_spread.sources.auth import oidc
from kubectl_spread.sources.auth.connection import ConnectionFlags
from kubectl_spread.sources.failures import ConnectionFailedError
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


def silent(client: socket.socket, stopped: threading.Event) -> None:
    client.recv(65536)
    stopped.wait()


SLOW: Final = {
    "status line": drips(b"HTTP/1.1 2", b"0"),
    "headers": drips(OK + b"X-Long: ", b"x"),
    "many headers": drips(OK, b"X-More: x\r\n", 0.2),
    "100 Continue": drips(b"", b"HTTP/1.1 100 Continue\r\n\r\n", 0.3),
    "103 Early Hints": drips(b"", b"HTTP/1.1 103 Early Hints\r\n\r\n", 0.3),
    "body": drips(OK + b"Content-Length: 100000\r\n\r\n", b"{"),
    "body until the end": drips(OK + b"\r\n", b" "),
    "sizes of chunks": drips(CHUNKED, b"0"),
    "chunks": drips(CHUNKED, b"1\r\n \r\n"),
    "trailers": drips(CHUNKED + WHOLE, b"X-More: x\r\n"),
    "gzip that unpacks to nothing": drips(
        OK + b"Content-Encoding: gzip\r\n\r\n\x1f\x8b\x08\x08\x00\x00\x00\x00\x00\x03", b"a"
    ),
    "nothing": silent,
}


@pytest.mark.parametrize("script", [pytest.param(script, id=name) for name, script in SLOW.items()])
def test_a_request_ends_in_time(script: Script) -> None:
    with talking(script) as port, in_time():
        cluster = LiveCluster.connect(ConnectionFlags(server=f"http://127.0.0.1:{port}", request_timeout="1s"))
        with pytest.raises(SourceError, match="no answer within 1s"):
            cluster.version()


@pytest.mark.parametrize("script", [pytest.param(script, id=name) for name, script in SLOW.items()])
def test_the_answer_of_a_proxy_ends_in_time(script: Script) -> None:
    with talking(script) as port, in_time():
        flags = ConnectionFlags(
            server="https://127.0.0.2:6443", proxy_url=f"http://127.0.0.1:{port}", request_timeout="1s"
        )
        with pytest.raises(SourceError):
            LiveCluster.connect(flags).version()


@pytest.mark.parametrize("again", [b"", b"\x16"])
def test_a_handshake_ends_in_time(again: bytes) -> None:
    with talking(drips(b"\x16\x03\x03\x40\x00", again)) as port, in_time():
        cluster = LiveCluster.connect(ConnectionFlags(server=f"https://127.0.0.1:{port}", request_timeout="1s"))
        with pytest.raises(SourceError, match="no answer within 1s"):
            cluster.version()


def test_informational_answers_come_to_an_end() -> None:
    """As in Go, whatever the timeout; a few of them do not matter."""
    hints = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
    answer = OK + b"Content-Length: %d\r\n\r\n" % len(VERSION) + VERSION
    with talking(sends(hints * 5 + answer)) as port:
        assert LiveCluster.connect(ConnectionFlags(server=f"http://127.0.0.1:{port}")).version().minor == 37
    with talking(drips(hints, hints, 0.01)) as port, in_time():
        cluster = LiveCluster.connect(ConnectionFlags(server=f"http://127.0.0.1:{port}"))
        with pytest.raises(SourceError, match="too many 1xx informational responses"):
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


@pytest.mark.parametrize("size", [b"-5", b"-0x10", b"zz", b""], ids=repr)
@pytest.mark.parametrize("timeout", ["0", "1s"])
def test_chunks_of_a_size_that_is_none(size: bytes, timeout: str) -> None:
    with talking(sends(CHUNKED + size + b"\r\n" + VERSION)) as port:
        cluster = LiveCluster.connect(ConnectionFlags(server=f"http://127.0.0.1:{port}", request_timeout=timeout))
        with pytest.raises(SourceError, match="Unable to connect to the server"):
            cluster.version()


def wait_for_failure(cluster: WatchedCluster) -> None:
    """Wait past changes; after a silence the list is read again."""
    while cluster.wait(30):
        pass


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
        cluster.fold(PODS, list[str], lambda _names, _page: None)
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
        cluster.forget_version()
        assert cluster.version().minor == 37
    assert len(attempts) == 3


def test_a_watch_whose_head_does_not_come() -> None:
    with talking(SLOW["headers"]) as port, in_time():
        cluster = LiveCluster.connect(ConnectionFlags(server=f"http://127.0.0.1:{port}", request_timeout="1s"))
        stream = cluster._transport.stream("/api/v1/pods", {"watch": "true"}, "application/json", 60, 60)
        with pytest.raises(ConnectionFailedError, match="no answer within 1s"), stream:
            pass


def test_an_issuer_ends_in_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(oidc, "_TIMEOUT", 1.0)
    context = serving(tmp_path)

    def script(client: socket.socket, stopped: threading.Event) -> None:
        with context.wrap_socket(client, server_side=True) as secure:
            SLOW["headers"](secure, stopped)

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
