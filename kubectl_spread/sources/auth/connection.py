"""kubectl's connection flags, applied to the kubeconfig files.

Source: kubernetes v1.37.1 client-go/tools/clientcmd/client_config.go and validation.go. The kubernetes package loads a
context, but no flag can override it.
Differs: a context with a cluster or user that does not exist is an error; kubectl continues without it. Of credentials
that contradict each other, which kubectl refuses, the first in its order count.
"""

from __future__ import annotations

import math
import re
import ssl
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from kubectl_spread.errors import SourceError, UsageError
from kubectl_spread.sources import paths
from kubectl_spread.sources.auth import incluster, kubeconfig
from kubectl_spread.sources.auth.kubeconfig import ContextEntry, Kubeconfig, Secretive, Section

_DEFAULT_SERVER: Final = "http://localhost:8080"
_PART: Final = re.compile(r"(\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h)")
_DURATION: Final = re.compile(rf"\+?(?:{_PART.pattern})+")
_SECONDS: Final = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_LONGEST_IN_GO: Final = (2**63 - 1) / 1e9
_LONGEST: Final = 24 * 24 * 3600.0
"""Sockets count milliseconds in 31 bits."""
_IMPERSONATED: Final = ("as-uid", "as-groups", "as-user-extra")


class ConnectionFlags(Secretive, frozen=True):
    """kubectl's flags of the same names.

    Attributes:
        as_user: ``--as``.
        as_groups: the values of ``--as-group``.
        as_user_extra: ``--as-user-extra``, each ``KEY=VALUE``.
        request_timeout: Seconds, or a Go duration such as ``1m30s``; ``0`` for no limit.
        chunk_size: The number of objects in a page of a list; 0 for all.
    """

    kubeconfig: str = ""
    context: str = ""
    cluster: str = ""
    user: str = ""
    namespace: str = ""
    server: str = ""
    token: str = ""
    username: str = ""
    password: str = ""
    as_user: str = ""
    as_groups: tuple[str, ...] = ()
    as_uid: str = ""
    as_user_extra: tuple[str, ...] = ()
    certificate_authority: str = ""
    client_certificate: str = ""
    client_key: str = ""
    insecure_skip_tls_verify: bool = False
    tls_server_name: str = ""
    proxy_url: str = ""
    disable_compression: bool = False
    request_timeout: str = "0"
    chunk_size: int = 500


class Settings(Secretive, frozen=True):
    """The settings of one connection; every path is absolute.

    Attributes:
        cluster: The server and how to verify it.
        user: The credentials and whom to impersonate.
        namespace: The namespace of ``--namespace``, of the context, of the pod that we run in, or ``default``.
        context: The name of the context that names the server, or "".
        cluster_name: The server's name in the kubeconfig; "" if the server is not from a kubeconfig.
    """

    cluster: Section
    user: Section
    namespace: str
    context: str = ""
    cluster_name: str = ""


def settings(flags: ConnectionFlags, environment: Mapping[str, str]) -> Settings:
    """Return the settings of the connection by ``flags`` and the kubeconfig files.

    If neither names a server, they are those of the pod that we run in.

    Raises:
        UsageError: A flag has a value that is not valid.
        SourceError: A file cannot be read, a flag or the context names something that does not exist, or the settings
            are not valid.
    """
    merged = kubeconfig.load(flags.kubeconfig, environment)
    context_name = flags.context or merged.current_context
    context = _context(flags, merged)
    cluster = _section(merged.clusters, "cluster", flags.cluster, context.cluster)
    user = _section(merged.users, "auth info", flags.user, context.user)
    # These names do not belong to a server from a flag or from the pod.
    cluster_name = (flags.cluster or context.cluster or "") if cluster.get("server") and not flags.server else ""
    inside = incluster.available(environment)
    if inside and not (cluster.get("server") or flags.server):
        # A token from a flag replaces the pod's token; in a kubeconfig kubectl would prefer the token file.
        cluster, user = incluster.cluster(environment), {} if flags.token else incluster.user()
    cluster = _override_cluster({"server": environment.get("KUBERNETES_MASTER", _DEFAULT_SERVER), **cluster}, flags)
    if "://" not in cluster["server"]:
        # ``localhost:8080`` is http, even with settings for TLS.
        cluster = {**cluster, "server": f"http://{cluster['server']}"}
    user = _override_user(user, flags)
    _confirm(cluster, flags.cluster or context.cluster or "", user, flags.user or context.user or "")
    otherwise = incluster.namespace(environment) if inside else "default"
    namespace = flags.namespace or context.namespace or otherwise
    return Settings(
        cluster,
        user,
        namespace,
        context=context_name if cluster_name and cluster_name == context.cluster else "",
        cluster_name=cluster_name,
    )


def seconds(text: str) -> float:
    """Return a duration such as ``1m30s``, or a plain number of seconds, in seconds; at most 24 days.

    Raises:
        UsageError: It is neither, or longer than Go can count.

    Source: kubernetes v1.37.1 client-go/tools/clientcmd/helpers.go, ParseTimeout.
    """
    duration = math.inf
    if text.isascii() and text.isdigit():
        duration = float(text)
    elif _DURATION.fullmatch(text):
        duration = sum(float(number) * _SECONDS[unit] for number, unit in _PART.findall(text))
    if duration > _LONGEST_IN_GO:
        raise UsageError(
            "Invalid timeout value. Timeout must be a single integer in seconds, or an integer "
            "followed by a corresponding time unit (e.g. 1s | 2m | 3h)"
        )
    return min(duration, _LONGEST)


