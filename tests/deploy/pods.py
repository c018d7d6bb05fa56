"""The pods of the monitor, with the files and the environment that a kubelet gives to their containers."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from tests.builders import Json
from tests.controlplane.cluster import ControlPlane
from tests.e2e.workloads import pods

_PATIENCE = 60


def pod_of(cluster: ControlPlane, namespace: str) -> Json:
    """Return the only pod of a namespace, as the API server has stored it."""
    (pod,) = cluster.wait_for(lambda: pods(cluster, namespace), what=f"a pod in {namespace}")
    return pod


def service_account(cluster: ControlPlane, pod: Json, directory: Path) -> Path:
    """Write the files that a kubelet would mount into a pod, and return their directory."""
    namespace, name = pod["metadata"]["namespace"], pod["spec"]["serviceAccountName"]
    directory.mkdir()
    shutil.copy(cluster._security.authority.certificate, directory / "ca.crt")
    token = cluster.kubectl("create", "token", name, "-n", namespace).stdout.strip()
    (directory / "token").write_text(token, encoding="utf-8")
    (directory / "namespace").write_text(namespace, encoding="utf-8")
    return directory


def variables(cluster: ControlPlane, account: Path) -> dict[str, str]:
    """Return the environment of a container of this cluster."""
    host, _, port = cluster.api.server.removeprefix("https://").rpartition(":")
    return {
        "KUBERNETES_SERVICE_HOST": host,
        "KUBERNETES_SERVICE_PORT": port,
        "ACCOUNT": str(account),
        "PATH": os.environ["PATH"],
    }
