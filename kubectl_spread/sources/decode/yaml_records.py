"""Values of a YAML file as JSON; where their fields are is found out when somebody asks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, Protocol

import msgspec

from kubectl_spread.sources.decode import places, yaml_values
from kubectl_spread.sources.decode.json_objects import Path
from kubectl_spread.sources.decode.listing import ITEMS
from kubectl_spread.sources.decode.places import Place
from kubectl_spread.sources.decode.yaml_values import Plain


class Text(Protocol):
    """What can tell where its fields are written."""

    def line_of(self, path: Path) -> int:
        """Return the line where the field at ``path``, or what of it is there, is written."""

    def place_of(self, path: Path) -> Place:
        """Return where the field at ``path``, or what of it is there, begins."""


class YamlRecord(msgspec.Struct, frozen=True):
    """One value of a document.

    Attributes:
        raw: The value as JSON.
        text: Where it is written.
        path: Where it stands in its document.
        inner: Where it stands in ``text``, which may be less than the document.
    """

    raw: bytes | msgspec.Raw
    text: Text
    path: Path = ()
    inner: Path = ()

    @property
    def line(self) -> int:
        """The line where it begins, from 1."""
        return self.text.line_of(self.inner)

    def line_of(self, path: Path) -> int:
        """Return the line where the field at ``path``, or what of it is there, begins."""
        return self.text.line_of((*self.inner, *path))

    def place_of(self, path: Path) -> Place:
        """Return where the field at ``path``, or what of it is there, begins."""
        return self.text.place_of((*self.inner, *path))

    def elements(self, items: Sequence[msgspec.Raw]) -> Iterator[YamlRecord]:
        """Yield a record for each of ``items``, which must be those of this value, in order."""
        for index, item in enumerate(items):
            step = (ITEMS, index)
            yield YamlRecord(item, self.text, (*self.path, *step), (*self.inner, *step))


class PlainText:
    """A document of which few lines are known; other places are found by reading it again."""

    def __init__(self, text: bytes, first: int, plain: Plain) -> None:
        """Hold the document that begins in line ``first`` of its file."""
        self._text = text
        self._first = first
        self._plain = plain

    def line_of(self, path: Path) -> int:
        """Return the line where the field at ``path``, or what of it is there, is written."""
        match path:
            case ():
                return self._first + self._plain.line
            case (int(index),) | ("items", int(index)):
                return self._first + self._plain.lines[index]
        return self.place_of(path).line

    def place_of(self, path: Path) -> Place:
        """Return where the field at ``path``, or what of it is there, begins."""
        return places.of_field(self._root, path, self._first)

    @cached_property
    def _root(self) -> Any:
        return yaml_values.nodes(self._text)
