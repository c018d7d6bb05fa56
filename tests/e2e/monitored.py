"""A running ``kubectl spread monitor``, and what it serves."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

import urllib3

from tests.commands import INTERRUPTIBLE
from tests.controlplane.processes import LOOPBACK, free_port

PATIENCE = 60.0


class Served(NamedTuple):
    """An answer of the monitor."""

    status: int
    text: str
    headers: Mapping[str, str]


class RunningMonitor:
    """A monitor on two free ports of the loopback interface."""

    def __init__(
        self, environment: Mapping[str, str], *arguments: str, wrapper: Sequence[str] = (), tls: bool = False
    ) -> None:
        """Start it, by ``wrapper`` if there is one."""
        self.port, self.telemetry_port = free_port(), free_port()
        ports = (f"--listen={LOOPBACK}:{self.port}", f"--telemetry={LOOPBACK}:{self.telemetry_port}")
        self.process = subprocess.Popen(
            [*wrapper, *INTERRUPTIBLE, "monitor", *ports, *arguments],
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )
        self._scheme = "https" if tls else "http"
        self._http = urllib3.PoolManager(retries=False, timeout=PATIENCE, cert_reqs="CERT_NONE")

    @property
    def addresses(self) -> tuple[str, str]:
        """The hosts and ports of the report and of the telemetry."""
        return f"{LOOPBACK}:{self.port}", f"{LOOPBACK}:{self.telemetry_port}"

    def get(self, path: str, *, telemetry: bool = False, headers: Mapping[str, str] | None = None) -> Served:
        """Return an answer; status 0 where nothing listens yet."""
        port = self.telemetry_port if telemetry else self.port
        try:
            response = self._http.request("GET", f"{self._scheme}://{LOOPBACK}:{port}{path}", headers=headers)
        except urllib3.exceptions.HTTPError:
            return Served(0, "", {})
        return Served(response.status, response.data.decode(), response.headers)

    def metrics(self) -> str:
        """Return the metrics of the cluster."""
        return self.get("/metrics").text

    def until(self, condition: Callable[[], Any], patience: float = PATIENCE) -> None:
        """Wait for a condition.

        Raises:
            TimeoutError: It did not come true in time, or the monitor ended before.
        """
        deadline = time.monotonic() + patience
        while not condition():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise TimeoutError(f"exit status {self.process.poll()}\n{self.metrics()}")
            time.sleep(0.1)

    def ready(self) -> bool:
        """Tell whether it serves a current state."""
        return self.get("/readyz").status == 200

    def end(self, by: signal.Signals = signal.SIGTERM) -> tuple[int, str]:
        """End it; return its exit status and what it has printed."""
        with suppress(ProcessLookupError):
            self.process.send_signal(by)
        _, printed = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode, printed


@contextmanager
def monitoring(
    environment: Mapping[str, str], *arguments: str, wrapper: Sequence[str] = (), tls: bool = False
) -> Iterator[RunningMonitor]:
    """Run a monitor until the end of the ``with`` block, and wait until it is ready."""
    running = RunningMonitor(environment, *arguments, wrapper=wrapper, tls=tls)
    try:
        running.until(running.ready)
        yield running
    finally:
        running.end()
