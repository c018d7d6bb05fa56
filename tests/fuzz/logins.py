"""Malicious kubeconfigs, answers of OIDC issuers and answers of exec plugins, each used to log in.

Requests reach only the server of this process on loopback, and ``cat`` is the only program that runs, whatever the
input names.
"""

from __future__ import annotations

import atexit
import io
import json
import os
import random
import socket
import subprocess
import tempfile
import time
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

from ruamel.yaml import YAML

from kubectl_spread.errors import SpreadError
from kubectl_spread.render.words import safe
from kubectl_spread.sources.apiserver import transport
from kubectl_spread.sources.apiserver.cluster import LiveCluster
from kubectl_spread.sources.auth.connection import ConnectionFlags
from tests.builders import Json
from tests.controlplane.certificates import Authority
from tests.fuzz import mutation
from tests.fuzz.hostile import TEXTS
from tests.fuzz.outcome import Outcome
from tests.kubeconfigs import config
from tests.loopback import server_context
from tests.sources.server import Reply, Request, Server, serve

_SECRET: Final = "hunter2"
_API: Final = "client.authentication.k8s.io/v1"
_SERVER: Final = "https://127.0.0.1:1"
"""Stands for the address of the server of this process, whose port is not known when the input is written."""
_BETWEEN: Final = b"\n--- next answer ---\n"
_LATER: Final = 4_000_000_000
_ENDS: Final[tuple[Any, ...]] = (_LATER, 0, -1, 1e400, 1e18, 10**400, "soon", None, True, [], {}, "9" * 5000, 2**63)
_TIMES: Final = (
    *("2099-01-01T00:00:00Z", "0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59", "2026-13-45T99:99:99Z"),
    *("9" * 5000, "", None, 5, "2099-01-01", "2099-01-01T00:00:00", "2099-01-01T00:00:00.000000001Z"),
)


class Host:
    """The server of this process: an apiserver that only has a version, and an issuer with scripted answers.

    Attributes:
        server: The server itself.
        directory: The directory of its files.
        authority: The certificate of its authority, PEM.
        pair: A client certificate and its key, PEM.
        discovery: The discovery document of the issuer.
        tokens: The answer to a refresh token.
    """

    def __init__(self) -> None:
        """Start the server, which runs until the process ends."""
        stack = ExitStack()
        atexit.register(stack.close)
        self.directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        authority = Authority(self.directory / "pki")
        serving, client = authority.server("server", ["127.0.0.1"]), authority.client("client", "jane")
        self.authority = authority.certificate.read_text()
        self.pair = client.certificate.read_text(), client.key.read_text()
        self.discovery = self.tokens = b""
        self.server: Server = stack.enter_context(serve(Reply(), tls=server_context(serving)))
        self.server.next = self._reply  # type: ignore[method-assign]

    @property
    def port(self) -> int:
        """The port on loopback."""
        return int(self.server.url.rpartition(":")[2])

    def localized(self, body: bytes) -> bytes:
        """Return input with the address of this server in it."""
        return body.replace(_SERVER.encode(), self.server.url.encode())

    def _reply(self, request: Request) -> Reply:
        if request.path.endswith("/version"):
            return Reply(body=b'{"major": "1", "minor": "37"}')
        return Reply(body=self.discovery if request.method == "GET" else self.tokens)


@cache
def host() -> Host:
    """Return the server of this process."""
    return Host()


def kubeconfig(chance: random.Random) -> bytes:
    """Return a kubeconfig with a user of a random kind, odd or damaged, in JSON or YAML."""
    content = _config(chance, _odd(_user(chance), chance))
    content["clusters"][0]["cluster"] = _odd(content["clusters"][0]["cluster"], chance)
    return _written(_odd(content, chance) if chance.random() < 0.15 else content, chance)


def plugin_answer(chance: random.Random) -> bytes:
    """Return the output of an exec plugin."""
    certificate, key = host().pair
    status: dict[str, Any] = {"token": _SECRET, "expirationTimestamp": chance.choice((*_TIMES[:3] * 8, *_TIMES))}
    if chance.random() < 0.5:
        status |= {"clientCertificateData": certificate, "clientKeyData": key}
    if chance.random() < 0.3:
        del status["token"]
    content: Any = {"apiVersion": _API, "kind": "ExecCredential", "status": _odd(status, chance)}
    return _written(_odd(content, chance) if chance.random() < 0.15 else content, chance)


