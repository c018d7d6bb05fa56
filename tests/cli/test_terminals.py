"""``kubectl spread`` on real terminals: what it prints is as wide as they are."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios

import pytest

from tests import generated

_WITHOUT_SIZE = {key: value for key, value in os.environ.items() if key not in ("COLUMNS", "LINES")}


def on_terminal(columns: int, *arguments: str) -> list[str]:
    """Return the lines that a command prints on a terminal."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    command = [sys.executable, "-m", "kubectl_spread", *arguments, "--color=never"]
    process = subprocess.Popen(command, stdout=theirs, cwd=generated.ROOT, env=_WITHOUT_SIZE)
    os.close(theirs)
    text = b""
    try:
        while part := os.read(ours, 65536):
            text += part
    except OSError:  # Linux says so where the other side is closed.
        pass
    os.close(ours)
    process.wait(timeout=60)
    return text.decode().splitlines()


@pytest.mark.parametrize(
    ("columns", "row"),
    [
        (60, "deploy/api    zone hard     3 merged      3 (0..2)    2   1"),
        (80, "deploy/api     zone DoNotSchedule      3  merged       a=2 b=1 c=0     2    1"),
    ],
)
def test_the_sample_fits(columns: int, row: str) -> None:
    lines = on_terminal(columns, *generated.CHECK)
    assert row in lines
    assert max(map(len, lines)) <= columns


def test_the_rules_fit() -> None:
    lines = on_terminal(60, "rules")
    assert max(map(len, lines)) <= 60
    assert not any("…" in line for line in lines)
