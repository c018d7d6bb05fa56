"""A client with the credentials of a kubeconfig or of the pod that we run in."""

from __future__ import annotations

import math
import os
import time
from base64 import b64encode
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import quote

from kubernetes.client import ApiClient, Configuration

from kubectl_spread.errors import SourceError
from kubectl_spread.sources import exchange, memory
from kubectl_spread.sources.auth import execplugin, oidc, proxies, tls
from kubectl_spread.sources.auth.connection import Settings
from kubectl_spread.sources.auth.kubeconfig import Section
from kubectl_spread.sources.failures import failure

_AUTHORIZATION: Final = "BearerToken"
_CERTIFICATE: Final = ("client-certificate", "client-certificate-data", "client-key", "client-key-data")
_RENEWABLE: Final = ("auth-provider", "client-certificate", "exec", "tokenFile")
"""What in a kubeconfig leads to credentials that may be others the next time."""
_TOKEN_FILE_LASTS: Final = 50.0
"""Seconds after which a token's file is read again. Source: kubernetes v1.37.1 client-go/transport/token_source.go."""
_IN_A_HEADER: Final = "!#$&'*+-.^_`|~"
_REMOVED: Final = {"azure": "kubelogin", "gcp": "gke-gcloud-auth-plugin"}
"""Maps an auth provider that kubectl had once to the credential plugin that took its place."""


@dataclass(frozen=True, slots=True)
class Login:
    """A client, and until when its credentials are good.

    Attributes:
        client: A client of the kubernetes package.
        expires: Seconds since 1970; infinite: nobody knows of an end.
    """

    client: ApiClient
    expires: float = math.inf

    @property
    def expired(self) -> bool:
        """Whether the credentials have come to their end."""
        return time.time() > self.expires


@dataclass(frozen=True, slots=True)
class _Identity:
    """What is sent: a user with nothing but a certificate, and the value of the Authorization header or ""."""

    user: Section = field(repr=False)
    authorization: str = field(default="", repr=False)
    expires: float = math.inf


def login(settings: Settings, say: Callable[[str], None] = lambda _: None) -> Login:
    """Return a client with credentials that are got now.

    Raises:
        SourceError: The credentials cannot be had.
    """
    # kubectl sends no credentials that anybody on the way could read, and asks nobody for them then.
    secure = settings.cluster["server"].startswith("https://")
    identity = _identity(settings, say) if secure else _Identity({})
    configuration = Configuration()
    # Requests are repeated by us, who know what the apiserver asks for.
    configuration.retries = False
    if identity.authorization:
        configuration.api_key[_AUTHORIZATION] = identity.authorization
    proxy = proxies.find(settings.cluster["server"], settings.cluster.get("proxy-url", ""), os.environ)
    configuration.no_proxy = None
    configuration.proxy = proxy.url if proxy else None
    configuration.proxy_headers = proxy.headers if proxy else None
    client = _client(configuration, settings.cluster, identity.user)
    exchange.keep(client.rest_client.pool_manager)
    return Login(client, identity.expires)


def renewal(settings: Settings, say: Callable[[str], None] = lambda _: None) -> Callable[[], Login] | None:
    """Return what makes a client with the credentials read again; None: they would be the same."""
    if not any(settings.user.get(key) for key in _RENEWABLE):
        return None
    return lambda: login(settings, say)


def impersonation(user: Section) -> list[tuple[str, str]]:
    """Return the headers that ask the apiserver to act as somebody else; a name may come again.

    Raises:
        SourceError: A name holds a character that cannot be sent.
    """
    headers = [("Impersonate-User", user["as"])] if user.get("as") else []
    if user.get("as-uid"):
        headers.append(("Impersonate-Uid", user["as-uid"]))
    headers += [("Impersonate-Group", group) for group in user.get("as-groups", ())]
    for key, values in user.get("as-user-extra", {}).items():
        name = f"Impersonate-Extra-{quote(key, safe=_IN_A_HEADER)}"
        headers += [(name, value) for value in values]
    return [(name, _header_value(value)) for name, value in headers]


