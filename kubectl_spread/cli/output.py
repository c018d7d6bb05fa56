"""Print data to stdout, and everything else to stderr. This module is the ``Console`` of a run."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import click

if TYPE_CHECKING:
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


def terminal(color: str, *, to_file: bool = False) -> Terminal:
    """Return the properties of stdout, a terminal or a pipe, or of a file, which is coloured only on demand."""
    from kubectl_spread.render.terminal import Terminal  # noqa: PLC0415 - only tables need it

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


def is_seen() -> bool:
    """Tell whether stderr is a terminal."""
    return sys.stderr is not None and sys.stderr.isatty()


def progress(text: str) -> None:
    """Show on a terminal how far the run is, until anything else is printed; print nothing to a pipe."""
    if is_seen():
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
    note(problem(text))


def problem(text: str) -> str:
    """Return an error after ``error:``, except those that the API server or kubectl words itself."""
    return text if text.startswith(_FOREIGN) else f"error: {text}"


def note(text: str) -> None:
    """Print a message to stderr, in one line; the report matters more than a message that cannot be written."""
    line = safe(text)
    with suppress(OSError):
        wipe()
        click.echo(line, err=True)


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
