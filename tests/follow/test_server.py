"""The HTTP servers of the monitor: what they answer, and what a slow or hostile client cannot do."""

from __future__ import annotations

import http.client
import select
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization

from kubectl_spread.errors import SourceError, UsageError
from kubectl_spread.follow import server
from kubectl_spread.follow.asgi import HostNames, Pages, Request, ServedPage
from kubectl_spread.follow.server import Port, Servers, TlsFiles, accepted_hosts, listen
from tests.controlplane.certificates import Authority
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


UNUSABLE = "the certificate cannot be used"
PAGES = Pages({"/hello": hello, "/large": large}, {"/slow": hello})


def ignored(_message: str) -> None:
    """Print nothing."""


@contextmanager
def serving(tls: TlsFiles | None = None, say: Callable[[str], None] = ignored, pages: Pages = PAGES) -> Iterator[int]:
    listening = listen("--listen", f"{LOOPBACK}:0")
    servers = Servers([Port(listening, pages, tls)], ended=lambda: None, say=say)
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
    [b"", b"GET /hello HTTP/1.1\r\n", request("/large"), request("/hello") + request("/large")],
    ids=["nothing", "headers without an end", "one request", "two requests"],
)
def test_a_slow_client_is_closed(monkeypatch: pytest.MonkeyPatch, sent: bytes) -> None:
    """One that sends nothing, one that never ends its headers, and some that do not read the answer."""
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
def held(port: int, sent: bytes, addresses: list[str], number: int) -> Iterator[list[socket.socket]]:
    """Hold connections of each address that send something, and then nothing more."""
    with ExitStack() as stack:
        connections = []
        for address in addresses * number:
            connection = socket.create_connection((LOOPBACK, port), PATIENCE, (address, 0))
            connections.append(stack.enter_context(closing(connection)))
            connection.sendall(sent)
        yield connections


def closed(connections: Sequence[socket.socket]) -> list[bool]:
    """Tell of each connection whether the server has closed it; nothing is read of the others."""
    # select() knows no file descriptor above 1,023, and both ends of each connection are in this process.
    poll = select.poll()
    for connection in connections:
        poll.register(connection, select.POLLIN)
    readable = {descriptor for descriptor, _ in poll.poll(0)}
    return [connection.fileno() in readable for connection in connections]


@pytest.mark.parametrize("sent", [b"", b"GET /hello HTTP/1.1\r\n"], ids=["nothing", "headers without an end"])
def test_the_oldest_incomplete_connection_makes_room(port: int, sent: bytes) -> None:
    with held(port, sent, [LOOPBACK], server.MOST_CONNECTIONS) as connections:
        assert answer(port, "/hello")[0] == 200
        assert closed(connections) == [True, *[False] * (server.MOST_CONNECTIONS - 1)]


def test_a_handshake_that_does_not_end_makes_room(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    pair = authority.server("monitor", [LOOPBACK])
    context, bio = ssl.create_default_context(cafile=str(authority.certificate)), ssl.MemoryBIO()
    with suppress(ssl.SSLWantReadError):
        context.wrap_bio(ssl.MemoryBIO(), bio, server_hostname=LOOPBACK).do_handshake()
    hello = bio.read()
    with serving(TlsFiles(str(pair.certificate), str(pair.key))) as port:
        for sent in (b"", hello[:100], hello):
            with held(port, sent, [LOOPBACK], 2 * server.MOST_CONNECTIONS):
                assert status_by(context, port) == 200


def test_a_response_is_sent_while_others_wait(port: int) -> None:
    """Its connection is closed only for want of one without a whole request."""
    with connected(port, request("/large")) as reading:
        assert reading.recv(1 << 10).startswith(b"HTTP/1.1 200")
        with held(port, b"", [LOOPBACK], 2 * server.MOST_CONNECTIONS):
            assert len(received(reading)) > len(LARGE) - (1 << 10)


@pytest.mark.parametrize("sent", [b"", request("/large")], ids=["nothing", "a request without reading"])
def test_slow_addresses_do_not_keep_another_out(port: int, sent: bytes) -> None:
    """They connect again as soon as they are dropped."""
    stop = threading.Event()

    def connect_again(address: str) -> None:
        while not stop.is_set():
            with held(port, sent, [address], 4) as connections:
                while not stop.is_set() and not any(closed(connections)[:1]):
                    time.sleep(0.01)

    with ThreadPoolExecutor() as pool:
        slow = [pool.submit(connect_again, f"127.0.0.{number}") for number in range(2, 12)]
        try:
            time.sleep(0.5)
            assert [answer(port, "/hello")[0] for _ in range(5)] == [200] * 5
        finally:
            stop.set()
        for each in slow:
            each.result()


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
    servers = Servers([Port(listening, PAGES, None)], ended.set, say=ignored)
    servers.start()
    assert ended.wait(PATIENCE)
    with pytest.raises(SourceError, match="the HTTP server failed"):
        servers.stop()


def test_certificates_are_loaded_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "_LOOK", 0.05)
    certificate, key = tmp_path / "tls.crt", tmp_path / "tls.key"

    def write(authority: Authority) -> None:
        pair = authority.server("monitor", [LOOPBACK])
        key.write_bytes(Path(pair.key).read_bytes())
        certificate.write_bytes(Path(pair.certificate).read_bytes())

    first, second = Authority(tmp_path / "first"), Authority(tmp_path / "second")
    write(first)
    with serving(TlsFiles(str(certificate), str(key))) as port:
        assert trusts(port, first)
        write(second)
        deadline = time.monotonic() + PATIENCE
        while not trusts(port, second) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert trusts(port, second)


