"""The output of a command on a terminal."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
from pathlib import Path
from typing import Final

_ROOT: Final = Path(__file__).parent.parent
_WITHOUT_SIZE: Final = {key: value for key, value in os.environ.items() if key not in ("COLUMNS", "LINES")}


def printed(columns: int, *arguments: str, lines: int = 50, stdin: bytes | None = None, path: str = "") -> str:
    """Return the output of a command in the checkout, on a terminal with this number of columns and lines.

    Args:
        columns: The width of the terminal.
        arguments: The arguments of the command.
        lines: The height of the terminal.
        stdin: The standard input, of a few kilobytes; by default that of this process.
        path: The PATH of the command; by default that of this process.
    """
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
    command = [sys.executable, "-m", "kubectl_spread", *arguments]
    environment = {**_WITHOUT_SIZE, "PATH": path or _WITHOUT_SIZE["PATH"]}
    given = None if stdin is None else subprocess.PIPE
    process = subprocess.Popen(command, stdin=given, stdout=theirs, cwd=_ROOT, env=environment)
    os.close(theirs)
    if process.stdin is not None:
        with process.stdin as stream:
            stream.write(stdin or b"")
    text = b""
    try:
        while part := os.read(ours, 65536):
            text += part
    except OSError:  # Linux raises it when the other side is closed.
        pass
    os.close(ours)
    process.wait(timeout=60)
    return text.decode().replace("\r\n", "\n")
