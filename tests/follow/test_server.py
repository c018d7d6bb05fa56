"""The HTTP servers of the monitor: what they answer, and what a slow or hostile client cannot do."""

from __future__ import annotations

import gc
import http.client
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress

import pytest

from kubectl_spread.errors import SourceError, UsageError
from kubectl_spread.follow import server
from kubectl_spread.follow.server import HostNames, Pages, Request, ServedPage, Servers, accepted_hosts, listen
from tests.controlplane.processes import LOOPBACK

PATIENCE = 10.0
LARGE = b"x" * (64 << 20)
"""More than the buffers of a connection hold."""


def hello(request: Request) -> ServedPage:
    return ServedPage(200, "text/plain", b"hello " + request.accept.encode())


def large(_request: Request) -> ServedPage:
    return ServedPage(200, "text/plain", LARGE)


def request(path: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: a\r\n\r\n".encode()


POSTED = request("/large").replace(b"Host", b"Content-Length: 9\r\nHost")
PAGES = Pages({"/hello": hello, "/large": large}, {"/slow": hello})


@contextmanager
def serving(pages: Pages = PAGES) -> Iterator[int]:
    listening = listen("--listen", f"{LOOPBACK}:0")
    servers = Servers({listening: pages}, ended=lambda: None)
    servers.start()
    try:
        yield listening.getsockname()[1]
    finally:
        servers.stop()


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with serving() as port:
        yield port


def answer(port: int, path: str, method: str = "GET", **headers: str) -> tuple[int, bytes, dict[str, str]]:
    with closing(http.client.HTTPConnection(LOOPBACK, port, timeout=PATIENCE)) as connection:
        connection.request(method, path, headers=headers)
        response = connection.getresponse()
        return response.status, response.read(), {name.lower(): text for name, text in response.getheaders()}


@contextmanager
def connected(port: int, sent: bytes = b"") -> Iterator[socket.socket]:
    with closing(socket.create_connection((LOOPBACK, port), timeout=PATIENCE)) as connection:
        connection.sendall(sent)
        yield connection


def received(connection: socket.socket) -> bytes:
    """Return what the server sends until it closes a connection."""
    parts = []
    with suppress(ConnectionError):
        while part := connection.recv(1 << 20):
            parts.append(part)
    return b"".join(parts)


@pytest.mark.parametrize("path", ["/hello", "/slow"])
def test_pages_are_answered(port: int, path: str) -> None:
    status, body, headers = answer(port, path, Accept="a/b")
    assert (status, body) == (200, b"hello a/b")
    assert headers["content-length"] == "9"
    assert "server" not in headers


def test_head_has_no_body(port: int) -> None:
    status, body, headers = answer(port, "/hello", "HEAD")
    assert (status, body, headers["content-length"]) == (200, b"", "6")


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
def test_nothing_can_be_written(port: int, method: str) -> None:
    status, _, headers = answer(port, "/hello", method)
    assert (status, headers["allow"]) == (405, "GET, HEAD")


@pytest.mark.parametrize("path", ["/", "/hello/", "/../etc/passwd", "/%2e%2e/hello"])
def test_other_paths_are_not_found(port: int, path: str) -> None:
    assert answer(port, path)[0] == 404


def test_each_response_closes_its_connection(port: int) -> None:
    """So that its deadline is that of one request."""
    with connected(port, request("/hello") + request("/large")) as connection:
        assert received(connection).endswith(b"hello ")


def test_headers_that_never_end_are_refused(port: int) -> None:
    with connected(port, b"GET /hello HTTP/1.1\r\nHost: a\r\nLong: ") as connection:
        sent = 0
        with suppress(ConnectionError):
            while sent < len(LARGE):
                sent += connection.send(b"x" * 4096)
        assert sent < len(LARGE)
    assert answer(port, "/hello")[0] == 200


@pytest.mark.parametrize(
    "sent",
    [b"\x16\x03\x01\x02\x00", b"GET\r\n\r\n", b"GET /hello HTTP/1.1\r\nHost: a\r\nContent-Length: x", b"\x00" * 100],
)
def test_nonsense_is_refused(port: int, sent: bytes) -> None:
    with connected(port, sent + b"\r\n\r\n") as connection:
        assert received(connection).startswith(b"HTTP/1.1 400 ")
    assert answer(port, "/hello")[0] == 200


@pytest.mark.parametrize(
    "sent",
    [b"", b"GET /hello HTTP/1.1\r\n", request("/large"), POSTED],
    ids=["nothing", "headers without an end", "a request", "a body without an end"],
)
def test_a_slow_client_is_closed(monkeypatch: pytest.MonkeyPatch, sent: bytes) -> None:
    """One that sends nothing, one that never ends its headers, and those that do not read the answer."""
    monkeypatch.setattr(server, "LONGEST_REQUEST", 0.5)
    with serving() as port, connected(port, sent) as connection:
        began = time.monotonic()
        while time.monotonic() < began + 1.0:
            time.sleep(0.1)
            if sent.count(b"\r\n") == 1:
                with suppress(ConnectionError):
                    connection.sendall(b"A: b\r\n")
        assert len(received(connection)) < len(LARGE)
        assert answer(port, "/hello")[0] == 200


@contextmanager
def held(port: int, sent: bytes, number: int) -> Iterator[None]:
    """Hold connections that send something, and then nothing more."""
    with ExitStack() as stack:
        for _ in range(number):
            stack.enter_context(connected(port, sent))
        yield


def test_a_client_that_does_not_read_fills_no_memory_of_the_system(monkeypatch: pytest.MonkeyPatch) -> None:
    """Linux would take 4 MB of the response for it."""
    monkeypatch.setattr(server, "LONGEST_REQUEST", 1.0)
    with serving() as port, closing(socket.socket()) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 << 10)
        connection.settimeout(PATIENCE)
        connection.connect((LOOPBACK, port))
        connection.sendall(request("/large"))
        time.sleep(2.0)
        assert 0 < len(received(connection)) < 1 << 20


