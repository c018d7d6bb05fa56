"""A client with the credentials of a kubeconfig or of the pod that we run in."""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Final
from urllib.parse import quote

import certifi
from kubernetes.client import ApiClient, Configuration
from kubernetes.config import ConfigException, load_incluster_config
from kubernetes.config.kube_config import KubeConfigLoader
from urllib3.exceptions import HTTPError

from kubectl_spread.errors import SourceError
from kubectl_spread.sources.connection import ConnectionFlags, Settings
from kubectl_spread.sources.kubeconfig import Section

_SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_BEARER: Final = "BearerToken"
_NO_CREDENTIALS: Final = "Unable to connect to the server: getting credentials: "
_ISSUER_AUTHORITIES: Final = ("idp-certificate-authority", "idp-certificate-authority-data")
_RENEWABLE: Final = ("auth-provider", "client-certificate", "exec", "tokenFile")
"""What in a kubeconfig leads to credentials that may be others the next time."""


class _Complaints(logging.Handler):
    """Keeps what the kubernetes package logs where we need it to fail."""

    def __init__(self, level: int) -> None:
        super().__init__(level)
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(record.getMessage())


def client(settings: Settings, flags: ConnectionFlags) -> tuple[ApiClient, str]:
    """Return a client and the namespace to use when the user names none.

    Raises:
        SourceError: The credentials cannot be had.
    """
    configuration = Configuration()
    # Requests are repeated by us, who know what the apiserver asks for.
    configuration.retries = False
    namespace = settings.namespace or "default"
    if settings.configured or not _in_cluster():
        _load(configuration, settings)
    else:
        try:
            load_incluster_config(client_configuration=configuration)
        except (ConfigException, OSError) as error:
            raise SourceError(f"Error in configuration: {error}") from error
        if flags.token:
            configuration.refresh_api_key_hook = None
            configuration.api_key[_BEARER] = f"Bearer {flags.token}"
        if flags.certificate_authority:
            configuration.ssl_ca_cert = flags.certificate_authority
        namespace = settings.namespace or _own_namespace()
    return ApiClient(configuration), namespace


def renewal(settings: Settings, flags: ConnectionFlags) -> Callable[[], ApiClient] | None:
    """Return what makes a client with the credentials read anew; None: they would be the same."""
    if settings.configured and not any(settings.user.get(key) for key in _RENEWABLE):
        return None

    def renew() -> ApiClient:
        return client(settings, flags)[0]

    return renew


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
        name = f"Impersonate-Extra-{quote(key.lower(), safe='')}"
        headers += [(name, value) for value in values]
    return [(name, _header_value(value)) for name, value in headers]


def _header_value(text: str) -> str:
    if not text.isprintable():
        msg = f"{text!r} holds characters that cannot be sent"
        raise SourceError(msg)
    # Go sends UTF-8; http.client takes each character for a byte.
    return text.encode().decode("latin-1")


def _load(configuration: Configuration, settings: Settings) -> None:
    user = _readable(settings.user)
    name = "kubectl-spread"
    config = {
        "clusters": [{"name": name, "cluster": settings.cluster}],
        "users": [{"name": name, "user": user}] if user else [],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "current-context": name,
    }
    complaints = _Complaints(logging.ERROR)
    logger = logging.getLogger()
    logger.addHandler(complaints)
    try:
        KubeConfigLoader(config, config_base_path="").load_and_set(configuration)
    except (ConfigException, OSError, ValueError, KeyError) as error:
        msg = f"Error in configuration: {' '.join(str(error).split())}"
        raise SourceError(msg) from error
    except HTTPError as error:
        raise SourceError(f"{_NO_CREDENTIALS}{' '.join(str(error).split())}") from error
    finally:
        logger.removeHandler(complaints)
    if complaints.texts:
        text = " ".join(complaints.texts[0].split())
        msg = f"{_NO_CREDENTIALS}{text}"
        raise SourceError(msg)
    # Credentials are renewed by ``renewal``, which does not go on with old ones when that fails.
    configuration.refresh_api_key_hook = None
    _check_token(configuration.api_key.get(_BEARER, ""))
    if not configuration.host.startswith("https"):
        # kubectl sends no credentials that anybody on the way could read.
        configuration.api_key.clear()


def _readable(user: Section) -> Section:
    """Return the user with its token read from its file, and nothing in it that cannot work.

    Raises:
        SourceError: The kubernetes package would fail here without saying why.
    """
    provider = user.get("auth-provider", {}).get("name", "oidc")
    if provider != "oidc":
        msg = f'no Auth Provider found for name "{provider}"'
        raise SourceError(msg)
    command = user.get("exec", {}).get("command")
    if command and not user.get("token") and not shutil.which(command):
        msg = f"{_NO_CREDENTIALS}exec: executable {command} not found"
        raise SourceError(msg)
    user = _with_verified_issuer(user)
    token = user.get("token")
    if token is None and "tokenFile" in user:
        try:
            token = Path(user["tokenFile"]).read_text()
        except (OSError, UnicodeDecodeError) as error:
            reason = (getattr(error, "strerror", None) or "not text").lower()
            msg = f"error reading {user['tokenFile']}: {reason}"
            raise SourceError(msg) from error
    if token is None:
        return user
    token = token.strip()
    _check_token(token)
    return {**user, "token": token}


def _with_verified_issuer(user: Section) -> Section:
    """Return the user with an authority for its OIDC issuer; without one the kubernetes package trusts any server."""
    provider = user.get("auth-provider", {})
    config = provider.get("config")
    if not config or any(key in config for key in _ISSUER_AUTHORITIES):
        return user
    config = {**config, "idp-certificate-authority": certifi.where()}
    return {**user, "auth-provider": {**provider, "config": config}}


def _check_token(token: str) -> None:
    """Refuse what would fail, and be printed, where it is put into a header.

    Raises:
        SourceError: It cannot be sent.
    """
    if not (token.isascii() and token.isprintable()):
        msg = "the bearer token holds characters that cannot be sent"
        raise SourceError(msg)


def _in_cluster() -> bool:
    """Tell whether we run in a pod that has a service account."""
    return bool(
        os.environ.get("KUBERNETES_SERVICE_HOST")
        and os.environ.get("KUBERNETES_SERVICE_PORT")
        and (_SERVICE_ACCOUNT / "token").is_file()
    )


def _own_namespace() -> str:
    """Return the namespace of the pod that we run in."""
    named = os.environ.get("POD_NAMESPACE")
    if named:
        return named
    try:
        return (_SERVICE_ACCOUNT / "namespace").read_text().strip() or "default"
    except OSError:
        return "default"
