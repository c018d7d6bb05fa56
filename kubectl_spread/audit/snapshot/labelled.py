"""Labelled things: a label selector selects some of them through an index, without testing each."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Final, Generic, NamedTuple, TypeVar

from kubectl_spread.kube.api import labels as labelselectors
from kubectl_spread.kube.api.labelindex import LabelIndex, numbers
from kubectl_spread.kube.api.labels import Labels, Operator
from kubectl_spread.kube.api.types import LabelSelector, LabelSelectorRequirement

_T = TypeVar("_T")
_FEW: Final = 4
_SPARSE: Final = 64
"""Candidates are looked at one by one if they are few, or one of so many things at most; else bitmaps are combined."""


class SelectedNumbers(NamedTuple):
    """The numbers of the selected things, ascending; or, ``inverted``, of those that are not selected.

    Of both the shorter. Equal selections select the same things.
    """

    numbers: tuple[int, ...]
    inverted: bool = False


class Labelled(Generic[_T]):
    """Things with labels, numbered in the order they were added."""

    def __init__(self) -> None:
        """Start empty."""
        self._all: list[tuple[Labels, _T]] = []

    def add(self, labels: Labels, thing: _T) -> None:
        """Add a thing."""
        self._all.append((labels, thing))
        self.__dict__.pop("_index", None)

    def __iter__(self) -> Iterator[tuple[Labels, _T]]:
        """Yield all things with their labels."""
        return iter(self._all)

    def __getitem__(self, number: int) -> _T:
        """Return a thing by its number."""
        return self._all[number][1]

    def selected(self, selector: LabelSelector) -> Iterator[tuple[Labels, _T]]:
        """Yield the things that a selector selects, with their labels."""
        selection = self.selection(selector)
        if not selection.inverted:
            return (self._all[number] for number in selection.numbers)
        left_out = frozenset(selection.numbers)
        return (labelled for number, labelled in enumerate(self._all) if number not in left_out)

    def selection(self, selector: LabelSelector) -> SelectedNumbers:
        """Return the numbers of the things that a selector selects."""
        if not self._all or not labelselectors.valid(selector):
            return SelectedNumbers(())
        requirements = tuple(labelselectors.requirements(selector))
        candidates = self._candidates(requirements)
        if candidates is None:
            return self._combined(requirements)
        matches = labelselectors.matcher(requirements)
        return SelectedNumbers(tuple(number for number in candidates if matches(self._all[number][0])))

    @cached_property
    def _index(self) -> LabelIndex:
        return LabelIndex([labels for labels, _ in self._all])

    def _candidates(self, requirements: tuple[LabelSelectorRequirement, ...]) -> list[int] | None:
        """Return the few things that meet the rarest requirement, ascending; None: they are not few."""
        rarest: list[int] | None = None
        for requirement in requirements:
            most = max(_FEW, len(self._all) // _SPARSE) if rarest is None else len(rarest)
            match requirement.operator:
                case Operator.IN:
                    values = self._index.values(requirement.key)
                    lists = [values.get(value, ()) for value in dict.fromkeys(requirement.values)]
                case Operator.EXISTS:
                    lists = [self._index.having(requirement.key)]
                case _:
                    continue
            if sum(map(len, lists)) <= most:
                rarest = sorted(number for numbers in lists for number in numbers)
        return rarest

    def _combined(self, requirements: tuple[LabelSelectorRequirement, ...]) -> SelectedNumbers:
        index = self._index
        bits = index.everything
        for requirement in requirements:
            match requirement.operator:
                case Operator.IN:
                    bits &= index.value_bits(requirement.key, requirement.values)
                case Operator.NOT_IN:
                    bits &= ~index.value_bits(requirement.key, requirement.values)
                case Operator.EXISTS:
                    bits &= index.having_bits(requirement.key)
                case Operator.DOES_NOT_EXIST:
                    bits &= ~index.having_bits(requirement.key)
        if 2 * bits.bit_count() <= len(self._all):
            return SelectedNumbers(numbers(bits))
        return SelectedNumbers(numbers(index.everything & ~bits), inverted=True)
