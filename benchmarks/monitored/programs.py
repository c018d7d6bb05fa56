"""The programs that are measured: how they are started, and the processor time and memory that they use."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

import urllib3

from tests.commands import SPREAD
from tests.controlplane.processes import LOOPBACK, free_port

_TICKS: Final = os.sysconf("SC_CLK_TCK")
_PATIENCE: Final = 900.0
_BETWEEN: Final = 5.0
"""Seconds between two looks at metrics that grow."""
_OF_PODS: Final = b"kube_pod_info{"
_RESOURCES: Final = (
    "pods,nodes,deployments,replicasets,statefulsets,daemonsets,jobs,cronjobs,replicationcontrollers,"
    "persistentvolumeclaims,persistentvolumes"
)
"""The resources that the monitor reads; by default kube-state-metrics reads more."""


class Usage(NamedTuple):
    """The seconds of processor time so far, and memory in MiB: now, at its peak, and without what others share."""

    processor: float
    memory: float
    peak: float
    proportional: float


class Program:
    """A running program with metrics on a port of the loopback interface.

    Attributes:
        name: The name of the program in tables.
        port: The port of ``/metrics``.
        seconds: The time from the start until it was ready.
    """

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        log: Path,
        *,
        port: int,
        ready: str,
        grows: bool = False,
    ) -> None:
        """Start a program that is ready once it answers 200 at ``ready``; its name is that of the log.

        If its metrics grow while it reads its lists, it is ready once they no longer do.
        """
        self.name = log.stem
        self.port = port
        self._ready = ready
        self._log = log
        self._grows = grows
        self._size = -1
        self._began = time.monotonic()
        self.seconds = 0.0
        with log.open("wb") as output:
            self._process = subprocess.Popen(command, stdout=output, stderr=output, env=dict(environment))

    def wait(self) -> None:
        """Wait until the program is ready.

        Raises:
            RuntimeError: It has ended, or takes too long.
        """
        http = urllib3.PoolManager(retries=False, timeout=60)
        while True:
            with suppress(urllib3.exceptions.HTTPError):
                if http.request("GET", self._ready).status == 200 and self._settled(http):  # noqa: PLR2004 - OK
                    self.seconds = time.monotonic() - self._began
                    return
            if self._process.poll() is not None or time.monotonic() > self._began + _PATIENCE:
                raise RuntimeError(f"{self.name} is not ready: {self._log.read_text(encoding='utf-8')[-2000:]}")
            time.sleep(0.1)

    def _settled(self, http: urllib3.PoolManager) -> bool:
        """Tell whether it has read its lists; kube-state-metrics serves before, and has then more with each scrape."""
        if not self._grows:
            return True
        response = http.request("GET", f"http://{LOOPBACK}:{self.port}/metrics", preload_content=False)
        size, has_pods = 0, False
        for piece in response.stream(1 << 20):
            size += len(piece)
            has_pods = has_pods or _OF_PODS in piece
        before, self._size = self._size, size
        if size == before and has_pods:
            return True
        time.sleep(_BETWEEN)
        return False

    def read(self, path: str) -> tuple[int, float]:
        """Return the bytes of a page, and the seconds until its end."""
        began, size = time.monotonic(), 0
        http = urllib3.PoolManager(retries=False, timeout=_PATIENCE)
        response = http.request("GET", f"http://{LOOPBACK}:{self.port}{path}", preload_content=False)
        for piece in response.stream(1 << 20):
            size += len(piece)
        return size, time.monotonic() - began

    def usage(self) -> Usage:
        """Return what the program uses."""
        directory = Path("/proc") / str(self._process.pid)
        fields = (directory / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        status, rollup = ((directory / name).read_text(encoding="utf-8") for name in ("status", "smaps_rollup"))
        processor = (int(fields[11]) + int(fields[12])) / _TICKS
        return Usage(processor, _mebibytes(status, "VmRSS"), _mebibytes(status, "VmHWM"), _mebibytes(rollup, "Pss"))

    def end(self) -> None:
        """End the program."""
        self._process.terminate()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def monitor(environment: Mapping[str, str], directory: Path) -> Program:
    """Start ``kubectl spread monitor -A``."""
    port, telemetry = free_port(), free_port()
    listen = f"--listen={LOOPBACK}:{port}", f"--telemetry={LOOPBACK}:{telemetry}"
    command = [str(SPREAD), "monitor", "-A", *listen]
    ready = f"http://{LOOPBACK}:{port}/readyz"
    return Program(command, environment, directory / "kubectl spread monitor.log", port=port, ready=ready)


def kube_state_metrics(program: str, environment: Mapping[str, str], directory: Path) -> Program:
    """Start kube-state-metrics with the resources that the monitor reads."""
    port, telemetry = free_port(), free_port()
    command = [
        program,
        f"--kubeconfig={environment['KUBECONFIG']}",
        f"--host={LOOPBACK}",
        f"--port={port}",
        f"--telemetry-host={LOOPBACK}",
        f"--telemetry-port={telemetry}",
        f"--resources={_RESOURCES}",
    ]
    ready = f"http://{LOOPBACK}:{telemetry}/readyz"
    return Program(command, environment, directory / "kube-state-metrics.log", port=port, ready=ready, grows=True)


def _mebibytes(text: str, field: str) -> float:
    """Return a field of a file in /proc that has kibibytes."""
    match = re.search(rf"^{field}:\s+(\d+) kB$", text, flags=re.MULTILINE)
    return int(match[1]) / 1024 if match else 0.0
