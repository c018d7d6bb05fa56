"""Labelled values: an index finds the values that a label selector may select, which are tested one by one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Generic, TypeVar

from kubectl_spread.kube.api import labels as labelselectors
from kubectl_spread.kube.api.labelindex import LabelIndex
from kubectl_spread.kube.api.labels import Labels, Operator
from kubectl_spread.kube.api.types import LabelSelector, LabelSelectorRequirement

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
