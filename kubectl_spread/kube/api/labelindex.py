"""Label index: the numbers of the things that have a label, as lists or as bitmaps.

A bitmap is an integer whose bit n stands for thing n, so that one operation combines the answers for many things.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from kubectl_spread.kube.api.labels import Labels

_NOT_ZERO: Final = re.compile(rb"[^\0]", re.DOTALL)
_BITS: Final = tuple(tuple(bit for bit in range(8) if byte >> bit & 1) for byte in range(256))
_DENSE: Final = 64
"""The bitmap of a label is kept where at least one of so many things has it."""


def bitmap(numbers: Iterable[int], size: int) -> int:
    """Return the bitmap of some of the numbers below ``size``."""
    content = bytearray(size // 8 + 1)
    for number in numbers:
        content[number >> 3] |= 1 << (number & 7)
    return int.from_bytes(content, "little")


def numbers(bits: int) -> tuple[int, ...]:
    """Return the numbers in a bitmap, ascending."""
    content = bits.to_bytes(bits.bit_length() // 8 + 1, "little")
    return tuple(8 * byte.start() + bit for byte in _NOT_ZERO.finditer(content) for bit in _BITS[content[byte.start()]])


class LabelIndex:
    """The labels of things that are numbered from 0.

    Attributes:
        everything: The bitmap of all things.
    """

    def __init__(self, labels: Sequence[Labels]) -> None:
        """Index the labels of things in the order of their numbers; values are indexed once their key is looked up."""
        self._labels = labels
        self.everything = (1 << len(labels)) - 1
        self._having: dict[str, list[int]] = {}
        for number, each in enumerate(labels):
            for key in each:
                self._having.setdefault(key, []).append(number)
        self._values: dict[str, dict[str, list[int]]] = {}
        self._bitmaps: dict[tuple[str, str | None], int] = {}

    def having(self, key: str) -> Sequence[int]:
        """Return the things that have a label, ascending."""
        return self._having.get(key, ())

    def values(self, key: str) -> Mapping[str, Sequence[int]]:
        """Map each value of a label to the things that have it, ascending."""
        if key not in self._having:
            return {}
        if key not in self._values:
            values = self._values[key] = {}
            for number in self._having[key]:
                values.setdefault(self._labels[number][key], []).append(number)
        return self._values[key]

    def having_bits(self, key: str) -> int:
        """Return the bitmap of the things that have a label."""
        return self._bits(key, None, self.having(key))

    def value_bits(self, key: str, values: Iterable[str]) -> int:
        """Return the bitmap of the things whose label has one of ``values``."""
        index, bits, sparse = self.values(key), 0, list[int]()
        for value in values:
            having = index.get(value, ())
            if self._is_dense(having):
                bits |= self._bits(key, value, having)
            else:
                sparse += having
        return bits | bitmap(sparse, len(self._labels)) if sparse else bits

    def _bits(self, key: str, value: str | None, having: Sequence[int]) -> int:
        if not self._is_dense(having):
            return bitmap(having, len(self._labels)) if having else 0
        if (key, value) not in self._bitmaps:
            self._bitmaps[key, value] = bitmap(having, len(self._labels))
        return self._bitmaps[key, value]

    def _is_dense(self, having: Sequence[int]) -> bool:
        return len(having) * _DENSE >= len(self._labels)
