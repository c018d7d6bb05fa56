"""Leaving: the system takes back at once what it would take a second to free object by object."""

from __future__ import annotations

import atexit
import os
import signal
import sys
from collections.abc import Callable
from types import FrameType
from typing import Final, NoReturn

_kept: list[object] = []

_ENDING: Final = (
    "SIGHUP",
    "SIGQUIT",
    "SIGTERM",
    "SIGALRM",
    "SIGUSR1",
    "SIGUSR2",
    "SIGXCPU",
    "SIGVTALRM",
    "SIGPROF",
    "SIGIO",
    "SIGPWR",
    "SIGSTKFLT",
    "SIGBREAK",
)
"""Signals that end a program by default and that it may catch, as far as the platform has them.

SIGINT is an exception in Python, and SIGPIPE and SIGXFSZ an error of the call that writes.
"""
_SIGNALLED: Final = 128
"""Shells add the number of the signal."""


def on_signals() -> None:
    """Have signals end the program through ``sys.exit``, so that it removes temporary files and restores the terminal.

    A signal that is ignored, as nohup does with SIGHUP, stays ignored.
    """
    for name in _ENDING:
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _end)


def _end(number: int, _frame: FrameType | None) -> NoReturn:
    sys.exit(_SIGNALLED + number)


def keep(*found: object) -> None:
    """Have objects live until the program ends."""
    _kept.extend(found)


def quickly(run: Callable[[], object]) -> None:
    """Run a program to its ``sys.exit``, and end the process when everything else is done that is to be done at exit.

    Raises:
        SystemExit: The program has ended.
    """
    statuses: list[int] = []

    def end() -> None:
        if statuses and _flushed():
            os._exit(statuses[0])

    # What is registered first is called last.
    atexit.register(end)
    try:
        run()
    except SystemExit as leaving:
        if leaving.code is None or isinstance(leaving.code, int):
            statuses.append(leaving.code or 0)
        raise


def _flushed() -> bool:
    """Write what was printed; where that fails the interpreter has something to say."""
    try:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
    except (OSError, ValueError):
        return False
    return True
