"""A server on loopback that writes down who asks for what, for credentials that no apiserver would take."""

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
"""What the user agent of the plugin begins with; kubectl's own differs between its builds."""
_OF_CREDENTIALS = ("Authorization", "Impersonate-")


@dataclass(frozen=True)
class Request:
    """One request.

    Attributes:
        target: The path and the query.
        headers: Names as they were sent, in their order.
        certificate: The common name of the client's certificate; "": it sent none.
        server_name: The name that the client asked for in TLS; "": none, as for an IP address.
    """

    target: str
    headers: tuple[tuple[str, str], ...]
    certificate: str
    server_name: str

    @property
    def by_plugin(self) -> bool:
        """Whether the plugin sent it."""
        return self.header("User-Agent").startswith(PLUGIN)

    def header(self, name: str) -> str:
        """Return the value of a header; "": it was not sent."""
        return next((value for header, value in self.headers if header.lower() == name.lower()), "")

    @property
    def who(self) -> dict[str, Any]:
        """What says who asks: headers in the canonical form of their names, the certificate, the server's name."""
        named = [(name.title(), value) for name, value in self.headers]
        credentials = sorted((name, value) for name, value in named if name.startswith(_OF_CREDENTIALS))
        return {"headers": credentials, "certificate": self.certificate, "server name": self.server_name}


@dataclass
class Recorder:
    """What was asked, and how it is answered: with 403 unless a test says something else."""

    directory: Path
    authority: Authority
    requests: list[Request] = field(default_factory=list)
    port: int = 0
    tls: bool = True
    answer: Callable[[Request], int] = lambda _: 403

    @property
    def url(self) -> str:
        """The address, by IP."""
        return f"{'https' if self.tls else 'http'}://{LOOPBACK}:{self.port}"


def body(status: int, target: str) -> bytes:
    """Return what an apiserver would say next to a status."""
    reason = {401: "Unauthorized", 403: "Forbidden"}.get(status, "InternalError")
    message = "Unauthorized" if status == 401 else f'forbidden: User "nobody" cannot get path "{target}"'
    document = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "message": message}
    return json.dumps({**document, "code": status}).encode()


@contextmanager
def record(directory: Path, *names: str, tls: bool = True, authority: Authority | None = None) -> Iterator[Recorder]:
    """Run a server with a certificate for loopback and for other names; it asks for client certificates."""
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
    """Return the common name of the certificate that the client sent; "": none."""
    if not isinstance(connection, ssl.SSLSocket):
        return ""
    certificate: Mapping[str, Any] = connection.getpeercert() or {}
    parts = [part for group in certificate.get("subject", ()) for part in group]
    return str(dict(parts).get("commonName", ""))
