"""The budget of memory for input, for everything that a run reads.

Files and lists may have any size, because objects are read, counted and dropped. Each reader claims the bytes that it
currently holds: a page, an object of a file, a YAML document, a response. The claims of all readers together must fit
into the budget.
"""

from __future__ import annotations

import threading
from functools import partial
from typing import BinaryIO, Final, Self

from kubectl_spread.errors import SourceError
from kubectl_spread.phrases import plural

LIMIT: Final = 1 << 30
"""The bytes of input that may be in memory at once."""
FREE: Final = 64 << 20
"""The bytes that compressed input may become at any ratio."""
RATIO: Final = 200
"""The largest ratio of larger input. Equal pods compress to a fortieth."""
_BLOCK: Final = 1 << 20
_MEBI: Final = 20
_KIBI: Final = 10


class TooLargeError(SourceError):
    """Input is larger than the budget, or is a compression bomb."""


class Budget:
    """The bytes that all readers of a run may hold together; may be used from several threads.

    Attributes:
        limit: The number of bytes.
        held: The bytes that readers hold now.
    """

    def __init__(self, limit: int) -> None:
        """Start empty."""
        self.limit = limit
        self.held = 0
        self._lock = threading.Lock()

    def claim(self, what: object, advice: str = "") -> Claim:
        """Return an empty claim.

        Args:
            what: The input, as errors name it.
            advice: Advice to the user.
        """
        return Claim(self, what, advice)

    def change(self, change: int) -> bool:
        """Change the bytes that are held; return False, and change nothing, if the budget is too small."""
        with self._lock:
            if change > 0 and self.held + change > self.limit:
                return False
            self.held += change
        return True


class Claim:
    """The bytes that one reader holds; they are released at the latest with the last reference to the claim."""

    def __init__(self, budget: Budget, what: object, advice: str) -> None:
        """Start empty; see ``Budget.claim``."""
        self._budget = budget
        self._what = what
        self._advice = advice
        self._size = 0

    def __enter__(self) -> Self:
        """Hold the bytes until the end of the block."""
        return self

    def __exit__(self, *_: object) -> None:
        """Release all bytes."""
        self.resize(0)

    def __del__(self) -> None:
        """Release all bytes."""
        self.resize(0)

    def grow(self, size: int) -> None:
        """Hold so many more bytes.

        Raises:
            TooLargeError: The budget is too small.
        """
        self.resize(self._size + size)

    def resize(self, size: int) -> None:
        """Hold so many bytes.

        Raises:
            TooLargeError: The budget is too small.
        """
        if size == self._size:
            return
        if not self._budget.change(size - self._size):
            raise TooLargeError(self._refused(size))
        self._size = size

    def _refused(self, size: int) -> str:
        others = self._budget.held - self._size
        elsewhere = f", next to {in_units(others)} for other input" if others >> _MEBI else ""
        limit, advice = in_units(self._budget.limit), f" ({self._advice})" if self._advice else ""
        return (
            f"{self._what}: needs {in_units(size)} of memory{elsewhere}, "
            f"and all input together may take {limit} at once{advice}"
        )


RUN: Final = Budget(LIMIT)
"""The budget of this run."""


def check_ratio(what: str, packed: int, unpacked: int, advice: str) -> None:
    """Check that compressed input is not a bomb, as far as it is decompressed.

    Args:
        what: The input.
        packed: The bytes that were read.
        unpacked: The bytes that they became.
        advice: Advice to users whose input is really so large.

    Raises:
        TooLargeError: Its ratio is unreasonable.
    """
    if unpacked > FREE and unpacked > packed * RATIO:
        growth = f"{in_units(packed)} became {in_units(unpacked)} when unpacked, more than {RATIO} times as much"
        raise TooLargeError(f"{what}: {growth} ({advice})")


def whole(file: BinaryIO, claim: Claim) -> bytes:
    """Return the rest of a file.

    Raises:
        OSError: It cannot be read.
        TooLargeError: It does not fit into memory.
    """
    parts = []
    for part in iter(partial(file.read, _BLOCK), b""):
        claim.grow(len(part))
        parts.append(part)
    return b"".join(parts)


def in_units(size: int) -> str:
    """Return a size for an error, in the largest unit of which it has at least one."""
    for shift, unit in ((_MEBI, "MiB"), (_KIBI, "KiB")):
        if size >> shift:
            return f"{size >> shift:,} {unit}"
    return plural(size, "byte")
