"""The pages of the monitor: the metrics, the report, and whether it is ready."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Callable
from typing import Final, TypeAlias

from prometheus_client.exposition import choose_encoder, gzip_accepted

from kubectl_spread.follow.asgi import ANY_HOST, Handler, HostNames, Pages, Request, ServedPage, message
from kubectl_spread.follow.monitor import Published
from kubectl_spread.follow.telemetry import Telemetry
from kubectl_spread.render import html, structured
from kubectl_spread.report.model import Report

_OPENMETRICS: Final = "application/openmetrics-text; version=1.0.0; charset=utf-8"
_TEXT: Final = "text/plain; version=0.0.4; charset=utf-8"
_VARY: Final = {"vary": "accept, accept-encoding"}
_GZIP: Final = {"content-encoding": "gzip"}
State: TypeAlias = Callable[[], Published | None]
"""Returns the current state; None if there is none."""


class _Document:
    """A document about the current state, which is rendered when somebody asks for it first."""

    def __init__(self, current: State, render: Callable[[Report], str], content_type: str) -> None:
        self._current = current
        self._render = render
        self._content_type = content_type
        self._lock = threading.Lock()
        self._of: Published | None = None
        self._body = b""

    def page(self, request: Request) -> ServedPage:
        """Return the document; 503 where there is no current state."""
        with self._lock:
            state = self._current()
            if state is not self._of:
                # The old document is forgotten first: that of a large cluster has tens of megabytes.
                self._of, self._body = state, b""
                self._body = b"" if state is None else gzip.compress(self._render(state.report).encode(), 1)
            if state is None:
                return _unready()
            if gzip_accepted(request.accept_encoding):
                return ServedPage(200, self._content_type, self._body, {**_VARY, **_GZIP})
            return ServedPage(200, self._content_type, gzip.decompress(self._body), _VARY)


def main_pages(current: State, hosts: HostNames = ANY_HOST) -> Pages:
    """Return the pages about the cluster, for requests of these hosts."""

    def metrics(request: Request) -> ServedPage:
        state = current()
        if state is None:
            return _unready()
        openmetrics = choose_encoder(request.accept)[1].startswith("application/openmetrics-text")
        content_type = _OPENMETRICS if openmetrics else _TEXT
        if gzip_accepted(request.accept_encoding):
            return ServedPage(200, content_type, state.compressed, {**_VARY, **_GZIP})
        return ServedPage(200, content_type, state.metrics, _VARY)

    documents = {
        "/": _Document(current, html.page, "text/html; charset=utf-8"),
        # Indented it would be twice as large.
        "/report.json": _Document(current, structured.json_line, "application/json"),
    }
    return Pages(
        {"/metrics": metrics, **_health(current)},
        {path: document.page for path, document in documents.items()},
        hosts=hosts,
    )


def telemetry_pages(current: State, telemetry: Telemetry, hosts: HostNames = ANY_HOST) -> Pages:
    """Return the pages about the monitor itself, for requests of these hosts."""

    def metrics(request: Request) -> ServedPage:
        body, content_type = telemetry.page(request.accept)
        return ServedPage(200, content_type, body)

    return Pages({"/metrics": metrics, **_health(current)}, hosts=hosts)


def _health(current: State) -> dict[str, Handler]:
    return {
        "/livez": lambda _: message(200, "ok"),
        "/readyz": lambda _: message(200, "ok") if current() else _unready(),
    }


def _unready() -> ServedPage:
    return message(503, "no current state: nothing was read yet, or the state is older than --max-age")
