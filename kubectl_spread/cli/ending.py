"""The end of a command: by a signal, by an error that no other code expects, or at once.

Such an error is one line on stderr, without a traceback. To free all modules would take a tenth of a short command.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
import traceback
from collections.abc import Callable
from types import FrameType
from typing import Final, NoReturn

import click

from kubectl_spread.cli import output
from kubectl_spread.cli.commandline import OTHER, Option
from kubectl_spread.errors import REPORT, bug

_NO_MEMORY: Final = ("can't start new thread", "failed to map segment", "annot allocate memory")
"""Parts of other messages about a lack of memory: of Python, of the loader of libraries, and of the system."""
reported: list[Exception] = []
"""The errors that were printed. A lack of memory also makes the end of the program fail."""


class _Verbosity:
    """The value of ``--verbose`` of the current command line."""

    traceback = False


def _set_verbosity(_context: click.Context, _option: click.Parameter, value: bool) -> None:
    _Verbosity.traceback = value


option: Final = Option(
    ["-v", "--verbose"],
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_set_verbosity,
    help="Print the traceback of an unexpected error.",
    group=OTHER,
)
"""An option of every command."""


class EscapedError(Exception):
    """Carries an error, its cause, past click, which would end the program with exit status 1."""


def report(error: Exception) -> None:
    """Print the error in one line, after its traceback if the command has ``--verbose``."""
    if isinstance(error, EscapedError) and isinstance(error.__cause__, Exception):
        error = error.__cause__
    trace(error)
    output.error(text(error))
    reported.append(error)


def trace(*errors: Exception) -> None:
    """Print the traceback of each error if the command has ``--verbose``."""
    for error in errors if _Verbosity.traceback else ():
        for line in "".join(traceback.format_exception(error)).splitlines():
            output.note(line)


def text(error: Exception) -> str:
    """Return the line to print, without the message of the error, which may have secrets."""
    if isinstance(error, MemoryError) or any(part in str(error) for part in _NO_MEMORY):
        return "there is not enough memory: check fewer objects at once, or set a smaller --chunk-size"
    if isinstance(error, UnicodeEncodeError):
        # Python decodes the bytes of a command line that are not UTF-8 to characters that no encoding has.
        return "an option or argument is not UTF-8 text"
    if isinstance(error, OSError) and error.strerror:
        file = "" if error.filename is None else f"{error.filename}: "
        return f"{file}{error.strerror.lower()} (unexpected; {REPORT})"
    return bug(error)


_received: list[int] = []
"""The signals that were to end the program."""

_SIGNALLED: Final = 128
"""Shells add the number of the signal to this, for the exit status."""


class SignalExit(SystemExit):
    """The exit for a signal."""

    def __init__(self, number: int) -> None:
        super().__init__(_SIGNALLED + number)


def exit_on_signals() -> None:
    """Make SIGINT and SIGTERM end the program by ``SystemExit``, so that it removes temporary files.

    A signal that is ignored stays ignored. SIGPIPE is an error of the call that writes.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _end)


def _end(number: int, _frame: FrameType | None) -> NoReturn:
    _received.append(number)
    raise SignalExit(number)


def exit_if_signalled() -> None:
    """End the program for a signal that it has received; Python loses an exception that is raised in a finalizer.

    Source: CPython 3.11 Modules/_io/iobase.c, iobase_finalize, which clears the errors of ``closed`` and ``close``.

    Raises:
        SignalExit: There was such a signal.
    """
    if _received:
        raise SignalExit(_received[-1])


def run(program: Callable[[], object]) -> None:
    """Run a program to its ``sys.exit``, and end the process after all other exit handlers.

    Raises:
        SystemExit: The program has ended.
    """
    statuses: list[int] = []

    def end() -> None:
        if statuses and _flushed():
            os._exit(statuses[0])

    # The handler that is registered first is called last.
    atexit.register(end)
    try:
        program()
    except SystemExit as ended:
        if ended.code is None or isinstance(ended.code, int):
            statuses.append(ended.code or 0)
        raise


def _flushed() -> bool:
    """Flush stdout; return whether that worked, because the interpreter reports a failure itself."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except (OSError, ValueError):
        return False
    return True
