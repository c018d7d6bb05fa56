"""The ID token of an OIDC issuer: sent while it is good, refreshed once it is not."""

from __future__ import annotations

import gc
import json
import ssl
import subprocess
import time
from base64 import b64encode, urlsafe_b64encode
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from kubectl_spread.errors import SourceError
from kubectl_spread.sources import exchange
from kubectl_spread.sources.auth import oidc
from tests.sources.server import Reply, Server, serve, serving


def jwt(lifetime: float) -> str:
    parts = [{"alg": "none"}, {"exp": time.time() + lifetime}, {}]
    return ".".join(urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts)


def config(server: Server, directory: Path, **changes: str) -> dict[str, str]:
    usual = {
        "idp-issuer-url": f"{server.url}/",
        "client-id": "kube/1",
        "client-secret": "word",
        "refresh-token": "old-refresh",
        "id-token": jwt(5),
        "idp-certificate-authority": str(directory / "pki" / "ca.crt"),
    }
    return {**usual, **changes}


def says(**fields: str) -> Reply:
    return Reply(body=json.dumps(fields).encode())


def timeouts(server: Server) -> list[float | None]:
    """Return the timeouts of the connections of this process to a server that has a request and does not answer."""
    while not server.requests:
        time.sleep(0.01)
    sockets = [value for value in gc.get_objects() if isinstance(value, ssl.SSLSocket) and not value.server_side]
    opened = [value for value in sockets if value.fileno() >= 0]
    return [value.gettimeout() for value in opened if value.getpeername()[1] == urlsplit(server.url).port]


def never(text: str) -> None:
    pytest.fail(text)


def test_a_token_that_is_good_asks_nobody() -> None:
    token = jwt(3600)
    current_token, expires = oidc.id_token(
        {"idp-issuer-url": "https://x", "client-id": "c", "id-token": token}, {}, never
    )
    assert current_token == token
    assert 3580 < expires - time.time() < 3600


@pytest.mark.parametrize("data", [False, True], ids=["file", "data"])
def test_an_expired_token_is_refreshed(tmp_path: Path, data: bool) -> None:
    token = jwt(3600)
    with serve(says(), says(id_token=token, refresh_token="old-refresh"), tls=serving(tmp_path)) as server:
        server.replies[0] = says(token_endpoint=f"{server.url}/token")
        value = config(server, tmp_path)
        if data:
            authority = Path(value.pop("idp-certificate-authority")).read_bytes()
            value["idp-certificate-authority-data"] = b64encode(authority).decode()
        assert oidc.id_token(value, {}, never)[0] == token
    discovery, refresh = server.requests
    assert (discovery.method, discovery.path) == ("GET", "/.well-known/openid-configuration")
    assert "Authorization" not in {name.title() for name, _ in discovery.headers}
    assert (refresh.method, refresh.path) == ("POST", "/token")
    assert parse_qs(refresh.body) == {"grant_type": ["refresh_token"], "refresh_token": ["old-refresh"]}
    assert dict(refresh.headers)["authorization"] == f"Basic {b64encode(b'kube%2F1:word').decode()}"


def is_refreshed(directory: Path, tls: ssl.SSLContext) -> bool:
    """Tell whether an issuer gives a new token if the kubeconfig does not name its authority."""
    token = jwt(3600)
    with serve(says(), says(id_token=token), tls=tls) as server:
        server.replies[0] = says(token_endpoint=f"{server.url}/token")
        value = config(server, directory)
        del value["idp-certificate-authority"]
        return oidc.id_token(value, {}, never)[0] == token


