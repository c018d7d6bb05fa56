"""The service account of the pod that we run in, loaded by the kubernetes package.

Source: kubernetes v1.37.1 client-go/tools/clientcmd/client_config.go, inClusterClientConfig.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from kubectl_spread.errors import SourceError

DIRECTORY: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_VARIABLES: Final = ("KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT")


def available(environment: Mapping[str, str]) -> bool:
    """Tell whether we run in a pod that has a service account."""
    return all(map(environment.get, _VARIABLES)) and os.path.isfile(DIRECTORY / "token")  # noqa: PTH113 - is_file may raise


def cluster(environment: Mapping[str, str]) -> dict[str, Any]:
    """Return the API server whose address the pod was given, as a cluster of a kubeconfig.

    Raises:
        SourceError: The service account is not complete.
    """
    # Only a login in a pod needs the package, whose import takes 0.3 s.
    from kubernetes.client import Configuration  # noqa: PLC0415 - see above
    from kubernetes.config import ConfigException  # noqa: PLC0415 - see above
    from kubernetes.config.incluster_config import InClusterConfigLoader  # noqa: PLC0415 - see above

    token, authority = str(DIRECTORY / "token"), str(DIRECTORY / "ca.crt")
    configuration = Configuration()
    try:
        InClusterConfigLoader(token, authority, environ=environment).load_and_set(configuration)
    except (ConfigException, OSError, ValueError) as error:
        raise SourceError(f"cannot log in with the pod's service account: {error}") from error
    return {"server": configuration.host, "certificate-authority": configuration.ssl_ca_cert}


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