def issuer_answers(chance: random.Random) -> bytes:
    """Return the discovery document of an issuer, and the answer of its token endpoint."""
    discovery: Any = {"issuer": _SERVER, "token_endpoint": f"{_SERVER}/token", "scopes_supported": ["openid"]}
    tokens: Any = {"id_token": _token(chance), "refresh_token": chance.choice((_SECRET, "new")), "expires_in": 300}
    odd = chance.choice(("discovery", "tokens", "tokens", "both", "none"))
    if odd in ("discovery", "both"):
        discovery = _odd(discovery, chance)
        if chance.random() < 0.4 and isinstance(discovery, dict):
            discovery["token_endpoint"] = chance.choice(_ENDPOINTS)
    if odd in ("tokens", "both"):
        tokens = _odd(tokens, chance)
    return _json(discovery, chance) + _BETWEEN + _json(tokens, chance)


_ENDPOINTS: Final = (
    *("", "/token", "http://127.0.0.1:1", "https://[", "https://", "https://a b", "https://a\0b", "https://\ud800.x"),
    *("//127.0.0.1", "HTTPS://127.0.0.1:1", f"{_SERVER}@evil.example", f"{_SERVER}\r\nX: y", f"{_SERVER}/\u2028"),
    *(f"https://a:{'9' * 5000}", f"https://{'a' * 64}.x", "https://é..x", "ftp://a", f"{_SERVER}/{'a' * 70_000}", 5),
)


_ODD_TEXTS: Final = (
    *(
        "http://a b",
        ".x",
        "é..x",
        "...",
        "\ud800",
        "a\0b",
        "A",
        "LS0tLS1CRUdJTg==",
        "/dev/null",
        ".",
        "~",
        "$HOME",
        "-",
    ),
    *(
        "9" * 5000,
        "a" * 300,
        "socks5://[",
        "https://127.0.0.1:99999",
        "127.0.0.1:1",
        "::1",
        "[::1]:443",
        "a/b",
        "\r\nX: y",
    ),
)


def log_in(body: bytes, _chance: random.Random) -> Outcome:
    """Log in with a kubeconfig and ask the apiserver for its version."""
    path = host().directory / "config"
    path.write_bytes(host().localized(body))
    return _outcome(path)


def log_in_with_plugin(body: bytes, _chance: random.Random) -> Outcome:
    """Log in with the output of an exec plugin."""
    answer = host().directory / "answer"
    answer.write_bytes(body)
    plugin = {"command": "cat", "args": [str(answer)], "apiVersion": _API, "interactiveMode": "Never"}
    return _outcome_for({"exec": plugin})


def log_in_with_issuer(body: bytes, _chance: random.Random) -> Outcome:
    """Log in with the answer of an OIDC issuer to a refresh token."""
    discovery, _, tokens = host().localized(body).partition(_BETWEEN)
    host().discovery, host().tokens = discovery, tokens
    settings = {
        "idp-issuer-url": host().server.url,
        "idp-certificate-authority-data": b64encode(host().authority.encode()).decode(),
        "client-id": "kube",
        "client-secret": _SECRET,
        "refresh-token": _SECRET,
    }
    return _outcome_for({"auth-provider": {"name": "oidc", "config": settings}})


def _outcome_for(user: Json) -> Outcome:
    path = host().directory / "config"
    path.write_bytes(host().localized(json.dumps(_configured(user)).encode()))
    outcome = _outcome(path)
    if _SECRET.encode() in outcome.stderr:
        return Outcome(1, error=AssertionError(f"a secret is shown: {outcome.stderr!r}"))
    return outcome


def _outcome(path: Path) -> Outcome:
    with _nothing_outside():
        try:
            LiveCluster.connect(ConnectionFlags(kubeconfig=str(path), request_timeout="5s")).version()
        except SpreadError as error:
            return Outcome(2, stderr=safe(str(error)).encode())
        except Exception as error:  # noqa: BLE001 - an escaping error is a finding
            return Outcome(1, error=error)
    return Outcome(0)


@contextmanager
def _nothing_outside() -> Iterator[None]:
    """Prevent requests to other servers, and other programs than ``cat``."""
    find, run, allowed = socket.getaddrinfo, subprocess.run, ("127.0.0.1", host().port)

    def resolve(name: Any, port: Any, *arguments: Any, **named: Any) -> Any:
        if (name, port) != allowed:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return find(name, port, *arguments, **named)

    def ran(command: list[str], **named: Any) -> Any:
        if Path(command[0]).name != "cat" or any(part.startswith("/dev") for part in command):
            raise FileNotFoundError(2, "No such file or directory")
        return run(command, **named)

    environment = {"PATH": os.defpath, "HOME": str(host().directory)}
    with (
        patch.object(socket, "getaddrinfo", resolve),
        patch("kubectl_spread.sources.auth.execplugin.subprocess.run", ran),
        patch.object(transport, "backoff", lambda *_: 0.0),
        patch.dict(os.environ, environment, clear=True),
    ):
        yield


