"""A running ``kubectl spread check --watch``, in a pipe or on a terminal."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import signal
import struct
import subprocess
import termios
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import IO, Any

import pyte

from tests.builders import Json
from tests.commands import INTERRUPTIBLE
from tests.controlplane.components import source

PATIENCE = 60.0
COMMAND = [*INTERRUPTIBLE, "check", "--watch"]


class Piped:
    """A watch that prints to pipes."""

    def __init__(self, environment: Mapping[str, str], arguments: Sequence[str]) -> None:
        """Start it."""
        self.process = subprocess.Popen(
            [*COMMAND, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )
        self.lines: list[str] = []
        self.errors: list[str] = []
        assert self.process.stdout
        assert self.process.stderr
        self._threads = [
            threading.Thread(target=_collect, args=pair)
            for pair in ((self.process.stdout, self.lines), (self.process.stderr, self.errors))
        ]
        for thread in self._threads:
            thread.start()

    def until(self, condition: Callable[[], Any], patience: float = PATIENCE) -> None:
        """Wait for a condition.

        Raises:
            TimeoutError: It did not come true in time, or the watch ended before.
        """
        deadline = time.monotonic() + patience
        while not condition():
            if self.process.poll() is not None or time.monotonic() > deadline:
                printed = f"{self.process.returncode}\n{''.join(self.lines[-40:])}\n{''.join(self.errors)}"
                raise TimeoutError(f"{source(condition)}\n{printed}")
            time.sleep(0.05)

    @property
    def last(self) -> Json:
        """The last report that ``-o json`` printed."""
        document: Json = json.loads(self.lines[-1])
        return document

    def sees(self, **verdicts: int) -> Callable[[], bool]:
        """Return a condition: the last report has so many pods of each verdict, written with underscores."""
        expected = {name.replace("_", "-"): number for name, number in verdicts.items()}

        def seen() -> bool:
            if not self.lines:
                return False
            numbers: dict[str, int] = {}
            for row in self.last["constraints"]:
                for name, number in row["verdicts"].items():
                    numbers[name] = numbers.get(name, 0) + number
            return numbers == expected

        return seen

    def end(self) -> int:
        """Interrupt it, unless it has ended, and return its exit status.

        Python loses an interrupt that arrives while it frees an object, so a person would press Ctrl-C again.
        """
        with suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGINT)
        try:
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(10)
            if self.process.poll() is None:
                self.process.send_signal(signal.SIGINT)
            status = self.process.wait(20)
        finally:
            self.process.kill()
            for thread in self._threads:
                thread.join()
            for stream in (self.process.stdout, self.process.stderr):
                assert stream
                stream.close()
        return status


@contextmanager
def piped(environment: Mapping[str, str], *arguments: str) -> Iterator[Piped]:
    """Run a watch until the end of the ``with`` block."""
    running = Piped(environment, arguments)
    try:
        yield running
    finally:
        running.end()
        assert not any("Traceback" in line for line in running.errors), running.errors


def _collect(stream: IO[str], lines: list[str]) -> None:
    lines.extend(iter(stream.readline, ""))


class OnTerminal:
    """A watch on a pseudo-terminal, and its screen."""

    def __init__(self, environment: Mapping[str, str], columns: int, rows: int, arguments: Sequence[str]) -> None:
        """Start it."""
        self.screen = pyte.Screen(columns, rows)
        self.raw = b""
        self._stream = pyte.ByteStream(self.screen)
        without_size = {key: value for key, value in environment.items() if key not in ("COLUMNS", "LINES", "TERM")}
        self._terminal, theirs = pty.openpty()
        self.resize(columns, rows)
        self._process = subprocess.Popen(
            # Only a process with this controlling terminal gets Ctrl-C.
            ["setsid", "--ctty", *COMMAND, *arguments],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env={**without_size, "TERM": "xterm", "PYTHONFAULTHANDLER": "1"},
        )
        os.close(theirs)
        os.set_blocking(self._terminal, False)

    def resize(self, columns: int, rows: int) -> None:
        """Give the window another size."""
        self.screen.resize(rows, columns)
        fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    @property
    def lines(self) -> list[str]:
        """The lines on the screen."""
        self._read()
        return [line.rstrip() for line in self.screen.display]

    @property
    def text(self) -> str:
        """The screen as one text."""
        return "\n".join(self.lines)

    def until(self, condition: Callable[[], Any], patience: float = PATIENCE) -> None:
        """Wait for a condition.

        Raises:
            TimeoutError: It did not come true in time.
        """
        deadline = time.monotonic() + patience
        while not condition():
            if time.monotonic() > deadline:
                raise TimeoutError(f"{source(condition)}\n{self.text}")
            time.sleep(0.05)

    def interrupt(self) -> int:
        """Press Ctrl-C and return the exit status.

        Raises:
            TimeoutError: The program still runs; the message has what its threads do.
        """
        os.write(self._terminal, b"\x03")
        deadline = time.monotonic() + 20
        while True:
            self._read()
            status = self._process.poll()
            if status is not None:
                self._read()
                return status
            if time.monotonic() > deadline:
                self._process.send_signal(signal.SIGABRT)
                self._process.wait()
                self._read()
                raise TimeoutError(f"the end after Ctrl-C\n{self.raw[-10_000:].decode(errors='replace')}")
            time.sleep(0.05)

    def close(self) -> None:
        """Close the terminal, and end what runs on it."""
        self._process.kill()
        self._process.wait()
        os.close(self._terminal)

    def _read(self) -> None:
        # The program has closed the terminal, or has not written yet.
        with suppress(OSError):
            while part := os.read(self._terminal, 65536):
                self.raw += part
                self._stream.feed(part)
