"""Connections with the credentials of a kubeconfig or of the pod that we run in.

Certificates and keys that a kubeconfig embeds do not stay in the file system. OpenSSL reads private keys from files
only. On Linux the file is in memory and has no name; elsewhere it exists while OpenSSL reads it, and only this user may
read it.
"""

from __future__ import annotations

import atexit
import math
import os
import ssl
import tempfile
import time
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import urllib3
from urllib3.util.ssl_ import ALPN_PROTOCOLS, create_urllib3_context

from kubectl_spread.errors import SourceError
from kubectl_spread.sources import exchange, paths
from kubectl_spread.sources.auth import execplugin, kubeconfig, oidc, proxies
from kubectl_spread.sources.auth.connection import Settings
from kubectl_spread.sources.auth.kubeconfig import Secretive, Section
from kubectl_spread.sources.exchange import failure

_DESCRIPTORS: Final = Path("/proc/self/fd")
_MOST_CONNECTIONS: Final = 16
"""Connections that stay open between requests: one for each list that is read at the same time, and a few."""
_CERTIFICATE: Final = ("client-certificate", "client-certificate-data", "client-key", "client-key-data")
_RENEWABLE: Final = ("auth-provider", "client-certificate", "exec", "tokenFile")
"""The fields of a user whose credentials may change."""
_TOKEN_FILE_LASTS: Final = 50.0
"""Seconds after which a token's file is read again. Source: kubernetes v1.37.1 client-go/transport/token_source.go."""
_CERTIFICATE_FILE_LASTS: Final = 300.0
"""Seconds after which a certificate's file is read again. Source: client-go/transport/cert_rotation.go."""
_IN_A_HEADER: Final = "!#$&'*+-.^_`|~"
_REMOVED: Final = {"azure": "kubelogin", "gcp": "gke-gcloud-auth-plugin"}
"""Maps an auth provider that kubectl no longer has to the credential plugin that replaces it."""


class Login(Secretive, frozen=True):
    """Connections to one server with credentials.

    Attributes:
        server: The address of the server, without a slash at its end.
        verifies: Whether the server's certificate is verified.
        pool: The connections, which have the client certificate if there is one.
        authorization: The Authorization header, or "".
        expires: The end of the credentials in seconds since 1970; infinite if they have none.
    """

    server: str
    verifies: bool
    pool: urllib3.PoolManager
    authorization: str = ""
    expires: float = math.inf

    @property
    def expired(self) -> bool:
        """Whether the credentials have expired."""
        return time.time() > self.expires


class _Identity(Secretive, frozen=True):
    """A user with only a certificate, the value of the Authorization header or "", and when they end."""

    user: Section
    authorization: str = ""
    expires: float = math.inf


def login(settings: Settings, say: Callable[[str], None] = lambda _: None) -> Login:
    """Return connections with current credentials.

    Raises:
        SourceError: There are no credentials.
    """
    cluster, server = settings.cluster, settings.cluster["server"].rstrip("/")
    # kubectl sends no credentials without TLS, and runs no plugin for them then.
    secure = server.startswith("https://")
    identity = _identity(settings, say) if secure else _Identity({})
    proxy = proxies.find(server, cluster.get("proxy-url", ""), os.environ)
    # Transport repeats requests itself, because it knows what the API server asks for.
    arguments: dict[str, Any] = {"retries": False, "maxsize": _MOST_CONNECTIONS}
    if secure or (proxy and proxy.url.startswith("https://")):
        try:
            arguments["ssl_context"] = tls_context(cluster, identity.user)
        except OSError as error:
            raise failure(error, server, 0) from error
    if cluster.get("tls-server-name"):
        arguments["server_hostname"] = cluster["tls-server-name"]
    verifies = not cluster.get("insecure-skip-tls-verify")
    return Login(server, verifies, proxies.pool(proxy, **arguments), identity.authorization, identity.expires)


def renewal(settings: Settings, say: Callable[[str], None] = lambda _: None) -> Callable[[], Login] | None:
    """Return a function that logs in again with new credentials; None if they would be the same."""
    if not any(settings.user.get(key) for key in _RENEWABLE):
        return None
    return lambda: login(settings, say)


