"""Room for the frames of calls, so that no call in a loop takes memory from the system each time.

CPython keeps frames in chunks of 16 KiB. A call that does not fit into the current chunk takes a new one, which is
given back when the call returns. A call in a loop that happens to be at the end of a chunk takes and gives back memory
each time: some 10 microseconds, and a tenth of a short run. Which call that is depends on the depth of the stack.

Source: CPython 3.11 to 3.14, Python/pystate.c, push_chunk and _PyThreadState_PopFrame.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from typing import Final, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

_SLOTS: Final = 40_000
"""The declared size of a frame: 320 kB, for which CPython takes a chunk of 512 KiB. Only what is used takes memory."""


def in_one_chunk(function: Callable[P, R]) -> Callable[P, R]:
    """Return the function with room for the frames of everything that it calls, some 190 kB."""

    def call(*arguments: P.args, **keywords: P.kwargs) -> R:
        return function(*arguments, **keywords)

    call.__code__ = call.__code__.replace(co_stacksize=_SLOTS)
    return update_wrapper(call, function)
