"""Printing: data goes to stdout, everything else to stderr."""

from __future__ import annotations

import io
import os
import select
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

    from kubectl_spread.render.terminal import Terminal

_WIPE: Final = "\r\x1b[K"
"""Goes to the beginning of the line and empties it."""
_SPOKEN: Final = (
    "Error from server",
    "Error in configuration",
    "Server returned",
    "The connection to the server",
    "Unable to connect to the server",
)


class _Lenient(io.FileIO):
    """A file that drops what cannot be written to it."""

    _patience = 5.0
    """The seconds that the next message waits for a reader."""

    def write(self, data: ReadableBuffer, /) -> int:
        """Write; where that fails, do nothing: a message that nobody can read must not cost the report."""
        size = memoryview(data).nbytes
        try:
            written = super().write(data)
            if written is None:
                # It does not wait by itself, and its reader is slow.
                select.select([], [self], [], self._patience)
                written = super().write(data)
                self._patience = self._patience if written else 0.0
        except OSError:
            return size
        return size if written is None else written


def tolerate_broken_stderr() -> None:
    """Have messages on stderr be lost where it is closed, full or a pipe that nobody reads; the data still arrives."""
    stream = sys.stderr
    if stream is None:
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - to the end
        return
    buffer = getattr(stream, "buffer", None)
    # A console of Windows is none, nor is what a program put there that runs this one inside itself.
    if isinstance(getattr(buffer, "raw", buffer), io.FileIO):
        lenient = io.BufferedWriter(_Lenient(stream.fileno(), "w", closefd=False))
        sys.stderr = io.TextIOWrapper(lenient, stream.encoding, "backslashreplace", line_buffering=True)


def terminal(color: str) -> Terminal:
    """Return what stdout is: a terminal with its width, or a pipe."""
    from kubectl_spread.render.terminal import Terminal  # noqa: PLC0415 - rich is only for tables

    interactive = sys.stdout.isatty()
    colored = color == "always" or (color == "auto" and interactive and not os.environ.get("NO_COLOR"))
    width = shutil.get_terminal_size().columns if interactive else None
    return Terminal(width=width, color=colored, ascii=not _writes_unicode())


def page(color: str) -> Terminal:
    """Return a file as what is written to: as wide as needed, coloured only if that is asked for."""
    from kubectl_spread.render.terminal import Terminal  # noqa: PLC0415 - rich is only for tables

    return Terminal(color=color == "always")


def _writes_unicode() -> bool:
    return (sys.stdout.encoding or "").lower().replace("-", "").startswith("utf")


class _Line:
    """The line on stderr that is written over."""

    shown = False


def progress(text: str) -> None:
    """Show on a terminal how far the work is, until anything else is printed; in a pipe nothing."""
    if sys.stderr.isatty():
        click.echo(f"{_WIPE}{text}", err=True, nl=False, color=True)
        _Line.shown = True


def wipe() -> None:
    """Take away what ``progress`` showed."""
    if _Line.shown:
        click.echo(_WIPE, err=True, nl=False, color=True)
        _Line.shown = False


def data(text: str) -> None:
    """Print what was asked for."""
    wipe()
    click.echo(text, nl=False, color=True)


def error(text: str) -> None:
    """Print what went wrong, on stderr, in one line; the apiserver's and kubectl's own words stand for themselves."""
    wipe()
    click.echo(safe(problem(text)), err=True)


def problem(text: str) -> str:
    """Return what went wrong as ``error`` words it."""
    return text if text.startswith(_SPOKEN) else f"error: {text}"


def note(text: str) -> None:
    """Print something beside the data, on stderr."""
    wipe()
    click.echo(safe(text), err=True)


def give_up() -> None:
    """Print nothing more, where nobody reads it; the interpreter would complain when it writes the rest at its end."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())


def safe(text: str) -> str:
    """Return text with what could move a cursor or hide text written as an escape."""
    from kubectl_spread.render import words  # noqa: PLC0415 - help does not wait for it

    return words.safe(text)