def trusts(port: int, authority: Authority) -> bool:
    try:
        return status_by(ssl.create_default_context(cafile=str(authority.certificate)), port) == 200
    except ssl.SSLCertVerificationError:
        return False


def status_by(context: ssl.SSLContext, port: int) -> int:
    with closing(http.client.HTTPSConnection(LOOPBACK, port, timeout=PATIENCE, context=context)) as connection:
        connection.request("GET", "/hello")
        return connection.getresponse().status


def test_a_certificate_that_does_not_fit_the_key_is_not_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A writer may replace one file after the other."""
    monkeypatch.setattr(server, "_LOOK", 0.05)
    authority = Authority(tmp_path)
    pair, other = authority.server("monitor", [LOOPBACK]), authority.server("other", [LOOPBACK])
    with serving(TlsFiles(str(pair.certificate), str(pair.key))) as port:
        pair.certificate.write_bytes(other.certificate.read_bytes())
        time.sleep(0.5)
        assert trusts(port, authority)
        pair.key.write_bytes(other.key.read_bytes())
        time.sleep(0.5)
        assert trusts(port, authority)


def test_files_that_cannot_be_loaded_again_are_told_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The certificate from before is served until it expires, so somebody has to know."""
    monkeypatch.setattr(server, "_LOOK", 0.05)
    authority = Authority(tmp_path)
    pair = authority.server("monitor", [LOOPBACK])
    content = pair.certificate.read_bytes()
    said = list[str]()

    def wait_for(number: int) -> None:
        deadline = time.monotonic() + PATIENCE
        while len(said) < number and time.monotonic() < deadline:
            time.sleep(0.05)

    with serving(TlsFiles(str(pair.certificate), str(pair.key)), said.append) as port:
        pair.certificate.unlink()
        wait_for(1)
        time.sleep(0.5)
        pair.certificate.write_text("nothing", encoding="utf-8")
        wait_for(2)
        pair.certificate.write_bytes(content)
        assert trusts(port, authority)
    files = f"({pair.certificate}, {pair.key})"
    assert said[0] == f"the certificate from before is still served: {UNUSABLE} {files}: no such file or directory"
    assert [line.partition(": ")[2].startswith(UNUSABLE) for line in said] == [True, True]


def test_a_key_with_a_pass_phrase_is_refused(tmp_path: Path) -> None:
    """OpenSSL would ask for it at the terminal, and no request would be answered meanwhile."""
    pair = Authority(tmp_path).server("monitor", [LOOPBACK])
    key = serialization.load_pem_private_key(pair.key.read_bytes(), None)
    encryption = serialization.BestAvailableEncryption(b"secret")
    forms = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    pair.key.write_bytes(key.private_bytes(*forms, encryption))
    files = TlsFiles(str(pair.certificate), str(pair.key))
    with closing(listen("--listen", f"{LOOPBACK}:0")) as listening, pytest.raises(SourceError, match="pass phrase"):
        Servers([Port(listening, PAGES, files)], ended=lambda: None, say=ignored)


