"""Credentials from a program that the kubeconfig names.

Source: kubernetes v1.37.1 client-go/plugin/pkg/client/auth/exec/exec.go. The kubernetes package runs such programs too,
but not as kubectl does: docs/decisions/10-requests.md.
"""

from __future__ import annotations

import json
import math
import os
import shutil
import subprocess
import sys
import threading
from base64 import b64decode, b64encode
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import msgspec

from kubectl_spread.errors import SourceError
from kubectl_spread.sources.auth import kubeconfig
from kubectl_spread.sources.auth.kubeconfig import Secretive, Section
from kubectl_spread.sources.decode import yaml_values

FAILED: Final = "Unable to connect to the server: getting credentials: "
_GROUP: Final = "client.authentication.k8s.io"
_RUNNING: Final = threading.Lock()
"""One program runs at a time: it may ask on the terminal, and several may share a cache."""
_VERSIONS: Final = (f"{_GROUP}/v1", f"{_GROUP}/v1beta1")


class Credentials(Secretive, frozen=True, rename="camel"):
    """The credentials that a program prints; times are RFC 3339, certificate and key PEM."""

    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""
    expiration_timestamp: datetime | None = None

    @property
    def expires(self) -> float:
        """The end of the credentials in seconds since 1970; infinite if they have none."""
        if self.expiration_timestamp is None:
            return math.inf
        moment = self.expiration_timestamp
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()

    @property
    def user(self) -> Section:
        """The certificate as a user of a kubeconfig."""
        pair = {"client-certificate-data": self.client_certificate_data, "client-key-data": self.client_key_data}
        return {name: b64encode(pem.encode()).decode() for name, pem in pair.items() if pem}


class _ExecCredential(msgspec.Struct, frozen=True, rename="camel"):
    api_version: str
    kind: str
    status: Credentials | None = None


def credentials(plugin: Section, cluster: Section) -> Credentials:
    """Run a program and return its credentials; its standard error is ours.

    Args:
        plugin: The ``exec`` of a user, which has a command and an apiVersion.
        cluster: The cluster that the credentials are for.

    Raises:
        SourceError: The program is missing or fails, or its output is not valid; the error does not show the output.
    """
    version = plugin["apiVersion"]
    if version not in _VERSIONS:
        raise SourceError(f'exec plugin: invalid apiVersion "{version}"')
    spec: Section = {"interactive": _is_interactive(plugin.get("interactiveMode"))}
    if plugin.get("provideClusterInfo"):
        spec["cluster"] = _cluster_info(cluster)
    info = json.dumps({"kind": "ExecCredential", "apiVersion": version, "spec": spec})
    return _decoded(_run(plugin, info, interactive=spec["interactive"]), version)


def _is_interactive(mode: str | None) -> bool:
    terminal = sys.stdin is not None and sys.stdin.isatty()
    if mode == "Always" and not terminal:
        raise SourceError(f"{FAILED}exec plugin cannot support interactive mode: standard input is not a terminal")
    return terminal and mode != "Never"


def _cluster_info(cluster: Section) -> Section:
    names = ("server", "tls-server-name", "insecure-skip-tls-verify", "proxy-url", "disable-compression")
    cluster_info = {name: cluster[name] for name in names if cluster.get(name)}
    authority = cluster.get("certificate-authority-data")
    try:
        if authority:
            # Encoded again, because the kubeconfig may have it on several lines.
            authority = b64encode(b64decode(authority)).decode()
        elif cluster.get("certificate-authority"):
            authority = b64encode(kubeconfig.content(Path(cluster["certificate-authority"]))).decode()
    except (OSError, ValueError) as error:
        raise SourceError(f"failed to load CA bundle for execProvider: {error}") from error
    if authority:
        cluster_info["certificate-authority-data"] = authority
    for extension in cluster.get("extensions", ()):
        if extension.get("name") == f"{_GROUP}/exec":
            cluster_info["config"] = extension.get("extension")
    return cluster_info


def _run(plugin: Section, info: str, *, interactive: bool) -> bytes:
    command = plugin["command"]
    program = shutil.which(command, mode=os.F_OK)
    if program is None:
        hint = " ".join(str(plugin.get("installHint", "")).split())
        raise SourceError(f"{FAILED}exec: executable {command} not found{f' ({hint})' if hint else ''}")
    variables = {each["name"]: each.get("value", "") for each in plugin.get("env") or () if each.get("name")}
    environment = {**os.environ, **variables, "KUBERNETES_EXEC_INFO": info}
    try:
        with _RUNNING:
            completed = subprocess.run(  # noqa: S603 - the kubeconfig names the program to run
                [program, *(plugin.get("args") or ())],
                check=False,
                stdin=None if interactive else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                env=environment,
            )
    except (OSError, ValueError) as error:
        reason = (getattr(error, "strerror", None) or str(error)).lower()
        raise SourceError(f"{FAILED}exec: fork/exec {program}: {reason}") from None
    if completed.returncode:
        raise SourceError(f"{FAILED}exec: executable {command} failed with exit code {completed.returncode}")
    return completed.stdout


def _decoded(output: bytes, version: str) -> Credentials:
    try:
        credential = msgspec.convert(next(iter(yaml_values.read_all(output, "stdout")), None), _ExecCredential)
    except (SourceError, msgspec.ValidationError):
        # The reason would quote text that may be secret.
        raise SourceError(f"{FAILED}decoding stdout: it is not an ExecCredential") from None
    if credential.kind != "ExecCredential":
        raise SourceError(f'{FAILED}decoding stdout: no kind "{credential.kind}" is registered')
    if credential.api_version != version:
        raise SourceError(
            f"{FAILED}exec plugin is configured to use API version {version}, "
            f"plugin returned version {credential.api_version}"
        )
    status = credential.status
    if status is None:
        raise SourceError(f"{FAILED}exec plugin didn't return a status field")
    if bool(status.client_certificate_data) != bool(status.client_key_data):
        raise SourceError(f"{FAILED}exec plugin returned only certificate or key, not both")
    if not status.token and not status.client_certificate_data:
        raise SourceError(f"{FAILED}exec plugin didn't return a token or cert/key pair")
    return status
