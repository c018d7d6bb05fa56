"""The ID token of an OpenID Connect issuer, refreshed when it has expired.

Source: kubernetes v1.37.1 client-go/plugin/pkg/client/auth/oidc/oidc.go. The kubernetes package does this too, but not
as kubectl does: docs/decisions/10-requests.md.
Differs: an issuer and its token endpoint must be https, which the API server requires of an issuer too. New tokens are
not written to the kubeconfig.
"""

from __future__ import annotations

import json
import math
import ssl
import time
from base64 import b64decode, urlsafe_b64decode
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import quote_plus

import urllib3

from kubectl_spread.errors import SourceError
from kubectl_spread.sources import exchange
from kubectl_spread.sources.auth.proxies import find, pool
from kubectl_spread.sources.exchange import UNANSWERED, failure
from kubectl_spread.sources.paths import without_query

_LEEWAY: Final = 10.0
"""Seconds before its end in which a token counts as expired."""
_TIMEOUT: Final = 30.0
"""Seconds until the issuer must accept the connection, and until it must send the next part of a response."""
_FAILED: Final = "Unable to connect to the server: "
_ROTATED: Final = (
    "the OIDC issuer gave a new refresh token, not written to the kubeconfig: log in again if kubectl is refused"
)


def id_token(
    config: Mapping[str, str], environment: Mapping[str, str], say: Callable[[str], None]
) -> tuple[str, float]:
    """Return a token, and its end in seconds since 1970.

    Args:
        config: The ``config`` of an ``auth-provider``.
        environment: The environment variables; they may name a proxy.
        say: Receives a message when the kubeconfig is outdated.

    Raises:
        SourceError: There is no token, and the issuer returns none.
    """
    for key in ("idp-issuer-url", "client-id"):
        if not config.get(key):
            raise SourceError(f"Must provide {key}")
    token = config.get("id-token", "")
    expires = _end(token) if token else -math.inf
    if time.time() + _LEEWAY < expires:
        return token, expires - _LEEWAY
    if not config.get("refresh-token"):
        raise SourceError(f"{_FAILED}No valid id-token, and cannot refresh without refresh-token")
    response = _refreshed(config, environment)
    if response.get("refresh_token") not in (None, "", config["refresh-token"]):
        say(_ROTATED)
    token = response.get("id_token", "")
    if not isinstance(token, str) or not token:
        raise SourceError(f"{_FAILED}token response did not contain an id_token")
    return token, _end(token) - _LEEWAY


def _end(token: str) -> float:
    parts = token.split(".")
    try:
        _, payload, _ = parts
        claims = json.loads(urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
        expires = float(claims.get("exp", 0))
    except (ValueError, TypeError, AttributeError, OverflowError, RecursionError):
        expires = math.nan
    if not math.isfinite(expires):
        raise SourceError(f"{_FAILED}ID Token is not a valid JWT")
    return expires


def _refreshed(config: Mapping[str, str], environment: Mapping[str, str]) -> dict[str, Any]:
    """Return the issuer's response to the refresh token.

    The client is named in a header, or in the form for an issuer that does not read the header.

    Raises:
        SourceError: The issuer does not answer, refuses, or is not reached by https.
    """
    issuer = _secure(config["idp-issuer-url"], "issuer").removesuffix("/")
    issuer_pool = pool(find(issuer, "", environment), ssl_context=_context(config), retries=False, timeout=_TIMEOUT)
    metadata = _ask(issuer_pool, "GET", f"{issuer}/.well-known/openid-configuration")
    if metadata is None:
        raise SourceError(f"{_FAILED}oidc: failed to query metadata endpoint")
    endpoint = metadata.get("token_endpoint")
    if not isinstance(endpoint, str) or not endpoint:
        raise SourceError(f"{_FAILED}oidc: discovery object doesn't contain a token_endpoint")
    _secure(endpoint, "token endpoint")
    client, secret = config["client-id"], config.get("client-secret", "")
    form = {"grant_type": "refresh_token", "refresh_token": config["refresh-token"]}
    header = urllib3.make_headers(basic_auth=f"{quote_plus(client)}:{quote_plus(secret)}")
    response = _ask(issuer_pool, "POST", endpoint, header, form)
    if response is None:
        response = _ask(issuer_pool, "POST", endpoint, {}, {**form, "client_id": client, "client_secret": secret})
    if response is None:
        raise SourceError(f"{_FAILED}failed to refresh token: the issuer refuses the refresh token")
    return response


def _secure(address: str, what: str) -> str:
    """Return an address if it is https, so that only its server can read the secrets."""
    if not address.lower().startswith("https://"):
        raise SourceError(
            f"{_FAILED}oidc: the {what} {without_query(address)} is not https: others could read the credentials"
        )
    return address


def _ask(
    issuer_pool: urllib3.PoolManager,
    method: str,
    url: str,
    headers: Mapping[str, str] | None = None,
    form: Mapping[str, str] | None = None,
) -> dict[str, Any] | None:
    """Return the issuer's response; None if it refuses, or the response is not a JSON object."""
    body: dict[str, Any] = {"fields": form, "encode_multipart": False} if form else {}
    try:
        response = issuer_pool.request(method, url, headers=headers, redirect=False, **body)
    except UNANSWERED as error:
        raise failure(error, url, _TIMEOUT) from error
    try:
        content = response.json() if response.status == HTTPStatus.OK else None
    except (ValueError, RecursionError):
        return None
    return content if isinstance(content, dict) else None


def _context(config: Mapping[str, str]) -> ssl.SSLContext:
    """Return the TLS context for the issuer, with the authority of the kubeconfig or those of the system."""
    data, file = config.get("idp-certificate-authority-data"), config.get("idp-certificate-authority")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        if data:
            context.load_verify_locations(cadata=b64decode(data).decode())
        elif file:
            context.load_verify_locations(file)
        else:
            exchange.trust_system(context)
    except (OSError, ValueError) as error:
        raise SourceError(f"the certificate authority of the OIDC issuer cannot be read: {error}") from error
    return context
