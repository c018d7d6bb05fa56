"""A server on loopback that records requests, for credentials that an apiserver would refuse."""

from __future__ import annotations

import json
import ssl
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

from tests.controlplane.certificates import Authority, KeyPair
from tests.controlplane.processes import LOOPBACK
from tests.loopback import QuietRequests, QuietServer, server_context, serving

PLUGIN = "kubectl-spread/"
"""The beginning of the plugin's user agent; that of kubectl differs between its builds."""
_OF_CREDENTIALS = ("Authorization", "Impersonate-")


@dataclass(frozen=True)
class Request:
    """One request.

    Attributes:
        target: The path and the query.
        headers: The headers in the order of the request.
        certificate: The common name of the client's certificate, or "".
        server_name: The server name in TLS, or "", as for an IP address.
    """

    target: str
    headers: tuple[tuple[str, str], ...]
    certificate: str
    server_name: str

    @property
    def by_plugin(self) -> bool:
        """Whether the plugin sent the request."""
        return self.header("User-Agent").startswith(PLUGIN)

    def header(self, name: str) -> str:
        """Return the value of a header, or "" if it was not sent."""
        return next((value for header, value in self.headers if header.lower() == name.lower()), "")

    @property
    def who(self) -> dict[str, Any]:
        """The credentials: headers with canonical names, the certificate, and the server name."""
        named = [(name.title(), value) for name, value in self.headers]
        credentials = sorted((name, value) for name, value in named if name.startswith(_OF_CREDENTIALS))
        return {"headers": credentials, "certificate": self.certificate, "server name": self.server_name}


@dataclass
class Recorder:
    """The recorded requests, and the status of the answers, which is 403 by default."""

    directory: Path
    authority: Authority
    requests: list[Request] = field(default_factory=list)
    port: int = 0
    tls: bool = True
    answer: Callable[[Request], int] = lambda _: 403

    @property
    def url(self) -> str:
        """The address of the server, with its IP address as the host."""
        return f"{'https' if self.tls else 'http'}://{LOOPBACK}:{self.port}"


def body(status: int, target: str) -> bytes:
    """Return the body that an apiserver would send with a status."""
    reason = {401: "Unauthorized", 403: "Forbidden"}.get(status, "InternalError")
    message = "Unauthorized" if status == 401 else f'forbidden: User "nobody" cannot get path "{target}"'
    document = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "message": message}
    return json.dumps({**document, "code": status}).encode()


@contextmanager
def record(directory: Path, *names: str, tls: bool = True, authority: Authority | None = None) -> Iterator[Recorder]:
    """Run a server with a certificate for loopback and other names, which requests client certificates."""
    recorder = Recorder(directory, authority or Authority(directory / "pki"), tls=tls)

    class Handler(QuietRequests, BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            subject = _common_name(self.connection)
            name = getattr(self.connection, "asked_for", "")
            request = Request(self.path, tuple(self.headers.items()), subject, name)
            recorder.requests.append(request)
            status = recorder.answer(request)
            text = body(status, self.path.partition("?")[0])
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

    pair = recorder.authority.server("recorder", [LOOPBACK, *names])
    with serving(QuietServer(Handler), _context(pair, recorder.authority) if tls else None) as recorder.port:
        yield recorder


def _context(pair: KeyPair, authority: Authority) -> ssl.SSLContext:
    context = server_context(pair)
    context.load_verify_locations(authority.certificate)
    context.verify_mode = ssl.CERT_OPTIONAL

    def record(connection: Any, name: str | None, _: ssl.SSLContext) -> None:
        connection.asked_for = name or ""

    context.sni_callback = record
    return context


def _common_name(connection: Any) -> str:
    """Return the common name of the client's certificate, or ""."""
    if not isinstance(connection, ssl.SSLSocket):
        return ""
    certificate: Mapping[str, Any] = connection.getpeercert() or {}
    parts = [part for group in certificate.get("subject", ()) for part in group]
    return str(dict(parts).get("commonName", ""))
