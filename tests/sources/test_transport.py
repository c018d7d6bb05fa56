"""Answers that do not come, or not whole; the same happens before a real apiserver in ``tests/e2e``."""

from __future__ import annotations

import gzip
import json
import socket
import stat
import threading
from pathlib import Path

import pytest

from kubectl_spread.errors import SourceError, SpreadError
from kubectl_spread.kube.api.workloads import Deployment
from kubectl_spread.sources.apiserver import responses, transport
from kubectl_spread.sources.apiserver.cluster import LiveCluster
from kubectl_spread.sources.apiserver.transport import Response
from kubectl_spread.sources.auth.connection import ConnectionFlags
from kubectl_spread.sources.decode.resources import PODS, Resource
from kubectl_spread.sources.exchange import Again, failure
from kubectl_spread.sources.paths import without_query
from tests.sources.raw import talking
from tests.sources.server import Reply, connect, page, serve, serving, status


def listed(cluster: LiveCluster) -> list[str]:
    return [pod.metadata.name for page in cluster.pages(PODS) for pod in page]


@pytest.mark.parametrize("compressed", [False, True], ids=["plain", "gzip"])
@pytest.mark.parametrize("timeout", ["0", "30s"])
def test_a_large_answer_is_read_whole(compressed: bool, timeout: str) -> None:
    body = page(*(f"pod-{number}" for number in range(50_000))).body
    packed = gzip.compress(body) if compressed else body
    headers = {"Content-Encoding": "gzip"} if compressed else {}
    with serve(Reply(body=packed, headers=headers)) as server:
        assert len(listed(connect(server, request_timeout=timeout))) == 50_000


def test_a_large_answer_in_chunks_is_no_bomb() -> None:
    """Nothing counted its bytes where there was no limit of time."""
    part = b"8000\r\n" + b" " * 0x8000 + b"\r\n"
    body = b'{"major": "1", "minor": "37"}'

    def script(client: socket.socket, _stopped: threading.Event) -> None:
        client.recv(65536)
        client.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for _ in range((70 << 20) // 0x8000):
            client.sendall(part)
        client.sendall(b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body))

    with talking(script) as port:
        assert LiveCluster.connect(ConnectionFlags(server=f"http://127.0.0.1:{port}")).version().minor == 37


NOT_UTF_8 = page("?").body.replace(b"?", b"\xff")
DEPLOYMENT: Resource[Deployment] = Resource("apps", "v1", "Deployment", Deployment)
DEPLOYMENTS = (Path(__file__).parent / "recorded" / "deployments.pb").read_bytes()


@pytest.mark.parametrize(
    "body",
    [b"[]", b"k8s\x00", NOT_UTF_8, page("a").body[:-1]],
    ids=["array", "nothing in protobuf", "not UTF-8", "cut off"],
)
def test_what_is_no_list(body: bytes) -> None:
    with serve(Reply(body=body)) as server, pytest.raises(SourceError) as refused:
        connect(server).fold(PODS, list[str], lambda match, pods: match.extend(map(str, pods)))
    expected = "Server returned an unexpected response: not a Kubernetes object (application/json)"
    assert str(refused.value) == f"{expected} (the list of pods is not complete)"


def test_an_object_without_items_is_no_list() -> None:
    with serve(Reply(body=b"{}")) as server, pytest.raises(SourceError) as refused:
        connect(server).fold(PODS, list[str], lambda match, pods: match.extend(map(str, pods)))
    expected = "Server returned an unexpected response: items: is missing (the list of pods is not complete)"
    assert str(refused.value) == expected


@pytest.mark.parametrize("at", range(0, len(DEPLOYMENTS), 3))
def test_broken_protobuf(at: int) -> None:
    """Whatever is broken in it, there is one line or there are objects."""
    body = DEPLOYMENTS[:at] + bytes([DEPLOYMENTS[at] ^ 0xFF]) + DEPLOYMENTS[at + 1 :]
    try:
        deployments = responses.ListDecoder(DEPLOYMENT).page(Response(200, "", body))
        assert all(isinstance(deployment, Deployment) for deployment in deployments)
    except SpreadError as error:
        assert "\n" not in str(error)  # noqa: PT017 - either is right


def test_what_takes_long_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "_WORTH_SAYING", 0.0)
    output: list[str] = []
    with serve(status(503, "", ""), status(503, "", ""), page("a")) as server:
        assert listed(LiveCluster.connect(ConnectionFlags(server=server.url), output.append)) == ["a"]
    assert output == ["The server answers with HTTP status 503; trying again"]


