"""Hostile content of a kubeconfig, plugin, issuer or server is one line on stderr and exit status 2."""

from __future__ import annotations

import json
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from tests.builders import Json
from tests.fuzz import exchanges
from tests.hostile.commands import check
from tests.kubeconfigs import config
from tests.sources.server import Reply, serve, serving

NOWHERE: Final = "https://127.0.0.1:1"
API: Final = {"apiVersion": "client.authentication.k8s.io/v1", "interactiveMode": "Never"}
PAIR: Final = {"client-certificate-data": "Yw==", "client-key-data": "aw=="}
DEEP: Final = "[" * 100_000


@pytest.fixture(autouse=True)
def _nothing_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTPS_PROXY", "https_proxy", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(name, raising=False)


def error_line(
    directory: Path, *arguments: str, user: Json | None = None, cluster: Mapping[str, object] | None = None
) -> str:
    """Return the line that ends a check with a kubeconfig of one cluster and one user."""
    path = directory / "config"
    path.write_text(json.dumps(config(NOWHERE, None, user or {}, **(cluster or {}))))
    status, stderr = check("--kubeconfig", str(path), *arguments)
    assert (status, stderr.count("\n")) == (2, 1), stderr
    return stderr


CLUSTERS: Final[dict[str, tuple[dict[str, object], str]]] = {
    "NUL in the authority": (
        {"certificate-authority": "a\0"},
        "a\\x00: a path cannot contain such a character",
    ),
    "NUL in tls-server-name": ({"tls-server-name": "a\0b"}, 'invalid tls-server-name "a\\x00b"'),
    "NUL in the server": ({"server": "https://a\0b"}, "Unable to connect to the server: "),
    "a surrogate in the server": (
        {"server": "https://a\ud800"},
        "config:1: found invalid Unicode character escape code",
    ),
    "tls-server-name": ({"tls-server-name": ".x"}, 'invalid tls-server-name ".x"'),
    "tls-server-name of dots": ({"tls-server-name": "..."}, 'invalid tls-server-name "..."'),
    "proxy-url": ({"proxy-url": "http://a b"}, "the proxy address is invalid"),
    "proxy-url, port": ({"proxy-url": f"http://a:{'9' * 5000}"}, "the proxy address is invalid"),
    "server next to a proxy": (
        {"server": "https://[", "proxy-url": "http://127.0.0.1:1"},
        "https://[ is not the address of a server",
    ),
    "server, port": ({"server": f"https://a:{'9' * 5000}"}, "is not the address of a server"),
    "extensions": ({"extensions": ["x"]}, "clusters[0].cluster.extensions[0]: Expected object, got str"),
    "authority for a plugin": ({"certificate-authority-data": "é"}, "failed to load CA bundle for execProvider"),
    "authority": ({"certificate-authority-data": "AAAA"}, "Unable to connect to the server: "),
}


_FOR_PLUGINS: Final = ("extensions", "authority for a plugin")
"""Errors that matter only where an exec plugin receives the cluster."""


@pytest.mark.parametrize("name", CLUSTERS)
def test_a_faulty_cluster_of_a_kubeconfig_is_one_line(tmp_path: Path, name: str) -> None:
    cluster, words = CLUSTERS[name]
    plugin = {"exec": {**API, "command": "cat", "provideClusterInfo": True}} if name in _FOR_PLUGINS else None
    assert words in error_line(tmp_path, user=plugin, cluster=cluster)


USERS: Final[dict[str, tuple[dict[str, Any], str]]] = {
    "NUL in the certificate": (
        {"client-certificate": "a\0", "client-key": "b"},
        "a\\x00: a path cannot contain such a character",
    ),
    "NUL in the key": (
        {**PAIR, "client-key": "a\0"},
        "a\\x00: a path cannot contain such a character",
    ),
    "NUL in the token's file": ({"tokenFile": "a\0"}, "a\\x00: a path cannot contain such a character"),
    "NUL in a plugin": ({"exec": {**API, "command": "/a\0b"}}, "exec: executable /a\\x00b not found"),
    "NUL in an argument": ({"exec": {**API, "command": "cat", "args": ["\0"]}}, "embedded null byte"),
    "NUL in the environment": (
        {"exec": {**API, "command": "cat", "env": [{"name": "a", "value": "\0"}]}},
        "embedded null byte",
    ),
    "a key that is not PEM": (PAIR, "the client certificate or its key is not PEM"),
}


