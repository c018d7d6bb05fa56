"""A monitor that runs as the container of its pod does: same arguments, and the files of its service account."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import urllib3

from tests.builders import Json
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.processes import LOOPBACK, free_port
from tests.e2e.workloads import pods

_PATIENCE = 60


@dataclass(frozen=True)
class Running:
    """A running monitor; its ports are not those of the manifest, since another program may have these.

    Attributes:
        process: The program, or the one that has replaced itself with it.
        port: The main port.
        telemetry: The port of telemetry.
        log: What it printed.
        authority: The authority of its certificate; it serves plain HTTP without one.
    """

    process: subprocess.Popen[bytes]
    port: int
    telemetry: int
    log: Path
    authority: Path | None

    def get(self, path: str, *, telemetry: bool = False) -> urllib3.BaseHTTPResponse:
        """Request a path."""
        port = self.telemetry if telemetry else self.port
        with urllib3.PoolManager(ca_certs=self.authority and str(self.authority), retries=False, timeout=10) as pool:
            return pool.request("GET", f"{'https' if self.authority else 'http'}://{LOOPBACK}:{port}{path}")

    def ready(self) -> bool:
        """Tell whether it has published a state.

        Raises:
            RuntimeError: It has ended; the message is what it printed.
        """
        if self.process.poll() is not None:
            raise RuntimeError(self.log.read_text(encoding="utf-8"))
        try:
            return self.get("/readyz", telemetry=True).status == 200
        except urllib3.exceptions.HTTPError:
            return False

    def stop(self) -> int:
        """End it as a kubelet does, and return its exit status."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(20)


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


@contextmanager
def running(
    cluster: ControlPlane,
    command: Sequence[str],
    environment: Mapping[str, str],
    directory: Path,
    authority: Path | None = None,
) -> Iterator[Running]:
    """Run a monitor until the end of the ``with`` block, and wait until it is ready.

    Args:
        cluster: The cluster that it follows.
        command: The program with its arguments, and the program that prepares its mounts.
        environment: The environment of the container.
        directory: The directory of its log.
        authority: The authority of its certificate, if it has one.

    Raises:
        RuntimeError: It ended; the message is what it printed.
        TimeoutError: It did not become ready.
    """
    port, telemetry, log = free_port(), free_port(), directory / "monitor.log"
    addresses = [f"--listen={LOOPBACK}:{port}", f"--telemetry={LOOPBACK}:{telemetry}"]
    with (
        log.open("wb") as output,
        subprocess.Popen([*command, *addresses], stdout=output, stderr=output, env=dict(environment)) as process,
    ):
        try:
            monitor = Running(process, port, telemetry, log, authority)
            cluster.wait_for(monitor.ready, timeout=_PATIENCE, what="the monitor is ready")
            yield monitor
        finally:
            process.kill()
