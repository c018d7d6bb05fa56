"""Print data to stdout, and everything else to stderr. This module is the ``Console`` of a run."""

from __future__ import annotations

import io
import os
import select
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

    from kubectl_spread.render.terminal import Terminal
    from kubectl_spread.run.run import CheckRun

_WIPE: Final = "\r\x1b[K"
"""Moves the cursor to the beginning of the line and clears it."""
_FOREIGN: Final = (
    "Error from server",
    "Error in configuration",
    "Server returned",
    "The connection to the server",
    "Unable to connect to the server",
)
"""The beginnings of messages that are printed as kubectl or the API server words them."""


class _Lenient(io.FileIO):
    """A file that ignores failed writes."""

    _patience = 5.0
    """The seconds that a message waits for a slow reader."""

    def write(self, data: ReadableBuffer, /) -> int:
        """Write, and ignore failures: the report matters more than its messages."""
        size = memoryview(data).nbytes
        try:
            written_bytes = super().write(data)
            if written_bytes is None:
                # The pipe is full and does not block.
                select.select([], [self], [], self._patience)
                written_bytes = super().write(data)
                self._patience = self._patience if written_bytes else 0.0
        except OSError:
            return size
        return size if written_bytes is None else written_bytes


def tolerate_broken_stderr() -> None:
    """Replace stderr, so that data is printed even if stderr is closed, full or a pipe without a reader."""
    stream = sys.stderr
    if stream is None:
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - to the end
        return
    buffer = getattr(stream, "buffer", None)
    # A console of Windows is not a FileIO, nor is the stderr of a program that runs this one inside itself.
    if isinstance(getattr(buffer, "raw", buffer), io.FileIO):
        lenient = io.BufferedWriter(_Lenient(stream.fileno(), "w", closefd=False))
        sys.stderr = io.TextIOWrapper(lenient, stream.encoding, "backslashreplace", line_buffering=True)


def terminal(color: str, *, to_file: bool = False) -> Terminal:
    """Return the properties of stdout, a terminal or a pipe, or of a file, which is coloured only on demand."""
    from kubectl_spread.render.terminal import Terminal  # noqa: PLC0415 - rich is only for tables

    if to_file:
        return Terminal(color=color == "always")
    interactive = sys.stdout.isatty()
    colored = color == "always" or (color == "auto" and interactive and not os.environ.get("NO_COLOR"))
    width, height = shutil.get_terminal_size() if interactive else (None, None)
    return Terminal(width=width, height=height, color=colored, ascii=not _writes_unicode())


def _writes_unicode() -> bool:
    return (sys.stdout.encoding or "").lower().replace("-", "").startswith("utf")


class _ProgressLine:
    """The line on stderr that shows progress."""

    visible = False


def progress(text: str) -> None:
    """Show on a terminal how far the run is, until anything else is printed; print nothing to a pipe."""
    if sys.stderr.isatty():
        click.echo(f"{_WIPE}{text}", err=True, nl=False, color=True)
        _ProgressLine.visible = True


def wipe() -> None:
    """Remove the progress line."""
    if _ProgressLine.visible:
        click.echo(_WIPE, err=True, nl=False, color=True)
        _ProgressLine.visible = False


def data(text: str | bytes) -> None:
    """Print data to stdout, as it is."""
    wipe()
    click.echo(text, nl=False, color=True)


def error(text: str) -> None:
    """Print an error to stderr, in one line."""
    wipe()
    click.echo(safe(problem(text)), err=True)


def problem(text: str) -> str:
    """Return an error after ``error:``, except those that the API server or kubectl words itself."""
    return text if text.startswith(_FOREIGN) else f"error: {text}"


def note(text: str) -> None:
    """Print a message to stderr, in one line."""
    wipe()
    click.echo(safe(text), err=True)


def messages(run: CheckRun, *, header: bool) -> None:
    """Print the notes and errors of a run; ``header`` tells whether the header of a report has the version."""
    if (text := run.target_version.assumption) and not (header or run.empty):
        note(text)
    result(run.useful_notes, run.problems)


def result(notes: Iterable[str], problems: Iterable[str]) -> None:
    """Print the notes and errors of a run."""
    for text in notes:
        note(text)
    for text in problems:
        error(text)


def give_up() -> None:
    """Discard further output to a closed stdout; else the interpreter would complain when it flushes at its end."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())


def safe(text: str) -> str:
    """Return text with every character that could move a cursor or hide text as an escape."""
    from kubectl_spread.render import words  # noqa: PLC0415 - help does not need it

    return words.safe(text)