@pytest.mark.parametrize("variable", ["SSL_CERT_FILE", "SSL_CERT_DIR"])
def test_without_an_authority_those_of_the_system_are_trusted(
    tmp_path: Path, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """These are what the variables of OpenSSL and Go name, and not those of a package."""
    tls = serving(tmp_path)
    monkeypatch.setenv(variable, str(tmp_path / "pki" / "ca.crt"))
    if variable == "SSL_CERT_DIR":
        authority = (tmp_path / "pki" / "ca.crt").read_text()
        command = ["openssl", "x509", "-hash", "-noout"]
        subject = subprocess.run(command, input=authority, capture_output=True, text=True, check=True).stdout.strip()
        (tmp_path / "certs").mkdir()
        (tmp_path / "certs" / f"{subject}.0").write_text(authority)
        monkeypatch.setenv(variable, str(tmp_path / "certs"))
    assert is_refreshed(tmp_path, tls)


def test_an_issuer_that_the_system_does_not_trust_gets_nothing(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="certificate signed by unknown authority"):
        is_refreshed(tmp_path, serving(tmp_path))


def test_authorities_are_found_where_another_system_has_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The OpenSSL of the archive looks for them where its builder has them."""
    serving(tmp_path)
    for variable in ("SSL_CERT_FILE", "SSL_CERT_DIR"):
        monkeypatch.setenv(variable, str(tmp_path / "nowhere"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    exchange.trust_system(context, ["/no/where.pem", str(tmp_path / "pki" / "ca.crt")])
    assert len(context.get_ca_certs()) == 1


def test_an_issuer_that_wants_the_client_in_the_form(tmp_path: Path) -> None:
    token = jwt(3600)
    with serve(says(), Reply(401), says(id_token=token), tls=serving(tmp_path)) as server:
        server.replies[0] = says(token_endpoint=f"{server.url}/token")
        assert oidc.id_token(config(server, tmp_path), {}, never)[0] == token
    form = parse_qs(server.requests[2].body)
    assert (form["client_id"], form["client_secret"]) == (["kube/1"], ["word"])
    assert "authorization" not in dict(server.requests[2].headers)


def test_a_silent_issuer_is_given_up_after_30_seconds(tmp_path: Path) -> None:
    with serve(Reply(delay=60), tls=serving(tmp_path)) as server, ThreadPoolExecutor() as pool:
        login = pool.submit(oidc.id_token, config(server, tmp_path), {}, never)
        (timeout,) = timeouts(server)
        server.stopped.set()
        with pytest.raises(SourceError, match="token_endpoint"):
            login.result()
    assert timeout
    assert 25 < timeout <= 30


def test_another_refresh_token_is_said(tmp_path: Path) -> None:
    """That is what kubectl would write down."""
    output: list[str] = []
    with serve(says(), says(id_token=jwt(60), refresh_token="new-secret"), tls=serving(tmp_path)) as server:
        server.replies[0] = says(token_endpoint=f"{server.url}/token")
        oidc.id_token(config(server, tmp_path), {}, output.append)
    (line,) = output
    assert "not written to the kubeconfig" in line
    assert "secret" not in line


@pytest.mark.parametrize(
    ("replies", "message"),
    [
        ([Reply(404)], "failed to query metadata endpoint"),
        ([Reply(body=b"<html>")], "failed to query metadata endpoint"),
        ([Reply(302, headers={"Location": "http://127.0.0.1:1"})], "failed to query metadata endpoint"),
        ([says()], "discovery object doesn't contain a token_endpoint"),
        ([says(token_endpoint="/token"), Reply(400, b"old-refresh is over")], "the issuer refuses the refresh token"),
        ([says(token_endpoint="/token"), says(access_token="x")], "token response did not contain an id_token"),
        ([says(token_endpoint="/token"), says(id_token="x")], "ID Token is not a valid JWT"),
    ],
)
def test_an_issuer_that_gives_nothing(tmp_path: Path, replies: list[Reply], message: str) -> None:
    with serve(*replies, tls=serving(tmp_path)) as server:
        server.replies = [
            Reply(
                reply.status, reply.body.replace(b'"/token"', f'"{server.url}/token"'.encode()), headers=reply.headers
            )
            for reply in server.replies
        ]
        with pytest.raises(SourceError, match=message) as refused:
            oidc.id_token(config(server, tmp_path), {}, never)
    assert "old-refresh" not in str(refused.value)


@pytest.mark.parametrize("token", ["a", "a.b.c", "a.%.c", f"a.{b64encode(b'[]').decode()}.c"])
def test_what_is_no_token(token: str) -> None:
    with pytest.raises(SourceError, match="ID Token is not a valid JWT"):
        oidc.id_token({"idp-issuer-url": "https://x", "client-id": "c", "id-token": token}, {}, never)


def test_an_authority_that_cannot_be_read(tmp_path: Path) -> None:
    with serve(says(), tls=serving(tmp_path)) as server:
        value = config(server, tmp_path, **{"idp-certificate-authority": str(tmp_path / "gone")})
        with pytest.raises(SourceError, match="authority of the OIDC issuer cannot be read"):
            oidc.id_token(value, {}, never)


def test_a_redirect_of_the_token_endpoint_does_not_get_the_secrets(tmp_path: Path) -> None:
    redirect = Reply(307, headers={"Location": "/elsewhere"})
    with serve(says(), redirect, redirect, says(id_token=jwt(60)), tls=serving(tmp_path)) as server:
        server.replies[0] = says(token_endpoint=f"{server.url}/token")
        with pytest.raises(SourceError, match="the issuer refuses the refresh token"):
            oidc.id_token(config(server, tmp_path), {}, never)
    assert [request.path for request in server.requests[1:]] == ["/token", "/token"]