def impersonation(user: Section) -> list[tuple[str, str]]:
    """Return the headers of impersonation, in which a name may be repeated.

    Raises:
        SourceError: A value has a character that cannot be sent.
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
        raise SourceError(f"{text!r} holds characters that cannot be sent")
    # Go sends UTF-8; http.client sends each character as a byte.
    return text.encode().decode("latin-1")


def _identity(settings: Settings, say: Callable[[str], None]) -> _Identity:
    """Return the identity by the first credentials in kubectl's order, and the certificate."""
    user, expires = settings.user, math.inf
    certificate: Section = {}
    if user.get("client-certificate") or user.get("client-certificate-data"):
        certificate = {key: user[key] for key in _CERTIFICATE if user.get(key)}
    if user.get("client-certificate"):
        expires = time.time() + _CERTIFICATE_FILE_LASTS
    if user.get("tokenFile"):
        return _Identity(certificate, _bearer(_token_in_file(user)), time.time() + _TOKEN_FILE_LASTS)
    if user.get("token"):
        return _Identity(certificate, _bearer(user["token"]), expires)
    if user.get("username"):
        who = f"{user['username']}:{user.get('password', '')}"
        return _Identity(certificate, f"Basic {b64encode(who.encode()).decode()}", expires)
    if "exec" in user and not certificate:
        provided = execplugin.credentials(user["exec"], settings.cluster)
        return _Identity(provided.user, _bearer(provided.token) if provided.token else "", provided.expires)
    if "auth-provider" in user:
        token, token_expires = _provided(user["auth-provider"], say)
        return _Identity(certificate, _bearer(token), min(expires, token_expires))
    return _Identity(certificate, expires=expires)


def _provided(provider: Section, say: Callable[[str], None]) -> tuple[str, float]:
    name = provider.get("name") or ""
    if name in _REMOVED:
        raise SourceError(f"The {name} auth plugin has been removed: use the credential plugin {_REMOVED[name]}")
    if name != "oidc":
        raise SourceError(f'no Auth Provider found for name "{name}"')
    return oidc.id_token(provider.get("config") or {}, os.environ, say)


def _token_in_file(user: Section) -> str:
    """Return the token in the file, or the token in the kubeconfig if the file has none."""
    otherwise: str = user.get("token", "")
    try:
        return kubeconfig.content(Path(user["tokenFile"])).decode().strip() or otherwise
    except (OSError, ValueError) as error:
        if otherwise:
            return otherwise
        why = "not text" if isinstance(error, UnicodeDecodeError) else paths.reason(error)
        raise SourceError(f"error reading {user['tokenFile']}: {why}") from error


def _bearer(token: str) -> str:
    token = token.strip()
    if not (token.isascii() and token.isprintable()):
        raise SourceError("the bearer token holds characters that cannot be sent")
    return f"Bearer {token}"


def tls_context(cluster: Section, user: Section) -> ssl.SSLContext:
    """Return a TLS context with the authority of a cluster and the certificate of a user.

    Raises:
        SourceError: Embedded data is not base64.
        OSError: A file cannot be read, or OpenSSL cannot use it.
    """
    verify = not cluster.get("insecure-skip-tls-verify")
    context = create_urllib3_context(cert_reqs=ssl.CERT_REQUIRED if verify else ssl.CERT_NONE)
    with ExitStack() as stack:
        authority, certificate, key = (
            stack.enter_context(_file(section, name))
            for section, name in (
                (cluster, "certificate-authority"),
                (user, "client-certificate"),
                (user, "client-key"),
            )
        )
        if authority:
            context.load_verify_locations(authority)
        else:
            exchange.trust_system(context)
        if certificate:
            context.load_cert_chain(certificate, key)
    # urllib3 sets the protocols again for each connection, and OpenSSL frees those that it copies for a connection of
    # another thread: a few of a million handshakes offered random bytes, which servers refuse.
    context.set_alpn_protocols(ALPN_PROTOCOLS)
    context.set_alpn_protocols = lambda alpn_protocols: None  # type: ignore[method-assign]  # noqa: ARG005
    return context


@contextmanager
def _file(section: Section, name: str) -> Iterator[str | None]:
    data = section.get(f"{name}-data")
    if not data:
        yield section.get(name)
        return
    try:
        pem = b64decode(data)
    except ValueError:
        raise SourceError(f"Error in configuration: {name}-data is not base64") from None
    in_memory = hasattr(os, "memfd_create") and _DESCRIPTORS.exists()
    descriptor, path = (os.memfd_create("kubectl-spread"), "") if in_memory else tempfile.mkstemp()

    def remove() -> None:
        if path:
            Path(path).unlink(missing_ok=True)

    # A signal ends the program, but not the code after this in a thread.
    atexit.register(remove)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(pem)
            file.flush()
            yield path or str(_DESCRIPTORS / str(descriptor))
    finally:
        remove()
        atexit.unregister(remove)
