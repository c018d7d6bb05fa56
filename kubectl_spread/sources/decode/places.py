"""Places: the line and column where a field is written."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from kubectl_spread.sources.decode.json_objects import Path


class Place(NamedTuple):
    """Where a value begins: its line, and its column in characters, both from 1."""

    line: int
    column: int


START: Final = Place(1, 1)


class Marks:
    """The places in a text; looking them up in ascending order takes linear time."""

    def __init__(self, text: bytes | bytearray, start: Place = START) -> None:
        """Hold a text that begins at ``start``."""
        self._text = text
        self._start = self._place = start
        self._offset = 0

    def at(self, offset: int) -> Place:
        """Return the place of a byte of the text."""
        if offset < self._offset:
            self._place, self._offset = self._start, 0
        line, column = self._place
        newline = self._text.rfind(b"\n", self._offset, offset)
        if newline >= 0:
            line += self._text.count(b"\n", self._offset, offset)
            column, self._offset = 1, newline + 1
        column += len(self._text[self._offset : offset].decode(errors="replace"))
        self._place, self._offset = Place(line, column), offset
        return self._place


def of_field(root: Any, path: Path, first: int) -> Place:
    """Return where a field of a YAML document, or the innermost field around it, begins: at its key, or at the item.

    Args:
        root: The root node of the document, from ruamel.yaml or from libyaml.
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