def test_slow_clients_do_not_keep_others_out(port: int) -> None:
    with ExitStack() as stack:
        for sent in (b"", b"GET /hello HTTP/1.1\r\n", request("/large")):
            stack.enter_context(held(port, sent, 100))
        assert [answer(port, "/hello")[0] for _ in range(5)] == [200] * 5


def test_a_request_above_the_limit_is_refused_until_slow_clients_are_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "LONGEST_REQUEST", 1.0)
    monkeypatch.setattr(server, "MOST_CONNECTIONS", 8)
    with serving() as port, held(port, b"", 8):
        assert answer(port, "/hello")[0] == 503
        time.sleep(1.5)
        assert answer(port, "/hello")[0] == 200


def test_a_closed_connection_is_not_kept_until_its_deadline(port: int) -> None:
    for _ in range(50):
        answer(port, "/hello")
    gc.collect()
    assert sum(isinstance(each, server._Connection) for each in gc.get_objects()) < 10


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost", 200),
        ("LOCALHOST:8080", 200),
        ("127.0.0.1:8080", 200),
        ("127.1.2.3", 200),
        ("[::1]:8080", 200),
        ("evil.example", 403),
        ("localhost.evil.example", 403),
        ("evil.example:localhost", 403),
        ("127.0.0.1.evil.example:8080", 403),
        ("localhost@evil.example", 403),
        ("10.0.0.1", 403),
        ("[::1", 403),
        ("", 403),
    ],
)
def test_a_loopback_address_answers_to_loopback_names(host: str, status: int) -> None:
    """A web page may point a name of its own there."""
    with closing(listen("--listen", f"{LOOPBACK}:0")) as listening:
        assert answered(accepted_hosts(listening, ""), host) == status


@pytest.mark.parametrize("address", [":0", "0.0.0.0:0"])
def test_other_addresses_answer_to_each_name(address: str) -> None:
    with closing(listen("--listen", address)) as listening:
        assert answered(accepted_hosts(listening, ""), "monitor.shop.svc") == 200


def test_names_may_be_chosen() -> None:
    """A proxy on the same machine passes on the name that its client has asked for."""
    with closing(listen("--listen", f"{LOOPBACK}:0")) as listening:
        hosts = accepted_hosts(listening, r"\.svc$,^localhost$")
        assert [answered(hosts, name) for name in ("a.shop.svc:8443", "localhost", "a.svc.b")] == [200, 200, 403]
        assert answered(accepted_hosts(listening, ".*"), "") == 200
        with pytest.raises(UsageError, match=r'^--accept-hosts: "\*" is not a list of regular expressions: nothing to'):
            accepted_hosts(listening, "*")


def answered(hosts: HostNames, host: str) -> int:
    """Return the status of an answer to a request with a Host header."""
    with serving(pages=Pages({"/hello": hello}, hosts=hosts)) as port:
        return answer(port, "/hello", Host=host)[0]


def test_a_server_that_fails_says_so() -> None:
    ended = threading.Event()
    listening = listen("--listen", f"{LOOPBACK}:0")
    listening.close()
    servers = Servers({listening: PAGES}, ended.set)
    servers.start()
    assert ended.wait(PATIENCE)
    with pytest.raises(SourceError, match="the HTTP server failed"):
        servers.stop()


@pytest.mark.parametrize("address", ["8080", "", "host", ":x", ":70000", "a:-1", ":٨"])
def test_an_address_of_another_form_is_refused(address: str) -> None:
    with pytest.raises(UsageError, match=r"--listen: .* is not HOST:PORT or :PORT"):
        listen("--listen", address)


def test_an_address_in_use_is_an_error() -> None:
    with closing(listen("--listen", f"{LOOPBACK}:0")) as taken:
        address = f"{LOOPBACK}:{taken.getsockname()[1]}"
        with pytest.raises(SourceError, match=f"--telemetry: cannot listen at {address}: address already in use"):
            listen("--telemetry", address)