def test_only_clients_with_a_certificate_are_answered(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    pair, client = authority.server("monitor", [LOOPBACK]), authority.client("client", "prometheus")
    files = TlsFiles(str(pair.certificate), str(pair.key), str(authority.certificate))
    with serving(files) as port:
        context = ssl.create_default_context(cafile=str(authority.certificate))
        with pytest.raises((ssl.SSLError, ConnectionError)):
            status_by(context, port)
        context.load_cert_chain(client.certificate, client.key)
        assert status_by(context, port) == 200
    with serving(files.without_clients) as port:
        assert trusts(port, authority)


def test_the_authority_of_clients_is_loaded_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Certificates of the former one are refused then."""
    monkeypatch.setattr(server, "_LOOK", 0.05)
    own, before, after = (Authority(tmp_path / name) for name in ("own", "before", "after"))
    pair = own.server("monitor", [LOOPBACK])
    trusted = tmp_path / "clients.crt"
    trusted.write_bytes(before.certificate.read_bytes())

    def client(authority: Authority) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=str(own.certificate))
        certificate = authority.client("client", "prometheus")
        context.load_cert_chain(certificate.certificate, certificate.key)
        return context

    def answers(port: int, context: ssl.SSLContext) -> bool:
        try:
            return status_by(context, port) == 200
        except (ssl.SSLError, ConnectionError):
            return False

    old, new = client(before), client(after)
    with serving(TlsFiles(str(pair.certificate), str(pair.key), str(trusted))) as port:
        assert (answers(port, old), answers(port, new)) == (True, False)
        trusted.write_bytes(after.certificate.read_bytes())
        deadline = time.monotonic() + PATIENCE
        while not answers(port, new) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert (answers(port, old), answers(port, new)) == (False, True)


def test_a_client_with_a_certificate_cannot_resume_a_session(tmp_path: Path) -> None:
    """It could continue after its authority has been replaced, so that TLS 1.2 is refused too."""
    authority = Authority(tmp_path)
    pair, client = authority.server("monitor", [LOOPBACK]), authority.client("client", "prometheus")
    context = ssl.create_default_context(cafile=str(authority.certificate))
    context.load_cert_chain(client.certificate, client.key)
    with serving(TlsFiles(str(pair.certificate), str(pair.key), str(authority.certificate))) as port:
        with closing(context.wrap_socket(connect(port), server_hostname=LOOPBACK)) as first:
            first.sendall(request("/hello"))
            assert first.recv(1 << 10).startswith(b"HTTP/1.1 200")
            assert first.session is None or not first.session.has_ticket
            session = first.session
        with closing(context.wrap_socket(connect(port), server_hostname=LOOPBACK, session=session)) as second:
            assert not second.session_reused
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        with pytest.raises((ssl.SSLError, ConnectionError)):
            status_by(context, port)


def connect(port: int) -> socket.socket:
    return socket.create_connection((LOOPBACK, port), timeout=PATIENCE)


@pytest.mark.parametrize("address", ["8080", "", "host", ":x", ":70000", "a:-1", ":٨"])
def test_an_address_of_another_form_is_refused(address: str) -> None:
    with pytest.raises(UsageError, match=r"--listen: .* is not HOST:PORT or :PORT"):
        listen("--listen", address)


def test_an_address_in_use_is_an_error() -> None:
    with closing(listen("--listen", f"{LOOPBACK}:0")) as taken:
        address = f"{LOOPBACK}:{taken.getsockname()[1]}"
        with pytest.raises(SourceError, match=f"--telemetry: cannot listen at {address}: address already in use"):
            listen("--telemetry", address)


def test_a_certificate_that_cannot_be_used_is_an_error(tmp_path: Path) -> None:
    broken = tmp_path / "tls.crt"
    broken.write_text("nothing", encoding="utf-8")
    with closing(listen("--listen", f"{LOOPBACK}:0")) as listening, pytest.raises(SourceError, match=r"tls\.crt"):
        Servers([Port(listening, PAGES, TlsFiles(str(broken), str(broken)))], ended=lambda: None, say=ignored)
