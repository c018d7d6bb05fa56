"""The contexts of ``--contexts``: each names a cluster and a user of the kubeconfig, and nothing else may."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final

from kubectl_spread.errors import SourceError, UsageError
from kubectl_spread.phrases import did_you_mean
from kubectl_spread.sources.auth import kubeconfig

ALL: Final = "all"
_OTHER_CLUSTERS: Final = {
    "context": "--context",
    "cluster": "--cluster",
    "server": "--server",
    "cluster_name": "--cluster-name",
    "filename": "-f",
    "kustomize": "-k",
    "baseline": "--baseline",
    "watch": "--watch",
}
"""Options that say which cluster is meant, or that are about one cluster."""
_CREDENTIALS: Final = {
    "user": "--user",
    "token": "--token",
    "username": "--username",
    "password": "--password",
    "client_certificate": "--client-certificate",
    "client_key": "--client-key",
    "certificate_authority": "--certificate-authority",
    "tls_server_name": "--tls-server-name",
}
"""Options that belong to one cluster, to which no other one should get the credentials."""


def contexts(chosen: str, parameters: Mapping[str, object]) -> list[str]:
    """Return the names of the contexts that ``--contexts`` chooses, each once; nothing is sent.

    Raises:
        UsageError: Another option names a cluster or credentials of one, or no context is named.
        SourceError: The kubeconfig has no such context, or cannot be read.
    """
    for name, option in {**_OTHER_CLUSTERS, **_CREDENTIALS}.items():
        if parameters.get(name):
            raise UsageError(f"--contexts and {option} contradict each other: every context names its own cluster")
    available = kubeconfig.load(str(parameters.get("kubeconfig") or ""), os.environ).contexts
    names = sorted(available) if chosen == ALL else list(dict.fromkeys(filter(None, chosen.split(","))))
    if not names:
        raise UsageError("--contexts names no context" if chosen != ALL else "the kubeconfig has no contexts")
    for name in names:
        if name not in available:
            raise SourceError(f'context "{name}" does not exist{did_you_mean(name, available)}')
    return names
