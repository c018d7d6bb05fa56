"""The documents of a file, and the places of their fields."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol

import msgspec

from kubectl_spread.errors import Position
from kubectl_spread.sources.decode.json_objects import Json, Path

LIST: Final = "List"
ITEMS: Final = "items"
HEADER: Final = ("apiVersion", "kind")
METADATA: Final = "metadata"


class Place(NamedTuple):
    """Where a value begins: its line, and its column in characters if it is known, both from 1."""

    line: int
    column: int | None = 1


class Text(Protocol):
    """A text that knows the places of its fields."""

    def place_of(self, path: Path) -> Place:
        """Return where the field at ``path``, or the innermost field around it, begins: at its key, or at the item."""

    def elements(self, record: Record, items: Sequence[Json]) -> Iterator[Record]:
        """Yield a record for each item of the list ``record``, which is in this text."""


class Record(msgspec.Struct, frozen=True):
    """One value of a file.

    Attributes:
        content: The value: a part of the file that is JSON, or YAML converted to JSON.
        text: The text that contains it.
        path: The path to it in its document.
        inner: The path to it in ``text``, which may be only a part of the document.
        fields: The undecoded fields of a JSON document, if they were separated when its end was searched.
    """

    content: Json
    text: Text
    path: Path = ()
    inner: Path = ()
    fields: Mapping[str, Json] | None = None

    def elements(self, items: Sequence[Json]) -> Iterator[Record]:
        """Yield a record for each item of this list; ``items`` are its items, in order."""
        return self.text.elements(self, items)

    def line_of(self, path: Path = ()) -> int:
        """Return the line where the field at ``path``, or the innermost field around it, begins."""
        return self.text.place_of((*self.inner, *path)).line

    def position_of(self, source: str, path: Path) -> Position:
        """Return the position in the file ``source`` where the field at ``path`` begins."""
        return Position(source, *self.text.place_of((*self.inner, *path)))


def of_field(root: Any, path: Path, first: int) -> Place:
    """Return where a field of a YAML document, or the innermost field around it, begins: at its key, or at the item.

    Args:
        root: The root node of the document.
        path: Keys and indices.
        first: The line of the file with which the document's text begins.
    """
    begin = node = root
    for part in path:
        child = _child(node, part)
        if child is None:
            break
        begin, node = child
    return Place(begin.start_mark.line + first, begin.start_mark.column + 1)


def _child(node: Any, part: str | int) -> tuple[Any, Any] | None:
    """Return the node with which an entry or item begins, and the node of its value; None: there is no such part."""
    match node.id, part:
        case "sequence", int():
            return (node.value[part], node.value[part]) if part < len(node.value) else None
        case "mapping", str():
            return next(((key, value) for key, value in node.value if key.value == part), None)
    return None