def _header_value(text: str) -> str:
    if not text.isprintable():
        msg = f"{text!r} holds characters that cannot be sent"
        raise SourceError(msg)
    # Go sends UTF-8; http.client takes each character for a byte.
    return text.encode().decode("latin-1")


def _client(configuration: Configuration, cluster: Section, user: Section) -> ApiClient:
    """Return a client for a cluster that knows the certificates of both sides.

    Raises:
        SourceError: They cannot be used.
    """
    configuration.host = cluster["server"].rstrip("/")
    configuration.verify_ssl = not cluster.get("insecure-skip-tls-verify")
    configuration.tls_server_name = cluster.get("tls-server-name")
    if not (configuration.host.startswith("https://") and tls.embeds(cluster, user)):
        # By name: they are read again for each connection, as they may be replaced.
        configuration.ssl_ca_cert = cluster.get("certificate-authority")
        configuration.cert_file, configuration.key_file = user.get("client-certificate"), user.get("client-key")
        return ApiClient(configuration)
    try:
        context = tls.context(cluster, user)
    except OSError as error:
        raise failure(error, configuration.host, 0) from error
    client = ApiClient(configuration)
    client.rest_client.pool_manager.connection_pool_kw["ssl_context"] = context
    return client


def _identity(settings: Settings, say: Callable[[str], None]) -> _Identity:
    """Return who we are; of several ways to say it the first one that kubectl asks, and a certificate next to it."""
    user = settings.user
    certificate = {key: user[key] for key in _CERTIFICATE if user.get(key)}
    if not (certificate.get("client-certificate") or certificate.get("client-certificate-data")):
        certificate = {}
    if user.get("tokenFile"):
        return _Identity(certificate, _bearer(_token_in_file(user)), time.time() + _TOKEN_FILE_LASTS)
    if user.get("token"):
        return _Identity(certificate, _bearer(user["token"]))
    if user.get("username"):
        who = f"{user['username']}:{user.get('password', '')}"
        return _Identity(certificate, f"Basic {b64encode(who.encode()).decode()}")
    if "exec" in user and not certificate:
        found = execplugin.credentials(user["exec"], settings.cluster)
        return _Identity(found.user, _bearer(found.token) if found.token else "", found.expires)
    if "auth-provider" in user:
        token, expires = _provided(user["auth-provider"], say)
        return _Identity(certificate, _bearer(token), expires)
    return _Identity(certificate)


def _provided(provider: Section, say: Callable[[str], None]) -> tuple[str, float]:
    name = provider.get("name") or ""
    if name in _REMOVED:
        raise SourceError(f"The {name} auth plugin has been removed: use the credential plugin {_REMOVED[name]}")
    if name != "oidc":
        raise SourceError(f'no Auth Provider found for name "{name}"')
    return oidc.id_token(provider.get("config") or {}, os.environ, say)


def _token_in_file(user: Section) -> str:
    """Return the token in the file; one that stands in the kubeconfig too is for when the file has none."""
    otherwise: str = user.get("token", "")
    try:
        with memory.reading(Path(user["tokenFile"])) as body:
            return body.decode().strip() or otherwise
    except (OSError, UnicodeDecodeError) as error:
        if otherwise:
            return otherwise
        reason = (getattr(error, "strerror", None) or "not text").lower()
        msg = f"error reading {user['tokenFile']}: {reason}"
        raise SourceError(msg) from error


def _bearer(token: str) -> str:
    """Return the header of a token.

    Raises:
        SourceError: It would fail, and be printed, where it is put into a header.
    """
    token = token.strip()
    if not (token.isascii() and token.isprintable()):
        msg = "the bearer token holds characters that cannot be sent"
        raise SourceError(msg)
    return f"Bearer {token}"
