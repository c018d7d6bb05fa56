"""Connections that fail, and credentials that cannot be used, are named in one line."""

from __future__ import annotations

import json
import socket
import ssl
import stat
from base64 import urlsafe_b64encode
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from kubectl_spread.errors import SourceError
from kubectl_spread.sources.apiserver.cluster import LiveCluster
from kubectl_spread.sources.apiserver.paging import background
from kubectl_spread.sources.auth import credentials
from kubectl_spread.sources.auth.connection import ConnectionFlags, Settings
from kubectl_spread.sources.decode.resources import PODS
from tests.controlplane.certificates import Authority
from tests.sources.server import Reply, connect, page, serve

API = {"apiVersion": "client.authentication.k8s.io/v1", "interactiveMode": "Never"}


def free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port: int = listening.getsockname()[1]
        return port


def test_connection_refused() -> None:
    port = free_port()
    with pytest.raises(SourceError) as refused:
        LiveCluster.connect(ConnectionFlags(server=f"http://127.0.0.1:{port}")).version()
    assert str(refused.value) == (
        f"The connection to the server 127.0.0.1:{port} was refused - did you specify the right host or port?"
    )


@pytest.mark.parametrize(
    ("server", "message"),
    [
        ("http://name.invalid", "Unable to connect to the server: dial tcp: lookup name.invalid: no such host"),
        ("http://[", "http://[ is not the address of a server "),
        ("ftp://127.0.0.1", "Unable to connect to the server: "),
    ],
)
def test_servers_that_are_none(server: str, message: str) -> None:
    with pytest.raises(SourceError) as refused:
        LiveCluster.connect(ConnectionFlags(server=server)).version()
    assert str(refused.value).startswith(message)


def test_tls_with_a_server_that_does_not_speak_it() -> None:
    with serve(Reply()) as server, pytest.raises(SourceError) as refused:
        LiveCluster.connect(ConnectionFlags(server=server.url.replace("http", "https"))).version()
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


@pytest.mark.parametrize(
    ("user", "who"),
    [
        ({"token": "t", "username": "a", "password": "b"}, "Bearer t"),
        ({"username": "a", "password": "b", "exec": {"command": "no-such-plugin", **API}}, "Basic YTpi"),
    ],
)
def test_the_first_credentials_count(user: dict[str, Any], who: str) -> None:
    assert credentials.login(Settings({"server": "https://a"}, user, "default")).authorization == who


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
    return {"exec": {"command": "./plugin", **API}}


@pytest.mark.parametrize(
    ("user", "message"),
    [
        pytest.param(
            {"exec": {"command": "no-such-plugin", **API}},
            "Unable to connect to the server: getting credentials: exec: executable no-such-plugin not found",
            id="plugin missing",
        ),
        pytest.param({"auth-provider": {"name": "x"}}, 'no Auth Provider found for name "x"', id="provider"),
        pytest.param({"token": "sec\nret"}, "the bearer token holds characters that cannot be sent", id="token"),
        pytest.param(
            {"tokenFile": "/no/where"}, "error reading /no/where: no such file or directory", id="token file missing"
        ),
        pytest.param(
            {"tokenFile": "/dev/zero"}, "/dev/zero: larger than 16 MiB, the most for", id="token file endless"
        ),
        pytest.param(
            {"client-certificate": "/no/where", "client-key": "/no/where"},
            "Error in configuration: unable to read client-cert /no/where for u due to open /no/where: no such file",
            id="certificate missing",
        ),
        pytest.param(
            {"client-certificate-data": "A", "client-key-data": "A"}, "Error in configuration: ", id="not base64"
        ),
    ],
)
def test_unusable_credentials(tmp_path: Path, user: dict[str, Any], message: str) -> None:
    with pytest.raises(SourceError) as refused:
        LiveCluster.connect(ConnectionFlags(kubeconfig=kubeconfig(tmp_path, user)))
    assert str(refused.value).startswith(message)
    assert "ret" not in str(refused.value).replace("credentials", "")


@pytest.mark.parametrize(
    ("script", "message"),
    [
        pytest.param("echo 'no login' >&2; exit 3", "exec: executable", id="fails"),
        pytest.param("echo secret", "decoding stdout: it is not an ExecCredential", id="says nothing"),
    ],
)
def test_failing_plugins(tmp_path: Path, script: str, message: str, capfd: pytest.CaptureFixture[str]) -> None:
    flags = ConnectionFlags(kubeconfig=kubeconfig(tmp_path, plugin(tmp_path, script)))
    with pytest.raises(SourceError) as refused:
        LiveCluster.connect(flags)
    assert str(refused.value).startswith(f"Unable to connect to the server: getting credentials: {message}")
    assert "\n" not in str(refused.value)
    assert "secret" not in str(refused.value)
    # What the plugin itself says is for the user, who may have to log in.
    assert capfd.readouterr().err == ("no login\n" if "login" in script else "")


def test_plugin(tmp_path: Path) -> None:
    credential = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "kind": "ExecCredential",
        "status": {"token": "secret"},
    }
    flags = ConnectionFlags(kubeconfig=kubeconfig(tmp_path, plugin(tmp_path, f"echo '{json.dumps(credential)}'")))
    with pytest.raises(SourceError, match="was refused"):
        LiveCluster.connect(flags).version()


def test_one_plugin_runs_at_a_time(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Several clusters are read at once, but only one plugin can ask on the terminal."""
    script = f"mkdir {tmp_path}/busy || exit 3; sleep 0.2; rmdir {tmp_path}/busy; exit 4"
    flags = ConnectionFlags(kubeconfig=kubeconfig(tmp_path, plugin(tmp_path, script)))
    for connecting in [background(partial(LiveCluster.connect, flags)) for _ in range(3)]:
        with pytest.raises(SourceError, match="exit code 4"):
            connecting.result()
    assert capfd.readouterr().err == ""


def test_namespace(tmp_path: Path) -> None:
    path = kubeconfig(tmp_path, {})
    assert LiveCluster.connect(ConnectionFlags(kubeconfig=path)).namespace == "default"
    assert LiveCluster.connect(ConnectionFlags(kubeconfig=path, namespace="own")).namespace == "own"


def test_an_issuer_that_is_somebody_else(tmp_path: Path) -> None:
    """Without an authority of its own the issuer's certificate is still verified before it receives anything."""
    pair = Authority(tmp_path / "pki").server("issuer", ["127.0.0.1"])
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.certificate, pair.key)
    with serve(Reply(), tls=context) as server:
        user = {"auth-provider": {"name": "oidc", "config": oidc(server.url)}}
        with pytest.raises(SourceError, match="certificate signed by unknown authority"):
            LiveCluster.connect(ConnectionFlags(kubeconfig=kubeconfig(tmp_path, user)))
    assert server.requests == []


def oidc(issuer: str) -> dict[str, str]:
    """Return what a kubeconfig says of an issuer, with a token that has expired."""
    parts = [{"alg": "none"}, {"exp": 1}, {}]
    token = ".".join(urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts)
    names = ("client-id", "client-secret", "refresh-token")
    return {"idp-issuer-url": issuer, "id-token": token, **dict.fromkeys(names, "secret")}