def _configured(user: Json) -> Json:
    authority = b64encode(host().authority.encode()).decode()
    content = config(_SERVER, None, user, certificate_authority_data=authority)
    content["contexts"][0]["context"]["namespace"] = "default"
    return content


def _config(chance: random.Random, user: dict[str, Any]) -> dict[str, Any]:
    content = _configured(user)
    cluster = content["clusters"][0]["cluster"]
    fields: Json = {
        "tls-server-name": "127.0.0.1",
        "proxy-url": chance.choice(("http://127.0.0.1:1", "socks5://127.0.0.1:1", "https://u:p@127.0.0.1:1")),
        "disable-compression": True,
        "insecure-skip-tls-verify": True,
        "certificate-authority": str(host().directory / "pki/ca.crt"),
        "extensions": [{"name": "client.authentication.k8s.io/exec", "extension": {"audience": "a"}}],
    }
    for name in chance.sample(list(fields), chance.choice((0, 1, 1, 2))):
        cluster[name] = fields[name]
    return content


def _user(chance: random.Random) -> dict[str, Any]:
    certificate, key = (b64encode(part.encode()).decode() for part in host().pair)
    plugin: dict[str, Any] = {
        "command": "cat",
        "args": [str(host().directory / "answer")],
        "apiVersion": _API,
        "interactiveMode": "Never",
    }
    plugin |= {"env": [{"name": "A", "value": "b"}], "provideClusterInfo": True, "installHint": "brew install"}
    oidc = {"idp-issuer-url": _SERVER, "client-id": "c", "id-token": _token(chance), "refresh-token": _SECRET}
    users: tuple[dict[str, Any], ...] = (
        {"token": _SECRET},
        {"tokenFile": str(host().directory / "answer")},
        {"username": "jane", "password": _SECRET},
        {"client-certificate-data": certificate, "client-key-data": key},
        {
            "client-certificate": str(host().directory / "pki/client.crt"),
            "client-key": str(host().directory / "pki/client.key"),
        },
        {"exec": plugin},
        {"auth-provider": {"name": "oidc", "config": oidc}},
        {"auth-provider": {"name": "gcp"}},
    )
    mapping = dict(chance.choice(users))
    if chance.random() < 0.3:
        mapping |= {"as": "j", "as-uid": "1", "as-groups": ["g"], "as-user-extra": {"k": ["v"]}}
    return mapping


def _odd(value: Any, chance: random.Random) -> Any:
    """Return an odd copy; mostly only a few texts are odd, so that it is not refused at once."""
    if chance.random() < 0.2:
        return mutation.odd(value, chance)
    for _ in range(chance.choice((0, 1, 1, 1, 2, 3))):
        value = _with_odd_text(value, chance)
    return value


def _with_odd_text(value: Any, chance: random.Random) -> Any:
    """Return a copy in which one text was replaced."""
    if isinstance(value, dict) and value:
        key = chance.choice(list(value))
        return {**value, key: _with_odd_text(value[key], chance)}
    if isinstance(value, list) and value:
        index = chance.randrange(len(value))
        return [*value[:index], _with_odd_text(value[index], chance), *value[index + 1 :]]
    if not isinstance(value, str):
        return chance.choice((value, None, "", [], {}))
    text = chance.choice((*TEXTS, *_ENDPOINTS[:-1], *_ODD_TEXTS))
    return text if chance.random() < 0.7 else value + text


def _token(chance: random.Random) -> str:
    """Return an ID token whose claims may be odd."""
    claims: Any = {"iss": _SERVER, "exp": chance.choice(_ENDS) if chance.random() < 0.5 else int(time.time()) + 3600}
    if chance.random() < 0.3:
        claims = _odd(claims, chance)
    parts = [b'{"alg": "RS256"}', _json(claims, chance), b"signature"]
    return ".".join(urlsafe_b64encode(part).decode().rstrip("=") for part in parts)


def _json(value: Any, chance: random.Random) -> bytes:
    text = mutation.written(json.dumps(value)).encode("utf-8", "surrogatepass")
    return mutation.damaged(text, chance) if chance.random() < 0.2 else text


def _written(value: Any, chance: random.Random) -> bytes:
    """Return a value as JSON or YAML, sometimes damaged."""
    if chance.random() < 0.5:
        return _json(value, chance)

    stream = io.StringIO()
    YAML(typ="safe", pure=True).dump(value, stream)
    text = mutation.written(stream.getvalue()).encode("utf-8", "surrogatepass")
    return mutation.damaged(text, chance) if chance.random() < 0.2 else text
