"""A window on a file: the part of it that is being read, however large the file is."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from kubectl_spread.sources import memory

START: Final = 1


class Window:
    """Bytes of a file that are still needed.

    Attributes:
        body: What is in memory; no view of it may be left when more is read.
        position: How far it is read; what comes before may be forgotten, from ``kept`` on.
        kept: The first byte that must not be forgotten.
    """

    def __init__(self, blocks: Iterable[bytes], source: str) -> None:
        """Open a window at the beginning of the file ``source``, which comes in ``blocks``."""
        self.body = bytearray()
        self.position = 0
        self.kept = 0
        self._blocks = iter(blocks)
        self._claim = memory.RUN.claim(source, "a List whose items are not indented is read item by item")
        self._line = START
        self._counted = 0

    def forget(self, position: int) -> None:
        """Read on at ``position``; nothing before it is needed any more."""
        self.position = self.kept = position

    def taken(self, end: int) -> bytes:
        """Return what stands from ``position`` up to ``end``, copied once; the rest of the file is read from there."""
        with memoryview(self.body) as body:
            found = bytes(body[self.position : end])
        self.position = end
        return found

    def more(self) -> bool:
        """Read at least as much as is kept, so that a long value takes linear time; False: the file ends.

        Raises:
            TooLargeError: What is kept does not fit into memory.
        """
        self.line_at(self.kept)
        del self.body[: self.kept]
        kept, added = len(self.body), 0
        for block in self._blocks:
            self._claim.resize(len(self.body) + len(block))
            # In place: a longer copy of it would take as much again.
            self.body += block
            added += len(block)
            if added > kept:
                break
        self.position -= self.kept
        self.kept = self._counted = 0
        return added > 0

    def line_at(self, position: int) -> int:
        """Return the line of the file, from 1, in which a byte that is kept stands."""
        if position < self._counted:
            self._line -= self.body.count(b"\n", position, self._counted)
        else:
            self._line += self.body.count(b"\n", self._counted, position)
        self._counted = position
        return self._line
