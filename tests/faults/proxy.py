"""An HTTPS proxy on loopback that forwards requests to a real apiserver, or answers them as a test scripts."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit, urlunsplit

import urllib3

from tests.controlplane.certificates import KeyPair
from tests.controlplane.processes import LOOPBACK
from tests.loopback import QuietRequests, QuietServer, server_context, serving

UNAVAILABLE = (502, b"<html>upstream is gone</html>", "text/html")
_PASSED = frozenset({"Accept", "Authorization", "User-Agent"})


@dataclass(frozen=True)
class Reply:
    """An answer to the client; ``length`` is the Content-Length where it differs from that of the body."""

    status: int
    body: bytes
    content_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)
    length: int | None = None


@dataclass(frozen=True)
class Request:
    """A request of the plugin; ``target`` is the path with its query."""

    target: str
    headers: Mapping[str, str]

    @property
    def resource(self) -> str:
        """The last part of the path, such as ``pods``."""
        return urlsplit(self.target).path.rpartition("/")[2]

    @property
    def token(self) -> str:
        """The continue token, or "" for the first page."""
        return parse_qs(urlsplit(self.target).query).get("continue", [""])[0]

    @property
    def watches(self) -> bool:
        """Whether the answer continues until one side ends it."""
        return "watch" in parse_qs(urlsplit(self.target).query)

    def with_query(self, **values: str) -> str:
        """Return the target with other values in its query."""
        parts = urlsplit(self.target)
        return urlunsplit(parts._replace(query=urlencode({**dict(parse_qsl(parts.query)), **values})))


class Exchange:
    """One request, and the ways to answer it."""

    def __init__(self, proxy: Proxy, handler: BaseHTTPRequestHandler, request: Request, connected: float) -> None:
        """Answer ``request``, of a client that connected at a time of ``time.monotonic``, by ``handler``."""
        self.request = request
        self._connected = connected
        self._proxy = proxy
        self._handler = handler

    def forward(self, target: str = "", **headers: str) -> Reply:
        """Return the real answer to the request, or to one with another target or other headers."""
        passed = {key: value for key, value in self.request.headers.items() if key in _PASSED}
        return self._proxy.ask(target or self.request.target, {**passed, **headers})

    def send_head(self, reply: Reply) -> None:
        """Send the status and the headers."""
        self._wait_to_send()
        self._handler.send_response(reply.status)
        self._handler.send_header("Content-Type", reply.content_type)
        self._handler.send_header("Content-Length", str(len(reply.body) if reply.length is None else reply.length))
        for name, value in reply.headers.items():
            self._handler.send_header(name, value)
        self._handler.end_headers()

    def send_endless_head(self, content_type: str) -> None:
        """Send the headers of an answer that ends with its connection."""
        self._wait_to_send()
        self._handler.send_response(HTTPStatus.OK)
        self._handler.send_header("Content-Type", content_type)
        self._handler.end_headers()
        self._handler.wfile.flush()

    def send_part(self, part: bytes) -> None:
        """Send some of the body."""
        self._wait_to_send()
        self._handler.wfile.write(part)
        self._handler.wfile.flush()

    def send(self, reply: Reply) -> None:
        """Send an answer."""
        self.send_head(reply)
        self.send_part(reply.body)

    @contextmanager
    def opened(self, **query: str) -> Iterator[Any]:
        """Open the real answer to the request with other values in its query."""
        passed = {key: value for key, value in self.request.headers.items() if key in _PASSED}
        with closing(self._proxy.opened(self.request.with_query(**query), passed)) as answer:
            yield answer

    def pass_on(self, target: str = "", until: threading.Event | None = None) -> None:
        """Send the parts of the real answer as they come, until it ends, or until an event is set."""
        passed = {key: value for key, value in self.request.headers.items() if key in _PASSED}
        answer = self._proxy.opened(target or self.request.target, passed)
        self._handler.send_response(answer.status)
        self._handler.send_header("Content-Type", answer.headers.get("Content-Type", ""))
        self._handler.end_headers()
        self._handler.wfile.flush()
        ended = until or threading.Event()
        threading.Thread(target=self._copy, args=(answer, ended), daemon=True).start()
        while not (ended.wait(0.05) or self._proxy.stopped.is_set()):
            pass
        self.hang_up()

    def _copy(self, answer: Any, ended: threading.Event) -> None:
        # Either side may go away.
        with closing(answer), suppress(OSError, ValueError, urllib3.exceptions.HTTPError):
            while part := answer.read1(1 << 16):
                self.send_part(part)
        ended.set()

    def wait(self, seconds: float) -> None:
        """Do nothing for a while, unless the proxy stops."""
        self._proxy.stopped.wait(seconds)

    def _wait_to_send(self) -> None:
        """Wait while nothing is sent on the connection."""
        while self._proxy.keeps_silent(self._connected) and not self._proxy.stopped.wait(0.05):
            pass

    def hang_up(self) -> None:
        """End the connection after this request."""
        self._handler.close_connection = True

    @property
    def socket(self) -> Any:
        """The connection to the client."""
        return self._handler.connection


Step = Callable[[Exchange], None]
"""Answers one request."""


def passed(exchange: Exchange) -> None:
    """Pass a request on."""
    if exchange.request.watches:
        exchange.pass_on()
    else:
        exchange.send(exchange.forward())


class Proxy:
    """Forwards requests; each request for a scripted resource takes one of its steps, until none is left.

    Attributes:
        requests: All requests, in order.
        keeps_alive: Whether a connection is kept for another request.
        swallows: Whether nothing is sent to clients, although the connections stay open.
    """

    def __init__(
        self, upstream: str, authority: Path, pair: KeyPair, choose: Callable[[Request], Step] = lambda _: passed
    ) -> None:
        """Stand before the apiserver at ``upstream``, with a certificate; ``choose`` answers what is not scripted."""
        self.requests: list[Request] = []
        self.keeps_alive = True
        self.swallows = threading.Event()
        self.stopped = threading.Event()
        self.url = ""
        self._dropped = -math.inf
        self._upstream = upstream
        self._choose = choose
        self._steps: dict[str, list[Step]] = {}
        self._lock = threading.Lock()
        self._context = server_context(pair)
        self._pool = urllib3.PoolManager(ca_certs=str(authority), retries=False, maxsize=32)

    def script(self, resource: str, *steps: Step) -> None:
        """Answer the next requests for ``resource``, the last part of their path, with ``steps``."""
        self.add(resource, *steps)
        self.requests.clear()

    def add(self, resource: str, *steps: Step) -> None:
        """Answer the next requests for one more resource with ``steps``."""
        with self._lock:
            self._steps[resource] = list(steps)

    def serve_with(self, pair: KeyPair) -> None:
        """Show another certificate to new connections."""
        self._context.load_cert_chain(pair.certificate, pair.key)

    def requests_for(self, resource: str) -> list[Request]:
        """Return the requests for a resource since it was scripted."""
        return [request for request in self.requests if request.resource == resource]

    def next(self, request: Request) -> Step:
        """Return the step for a request."""
        with self._lock:
            self.requests.append(request)
            steps = self._steps.get(request.resource, [])
            return steps.pop(0) if steps else self._choose(request)

    def drop_connections(self) -> None:
        """Send nothing any more on the present connections, and leave them open."""
        self._dropped = time.monotonic()

    def keeps_silent(self, connected: float) -> bool:
        """Tell whether nothing is sent on a connection since a time of ``time.monotonic``."""
        return self.swallows.is_set() or connected < self._dropped

    def ask(self, target: str, headers: Mapping[str, str]) -> Reply:
        """Return the answer of the apiserver, or 502 if there is none."""
        try:
            answer = self._pool.request("GET", f"{self._upstream}{target}", headers=headers, timeout=60)
        except urllib3.exceptions.HTTPError:
            return Reply(*UNAVAILABLE)
        remaining = {name: answer.headers[name] for name in ("Retry-After",) if name in answer.headers}
        return Reply(answer.status, answer.data, answer.headers.get("Content-Type", ""), remaining)

    def opened(self, target: str, headers: Mapping[str, str]) -> Any:
        """Return an answer of the apiserver that is read part by part."""
        url = f"{self._upstream}{target}"
        return self._pool.request("GET", url, headers=headers, preload_content=False)

    @contextmanager
    def running(self) -> Iterator[Proxy]:
        """Run on a free port of the loopback interface."""
        with serving(QuietServer(_handler(self)), self._context) as port:
            self.url = f"https://{LOOPBACK}:{port}"
            try:
                yield self
            finally:
                self.stopped.set()
                self._pool.clear()


def _handler(proxy: Proxy) -> type[BaseHTTPRequestHandler]:
    class Handler(QuietRequests, BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def setup(self) -> None:
            self.connected = time.monotonic()
            super().setup()

        def do_GET(self) -> None:
            request = Request(self.path, {name.title(): value for name, value in self.headers.items()})
            with suppress(OSError):
                proxy.next(request)(Exchange(proxy, self, request, self.connected))
                self.close_connection |= not proxy.keeps_alive
                return
            self.close_connection = True

    return Handler
