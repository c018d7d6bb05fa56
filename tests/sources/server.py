"""A server with scripted answers, for what a real apiserver does only rarely."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from kubectl_spread.sources.apiserver.cluster import LiveCluster
from kubectl_spread.sources.auth.connection import ConnectionFlags
from tests import loopback
from tests.builders import Json
from tests.controlplane.certificates import Authority
from tests.loopback import QuietRequests, QuietServer, server_context


@dataclass(frozen=True)
class Reply:
    """One answer; ``delay`` is in seconds."""

    status: int = 200
    body: bytes = b"{}"
    content_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)
    delay: float = 0


@dataclass(frozen=True)
class Request:
    """What was asked for."""

    method: str
    path: str
    query: dict[str, list[str]]
    headers: list[tuple[str, str]]
    body: str = ""


class Server:
    """Gives ``replies`` one after the other, the last one again and again."""

    def __init__(self, replies: list[Reply]) -> None:
        self.replies = replies
        self.requests: list[Request] = []
        self.stopped = threading.Event()
        self.url = ""

    def next(self, request: Request) -> Reply:
        self.requests.append(request)
        return self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]


@contextmanager
def serve(*replies: Reply, tls: ssl.SSLContext | None = None) -> Iterator[Server]:
    """Run a server on a free port of the loopback interface; ``tls``: its side of TLS, None for plain HTTP."""
    server = Server(list(replies))

    class Handler(QuietRequests, BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.answer("GET")

        def do_POST(self) -> None:
            self.answer("POST")

        def answer(self, method: str) -> None:
            url = urlsplit(self.path)
            body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
            reply = server.next(Request(method, url.path, parse_qs(url.query), self.headers.items(), body))
            server.stopped.wait(reply.delay)
            # Both send a Date, if a test does not.
            (self.send_response_only if "Date" in reply.headers else self.send_response)(reply.status)
            self.send_header("Content-Type", reply.content_type)
            self.send_header("Content-Length", str(len(reply.body)))
            for name, value in reply.headers.items():
                self.send_header(name, value)
            self.end_headers()
            try:
                self.wfile.write(reply.body)
            except OSError:
                # The client did not wait.
                self.close_connection = True

    with loopback.serving(QuietServer(Handler), tls) as port:
        server.url = f"{'https' if tls else 'http'}://127.0.0.1:{port}"
        try:
            yield server
        finally:
            server.stopped.set()


def serving(directory: Path) -> ssl.SSLContext:
    """Return the side of TLS of a server on loopback; its authority is ``pki/ca.crt`` in the directory."""
    return server_context(Authority(directory / "pki").server("server", ["127.0.0.1"]))


def connect(server: Server, **flags: Any) -> LiveCluster:
    return LiveCluster.connect(ConnectionFlags(server=server.url, **flags))


def page(*names: str, token: str = "", remaining: int | None = None, namespace: str = "") -> Reply:
    pods = ({"metadata": {"name": name, "namespace": namespace}, "spec": {}} for name in names)
    return listed(*pods, token=token, remaining=remaining)


def listed(
    *objects: Json, kind: str = "PodList", version: str = "v1", token: str = "", remaining: int | None = None
) -> Reply:
    metadata: Json = {"resourceVersion": "7", "continue": token}
    if remaining is not None:
        metadata["remainingItemCount"] = remaining
    body = {"kind": kind, "apiVersion": version, "metadata": metadata, "items": list(objects)}
    return Reply(body=json.dumps(body).encode())


def status(code: int, reason: str, message: str, **headers: str) -> Reply:
    body = {"kind": "Status", "apiVersion": "v1", "reason": reason, "message": message, "code": code}
    return Reply(code, json.dumps(body).encode(), headers=headers)
