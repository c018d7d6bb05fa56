"""Kubeconfig files, found and merged as kubectl does.

Source: kubernetes v1.37.1 client-go/tools/clientcmd/loader.go. The kubernetes package merges files,
too, but takes the current context of the last file, where kubectl takes that of the first.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias

import msgspec

from kubectl_spread.errors import SourceError
from kubectl_spread.sources.decode import yaml_values
from kubectl_spread.sources.paths import absolute, reason

Section: TypeAlias = dict[str, Any]
"""The ``cluster`` or ``user`` of a kubeconfig, without fields that are null or empty."""

_LARGEST: Final = 16 << 20
"""The most bytes of a file with credentials; a kubeconfig of a thousand clusters has 8 MiB."""
_FILES: Final = ("certificate-authority", "client-certificate", "client-key", "tokenFile")


class Secretive(msgspec.Struct, frozen=True):
    """Values with secrets among them, which its text does not show."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}(…)"


class _Part(msgspec.Struct, frozen=True, rename="kebab", omit_defaults=True):
    pass


class _Cluster(_Part, frozen=True):
    server: str | None = None
    certificate_authority: str | None = None
    certificate_authority_data: str | None = None
    insecure_skip_tls_verify: bool | None = None
    tls_server_name: str | None = None
    proxy_url: str | None = None
    disable_compression: bool | None = None
    extensions: list[dict[str, Any]] | None = None


class _Exec(_Part, frozen=True):
    command: str | None = None
    api_version: str | None = msgspec.field(default=None, name="apiVersion")
    args: list[str] | None = None
    env: list[dict[str, str]] | None = None
    provide_cluster_info: bool | None = msgspec.field(default=None, name="provideClusterInfo")
    install_hint: str | None = msgspec.field(default=None, name="installHint")
    interactive_mode: str | None = msgspec.field(default=None, name="interactiveMode")


class _AuthProvider(_Part, frozen=True):
    name: str | None = None
    config: dict[str, str] | None = None


class _User(_Part, frozen=True):
    token: str | None = None
    token_file: str | None = msgspec.field(default=None, name="tokenFile")
    client_certificate: str | None = None
    client_certificate_data: str | None = None
    client_key: str | None = None
    client_key_data: str | None = None
    username: str | None = None
    password: str | None = None
    as_: str | None = msgspec.field(default=None, name="as")
    as_uid: str | None = None
    as_groups: list[str] | None = None
    as_user_extra: dict[str, list[str]] | None = None
    exec: _Exec | None = None
    auth_provider: _AuthProvider | None = None


class ContextEntry(_Part, frozen=True):
    """The names of a cluster and a user, and a namespace."""

    cluster: str | None = None
    user: str | None = None
    namespace: str | None = None


class _Named(_Part, frozen=True):
    """An entry of one of the three lists, with the field of its list."""

    name: str
    cluster: _Cluster | None = None
    user: _User | None = None
    context: ContextEntry | None = None


class _File(_Part, frozen=True):
    api_version: str | None = msgspec.field(default=None, name="apiVersion")
    kind: str | None = None
    clusters: tuple[_Named, ...] | None = None
    users: tuple[_Named, ...] | None = None
    contexts: tuple[_Named, ...] | None = None
    current_context: str | None = None


class Kubeconfig(msgspec.Struct):
    """All files merged; for each name the first file counts.

    Attributes:
        clusters: Maps a name to a server and how to verify it.
        users: Maps a name to credentials.
        contexts: Maps a name to a cluster, a user and a namespace.
        current_context: The name of the context to use, or "".
    """

    clusters: dict[str, Section] = msgspec.field(default_factory=dict)
    users: dict[str, Section] = msgspec.field(default_factory=dict)
    contexts: dict[str, ContextEntry] = msgspec.field(default_factory=dict)
    current_context: str = ""


def load(explicit: str, environment: Mapping[str, str]) -> Kubeconfig:
    """Read the kubeconfig files.

    Args:
        explicit: The file of ``--kubeconfig``; "" for the files in ``KUBECONFIG``, or otherwise the one in the home
            directory, as far as they exist.
        environment: The environment variables.

    Raises:
        SourceError: A file cannot be read or is malformed.
    """
    merged = Kubeconfig()
    for path in paths(explicit, environment):
        file = _read(path, required=bool(explicit))
        if file is None:
            continue
        directory = absolute(path.parent)
        for cluster in file.clusters or ():
            merged.clusters.setdefault(cluster.name, _absolute(cluster.cluster, directory))
        for user in file.users or ():
            merged.users.setdefault(user.name, _absolute(user.user, directory))
        for context in file.contexts or ():
            merged.contexts.setdefault(context.name, context.context or ContextEntry())
        merged.current_context = merged.current_context or file.current_context or ""
    return merged


def content(path: Path) -> bytes:
    """Return the content of a file with credentials; it may be an endless device.

    Raises:
        OSError: It cannot be read.
        SourceError: It is larger than such a file can be.
    """
    with path.open("rb") as file:
        body = file.read(_LARGEST + 1)
    if len(body) > _LARGEST:
        raise SourceError(f"{path}: larger than {_LARGEST >> 20} MiB, the most for a file with credentials")
    return body


def paths(explicit: str, environment: Mapping[str, str]) -> list[Path]:
    """Return the files to read; a file from a flag must exist, others may be missing."""
    if explicit:
        return [Path(explicit)]
    listed = environment.get("KUBECONFIG", "")
    if listed:
        # In this order, each once; empty parts of the list are skipped.
        return [Path(part) for part in dict.fromkeys(listed.split(os.pathsep)) if part]
    try:
        return [Path.home() / ".kube" / "config"]
    except RuntimeError:
        # Neither HOME nor the system's list of users names a home directory.
        return []


def _read(path: Path, *, required: bool) -> _File | None:
    """Return a decoded file; None if it does not exist and is not ``required``."""
    try:
        first = next(iter(yaml_values.read_all(content(path), str(path))), None)
        file = msgspec.convert(first or {}, _File)
        _check(file, path)
    except OSError as error:
        if isinstance(error, FileNotFoundError | NotADirectoryError) and not required:
            return None
        raise SourceError(f"error loading config file {path}: {reason(error)}") from error
    except msgspec.ValidationError as error:
        problem, _, place = str(error).replace("`", "").partition(" - at ")
        where = f"{place.removeprefix('$.')}: " if place else ""
        raise SourceError(f"error loading config file {path}: {where}{problem}") from error
    except SourceError as error:
        raise SourceError(f"error loading config file {error}") from error
    return file


def _check(file: _File, path: Path) -> None:
    """Check that a file is a kubeconfig, and that no name in it is duplicated."""
    kind, version = file.kind or "Config", file.api_version or "v1"
    if (kind, version) != ("Config", "v1"):
        raise SourceError(f'{path}: no kind "{kind}" is registered for version "{version}"')
    for section in (file.clusters, file.users, file.contexts):
        seen = set()
        for named in section or ():
            if named.name in seen:
                raise SourceError(f'{path}: duplicate name "{named.name}" in list')
            seen.add(named.name)


def _absolute(part: _Cluster | _User | None, directory: Path) -> Section:
    """Return a section with absolute paths; its paths are relative to the directory of its file."""
    section = {key: value for key, value in msgspec.to_builtins(part or {}).items() if value}
    section |= {key: str(directory / section[key]) for key in _FILES if key in section}
    command = section.get("exec", {}).get("command", "")
    if os.sep in command:
        # The plugin is a path; a name without a separator is looked up in PATH.
        section["exec"]["command"] = str(directory / command)
    return section
