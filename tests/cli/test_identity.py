"""Reports identify the cluster by the kubeconfig, the API server and flags, and have the time of the reading."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest
from click.testing import CliRunner, Result

from kubectl_spread.cli import cli
from kubectl_spread.run import live
from tests.builders import Json, constraint, node_json, pod_json
from tests.sources.server import Reply, Request, Server, listed, serve, status

READ_AT: Final = "2026-11-21T10:00:0"
LISTS: Final[Mapping[str, tuple[str, list[Json]]]] = {
    "pods": ("Pod", [pod_json("web-1", node="a1", constraints=[constraint()])]),
    "nodes": ("Node", [node_json("a1")]),
    "deployments": ("Deployment", []),
    "replicasets": ("ReplicaSet", []),
    "statefulsets": ("StatefulSet", []),
    "daemonsets": ("DaemonSet", []),
    "jobs": ("Job", []),
    "cronjobs": ("CronJob", []),
    "replicationcontrollers": ("ReplicationController", []),
    "events": ("Event", []),
}
KUBE_SYSTEM: Final = {"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "kube-system", "uid": "1b4e28ba"}}


def json_reply(body: Json) -> Reply:
    return Reply(body=json.dumps(body).encode(), headers={"Date": f"Sat, 21 Nov 2026 {READ_AT[11:]}0 GMT"})


class Routed(Server):
    """An API server with one pod; ``kube_system`` is its reply about that namespace."""

    kube_system = json_reply(KUBE_SYSTEM)
    version: Json = {"major": "1", "minor": "37", "gitVersion": "v1.37.1"}  # noqa: RUF012 - tests replace it

    def next(self, request: Request) -> Reply:
        self.requests.append(request)
        resource = request.path.rpartition("/")[2]
        if resource == "version":
            return json_reply(self.version)
        if resource == "kube-system":
            return self.kube_system
        if resource == "namespaces":
            return listed(*({"metadata": {"name": name}} for name in ("default", "shop")), kind="NamespaceList")
        if resource not in LISTS:
            return status(404, "NotFound", "no")
        kind, objects = LISTS[resource]
        group = request.path.split("/")[2:-1]
        version = "/".join(group[:2]) if request.path.startswith("/apis/") else "v1"
        head: Json = {"kind": f"{kind}List", "apiVersion": version, "metadata": {"resourceVersion": "7"}}
        return json_reply({**head, "items": objects})


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Routed]:
    """Run the API server, which is the cluster ``eu-1`` and the context ``prod-eu`` of the kubeconfig."""
    for name in ("KUBERNETES_SERVICE_HOST", "http_proxy", "HTTP_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "config"))
    with serve(Reply()) as plain:
        plain.__class__ = Routed
        assert isinstance(plain, Routed)
        configure(tmp_path / "config", plain)
        yield plain


def configure(path: Path, server: Server, context: str = "prod-eu", name: str = "eu-1") -> None:
    """Write a kubeconfig."""
    content = {
        "clusters": [{"name": name, "cluster": {"server": server.url}}],
        "contexts": [{"name": context, "context": {"cluster": name}}],
        "current-context": context,
    }
    path.write_text(json.dumps(content), encoding="utf-8")


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, arguments)


def cluster(*arguments: str) -> Any:
    """Return the cluster of a report without notes on stderr."""
    outcome = run(*arguments, "-o", "json")
    assert (outcome.exit_code, outcome.stderr) == (0, ""), outcome.output
    return json.loads(outcome.stdout)["cluster"]


def test_a_live_cluster_is_identified(server: Routed) -> None:
    cluster_json = cluster("check")
    assert cluster_json.pop("readAt").startswith(READ_AT)
    fields = ("context", "name", "nameSource", "uid", "serverVersion", "namespace", "nodeCount", "zoneCount", "zones")
    assert [cluster_json[name] for name in fields] == [
        "prod-eu",
        "eu-1",
        "kubeconfig",
        "1b4e28ba",
        "1.37.1",
        "default",
        1,
        1,
        [{"zone": "a", "nodes": 1, "pods": 1}],
    ]
    assert [request.path for request in server.requests].count("/api/v1/namespaces/kube-system") == 1


def test_explain_identifies_the_same_cluster(server: Routed) -> None:
    assert server.url
    cluster_json, explained = cluster("check"), cluster("explain", "pod/web-1")
    names = ("context", "name", "nameSource", "uid", "serverVersion", "namespace")
    assert [cluster_json[name] for name in names] == [explained[name] for name in names]
    assert explained["readAt"].startswith(READ_AT)
    assert f"\nprod-eu  Kubernetes 1.37.1  1 pod, 1 node in 1 zone  {READ_AT}" in run("explain", "pod/web-1").stdout


def test_the_first_line_of_a_table_names_the_cluster(server: Routed) -> None:
    assert server.url
    expected = "Kubernetes 1.37.1  namespace default: 1 pod in 1 workload, 1 node in 1 zone"
    assert run("check").stdout.startswith(f"prod-eu  {expected}  {READ_AT}")
    assert run("check", "--cluster-name", "mine").stdout.startswith(f"mine  {expected}  {READ_AT}")
    assert run("check", "-A").stdout.startswith("prod-eu  Kubernetes 1.37.1  all namespaces: 1 pod in 1 workload")


def test_the_cluster_has_the_name_from_the_flag(server: Routed) -> None:
    assert server.url
    cluster_json = cluster("check", "--cluster-name", "mine")
    assert (cluster_json["context"], cluster_json["name"], cluster_json["nameSource"]) == ("prod-eu", "mine", "flag")


def test_another_server_has_no_name(server: Routed) -> None:
    cluster_json = cluster("check", "--server", server.url)
    assert not {"context", "name", "nameSource"} & set(cluster_json)
    assert (cluster_json["uid"], cluster_json["serverVersion"]) == ("1b4e28ba", "1.37.1")
    assert cluster("check", "--server", server.url, "--cluster-name", "mine")["name"] == "mine"


@pytest.mark.parametrize(
    "reply", [status(403, "Forbidden", "no"), status(404, "NotFound", "no"), Reply(body=b"{}"), Reply(body=b"<html>")]
)
def test_a_uid_that_cannot_be_read_is_left_out(server: Routed, reply: Reply) -> None:
    """Missing permission changes neither the exit status nor stderr."""
    server.kube_system = reply
    cluster_json = cluster("check")
    assert "uid" not in cluster_json
    assert cluster_json["name"] == "eu-1"


def test_a_slow_uid_is_not_waited_for(server: Routed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "UID_TIMEOUT", 0.05)
    server.kube_system = Reply(body=json.dumps(KUBE_SYSTEM).encode(), delay=30)
    assert "uid" not in cluster("check")


def test_the_uid_is_requested_in_parallel_with_the_lists(server: Routed) -> None:
    """The server answers no list before the request for the uid, so that sequential requests would not end."""
    event = threading.Event()
    route = server.next

    def wait(request: Request) -> Reply:
        if request.path.endswith("/kube-system"):
            event.set()
        elif request.path != "/version":
            assert event.wait(20)
        return route(request)

    server.next = wait  # type: ignore[method-assign]
    assert cluster("check")["uid"] == "1b4e28ba"


def test_names_of_a_kubeconfig_are_reported_unchanged_in_json(server: Routed, tmp_path: Path) -> None:
    configure(tmp_path / "config", server, "c\x1b[31m\nevil", "n\u202e<script>")
    cluster_json = cluster("check")
    assert (cluster_json["context"], cluster_json["name"]) == ("c\x1b[31m\nevil", "n\u202e<script>")
    assert run("check").stdout.startswith("c\\x1b[31m\\nevil  Kubernetes 1.37.1  ")


def test_credentials_in_names_are_removed(server: Routed, tmp_path: Path) -> None:
    """Some tools name a cluster by its URL. Names of other tools have slashes and colons too, and stay unchanged."""
    configure(tmp_path / "config", server, "https://jane:secret@eu-1:6443/x", "arn:aws:eks:eu-1:123:cluster/jane@eu")
    cluster_json = cluster("check")
    assert (cluster_json["context"], cluster_json["name"]) == (
        "https://eu-1:6443/x",
        "arn:aws:eks:eu-1:123:cluster/jane@eu",
    )
    assert cluster("check", "--cluster-name", "http://token@c")["name"] == "http://c"


@pytest.fixture
def capture(tmp_path: Path) -> str:
    """Return a file with a pod."""
    path = tmp_path / "pods.json"
    path.write_text(json.dumps(LISTS["pods"][1][0]), encoding="utf-8")
    return str(path)


def test_a_capture_has_the_name_from_the_flag(capture: str) -> None:
    arguments = ("check", "-f", capture, "--server-version", "1.37")
    unknown = {"context", "uid", "readAt", "serverVersion", "namespace"}
    named = cluster(*arguments, "--cluster-name", "prod-eu")
    assert (named["name"], named["nameSource"]) == ("prod-eu", "flag")
    assert not unknown & set(named)
    assert not {*unknown, "name", "nameSource"} & set(cluster(*arguments))
    assert run(*arguments, "--cluster-name", "prod-eu").stdout.startswith("prod-eu  evaluated as Kubernetes 1.37  ")
    assert cluster(*arguments, "-n", "default")["namespace"] == "default"


def test_two_reports_of_a_capture_are_equal(capture: str) -> None:
    for form in ("json", "html", "sarif", "openmetrics", "junit", "markdown", "table"):
        arguments = ("check", "-f", capture, "--server-version", "1.37", "--cluster-name", "x", "-o", form)
        first, second = run(*arguments), run(*arguments)
        assert first.stdout == second.stdout
        assert first.stdout
