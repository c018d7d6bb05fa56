"""End the process at once; freeing all objects one by one would take a second."""

from __future__ import annotations

import atexit
import os
import signal
import sys
from collections.abc import Callable
from types import FrameType
from typing import Final, NoReturn

_referenced: list[object] = []
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


def keep(*objects: object) -> None:
    """Keep references to objects until the program ends, so that they are never freed."""
    _referenced.extend(objects)


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
