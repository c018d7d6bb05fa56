"""Values of a YAML file as JSON; the places of their fields are looked up on request."""

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
    """A text that knows the places of its fields."""

    def line_of(self, path: Path) -> int:
        """Return the line where the field at ``path``, or the innermost around it, is written."""

    def place_of(self, path: Path) -> Place:
        """Return where the field at ``path``, or the innermost around it, begins."""


class YamlRecord(msgspec.Struct, frozen=True):
    """One value of a document.

    Attributes:
        raw: The value as JSON.
        text: Where it is written.
        path: The path to it in its document.
        inner: The path to it in ``text``, which may be only a part of the document.
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
        """Return the line where the field at ``path``, or the innermost around it, begins."""
        return self.text.line_of((*self.inner, *path))

    def place_of(self, path: Path) -> Place:
        """Return where the field at ``path``, or the innermost around it, begins."""
        return self.text.place_of((*self.inner, *path))

    def elements(self, items: Sequence[msgspec.Raw]) -> Iterator[YamlRecord]:
        """Yield a record for each of ``items``, which must be those of this value, in order."""
        for index, item in enumerate(items):
            step = (ITEMS, index)
            yield YamlRecord(item, self.text, (*self.path, *step), (*self.inner, *step))


class PlainText:
    """A document with the lines of its items; other places are found by parsing it again."""

    def __init__(self, text: bytes, first: int, plain: Plain) -> None:
        """Hold the document that begins in line ``first`` of its file."""
        self._text = text
        self._first = first
        self._plain = plain

    def line_of(self, path: Path) -> int:
        """Return the line where the field at ``path``, or the innermost around it, is written."""
        match path:
            case ():
                return self._first + self._plain.line
            case (int(index),) | ("items", int(index)):
                return self._first + self._plain.lines[index]
        return self.place_of(path).line

    def place_of(self, path: Path) -> Place:
        """Return where the field at ``path``, or the innermost around it, begins."""
        return places.of_field(self._root, path, self._first)

    @cached_property
    def _root(self) -> Any:
        return yaml_values.nodes(self._text)