@pytest.mark.parametrize("name", USERS)
def test_a_faulty_user_of_a_kubeconfig_is_one_line(tmp_path: Path, name: str) -> None:
    user, words = USERS[name]
    assert words in error_line(tmp_path, user=user)


@pytest.mark.parametrize(
    "status",
    [
        pytest.param({"clientCertificateData": "\ud800", "clientKeyData": "k"}, id="surrogate in the certificate"),
        pytest.param({"token": "\ud800"}, id="surrogate in the token"),
        pytest.param({"token": "t", "expirationTimestamp": "0001-01-01T00:00:00+23:59"}, id="the first day"),
        pytest.param({"token": "t", "expirationTimestamp": "9" * 5000}, id="no time"),
        pytest.param({"token": {"a": "secret"}}, id="an object"),
    ],
)
def test_a_faulty_answer_of_a_plugin_is_one_line_without_the_token(tmp_path: Path, status: Json) -> None:
    answer = {"apiVersion": API["apiVersion"], "kind": "ExecCredential", "status": status}
    (tmp_path / "answer").write_text(json.dumps(answer))
    line = error_line(tmp_path, user={"exec": {**API, "command": "cat", "args": [str(tmp_path / "answer")]}})
    assert "secret" not in line


def token(claims: str) -> str:
    """Return an ID token with the text of its claims."""
    return f"e30.{urlsafe_b64encode(claims.encode()).decode().rstrip('=')}.e30"


TOKENS: Final = {
    "10^400": '{"exp": 1' + "0" * 400 + "}",
    "5000 digits": '{"exp": ' + "9" * 5000 + "}",
    "1e400": '{"exp": 1e400}',
    "not a number": '{"exp": NaN}',
    "nested": DEEP,
    "text": '{"exp": "soon"}',
}


@pytest.mark.parametrize("name", TOKENS)
def test_an_id_token_with_an_invalid_expiry_is_refused(tmp_path: Path, name: str) -> None:
    config = {"idp-issuer-url": "https://127.0.0.1:1", "client-id": "c", "id-token": token(TOKENS[name])}
    line = error_line(tmp_path, user={"auth-provider": {"name": "oidc", "config": config}})
    assert "ID Token is not a valid JWT" in line


ISSUERS: Final = {
    "http://[": "the issuer http://[ is not https",
    "https://[": "https://[ is not the address of a server",
    f"https://a:{'9' * 5000}": "is not the address of a server",
    "https://": "Unable to connect to the server: ",
    "https://a b": "Unable to connect to the server: ",
    f"https://{'a' * 64}.x": "label empty or too long",
}


@pytest.mark.parametrize("issuer", ISSUERS)
def test_an_invalid_issuer_is_one_line(tmp_path: Path, issuer: str) -> None:
    config = {"idp-issuer-url": issuer, "client-id": "c", "refresh-token": "r"}
    assert ISSUERS[issuer] in error_line(tmp_path, user={"auth-provider": {"name": "oidc", "config": config}})


def ask_issuer(tmp_path: Path, *replies: Reply) -> tuple[str, list[str]]:
    """Return the line that ends a check, and the paths of the requests to the issuer."""
    with serve(*replies, tls=serving(tmp_path)) as server:
        server.replies = [
            Reply(reply.status, reply.body.replace(b"ISSUER", server.url.encode())) for reply in server.replies
        ]
        config = {
            "idp-issuer-url": server.url,
            "client-id": "c",
            "client-secret": "hunter2",
            "refresh-token": "hunter2",
            "idp-certificate-authority": str(tmp_path / "pki/ca.crt"),
        }
        line = error_line(tmp_path, user={"auth-provider": {"name": "oidc", "config": config}})
        assert "hunter2" not in line
        return line, [request.path for request in server.requests]


