"""What the live source asks an apiserver, and what it says when that goes wrong."""

from __future__ import annotations

import gzip
import json
import os
import socket
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from kubectl_spread.errors import ForbiddenError, NotFoundError, SourceError
from kubectl_spread.kube.model import Pod
from kubectl_spread.sources.answers import ExpiredError, ResourceForbiddenError
from kubectl_spread.sources.cluster import Cluster, ServerVersion
from kubectl_spread.sources.connection import ConnectionFlags
from kubectl_spread.sources.page import Page
from kubectl_spread.sources.resources import NODES, PODS, WORKLOADS
from tests.sources.server import Reply, Server, serve

RECORDED = Path(__file__).parent / "recorded"
PROTOBUF = "application/vnd.kubernetes.protobuf"


@pytest.fixture(autouse=True)
def _no_kubeconfig(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", "/no/where")
    for name in ("KUBERNETES_SERVICE_HOST", "http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY"):
        monkeypatch.delenv(name, raising=False)


def connect(server: Server, **flags: Any) -> Cluster:
    return Cluster.connect(ConnectionFlags(server=server.url, **flags))


def page(*names: str, token: str = "") -> Reply:
    body = {
        "metadata": {"resourceVersion": "7", "continue": token},
        "items": [{"metadata": {"name": name}} for name in names],
    }
    return Reply(body=json.dumps(body).encode())


def status(code: int, reason: str, message: str, **headers: str) -> Reply:
    body = {"kind": "Status", "apiVersion": "v1", "reason": reason, "message": message, "code": code}
    return Reply(code, json.dumps(body).encode(), headers=headers)


def names(pages: Any) -> list[list[str]]:
    return [[found.metadata.name for found in found_page] for found_page in pages]


def test_pages() -> None:
    with serve(page("a", "b", token="t1"), page("c", token="t2"), page()) as server:
        cluster = connect(server, chunk_size=2)
        found = names(cluster.pages(PODS, "team", field_selector="status.phase!=Failed"))
    assert found == [["a", "b"], ["c"], []]
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
    with serve(page()) as server:
        list(connect(server, chunk_size=0).pages(WORKLOADS[0]))
    assert server.requests[0].path == "/apis/apps/v1/deployments"
    assert server.requests[0].query == {}


def test_protobuf_and_gzip() -> None:
    body = gzip.compress((RECORDED / "deployments.pb").read_bytes())
    with serve(Reply(body=body, content_type=PROTOBUF, headers={"Content-Encoding": "gzip"})) as server:
        (deployments,) = connect(server).pages(WORKLOADS[0])
    assert [found.metadata.name for found in deployments] == ["d"]


def fold(cluster: Cluster) -> list[str]:
    def add(found: list[str], pods: Page[Pod]) -> None:
        found.extend(pod.metadata.name for pod in pods)

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
    assert len(server.requests) == 6


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


def test_forbidden_names_verb_and_resource() -> None:
    with serve(status(403, "Forbidden", "no")) as server, pytest.raises(ResourceForbiddenError) as refused:
        list(connect(server).pages(NODES))
    assert (refused.value.verb, refused.value.resource) == ("list", "nodes")


def test_not_found() -> None:
    reply = Reply(404, (RECORDED / "notfound.pb").read_bytes(), PROTOBUF)
    with serve(reply) as server, pytest.raises(NotFoundError) as refused:
        connect(server).get(PODS, "default", "nope")
    assert str(refused.value) == 'Error from server (NotFound): pods "nope" not found'


def free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port: int = listening.getsockname()[1]
        return port


def test_connection_refused() -> None:
    port = free_port()
    with pytest.raises(SourceError) as refused:
        Cluster.connect(ConnectionFlags(server=f"http://127.0.0.1:{port}")).version()
    assert str(refused.value) == (
        f"The connection to the server 127.0.0.1:{port} was refused - did you specify the right host or port?"
    )


@pytest.mark.parametrize(
    ("server", "message"),
    [
        ("http://name.invalid", "Unable to connect to the server: dial tcp: lookup name.invalid: no such host"),
        ("http://[", "Error in configuration: "),
        ("ftp://127.0.0.1", "Unable to connect to the server: "),
    ],
)
def test_servers_that_are_none(server: str, message: str) -> None:
    with pytest.raises(SourceError) as refused:
        Cluster.connect(ConnectionFlags(server=server)).version()
    assert str(refused.value).startswith(message)


def test_tls_with_a_server_that_does_not_speak_it() -> None:
    with serve(Reply()) as server, pytest.raises(SourceError) as refused:
        Cluster.connect(ConnectionFlags(server=server.url.replace("http", "https"))).version()
    assert str(refused.value) == "Unable to connect to the server: http: server gave HTTP response to HTTPS client"


@pytest.mark.parametrize("delay", [pytest.param(5.0, id="no answer")])
def test_timeout(delay: float) -> None:
    with serve(Reply(delay=delay)) as server, pytest.raises(SourceError) as refused:
        connect(server, request_timeout="100ms").version()
    assert str(refused.value) == "Unable to connect to the server: no answer within 0.1s"


def test_impersonation_headers() -> None:
    with serve(page()) as server:
        list(connect(server, as_user="jörg", as_groups=("a", "b"), as_uid="1").pages(PODS))
    headers = [header for header in server.requests[0].headers if header[0].startswith("Impersonate")]
    user = "jörg".encode().decode("latin-1")
    assert headers == [
        ("Impersonate-User", user),
        ("Impersonate-Uid", "1"),
        ("Impersonate-Group", "a"),
        ("Impersonate-Group", "b"),
    ]


def test_no_credentials_without_tls() -> None:
    """As kubectl: nobody on the way shall read the token."""
    with serve(page()) as server:
        list(connect(server, token="secret").pages(PODS))
    assert "Authorization" not in dict(server.requests[0].headers)


def kubeconfig(tmp_path: Path, user: dict[str, Any]) -> str:
    path = tmp_path / "config"
    content = {
        "clusters": [{"name": "c", "cluster": {"server": f"https://127.0.0.1:{free_port()}"}}],
        "users": [{"name": "u", "user": user}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    path.write_text(json.dumps(content))
    return str(path)


def plugin(tmp_path: Path, script: str) -> dict[str, Any]:
    path = tmp_path / "plugin"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return {"exec": {"command": "./plugin", "apiVersion": "client.authentication.k8s.io/v1"}}


@pytest.mark.parametrize(
    ("user", "message"),
    [
        pytest.param(
            {"exec": {"command": "no-such-plugin", "apiVersion": "client.authentication.k8s.io/v1"}},
            "Unable to connect to the server: getting credentials: exec: executable no-such-plugin not found",
            id="plugin missing",
        ),
        pytest.param({"auth-provider": {"name": "gcp"}}, 'no Auth Provider found for name "gcp"', id="provider"),
        pytest.param({"token": "sec\nret"}, "the bearer token holds characters that cannot be sent", id="token"),
        pytest.param(
            {"tokenFile": "/no/where"}, "error reading /no/where: no such file or directory", id="token file missing"
        ),
        pytest.param(
            {"client-certificate": "/no/where", "client-key": "/no/where"},
            "Error in configuration: File does not exist: /no/where",
            id="certificate missing",
        ),
        pytest.param(
            {"client-certificate-data": "A", "client-key-data": "A"}, "Error in configuration: ", id="not base64"
        ),
    ],
)
def test_unusable_credentials(tmp_path: Path, user: dict[str, Any], message: str) -> None:
    with pytest.raises(SourceError) as refused:
        Cluster.connect(ConnectionFlags(kubeconfig=kubeconfig(tmp_path, user)))
    assert str(refused.value).startswith(message)
    assert "ret" not in str(refused.value).replace("credentials", "")


@pytest.mark.parametrize(
    ("script", "message"),
    [
        pytest.param("echo 'no login' >&2; exit 3", "exec: process returned 3. no login", id="fails"),
        pytest.param("echo nothing", "exec: failed to decode process output", id="says nothing"),
    ],
)
def test_failing_plugins(tmp_path: Path, script: str, message: str, capfd: pytest.CaptureFixture[str]) -> None:
    flags = ConnectionFlags(kubeconfig=kubeconfig(tmp_path, plugin(tmp_path, script)))
    with pytest.raises(SourceError) as refused:
        Cluster.connect(flags)
    assert str(refused.value).startswith(f"Unable to connect to the server: getting credentials: {message}")
    assert "\n" not in str(refused.value)
    assert capfd.readouterr().err == ""


def test_plugin(tmp_path: Path) -> None:
    credential = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "kind": "ExecCredential",
        "status": {"token": "secret"},
    }
    flags = ConnectionFlags(kubeconfig=kubeconfig(tmp_path, plugin(tmp_path, f"echo '{json.dumps(credential)}'")))
    with pytest.raises(SourceError, match="was refused"):
        Cluster.connect(flags).version()


def test_namespace(tmp_path: Path) -> None:
    path = kubeconfig(tmp_path, {})
    assert Cluster.connect(ConnectionFlags(kubeconfig=path)).namespace == "default"
    assert Cluster.connect(ConnectionFlags(kubeconfig=path, namespace="own")).namespace == "own"


def test_an_interrupted_program_ends_at_once() -> None:
    """A page on its way does not keep the program from ending."""
    code = (
        "import sys; from kubectl_spread.sources.cluster import *; from kubectl_spread.sources.resources import PODS;"
        "pages = Cluster.connect(ConnectionFlags(server=sys.argv[1])).pages(PODS); next(pages)"
    )
    with serve(page("a", token="t"), Reply(delay=60)) as server:
        started = time.monotonic()
        done = subprocess.run([sys.executable, "-c", code, server.url], check=False, env=os.environ)
    assert done.returncode == 0
    assert time.monotonic() - started < 30
