"""A window on a file: the part of it that is being read, however large the file is."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

START: Final = 1


class Window:
    """Bytes of a file that are still needed.

    Attributes:
        body: What is in memory.
        position: How far it is read; what comes before may be forgotten, from ``kept`` on.
        kept: The first byte that must not be forgotten.
    """

    def __init__(self, blocks: Iterable[bytes]) -> None:
        """Open a window at the beginning of a file that comes in ``blocks``."""
        self.body = b""
        self.position = 0
        self.kept = 0
        self._blocks = iter(blocks)
        self._line = START
        self._counted = 0

    def forget(self, position: int) -> None:
        """Read on at ``position``; nothing before it is needed any more."""
        self.position = self.kept = position

    def more(self) -> bool:
        """Read at least as much as is kept, so that a long value takes linear time; False: the file ends."""
        self.line_at(self.kept)
        kept, added = self.body[self.kept :], 0
        parts = [kept]
        for block in self._blocks:
            parts.append(block)
            added += len(block)
            if added > len(kept):
                break
        self.body = b"".join(parts)
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
