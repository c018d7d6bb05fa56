"""The pages of the monitor: the metrics, the report, and whether it is ready."""

from __future__ import annotations

import gzip
import threading
import time
from collections.abc import Callable
from typing import Final, TypeAlias

from prometheus_client.exposition import choose_encoder, gzip_accepted

from kubectl_spread.app.monitoring.answers import Answers
from kubectl_spread.app.monitoring.asgi import Handler, Pages, Request, ServedPage, message
from kubectl_spread.app.monitoring.monitor import Published
from kubectl_spread.app.monitoring.telemetry import Telemetry
from kubectl_spread.render import html, structured
from kubectl_spread.report.model import Report

_OPENMETRICS: Final = "application/openmetrics-text; version=1.0.0; charset=utf-8"
_TEXT: Final = "text/plain; version=0.0.4; charset=utf-8"
_REST: Final = 10.0
"""A document is rendered again after this many times the time that rendering took, so that its readers leave time to
evaluate."""
_VARY: Final = {"vary": "accept, accept-encoding"}
_GZIP: Final = {"content-encoding": "gzip"}
State: TypeAlias = Callable[[], Published | None]
"""Returns the current state; None if there is none."""


class _Document:
    """A document about the current state; it is rendered when somebody asks, and not again at once."""

    _of: Published | None
    _body: bytes
    _compressed: bytes
    _lasts_until: float

    def __init__(self, current: State, render: Callable[[Report], str], content_type: str) -> None:
        self._current = current
        self._render = render
        self._content_type = content_type
        self._lock = threading.Lock()
        self._forget()

    def page(self, request: Request) -> ServedPage:
        """Return the document; 503 where there is no current state."""
        with self._lock:
            state = self._current()
            if state is None:
                self._forget()
                return _unready()
            if state is not self._of and time.monotonic() >= self._lasts_until:
                self._take(state)
            if not gzip_accepted(request.accept_encoding):
                return ServedPage(200, self._content_type, [self._body], _VARY)
            self._compressed = self._compressed or gzip.compress(self._body, compresslevel=1)
            return ServedPage(200, self._content_type, [self._compressed], {**_VARY, **_GZIP})

    def _take(self, state: Published) -> None:
        began = time.monotonic()
        # The old document is forgotten first: that of a large cluster has tens of megabytes.
        self._forget()
        self._of, self._body = state, self._render(state.report()).encode()
        ended = time.monotonic()
        self._lasts_until = min(ended + _REST * (ended - began), state.expires_at)

    def _forget(self) -> None:
        self._of = None
        self._body = self._compressed = b""
        self._lasts_until = 0.0


def main_pages(current: State, answers: Answers) -> Pages:
    """Return the pages about the cluster."""

    def metrics(request: Request) -> ServedPage:
        state = current()
        if state is None:
            return _unready()
        openmetrics = choose_encoder(request.accept)[1].startswith("application/openmetrics-text")
        compressed = gzip_accepted(request.accept_encoding)
        body = (state.metrics.compressed if compressed else state.metrics.plain)(openmetrics=openmetrics)
        headers = {**_VARY, **(_GZIP if compressed else {})}
        return ServedPage(200, _OPENMETRICS if openmetrics else _TEXT, body, headers)

    documents = {
        "/": _Document(current, html.page, "text/html; charset=utf-8"),
        # Indented it would be twice as large.
        "/report.json": _Document(current, structured.json_line, "application/json"),
    }
    return Pages(
        {"/metrics": metrics, **_health(current)},
        {path: document.page for path, document in documents.items()},
        answers,
    )


def telemetry_pages(current: State, telemetry: Telemetry, answers: Answers) -> Pages:
    """Return the pages about the monitor itself."""

    def metrics(request: Request) -> ServedPage:
        body, content_type = telemetry.page(request.accept)
        return ServedPage(200, content_type, [body])

    return Pages({"/metrics": metrics, **_health(current)}, {}, answers)


def _health(current: State) -> dict[str, Handler]:
    return {
        "/livez": lambda _: message(200, "ok"),
        "/readyz": lambda _: message(200, "ok") if current() else _unready(),
    }


def _unready() -> ServedPage:
    return message(503, "no current state: nothing was read yet, or the state is older than --max-age")
