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
_ADVANCE: Final = 8.43
_LEADING: Final = 19
_MARGIN: Final = 14
"""In pixels, of a monospaced font of 14."""
_SVG: Final = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img">
<title>kubectl spread check</title>
<rect width="100%" height="100%" rx="8" fill="#0c0c0c"/>
<g font-family="ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace" font-size="14" fill="#d9d9d9">
{body}</g>
</svg>
"""


def printed(columns: int, *arguments: str, lines: int = 50) -> str:
    """Return the output of a command in the checkout, on a terminal with this number of columns and lines."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
    command = [sys.executable, "-m", "kubectl_spread", *arguments]
    process = subprocess.Popen(command, stdout=theirs, cwd=_ROOT, env=_WITHOUT_SIZE)
    os.close(theirs)
    text = b""
    try:
        while part := os.read(ours, 65536):
            text += part
    except OSError:  # Linux raises it when the other side is closed.
        pass
    os.close(ours)
    process.wait(timeout=60)
    return text.decode().replace("\r\n", "\n")
