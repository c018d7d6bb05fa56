"""Label index: which of many label sets have a label, and which does a label selector select?

A label set is a number. A bitmap is an integer whose bit n stands for label set n, so that one operation combines the
answers for all of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Final, Generic, TypeVar

from kubectl_spread.kube.api import labels as labelselectors
from kubectl_spread.kube.api.labels import Labels, Operator
from kubectl_spread.kube.api.types import LabelSelector, LabelSelectorRequirement

_NOT_ZERO: Final = re.compile(rb"[^\0]", re.DOTALL)
_BITS: Final = tuple(tuple(bit for bit in range(8) if byte >> bit & 1) for byte in range(256))


def bitmap(numbers: Iterable[int], size: int) -> int:
    """Return the bitmap of ``numbers``, which are below ``size``."""
    content = bytearray(size // 8 + 1)
    for number in numbers:
        content[number >> 3] |= 1 << (number & 7)
    return int.from_bytes(content, "little")


def ascending(bits: int) -> Iterator[int]:
    """Yield the numbers in a bitmap, ascending; each is found when it is asked for."""
    content = bits.to_bytes(bits.bit_length() // 8 + 1, "little")
    return (8 * byte.start() + bit for byte in _NOT_ZERO.finditer(content) for bit in _BITS[content[byte.start()]])


class LabelIndex:
    """An index of label sets, which are numbered from 0.

    Attributes:
        everything: The bitmap of all label sets.
    """

    def __init__(self, labels: Sequence[Labels]) -> None:
        """Index label sets in the order of their numbers; the values of a key are indexed when they are first read."""
        self._labels = labels
        self.everything = (1 << len(labels)) - 1
        self._having: dict[str, list[int]] = {}
        for number, label_set in enumerate(labels):
            for key in label_set:
                self._having.setdefault(key, []).append(number)
        self._values: dict[str, dict[str, list[int]]] = {}
        self._bitmaps: dict[tuple[str, str | None], int] = {}

    def having(self, key: str) -> Sequence[int]:
        """Return the label sets that have a key, ascending."""
        return self._having.get(key, ())

    def values(self, key: str) -> Mapping[str, Sequence[int]]:
        """Map each value of a key to the label sets that have it, ascending."""
        if key not in self._having:
            return {}
        if key not in self._values:
            values = self._values[key] = {}
            for number in self._having[key]:
                values.setdefault(self._labels[number][key], []).append(number)
        return self._values[key]

    def having_bits(self, key: str) -> int:
        """Return the bitmap of the label sets that have a key."""
        return self._bits(key, None, self.having(key))

    def value_bits(self, key: str, values: Iterable[str]) -> int:
        """Return the bitmap of the label sets whose value for a key is one of ``values``."""
        index, bits = self.values(key), 0
        for value in values:
            if value in index:
                bits |= self._bits(key, value, index[value])
        return bits

    def _bits(self, key: str, value: str | None, having: Sequence[int]) -> int:
        if (key, value) not in self._bitmaps:
            self._bitmaps[key, value] = bitmap(having, len(self._labels))
        return self._bitmaps[key, value]


_T = TypeVar("_T")


class Labelled(Generic[_T]):
    """Values with labels, numbered in the order they were added."""

    def __init__(self) -> None:
        self._all: list[tuple[Labels, _T]] = []

    def add(self, labels: Labels, value: _T) -> None:
        """Add a value."""
        self._all.append((labels, value))
        self.__dict__.pop("_index", None)

    def __iter__(self) -> Iterator[tuple[Labels, _T]]:
        """Yield all values with their labels."""
        return iter(self._all)

    def __getitem__(self, number: int) -> _T:
        """Return a value by its number."""
        return self._all[number][1]

    def selected(self, selector: LabelSelector) -> Iterator[tuple[Labels, _T]]:
        """Yield the values that a selector selects, with their labels."""
        return (self._all[number] for number in self.selection(selector))

    def selection(self, selector: LabelSelector) -> tuple[int, ...]:
        """Return the numbers of the values that a selector selects, ascending."""
        if not labelselectors.valid(selector):
            return ()
        requirements = tuple(labelselectors.requirements(selector))
        matches = labelselectors.matcher(requirements)
        return tuple(number for number in self._candidates(requirements) if matches(self._all[number][0]))

    @cached_property
    def _index(self) -> LabelIndex:
        return LabelIndex([labels for labels, _ in self._all])

    def _candidates(self, requirements: Sequence[LabelSelectorRequirement]) -> Sequence[int]:
        """Return the numbers of the values that meet the rarest requirement In, ascending; all without such."""
        having = (
            [self._index.values(requirement.key).get(value, ()) for value in dict.fromkeys(requirement.values)]
            for requirement in requirements
            if requirement.operator == Operator.IN
        )
        rarest = min(having, key=lambda lists: sum(map(len, lists)), default=None)
        if rarest is None:
            return range(len(self._all))
        return rarest[0] if len(rarest) == 1 else sorted(number for numbers in rarest for number in numbers)
