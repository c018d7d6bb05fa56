"""A window on a file: the part of it that is being read, however large the file is."""

from __future__ import annotations

from collections.abc import Iterable

from kubectl_spread.sources import memory
from kubectl_spread.sources.decode.places import Marks, Place


class Window:
    """Bytes of a file that are still needed.

    Attributes:
        body: The bytes in memory; nobody may hold a view of them when more is read.
        position: The index in ``body`` up to which the file is read; bytes from ``needed`` on may be read again.
        needed: The index of the first byte that must stay in memory.
        offset: The number of bytes of the file that are forgotten.
    """

    def __init__(self, blocks: Iterable[bytes], source: str) -> None:
        """Open a window at the beginning of the file ``source``, which comes in ``blocks``."""
        self.body = bytearray()
        self.position = self.needed = self.offset = 0
        self._blocks = iter(blocks)
        self._claim = memory.RUN.claim(source, "a List whose items are not indented is read item by item")
        self._marks = Marks(self.body)

    def forget(self, position: int) -> None:
        """Continue at ``position``, and allow the bytes before it to be forgotten."""
        self.position = self.needed = position

    def taken(self, end: int) -> bytes:
        """Return a copy of the bytes from ``position`` up to ``end``, and continue at ``end``."""
        with memoryview(self.body) as body:
            text = bytes(body[self.position : end])
        self.position = end
        return text

    def more(self) -> bool:
        """Read at least as many bytes as are still needed; False: the file ends.

        So the window doubles, and a long value takes linear time.

        Raises:
            TooLargeError: The bytes do not fit into memory.
        """
        self._marks = Marks(self.body, self._marks.at(self.needed))
        del self.body[: self.needed]
        needed, added = len(self.body), 0
        for block in self._blocks:
            self._claim.resize(len(self.body) + len(block))
            # In place, because a longer copy would need as much memory again.
            self.body += block
            added += len(block)
            if added > needed:
                break
        self.position -= self.needed
        self.offset += self.needed
        self.needed = 0
        return added > 0

    def place_at(self, position: int) -> Place:
        """Return the place in the file of a byte of ``body``."""
        return self._marks.at(position)
