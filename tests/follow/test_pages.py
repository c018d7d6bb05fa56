"""The pages of the monitor: what they say about a state, and that an old state is withdrawn."""

from __future__ import annotations

import asyncio
import gzip
import json
import time
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from kubectl_spread.follow.monitor import Published, Telemetry, main_pages, telemetry_pages
from kubectl_spread.follow.server import Pages
from kubectl_spread.render import openmetrics, structured
from kubectl_spread.report.model import Report
from kubectl_spread.sources.apiserver.transport import elapsed
from tests.audits import audit, reported
from tests.builders import constraint, pod_json

LONG = 3600.0
OPENMETRICS = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5"
UNREADY = "no current state: nothing was read yet, or the state is older than --max-age\n"


class Answered(msgspec.Struct):
    status: int
    headers: Mapping[str, str]
    body: bytes


class Cluster:
    """A state that a test replaces."""

    def __init__(self) -> None:
        self.published: Published | None = None
        self.pages = main_pages(self.current)

    def publish(self, *names: str, lasts: float = LONG) -> None:
        report = reported(audit(*(pod_json(name, constraints=[constraint()]) for name in names)))
        metrics = openmetrics.text(report, ()).encode()
        self.published = Published(report, metrics, gzip.compress(metrics), elapsed() + lasts)

    def current(self) -> Published | None:
        return self.published if self.published and elapsed() < self.published.expires_at else None

    def get(self, path: str, **headers: str) -> Answered:
        return get(self.pages, path, **headers)


def get(pages: Pages, path: str, **headers: str) -> Answered:
    sent: list[dict[str, Any]] = []

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    async def receive() -> dict[str, Any]:
        return {}

    raw = [(name.replace("_", "-").encode(), text.encode()) for name, text in headers.items()]
    asyncio.run(pages({"path": path, "method": "GET", "headers": raw}, receive, send))
    start, *parts = sent
    names = {name.decode(): text.decode() for name, text in start["headers"]}
    return Answered(start["status"], names, b"".join(part.get("body", b"") for part in parts))


@pytest.mark.parametrize("path", ["/metrics", "/", "/report.json", "/readyz"])
def test_without_a_state_nothing_is_said(path: str) -> None:
    cluster = Cluster()
    answer = cluster.get(path)
    assert (answer.status, answer.body.decode()) == (503, UNREADY)
    cluster.publish("p1")
    assert cluster.get(path).status == 200
    cluster.published = None
    assert cluster.get(path).status == 503


def test_it_lives_without_a_state() -> None:
    assert Cluster().get("/livez").status == 200
    assert get(telemetry_pages(lambda: None, Telemetry()), "/livez").status == 200


@pytest.mark.parametrize(
    ("accept", "content_type"),
    [
        ("", "text/plain; version=0.0.4; charset=utf-8"),
        ("*/*", "text/plain; version=0.0.4; charset=utf-8"),
        ("text/plain;version=0.0.4", "text/plain; version=0.0.4; charset=utf-8"),
        (OPENMETRICS, "application/openmetrics-text; version=1.0.0; charset=utf-8"),
    ],
)
def test_a_scraper_chooses_the_format(accept: str, content_type: str) -> None:
    cluster = Cluster()
    cluster.publish("p1")
    plain, compressed = (
        cluster.get("/metrics", accept=accept),
        cluster.get("/metrics", accept=accept, accept_encoding="gzip"),
    )
    assert plain.headers["content-type"] == compressed.headers["content-type"] == content_type
    assert gzip.decompress(compressed.body) == plain.body
    assert plain.body.endswith(b"# EOF\n")
    assert b"kube_spread_evaluated_pods 1\n" in plain.body


def test_a_document_is_that_of_the_current_state() -> None:
    cluster = Cluster()
    cluster.publish("p1")
    first = cluster.get("/report.json", accept_encoding="gzip")
    assert json.loads(gzip.decompress(first.body))["summary"]["pods"] == 1
    assert "p1" in cluster.get("/").body.decode()


def test_a_document_is_rendered_once_for_each_state(monkeypatch: pytest.MonkeyPatch) -> None:
    rendered: list[int] = []
    render = structured.json_line

    def counted(report: Report) -> str:
        rendered.append(report.summary.pods)
        return render(report)

    monkeypatch.setattr(structured, "json_line", counted)
    cluster = Cluster()
    cluster.publish("p1", lasts=0.3)
    for _ in range(2):
        assert json.loads(cluster.get("/report.json").body)["summary"]["pods"] == 1
    time.sleep(0.4)
    assert cluster.get("/report.json").status == 503
    cluster.publish("p1", "p2")
    assert json.loads(cluster.get("/report.json").body)["summary"]["pods"] == 2
    assert rendered == [1, 2]
