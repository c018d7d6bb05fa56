"""Labelled things: found by a label selector without asking each of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Generic, TypeVar

from kubectl_spread.kube.api import labels as labelselectors
from kubectl_spread.kube.api.labels import Labels
from kubectl_spread.kube.api.types import LabelSelector

_T = TypeVar("_T")


class Labelled(Generic[_T]):
    """Things with labels, in the order they were added."""

    def __init__(self) -> None:
        """Start without any."""
        self._all: list[tuple[Labels, _T]] = []
        self._indices: dict[str, dict[str, list[tuple[Labels, _T]]]] = {}

    def add(self, labels: Labels, thing: _T) -> None:
        """Add a thing."""
        self._all.append((labels, thing))
        self._indices.clear()

    def __iter__(self) -> Iterator[tuple[Labels, _T]]:
        """Yield all things with their labels."""
        return iter(self._all)

    def selected(self, selector: LabelSelector) -> Iterator[tuple[Labels, _T]]:
        """Yield the things that a selector selects, with their labels."""
        exact = next(iter(selector.match_labels.items()), None)
        among = self._all if exact is None else self._index(exact[0]).get(exact[1], ())
        return (found for found in among if labelselectors.matches(selector, found[0]))

    def _index(self, key: str) -> Mapping[str, Sequence[tuple[Labels, _T]]]:
        """Return the things by their values of one key."""
        if key not in self._indices:
            index = self._indices[key] = {}
            for found in self._all:
                if key in found[0]:
                    index.setdefault(found[0][key], []).append(found)
        return self._indices[key]
