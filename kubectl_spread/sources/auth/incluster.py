"""The service account of the pod that we run in.

Source: kubernetes v1.37.1 client-go/tools/clientcmd/client_config.go, inClusterClientConfig.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from kubectl_spread.sources.paths import is_file

DIRECTORY: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_HOST: Final = "KUBERNETES_SERVICE_HOST"
_PORT: Final = "KUBERNETES_SERVICE_PORT"


def available(environment: Mapping[str, str]) -> bool:
    """Tell whether we run in a pod that has a service account."""
    return bool(environment.get(_HOST) and environment.get(_PORT) and is_file(DIRECTORY / "token"))


def cluster(environment: Mapping[str, str]) -> dict[str, Any]:
    """Return the apiserver named by the environment of the pod, as a cluster of a kubeconfig."""
    host = environment[_HOST]
    found = {"server": f"https://{f'[{host}]' if ':' in host else host}:{environment[_PORT]}"}
    authority = DIRECTORY / "ca.crt"
    return {**found, "certificate-authority": str(authority)} if is_file(authority) else found


def user() -> dict[str, Any]:
    """Return the service account, as a user of a kubeconfig."""
    return {"tokenFile": str(DIRECTORY / "token")}


def namespace(environment: Mapping[str, str]) -> str:
    """Return the namespace of the pod."""
    named = environment.get("POD_NAMESPACE")
    if named:
        return named
    try:
        return (DIRECTORY / "namespace").read_text().strip() or "default"
    except (OSError, UnicodeDecodeError):
        return "default"
