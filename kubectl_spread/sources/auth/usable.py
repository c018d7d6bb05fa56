"""Checks of a cluster and a user of a kubeconfig.

Source: kubernetes v1.37.1 client-go/tools/clientcmd/validation.go.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from kubectl_spread.errors import SourceError
from kubectl_spread.sources import paths
from kubectl_spread.sources.auth.kubeconfig import Section

_MODES: Final = frozenset({"Never", "IfAvailable", "Always"})
_IMPERSONATED: Final = ("as-uid", "as-groups", "as-user-extra")
_PROXIES: Final = ("http", "https", "socks5")


def confirm(cluster: Section, cluster_name: str, user: Section, user_name: str) -> None:
    """Check that both sections make a connection; the names are those in the kubeconfig, or "".

    Raises:
        SourceError: They contradict each other, or name files that cannot be read; the error has all problems in one
            line.
    """
    problems = [*_of_user(user, user_name), *_of_cluster(cluster, cluster_name)]
    if problems:
        several = "Error in configuration: " if len(problems) > 1 else ""
        raise SourceError(several + "; ".join(problems))


def _of_cluster(cluster: Section, name: str) -> Iterator[str]:
    proxy = cluster.get("proxy-url", "")
    scheme, separator, _ = proxy.partition("://")
    if proxy and (not separator or scheme.lower() not in _PROXIES):
        yield f"invalid 'proxy-url' for cluster \"{name}\": unsupported scheme, must be http, https, or socks5"
    authority = "certificate-authority"
    if cluster.get(authority) and cluster.get(f"{authority}-data"):
        yield f"{authority}-data and {authority} are both specified for {name}"
    if cluster.get("insecure-skip-tls-verify") and (cluster.get(authority) or cluster.get(f"{authority}-data")):
        yield "specifying a root certificates file with the insecure flag is not allowed"
    server_name = cluster.get("tls-server-name", "")
    if server_name and not _is_server_name(server_name):
        yield f'invalid tls-server-name "{server_name}": it is neither a DNS name nor an IP address'
    yield from _unreadable(cluster, authority, authority, name)


def _is_server_name(name: str) -> bool:
    """Tell whether TLS accepts a server name."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        context.wrap_bio(ssl.MemoryBIO(), ssl.MemoryBIO(), server_hostname=name.rstrip("."))
    except (TypeError, ValueError):
        return False
    return True


def _of_user(user: Section, name: str) -> Iterator[str]:
    if user.get("client-certificate") or user.get("client-certificate-data"):
        yield from _of_certificate(user, name)
    if "exec" in user:
        yield from _of_plugin(user, name)
    methods = [
        method
        for method, keys in (("token", ("token",)), ("basicAuth", ("username", "password")))
        if any(map(user.get, keys))
    ]
    if len(methods) > 1:
        yield f"more than one authentication method found for {name}; found [{' '.join(methods)}], only one is allowed"
    elif user.get("tokenFile") and user.get("username"):
        yield "username/password or bearer token may be set, but not both"
    if any(user.get(key) for key in _IMPERSONATED) and not user.get("as"):
        whose = f" for {name}" if name else ""
        yield f"requesting uid, groups or user-extra{whose} without impersonating a user"


def _of_certificate(user: Section, name: str) -> Iterator[str]:
    pair = (("client-certificate", "client-cert"), ("client-key", "client-key"))
    for key, short in pair:
        if user.get(key) and user.get(f"{key}-data"):
            yield f"{short}-data and {short} are both specified for {name}"
    if not user.get("client-key") and not user.get("client-key-data"):
        yield f"client-key-data or client-key must be specified for {name} to use the clientCert authentication method"
    for key, short in pair:
        yield from _unreadable(user, key, short, name)


def _of_plugin(user: Section, name: str) -> Iterator[str]:
    plugin, purpose = user["exec"], f"for {name} to use exec authentication plugin"
    if "auth-provider" in user:
        yield f"authProvider cannot be provided in combination with an exec plugin for {name}"
    for field in ("command", "apiVersion"):
        if not plugin.get(field):
            yield f"{field} must be specified {purpose}"
    if any(not variable.get("name") for variable in plugin.get("env") or ()):
        yield f"env variable name must be specified {purpose}"
    mode = plugin.get("interactiveMode")
    if not mode:
        yield f"interactiveMode must be specified {purpose}"
    elif mode not in _MODES:
        yield f'invalid interactiveMode for {name}: "{mode}"'


def _unreadable(section: Section, key: str, what: str, name: str) -> Iterator[str]:
    path = section.get(key)
    if not path:
        return
    try:
        with Path(path).open("rb"):
            pass
    except (OSError, ValueError) as error:
        yield f"unable to read {what} {path} for {name} due to open {path}: {paths.reason(error)}"
