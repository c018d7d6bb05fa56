"""The output of a command on a terminal, as text and as a picture."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
from html import escape
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.segment import Segment
from rich.terminal_theme import MONOKAI
from rich.text import Text

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


def picture(columns: int, *arguments: str) -> str:
    """Return a terminal with a command and its output, as SVG without references to other files."""
    screen = Text.from_ansi(f"$ kubectl spread {' '.join(arguments)}\n{printed(columns, *arguments, '--color=always')}")
    lines = screen.split("\n")
    width, height = round(columns * _ADVANCE) + 2 * _MARGIN, len(lines) * _LEADING + 2 * _MARGIN
    body = "".join(_line(line, number) for number, line in enumerate(lines, start=1))
    return _SVG.format(width=width, height=height, body=body)


def _line(line: Text, number: int) -> str:
    """Return one line of text, with an element for each coloured part."""
    parts = (_part(segment) for segment in line.render(Console(), end=""))
    return f'<text x="{_MARGIN}" y="{_MARGIN + number * _LEADING - 5}">{"".join(parts)}</text>\n'


def _part(segment: Segment) -> str:
    text = escape(segment.text, quote=False).replace(" ", "&#160;")
    color = segment.style and segment.style.color
    return f'<tspan fill="{color.get_truecolor(MONOKAI).hex}">{text}</tspan>' if color else text
