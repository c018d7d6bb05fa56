"""kubectl's connection flags, applied to what the kubeconfig files say.

Source: kubernetes v1.37.1 client-go/tools/clientcmd/client_config.go. The kubernetes package loads
what stands in a context, but lets no flag override it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from kubectl_spread.errors import SourceError
from kubectl_spread.sources import kubeconfig
from kubectl_spread.sources.kubeconfig import Context, Kubeconfig, Section

_DEFAULT_SERVER: Final = "http://localhost:8080"
_CREDENTIALS: Final = ("auth-provider", "exec", "username", "password", "tokenFile")


@dataclass(frozen=True, slots=True)
class ConnectionFlags:
    """kubectl's flags of the same names; "", () and None: not given.

    Attributes:
        as_user: ``--as``.
        as_groups: ``--as-group``, each time it was given.
        request_timeout: Seconds, or a Go duration such as ``1m30s``; ``0``: as long as it takes.
        chunk_size: How many objects a page of a list holds; 0: all of them.
    """

    kubeconfig: str = ""
    context: str = ""
    cluster: str = ""
    user: str = ""
    namespace: str = ""
    server: str = ""
    token: str = field(default="", repr=False)
    as_user: str = ""
    as_groups: tuple[str, ...] = ()
    as_uid: str = ""
    certificate_authority: str = ""
    client_certificate: str = ""
    client_key: str = ""
    insecure_skip_tls_verify: bool | None = None
    tls_server_name: str = ""
    request_timeout: str = "0"
    chunk_size: int = 500


@dataclass(frozen=True, slots=True)
class Settings:
    """What one connection is made of; every path is absolute.

    Attributes:
        cluster: The server and how to know it.
        user: The credentials and whom to impersonate.
        namespace: The namespace of ``--namespace`` or of the context; "": neither names one.
        configured: Whether a kubeconfig or a flag named a server.
    """

    cluster: Section
    user: Section = field(repr=False)
    namespace: str
    configured: bool


def settings(flags: ConnectionFlags, environment: Mapping[str, str]) -> Settings:
    """Return the settings of the connection that ``flags`` and the kubeconfig files ask for.

    Raises:
        SourceError: A file cannot be read, or what a flag or the context names does not exist.
    """
    merged = kubeconfig.load(flags.kubeconfig, environment)
    context = _context(flags, merged)
    cluster = _section(merged.clusters, "cluster", flags.cluster, context.cluster)
    user = _section(merged.users, "auth info", flags.user, context.user)
    named = bool(cluster.get("server") or flags.server)
    default_server = environment.get("KUBERNETES_MASTER", _DEFAULT_SERVER)
    user = _override_user(user, flags)
    cluster = _override_cluster({"server": default_server, **cluster}, flags)
    return Settings(
        cluster=_with_scheme(cluster, user),
        user=user,
        namespace=flags.namespace or context.namespace or "",
        configured=named or bool(merged.contexts),
    )


def _context(flags: ConnectionFlags, merged: Kubeconfig) -> Context:
    name = flags.context or merged.current_context
    if name in merged.contexts:
        return merged.contexts[name]
    if flags.context:
        msg = f'context "{name}" does not exist'
        raise SourceError(msg)
    if name:
        msg = f"Error in configuration: context was not found for specified context: {name}"
        raise SourceError(msg)
    return Context()


def _section(sections: Mapping[str, Section], what: str, flag: str, named: str | None) -> Section:
    name = flag or named
    if not name:
        return {}
    if name in sections:
        return sections[name]
    if flag:
        msg = f'{what} "{name}" does not exist'
    else:
        msg = f'Error in configuration: {what} "{name}" was not found for the context'
    raise SourceError(msg)


def _override_cluster(cluster: Section, flags: ConnectionFlags) -> Section:
    if flags.server:
        # The name belongs to the server that the flag replaces.
        cluster = {**_without(cluster, "tls-server-name"), "server": flags.server}
    if flags.tls_server_name:
        cluster = {**cluster, "tls-server-name": flags.tls_server_name}
    authority = ("certificate-authority", "certificate-authority-data")
    if flags.certificate_authority:
        cluster = _without(cluster, *authority, "insecure-skip-tls-verify")
        cluster["certificate-authority"] = str(Path(flags.certificate_authority).absolute())
    elif flags.insecure_skip_tls_verify:
        cluster = _without(cluster, *authority)
    if flags.insecure_skip_tls_verify is not None:
        cluster = {**cluster, "insecure-skip-tls-verify": flags.insecure_skip_tls_verify}
    if cluster.get("insecure-skip-tls-verify") and any(cluster.get(key) for key in authority):
        msg = "specifying a root certificates file with the insecure flag is not allowed"
        raise SourceError(msg)
    return cluster


def _with_scheme(cluster: Section, user: Section) -> Section:
    """Complete a server such as ``localhost:8080``: https if anything speaks for TLS."""
    server = cluster["server"]
    if "://" in server:
        return cluster
    names = ("certificate-authority", "certificate-authority-data", "insecure-skip-tls-verify")
    secure = any(cluster.get(name) for name in names) or any(
        user.get(name) for name in ("client-certificate", "client-certificate-data")
    )
    return {**cluster, "server": f"{'https' if secure else 'http'}://{server}"}


def _override_user(user: Section, flags: ConnectionFlags) -> Section:
    if flags.token:
        user = {**_without(user, *_CREDENTIALS), "token": flags.token}
    for key, value in (
        ("client-certificate", flags.client_certificate),
        ("client-key", flags.client_key),
    ):
        if value:
            user = {**_without(user, f"{key}-data"), key: str(Path(value).absolute())}
    for key, given in (
        ("as", flags.as_user),
        ("as-groups", list(flags.as_groups)),
        ("as-uid", flags.as_uid),
    ):
        if given:
            user = {**user, key: given}
    if not user.get("as") and any(user.get(f"as-{key}") for key in ("uid", "groups", "user-extra")):
        msg = "requesting uid, groups or user-extra without impersonating a user"
        raise SourceError(msg)
    return user


def _without(section: Section, *keys: str) -> Section:
    return {key: value for key, value in section.items() if key not in keys}
