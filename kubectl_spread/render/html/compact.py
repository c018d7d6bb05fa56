"""Records as columns in which a text is an index, so that a text of many rows is written once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

Value = str | int | bool | Sequence[str] | Sequence[int] | None
"""A value in a record; a list has texts or numbers, not both."""


class Texts:
    """The texts of all columns, each once, in order of appearance.

    Attributes:
        texts: The texts; a column has their indices.
    """

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._indices: dict[str, int] = {}

    def columns(self, records: Sequence[Mapping[str, Value]]) -> dict[str, list[object]]:
        """Return records with the same field names as one list for each name.

        The name of a column of texts, or of lists of texts, ends with ``$``.
        """
        columns = {name: [record[name] for record in records] for name in (records[0] if records else ())}
        return {
            f"{name}$" if any(map(_has_text, column)) else name: [self._encoded(value) for value in column]
            for name, column in columns.items()
        }

    def _encoded(self, value: Value) -> object:
        if isinstance(value, str):
            return self._index(value)
        if isinstance(value, Sequence):
            return [self._encoded(element) for element in value]
        return value

    def _index(self, text: str) -> int:
        index = self._indices.setdefault(text, len(self.texts))
        if index == len(self.texts):
            self.texts.append(text)
        return index


def _has_text(value: Value) -> bool:
    """Tell whether a value is a text or a list of texts."""
    if isinstance(value, str):
        return True
    return isinstance(value, Sequence) and bool(value) and isinstance(value[0], str)