@pytest.mark.parametrize("has_responded", [False, True], ids=["that never answered", "that has answered"])
def test_a_refused_connection_to_a_server(monkeypatch: pytest.MonkeyPatch, has_responded: bool) -> None:
    """An apiserver that restarts is waited for; an address that may be wrong is not."""
    monkeypatch.setattr(transport, "_WORTH_SAYING", 0.0)
    output: list[str] = []
    with serve(Reply(body=b'{"major": "1", "minor": "37"}')) as server:
        cluster = LiveCluster.connect(ConnectionFlags(server=server.url), output.append)
        if has_responded:
            cluster.version()
    with pytest.raises(SourceError, match="was refused"):
        cluster.version()
    assert len(output) == has_responded


def test_a_list_that_is_read_again_is_said() -> None:
    output: list[str] = []
    with serve(page("a", token="t"), status(410, "Expired", "too old"), page("a")) as server:
        cluster = LiveCluster.connect(ConnectionFlags(server=server.url), output.append)
        assert cluster.fold(PODS, list[str], lambda match, pods: match.extend(map(str, pods)))
    assert output == ["Error from server (Expired): too old: the list of pods is read again from its beginning"]


API = "client.authentication.k8s.io/v1"


@pytest.mark.parametrize(("ends", "calls"), [(None, 2), ("2020-01-01T00:00:00Z", 3)])
def test_credentials_are_read_anew_once(tmp_path: Path, ends: str | None, calls: int) -> None:
    """The apiserver's 401 is taken for final only after that; those that have ended are not even tried."""
    value = {"token": "t"} if ends is None else {"token": "t", "expirationTimestamp": ends}
    credential = {"apiVersion": API, "kind": "ExecCredential", "status": value}
    plugin = tmp_path / "plugin"
    plugin.write_text(f"#!/bin/sh\necho >>{tmp_path}/calls\necho '{json.dumps(credential)}'\n")
    plugin.chmod(plugin.stat().st_mode | stat.S_IXUSR)
    with serve(status(401, "Unauthorized", "Unauthorized"), tls=serving(tmp_path)) as server:
        user = {"exec": {"command": str(plugin), "apiVersion": API, "interactiveMode": "Never"}}
        authority = str(tmp_path / "pki" / "ca.crt")
        config = {
            "clusters": [{"name": "c", "cluster": {"server": server.url, "certificate-authority": authority}}],
            "users": [{"name": "u", "user": user}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
            "current-context": "x",
        }
        (tmp_path / "config").write_text(json.dumps(config))
        cluster = LiveCluster.connect(ConnectionFlags(kubeconfig=str(tmp_path / "config")))
        with pytest.raises(SourceError, match="You must be logged in"):
            cluster.version()
    assert len(server.requests) == 2
    assert (tmp_path / "calls").read_text().count("\n") == calls


@pytest.mark.parametrize(
    ("error", "again", "message"),
    [
        (
            ConnectionRefusedError(),
            Again.AFTER_CONTACT,
            "The connection to the server c:1 was refused - did you specify the right host or port?",
        ),
        (TimeoutError(), Again.AFTER_CONTACT, "Unable to connect to the server: no answer within 30s"),
        (ConnectionResetError(104, "Reset"), Again.ALWAYS, "Unable to connect to the server: reset"),
        (OSError("Tunnel to http://me:word@proxy failed"), Again.ALWAYS, "Tunnel to http://proxy failed"),
    ],
)
def test_failure(error: Exception, again: Again, message: str) -> None:
    connection_failure = failure(error, "https://user:word@c:1", 0)
    assert connection_failure.again is again
    assert str(connection_failure).endswith(message)


@pytest.mark.parametrize(
    ("address", "shortened"),
    [
        ("https://me:word@login/path?token=t#more", "https://login/path"),
        ("/login?token=t", "/login"),
        ("https://login/", "https://login/"),
    ],
)
def test_without_query(address: str, shortened: str) -> None:
    assert without_query(address) == shortened


def test_a_closed_connection_sends_no_more_requests() -> None:
    with serve(Reply(body=b'{"major": "1", "minor": "37"}')) as server:
        cluster = connect(server)
        cluster.version()
        cluster.close()
        with pytest.raises(SourceError, match="the run has ended"):
            cluster.version()
    assert len(server.requests) == 1
