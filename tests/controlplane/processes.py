"""Start programs on loopback ports and make sure that none of them outlives the tests."""

from __future__ import annotations

import random
import shutil
import socket
import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

LOOPBACK = "127.0.0.1"

# Linux kills the programs when the *thread* that started them ends. So one thread starts all of
# them, and it lives as long as the interpreter.
_launcher = ThreadPoolExecutor(max_workers=1, thread_name_prefix="launcher")
_ports = iter(random.sample(range(20_000, 32_000), 12_000))


class ProcessDiedError(RuntimeError):
    """A program of the control plane ended unexpectedly."""


class Process:
    """One running program, its output appended to a log file."""

    def __init__(self, name: str, command: Sequence[str], log: Path) -> None:
        """Start ``command``."""
        self.name = name
        self.log = log
        self._popen = _launcher.submit(_spawn, command, log).result()

    @property
    def pid(self) -> int:
        """The process id."""
        return self._popen.pid

    def check(self) -> None:
        """Raise if the program is no longer running.

        Raises:
            ProcessDiedError: It ended; the message holds the end of its log.
        """
        code = self._popen.poll()
        if code is not None:
            lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()
            tail = "\n".join(lines[-20:])
            raise ProcessDiedError(f"{self.name} ended with code {code}, see {self.log}:\n{tail}")

    def stop(self, patience: float = 10) -> None:
        """Terminate the program, and kill it after ``patience`` seconds."""
        self._popen.terminate()
        with suppress(subprocess.TimeoutExpired):
            try:
                self._popen.wait(patience)
            finally:
                # A second Ctrl-C may end the waiting; an ended program ignores the signal.
                self._popen.kill()
                self._popen.wait()


def free_port() -> int:
    """Return a loopback port that nothing listens on, each time another one.

    The port is below the range from which Linux picks ports for outgoing connections. A port
    inside that range may be taken while an apiserver restarts, even by a client that waits for it:
    on loopback, TCP lets such a client connect to itself.
    """
    for port in _ports:
        with socket.socket() as probe, suppress(OSError):
            probe.bind((LOOPBACK, port))
            return port
    raise RuntimeError("all ports were given away")


def accepts_connections(port: int) -> bool:
    """Tell whether a program listens on a loopback port."""
    with socket.socket() as probe:
        return probe.connect_ex((LOOPBACK, port)) == 0


def _spawn(command: Sequence[str], log: Path) -> subprocess.Popen[bytes]:
    with log.open("ab") as file:
        return subprocess.Popen(
            [*_die_with_parent(), *command],
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            # In a session of its own it gets no Ctrl-C; the tests stop everything in order.
            start_new_session=True,
        )


def _die_with_parent() -> list[str]:
    """Return a wrapper that has Linux kill the program when its parent is killed.

    It replaces itself with the program, so the process id stays. Unlike a Python function run
    between fork and exec, it is safe in a process with threads.
    """
    wrapper = shutil.which("setpriv")
    return [wrapper, "--pdeathsig", "KILL", "--"] if wrapper else []
