"""What the live source asks an apiserver, and what it says when that goes wrong."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from kubectl_spread.errors import ForbiddenError, NotFoundError, SourceError
from kubectl_spread.kube.api.sparse import DetailedPod
from kubectl_spread.sources.apiserver.cluster import LiveCluster, ServerVersion
from kubectl_spread.sources.apiserver.responses import ExpiredError
from kubectl_spread.sources.apiserver.transport import RETRIES
from kubectl_spread.sources.decode.resources import NODES, PODS, WORKLOADS, Page
from tests.sources.server import Reply, connect, listed, page, serve, status

RECORDED = Path(__file__).parent / "recorded"
PROTOBUF = "application/vnd.kubernetes.protobuf"


def names(pages: Any) -> list[list[str]]:
    return [[pod.metadata.name for pod in pods] for pods in pages]


def test_pages() -> None:
    with serve(page("a", "b", token="t1", namespace="team"), page("c", token="t2", namespace="team"), page()) as server:
        cluster = connect(server, chunk_size=2)
        names_by_page = names(cluster.pages(PODS, "team", field_selector="status.phase!=Failed"))
    assert names_by_page == [["a", "b"], ["c"], []]
    assert [request.path for request in server.requests] == ["/api/v1/namespaces/team/pods"] * 3
    assert [request.query for request in server.requests] == [
        {"limit": ["2"], "fieldSelector": ["status.phase!=Failed"]},
        {"limit": ["2"], "fieldSelector": ["status.phase!=Failed"], "continue": ["t1"]},
        {"limit": ["2"], "fieldSelector": ["status.phase!=Failed"], "continue": ["t2"]},
    ]
    assert dict(server.requests[0].headers)["Accept"] == f"{PROTOBUF},application/json"


def test_pages_asks_for_the_next_page_while_this_one_is_worked_on() -> None:
    with serve(page("a", token="t"), page("b")) as server:
        pages = connect(server).pages(PODS)
        next(pages)
        deadline = time.monotonic() + 5
        while len(server.requests) < 2 and time.monotonic() < deadline:
            time.sleep(0.001)
        assert len(server.requests) == 2
        assert names(pages) == [["b"]]


def test_chunk_size_0_asks_for_everything_at_once() -> None:
    with serve(listed(kind="DeploymentList", version="apps/v1")) as server:
        list(connect(server, chunk_size=0).pages(WORKLOADS[0]))
    assert server.requests[0].path == "/apis/apps/v1/deployments"
    assert server.requests[0].query == {}


def test_protobuf_and_gzip() -> None:
    body = gzip.compress((RECORDED / "deployments.pb").read_bytes())
    with serve(Reply(body=body, content_type=PROTOBUF, headers={"Content-Encoding": "gzip"})) as server:
        (deployments,) = connect(server).pages(WORKLOADS[0])
    assert [deployment.metadata.name for deployment in deployments] == ["d"]


def fold(cluster: LiveCluster) -> list[str]:
    def add(items: list[str], pods: Page[DetailedPod]) -> None:
        items.extend(pod.metadata.name for pod in pods)

    return cluster.fold(PODS, list[str], add)


EXPIRED = status(410, "Expired", "The provided continue parameter is too old")


def test_fold_begins_again_when_the_list_expires() -> None:
    """No pod is counted twice and none is lost."""
    with serve(page("a", token="t"), EXPIRED, page("a", token="u"), page("b")) as server:
        assert fold(connect(server)) == ["a", "b"]


def test_fold_begins_again_only_once() -> None:
    with serve(page("a", token="t"), EXPIRED, page("a", token="u"), EXPIRED) as server, pytest.raises(ExpiredError):
        fold(connect(server))


def test_get() -> None:
    with serve(Reply(body=b'{"metadata": {"name": "p", "labels": null}}')) as server:
        assert connect(server).get(PODS, "team", "p").metadata.name == "p"
    assert server.requests[0].path == "/api/v1/namespaces/team/pods/p"


@pytest.mark.parametrize(
    ("body", "version"),
    [
        (
            {"major": "1", "minor": "37", "emulationMinor": "36", "gitVersion": "v1.37.1"},
            ServerVersion(1, 37, 36, "v1.37.1"),
        ),
        ({"major": "1", "minor": "29+", "gitVersion": "v1.29.1-eks"}, ServerVersion(1, 29, None, "v1.29.1-eks")),
    ],
)
def test_version(body: object, version: ServerVersion) -> None:
    with serve(Reply(body=json.dumps(body).encode())) as server:
        assert connect(server).version() == version


@pytest.mark.parametrize(
    ("git_version", "text"),
    [
        ("v1.37.1", "1.37.1"),
        ("v1.33.5-gke.1201000", "1.33.5-gke.1201000"),
        ("v1.29.1+k3s2", "1.29.1+k3s2"),
        ("1.38.0-beta.0", "1.38.0-beta.0"),
        ("", "1.37"),
        ("v1.37", "1.37"),
        ("v1.37.1 \x1b[31m", "1.37"),
        ("v\u0661.37.1", "1.37"),
    ],
)
def test_the_full_version(git_version: str, text: str) -> None:
    assert ServerVersion(1, 37, None, git_version).text == text


def test_the_uid_of_a_cluster() -> None:
    namespace = {"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "kube-system", "uid": "1b4e28ba"}}
    with serve(Reply(body=json.dumps(namespace).encode())) as server:
        assert connect(server).uid() == "1b4e28ba"
    assert server.requests[0].path == "/api/v1/namespaces/kube-system"


@pytest.mark.parametrize(
    "reply",
    [
        status(403, "Forbidden", "no"),
        status(404, "NotFound", "no such namespace"),
        status(500, "InternalError", "etcd is gone"),
        Reply(200, b"<html>Log in", "text/html"),
    ],
    ids=["forbidden", "not found", "internal error", "a login page"],
)
def test_no_uid(reply: Reply) -> None:
    """Whatever the reason: a report is worth the same without it."""
    with serve(reply) as server:
        assert connect(server).uid() == ""


def test_the_clock_of_the_server() -> None:
    date = {"Date": "Sat, 21 Nov 2026 10:00:00 GMT"}
    with serve(Reply(body=page("a").body, headers=date), status(403, "Forbidden", "no", Date="yesterday")) as server:
        cluster = connect(server)
        assert cluster.now() is None
        list(cluster.pages(PODS))
        first = cluster.now()
        assert cluster.uid() == ""
    assert first is not None
    assert datetime(2026, 11, 21, 10, tzinfo=UTC) <= first < datetime(2026, 11, 21, 10, 1, tzinfo=UTC)


METRICS = b"""\
# TYPE kubernetes_feature_enabled gauge
kubernetes_feature_enabled{name="A",stage="BETA"} 1
kubernetes_feature_enabled{name="B",stage=""} 0
other{name="C"} 1
"""


def test_feature_gates() -> None:
    with serve(Reply(body=METRICS, content_type="text/plain")) as server:
        assert connect(server).feature_gates() == {"A": True, "B": False}
    with serve(status(403, "Forbidden", "no")) as server:
        assert connect(server).feature_gates() is None


def test_retries_when_the_server_asks_for_it() -> None:
    busy = Reply(429, b"Too many requests, please try again later.", "text/plain", {"Retry-After": "0"})
    with serve(busy, status(503, "ServiceUnavailable", "not ready", **{"Retry-After": "0"}), page("a")) as server:
        assert names(connect(server).pages(PODS)) == [["a"]]
    assert len(server.requests) == 3


def test_retries_end() -> None:
    busy = Reply(429, b"Too many requests, please try again later.", "text/plain", {"Retry-After": "0"})
    with serve(busy) as server, pytest.raises(SourceError) as refused:
        list(connect(server).pages(PODS))
    assert str(refused.value) == "Error from server (TooManyRequests): Too many requests, please try again later."
    assert len(server.requests) == 1 + RETRIES


def test_a_pause_beyond_the_timeout_is_not_waited_for() -> None:
    busy = status(504, "Timeout", "too slow", **{"Retry-After": "60"})
    with serve(busy) as server, pytest.raises(SourceError, match=r"^Error from server \(Timeout\): too slow$"):
        connect(server, request_timeout="5s").version()
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("reply", "error", "message"),
    [
        pytest.param(
            Reply(403, (RECORDED / "forbidden.pb").read_bytes(), PROTOBUF),
            ForbiddenError,
            'Error from server (Forbidden): nodes is forbidden: User "alice" cannot list resource "nodes" '
            'in API group "" at the cluster scope',
            id="forbidden, in protobuf",
        ),
        pytest.param(
            status(401, "Unauthorized", "Unauthorized"),
            SourceError,
            "You must be logged in to the server (Unauthorized)",
            id="unauthorized",
        ),
        pytest.param(
            Reply(404, b"404 page not found\n", "text/plain"),
            SourceError,
            'the server doesn\'t have a resource type "nodes"',
            id="unknown resource",
        ),
        pytest.param(
            status(500, "InternalError", "etcd is gone"),
            SourceError,
            "Error from server (InternalError): etcd is gone",
            id="internal error",
        ),
        pytest.param(
            Reply(502, b"<html><body>Bad Gateway", "text/html"),
            SourceError,
            "Error from server: HTTP status 502",
            id="a proxy's page",
        ),
        pytest.param(
            Reply(200, b"<html>Log in", "text/html"),
            SourceError,
            "Server returned an unexpected response: not a Kubernetes object (text/html)",
            id="a login page",
        ),
        pytest.param(
            Reply(200, b"k8s\x00\xff\xff", PROTOBUF),
            SourceError,
            f"Server returned an unexpected response: not a Kubernetes object ({PROTOBUF})",
            id="broken protobuf",
        ),
    ],
)
def test_list_errors(reply: Reply, error: type[Exception], message: str) -> None:
    with serve(reply) as server, pytest.raises(error) as refused:
        list(connect(server).pages(NODES))
    assert str(refused.value) == message


def test_not_found() -> None:
    reply = Reply(404, (RECORDED / "notfound.pb").read_bytes(), PROTOBUF)
    with serve(reply) as server, pytest.raises(NotFoundError) as refused:
        connect(server).get(PODS, "default", "nope")
    assert str(refused.value) == 'Error from server (NotFound): pods "nope" not found'


def test_an_interrupted_program_ends_at_once() -> None:
    """A page on its way does not keep the program from ending."""
    code = (
        "import sys; from kubectl_spread.sources.apiserver.cluster import *;"
        "from kubectl_spread.sources.decode.resources import PODS;"
        "pages = LiveCluster.connect(ConnectionFlags(server=sys.argv[1])).pages(PODS); next(pages)"
    )
    with serve(page("a", token="t"), Reply(delay=60)) as server:
        started = time.monotonic()
        done = subprocess.run([sys.executable, "-c", code, server.url], check=False, env=os.environ)
    assert done.returncode == 0
    assert time.monotonic() - started < 30
