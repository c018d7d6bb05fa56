"""A running ``kubectl spread monitor``, and what it serves."""

from __future__ import annotations

import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import urllib3

from tests.commands import INTERRUPTIBLE
from tests.controlplane.components import source
from tests.controlplane.processes import LOOPBACK, free_port

PATIENCE = 60.0


class Served(NamedTuple):
    """An answer of the monitor; status 0 where nothing listens."""

    status: int
    data: bytes
    headers: Mapping[str, str]

    @property
    def text(self) -> str:
        """The body as text."""
        return self.data.decode()


def resident(process: int) -> float:
    """Return the resident memory of a process, in MiB."""
    status = Path(f"/proc/{process}/status").read_text(encoding="utf-8")
    return int(status.partition("VmRSS:")[2].split()[0]) / 1024


class RunningMonitor:
    """A monitor on two free ports of the loopback interface."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        """Start it by a command."""
        self.port, self.telemetry_port = free_port(), free_port()
        options = zip(("--listen", "--telemetry"), self.addresses, strict=True)
        ports = [f"{option}={address}" for option, address in options]
        self._printed = ""
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - until the end
        self.process = subprocess.Popen([*command, *ports], stdout=self._log, stderr=self._log, env=dict(environment))
        self._http = urllib3.PoolManager(retries=False, timeout=PATIENCE)

    @property
    def addresses(self) -> tuple[str, str]:
        """The hosts and ports of the report and of the telemetry."""
        return f"{LOOPBACK}:{self.port}", f"{LOOPBACK}:{self.telemetry_port}"

    def get(self, path: str, *, telemetry: bool = False, headers: Mapping[str, str] | None = None) -> Served:
        """Return an answer."""
        address = self.addresses[telemetry]
        try:
            response = self._http.request("GET", f"http://{address}{path}", headers=headers)
        except urllib3.exceptions.HTTPError:
            return Served(0, b"", {})
        return Served(response.status, response.data, response.headers)

    def metrics(self) -> str:
        """Return the metrics of the cluster."""
        return self.get("/metrics").text

    def until(self, condition: Callable[[], Any], patience: float = PATIENCE) -> None:
        """Wait for a condition.

        Raises:
            TimeoutError: It did not come true in time, or the monitor ended before; the message is what it printed.
        """
        deadline = time.monotonic() + patience
        while not condition():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise TimeoutError(
                    f"{source(condition)}\nexit status {self.process.poll()}\n{self.printed}\n{self.metrics()}"
                )
            time.sleep(0.1)

    def ready(self) -> bool:
        """Tell whether it serves a current state."""
        return self.get("/readyz", telemetry=True).status == 200

    @property
    def resident(self) -> float:
        """Its resident memory, in MiB."""
        return resident(self.process.pid)

    @property
    def printed(self) -> str:
        """What it has printed so far."""
        if not self._log.closed:
            self._log.seek(0)
            self._printed = self._log.read().decode()
        return self._printed

    def wait(self) -> int:
        """Wait for its end, and return its exit status."""
        status = self.process.wait(PATIENCE)
        _ = self.printed
        self._log.close()
        return status

    def end(self, by: signal.Signals = signal.SIGTERM) -> int:
        """End it, by default as a kubelet does, and return its exit status."""
        with suppress(ProcessLookupError):
            self.process.send_signal(by)
        return self.wait()


@contextmanager
def running(command: Sequence[str], environment: Mapping[str, str]) -> Iterator[RunningMonitor]:
    """Run a monitor by a command until the end of the ``with`` block, and wait until it is ready."""
    monitor = RunningMonitor(command, environment)
    try:
        monitor.until(monitor.ready)
        yield monitor
    finally:
        monitor.process.kill()
        monitor.wait()


@contextmanager
def monitoring(
    environment: Mapping[str, str], *arguments: str, wrapper: Sequence[str] = ()
) -> Iterator[RunningMonitor]:
    """Run the program of the checkout, by ``wrapper`` if there is one; see ``running``."""
    with running([*wrapper, *MONITOR, *arguments], environment) as monitor:
        yield monitor


MONITOR = (*INTERRUPTIBLE, "monitor")