def _context(flags: ConnectionFlags, merged: Kubeconfig) -> ContextEntry:
    name = flags.context or merged.current_context
    if name in merged.contexts:
        return merged.contexts[name]
    if flags.context:
        raise SourceError(f'context "{name}" does not exist')
    if name:
        raise SourceError(f"Error in configuration: context was not found for specified context: {name}")
    return ContextEntry()


def _section(sections: Mapping[str, Section], what: str, flag: str, named: str | None) -> Section:
    name = flag or named
    if not name:
        return {}
    if name in sections:
        return sections[name]
    if flag:
        raise SourceError(f'{what} "{name}" does not exist')
    raise SourceError(f'Error in configuration: {what} "{name}" was not found for the context')


def _override_cluster(cluster: Section, flags: ConnectionFlags) -> Section:
    if flags.server:
        # The name belongs to the server that the flag replaces.
        cluster = {**_without(cluster, "tls-server-name"), "server": flags.server}
    if flags.tls_server_name:
        cluster = {**cluster, "tls-server-name": flags.tls_server_name}
    authority = ("certificate-authority", "certificate-authority-data")
    if flags.certificate_authority:
        cluster = _without(cluster, *authority, "insecure-skip-tls-verify")
        cluster["certificate-authority"] = str(paths.absolute(flags.certificate_authority))
    elif flags.insecure_skip_tls_verify:
        cluster = _without(cluster, *authority)
    if flags.insecure_skip_tls_verify:
        cluster = {**cluster, "insecure-skip-tls-verify": True}
    if flags.proxy_url:
        cluster = {**cluster, "proxy-url": flags.proxy_url}
    if flags.disable_compression:
        cluster = {**cluster, "disable-compression": True}
    return cluster


def _override_user(user: Section, flags: ConnectionFlags) -> Section:
    """Return the user with the values of the flags; a certificate or key from a flag replaces the embedded one."""
    for key, value in (("client-certificate", flags.client_certificate), ("client-key", flags.client_key)):
        if value:
            user = {**_without(user, f"{key}-data"), key: str(paths.absolute(value))}
    overrides = {
        "token": flags.token,
        "username": flags.username,
        "password": flags.password,
        "as": flags.as_user,
        "as-groups": list(flags.as_groups),
        "as-uid": flags.as_uid,
        "as-user-extra": _extra(flags.as_user_extra),
    }
    return {**user, **{key: value for key, value in overrides.items() if value}}


def _extra(pairs: Sequence[str]) -> dict[str, list[str]]:
    extra: dict[str, list[str]] = {}
    for pair in pairs:
        key, separator, value = pair.partition("=")
        if not (separator and key):
            raise UsageError(f'invalid extra "{pair}" of --as-user-extra: write KEY=VALUE')
        extra.setdefault(key, []).append(value)
    return extra


def _without(section: Section, *keys: str) -> Section:
    return {key: value for key, value in section.items() if key not in keys}


def _confirm(cluster: Section, cluster_name: str, user: Section, user_name: str) -> None:
    """Raise one error with all reasons why both sections do not make a connection."""
    problems = [*_of_user(user, user_name), *_of_cluster(cluster, cluster_name)]
    if problems:
        several = "Error in configuration: " if len(problems) > 1 else ""
        raise SourceError(several + "; ".join(problems))


def _of_cluster(cluster: Section, name: str) -> Iterator[str]:
    authority = "certificate-authority"
    if cluster.get("insecure-skip-tls-verify") and (cluster.get(authority) or cluster.get(f"{authority}-data")):
        yield "specifying a root certificates file with the insecure flag is not allowed"
    server_name = cluster.get("tls-server-name", "")
    if server_name and not _is_server_name(server_name):
        yield f'invalid tls-server-name "{server_name}": it is neither a DNS name nor an IP address'
    yield from _unreadable(cluster, authority, authority, name)


def _is_server_name(name: str) -> bool:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        context.wrap_bio(ssl.MemoryBIO(), ssl.MemoryBIO(), server_hostname=name.rstrip("."))
    except (TypeError, ValueError):
        return False
    return True


def _of_user(user: Section, name: str) -> Iterator[str]:
    yield from _unreadable(user, "client-certificate", "client-cert", name)
    yield from _unreadable(user, "client-key", "client-key", name)
    for field in ("command", "apiVersion") if "exec" in user else ():
        if not user["exec"].get(field):
            yield f"{field} must be specified for {name} to use exec authentication plugin"
    if any(user.get(key) for key in _IMPERSONATED) and not user.get("as"):
        whose = f" for {name}" if name else ""
        yield f"requesting uid, groups or user-extra{whose} without impersonating a user"


def _unreadable(section: Section, key: str, what: str, name: str) -> Iterator[str]:
    path = section.get(key)
    if not path:
        return
    try:
        with Path(path).open("rb"):
            pass
    except (OSError, ValueError) as error:
        yield f"unable to read {what} {path} for {name} due to open {path}: {paths.reason(error)}"