@pytest.mark.parametrize(
    "endpoint",
    ["http://127.0.0.1:1/token", "HTTP://127.0.0.1:1", "//127.0.0.1:1", "/token", "ftp://a", "file:///etc/passwd"],
)
def test_a_token_endpoint_without_tls_is_refused(tmp_path: Path, endpoint: str) -> None:
    """The client secret is not sent to any address."""
    line, paths = ask_issuer(tmp_path, Reply(body=json.dumps({"token_endpoint": endpoint}).encode()))
    assert f"the token endpoint {endpoint} is not https" in line
    assert paths == ["/.well-known/openid-configuration"]


def test_a_plain_token_endpoint_gets_no_request(tmp_path: Path) -> None:
    with serve(Reply()) as plain:
        ask_issuer(tmp_path, Reply(body=json.dumps({"token_endpoint": f"{plain.url}/token"}).encode()))
        assert not plain.requests


ENDPOINTS: Final = ("https://[", "https://a\0", "https://\ud800", "https://a b", f"https://a:{'9' * 5000}", "https://")


@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_an_invalid_token_endpoint_is_one_line(tmp_path: Path, endpoint: str) -> None:
    ask_issuer(tmp_path, Reply(body=json.dumps({"token_endpoint": endpoint}).encode()))


@pytest.mark.parametrize("body", [DEEP, '{"token_endpoint": ' + DEEP, "9" * 5000, "\ud800"])
def test_an_invalid_discovery_document_is_one_line(tmp_path: Path, body: str) -> None:
    line, _ = ask_issuer(tmp_path, Reply(body=body.encode("utf-8", "surrogatepass")))
    assert "oidc: failed to query metadata endpoint" in line


@pytest.mark.parametrize("body", [DEEP, json.dumps({"id_token": token(TOKENS["10^400"])}), '{"id_token": 5}'])
def test_a_faulty_answer_of_a_token_endpoint_is_one_line(tmp_path: Path, body: str) -> None:
    ask_issuer(tmp_path, Reply(body=b'{"token_endpoint": "ISSUER/token"}'), Reply(body=body.encode()))


HEAD: Final = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
CHUNKED: Final = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
BODIES: Final = {
    "chunk size below zero": CHUNKED + b"-5\r\n{}\r\n0\r\n\r\n",
    "chunk size of 5000 digits": CHUNKED + b"f" * 5000 + b"\r\n{}",
    "length below zero": HEAD + b"Content-Length: -5\r\n\r\n{}",
    "length of 5000 digits": HEAD + b"Content-Length: " + b"9" * 5000 + b"\r\n\r\n{}",
    "status of 5000 digits": b"HTTP/1.1 " + b"9" * 5000 + b" OK\r\n\r\n",
}


@pytest.mark.parametrize("timeout", ["0", "5s"])
@pytest.mark.parametrize("name", BODIES)
def test_impossible_numbers_in_http_are_one_line(name: str, timeout: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kubectl_spread.sources.apiserver.transport._FIRST_BACKOFF", 0.0001)
    monkeypatch.setenv("KUBECONFIG", "/no/where")
    exchanges.server().body = BODIES[name]
    status, stderr = check("-s", exchanges.server().url, "--request-timeout", timeout)
    assert (status, stderr.count("\n")) == (2, 1), stderr


def test_basic_credentials_are_utf8(tmp_path: Path) -> None:
    """They are sent as kubectl sends them."""
    with serve(Reply(500), tls=serving(tmp_path)) as server:
        error_line(
            tmp_path,
            "--request-timeout=2s",
            user={"username": "jörg", "password": "p"},
            cluster={"server": server.url, "certificate-authority": str(tmp_path / "pki/ca.crt")},
        )
    header = dict(server.requests[0].headers)["authorization"]
    assert header == f"Basic {b64encode('jörg:p'.encode()).decode()}"
