"""How much input is in memory at once: one budget for everything that a run reads.

What is read, counted and dropped does not stay in memory, so a file or a list may be as large as it likes. Each reader
claims what it holds at the moment: a page, one object of a file, one document of YAML, an answer. The claims of all
readers together must fit the budget.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import BinaryIO, Final, Self

from kubectl_spread.errors import SourceError

LIMIT: Final = 1 << 30
"""Bytes of input that may be held at once, unless ``--max-memory`` sets another limit."""
FREE: Final = 64 << 20
"""Bytes that compressed input may become, whatever its ratio."""
RATIO: Final = 200
"""How many times its size compressed input may become beyond that. Pods that are alike shrink to a fortieth."""
_BLOCK: Final = 1 << 20
_MEBI: Final = 20
_KIBI: Final = 10


class TooLargeError(SourceError):
    """Input is larger than may be held in memory, or compressed beyond measure."""


class Budget:
    """Bytes that all readers of a run may hold together; may be used from several threads.

    Attributes:
        limit: How many these are.
    """

    def __init__(self, limit: int) -> None:
        """Begin with nothing held."""
        self.limit = limit
        self._held = 0
        self._lock = threading.Lock()

    @property
    def held(self) -> int:
        """The bytes that are held now."""
        return self._held

    def claim(self, what: object, advice: str = "") -> Claim:
        """Return a claim of nothing yet.

        Args:
            what: What is read, as errors name it, if there are any.
            advice: What the user may do other than to allow more.
        """
        return Claim(self, what, advice)

    def change(self, change: int) -> bool:
        """Hold more, or less; False: more is not allowed, and nothing has changed."""
        with self._lock:
            if change > 0 and self._held + change > self.limit:
                return False
            self._held += change
        return True


class Claim:
    """What one reader holds; it is given back at the latest when nobody refers to the claim any more."""

    def __init__(self, budget: Budget, what: object, advice: str) -> None:
        """Hold nothing yet; see ``Budget.claim``."""
        self._budget = budget
        self._what = what
        self._advice = advice
        self._size = 0

    def __enter__(self) -> Self:
        """Hold until the end of the block."""
        return self

    def __exit__(self, *_: object) -> None:
        """Hold nothing any more."""
        self.resize(0)

    def __del__(self) -> None:
        """Hold nothing any more."""
        self.resize(0)

    def grow(self, size: int) -> None:
        """Hold so many bytes more.

        Raises:
            TooLargeError: As ``resize``.
        """
        self.resize(self._size + size)

    def resize(self, size: int) -> None:
        """Hold so many bytes.

        Raises:
            TooLargeError: That is more than all readers together may hold.
        """
        if size == self._size:
            return
        if not self._budget.change(size - self._size):
            raise TooLargeError(self._refused(size))
        self._size = size

    def _refused(self, size: int) -> str:
        others = self._budget.held - self._size
        beside = f", next to {mebibytes(others)} for other input" if others >> _MEBI else ""
        limit, advice = mebibytes(self._budget.limit), f"; {self._advice}" if self._advice else ""
        return (
            f"{self._what}: needs {mebibytes(size)} of memory{beside}, and all input together may take {limit} at once "
            f"(--max-memory allows more{advice})"
        )


RUN: Final = Budget(LIMIT)
"""The budget of this run."""


def check_ratio(what: str, packed: int, unpacked: int, advice: str) -> None:
    """Do nothing if compressed input is not a bomb, as far as it is unpacked.

    Args:
        what: What is read.
        packed: The bytes that were read.
        unpacked: The bytes that they became.
        advice: What the user may do who means it so.

    Raises:
        TooLargeError: It becomes much larger than anything that is meant so.
    """
    if unpacked > FREE and unpacked > packed * RATIO:
        became = f"{packed >> _KIBI:,} KiB became {mebibytes(unpacked)} when unpacked, more than {RATIO} times as much"
        raise TooLargeError(f"{what}: {became} ({advice})")


@contextmanager
def reading(path: Path) -> Iterator[bytes]:
    """Yield the content of a small file, such as one with credentials; it may be a device that has no end.

    Raises:
        OSError: It cannot be read.
        TooLargeError: It does not fit into memory.
    """
    with RUN.claim(str(path)) as claim, path.open("rb") as file:
        yield whole(file, claim)


def whole(file: BinaryIO, claim: Claim) -> bytes:
    """Return what a file holds from here on.

    Raises:
        OSError: It cannot be read.
        TooLargeError: It does not fit into memory.
    """
    parts = []
    for part in iter(partial(file.read, _BLOCK), b""):
        claim.grow(len(part))
        parts.append(part)
    return b"".join(parts)


def mebibytes(size: int) -> str:
    """Return a size as errors show it."""
    return f"{size >> _MEBI:,} MiB"
