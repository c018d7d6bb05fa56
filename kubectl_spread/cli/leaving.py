"""Leaving: the system takes back at once what it would take a second to free object by object."""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Callable

_kept: list[object] = []


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
