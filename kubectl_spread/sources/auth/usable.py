"""Checks of a cluster and a user of a kubeconfig.

Source: kubernetes v1.37.1 client-go/tools/clientcmd/validation.go.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from kubectl_spread.errors import SourceError
from kubectl_spread.kube.api.field import FieldPath

Section = dict[str, Any]

_MODES: Final = frozenset({"Never", "IfAvailable", "Always"})
_IMPERSONATED: Final = ("as-uid", "as-groups", "as-user-extra")
_SECTION: Final = FieldPath()
_FILES: Final = frozenset(
    map(FieldPath.parse, ("certificate-authority", "client-certificate", "client-key", "tokenFile", "exec.command"))
)
_PROXIES: Final = ("http", "https", "socks5")


def confirm(cluster: Section, cluster_name: str, user: Section, user_name: str) -> None:
    """Check that both sections make a connection.

    Args:
        cluster: The server and how to verify it.
        cluster_name: Its name in the kubeconfig, or "".
        user: The credentials.
        user_name: Its name in the kubeconfig, or "".

    Raises:
        SourceError: They contradict each other, or name files that cannot be read; the error has all problems in one
            line.
    """
    problems = [*_of_texts(user, user_name), *_of_texts(cluster, cluster_name)]
    if not problems:
        problems = [*_of_user(user, user_name), *_of_cluster(cluster, cluster_name)]
    if len(problems) > 1:
        raise SourceError(f"Error in configuration: {'; '.join(problems)}")
    if problems:
        raise SourceError(problems[0])


def confirm_namespace(namespace: str) -> None:
    """Check that a namespace can be part of an address.

    Raises:
        SourceError: It contains half of a surrogate pair.
    """
    try:
        namespace.encode()
    except UnicodeEncodeError:
        raise SourceError(f'invalid namespace "{namespace}"') from None


def _of_texts(section: Section, name: str) -> Iterator[str]:
    """Yield the paths of texts with a character that no file name, header or address can have, never the texts."""
    whose = f" for {name}" if name else ""
    for path, text in _texts(section):
        try:
            # A path may have bytes that are not UTF-8, which Python represents as surrogates.
            data = os.fsencode(text) if path in _FILES else text.encode()
        except UnicodeEncodeError:
            yield f"{path}{whose} contains half of a surrogate pair"
            continue
        if b"\0" in data:
            yield f"{path}{whose} contains the character U+0000"


def _texts(value: object, path: FieldPath = _SECTION) -> Iterator[tuple[FieldPath, str]]:
    """Yield the texts in a JSON value, keys of objects too, with their paths."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict):
        for key, nested in value.items():
            yield path / key, key
            yield from _texts(nested, path / key)
    elif isinstance(value, list):
        for index, nested in enumerate(value):
            yield from _texts(nested, path / index)


def _of_cluster(cluster: Section, name: str) -> Iterator[str]:
    proxy = cluster.get("proxy-url", "")
    scheme, separator, _ = proxy.partition("://")
    if proxy and (not separator or scheme.lower() not in _PROXIES):
        schemes = f"{', '.join(_PROXIES[:-1])}, or {_PROXIES[-1]}"
        yield f"invalid 'proxy-url' for cluster \"{name}\": unsupported scheme, must be {schemes}"
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
    except ValueError:
        return False
    return True


def _of_user(user: Section, name: str) -> Iterator[str]:
    if user.get("client-certificate") or user.get("client-certificate-data"):
        yield from _of_certificate(user, name)
    if "exec" in user:
        yield from _of_plugin(user, name)
    methods = [method for method, key in (("token", "token"), ("basicAuth", "username")) if user.get(key)]
    if "basicAuth" not in methods and user.get("password"):
        methods.append("basicAuth")
    if len(methods) > 1:
        names = " ".join(methods)
        yield f"more than one authentication method found for {name}; found [{names}], only one is allowed"
    elif user.get("tokenFile") and user.get("username"):
        yield "username/password or bearer token may be set, but not both"
    if any(user.get(key) for key in _IMPERSONATED) and not user.get("as"):
        whose = f" for {name}" if name else ""
        yield f"requesting uid, groups or user-extra{whose} without impersonating a user"


def _of_certificate(user: Section, name: str) -> Iterator[str]:
    for key, short in (("client-certificate", "client-cert"), ("client-key", "client-key")):
        if user.get(key) and user.get(f"{key}-data"):
            yield f"{short}-data and {short} are both specified for {name}"
    if not user.get("client-key") and not user.get("client-key-data"):
        yield f"client-key-data or client-key must be specified for {name} to use the clientCert authentication method"
    yield from _unreadable(user, "client-certificate", "client-cert", name)
    yield from _unreadable(user, "client-key", "client-key", name)


def _of_plugin(user: Section, name: str) -> Iterator[str]:
    plugin, purpose = user["exec"], f"for {name} to use exec authentication plugin"
    if "auth-provider" in user:
        yield f"authProvider cannot be provided in combination with an exec plugin for {name}"
    if not plugin.get("command"):
        yield f"command must be specified {purpose}"
    if not plugin.get("apiVersion"):
        yield f"apiVersion must be specified {purpose}"
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
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        yield f"unable to read {what} {path} for {name} due to open {path}: {reason}"
