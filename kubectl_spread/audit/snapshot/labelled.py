"""Labelled values: an index finds the values that a label selector selects, without testing each value."""

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
"""Up to ``_FEW`` candidates, or one in ``_SPARSE`` values, are tested one by one; for more, bitmaps are combined."""


class SelectedNumbers(NamedTuple):
    """The numbers of the selected values, ascending; or, if ``inverted``, the numbers of all values but these.

    The shorter form is used, so that equal selections select the same values.
    """

    numbers: tuple[int, ...]
    inverted: bool = False


class Labelled(Generic[_T]):
    """Values with labels, numbered in the order they were added."""

    def __init__(self) -> None:
        """Start empty."""
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
        selection = self.selection(selector)
        if not selection.inverted:
            return (self._all[number] for number in selection.numbers)
        left_out = frozenset(selection.numbers)
        return (labelled for number, labelled in enumerate(self._all) if number not in left_out)

    def selection(self, selector: LabelSelector) -> SelectedNumbers:
        """Return the numbers of the values that a selector selects."""
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
        """Return the numbers of the values that meet the rarest requirement, ascending; None: they are not few."""
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
