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
            f"{name}$" if _holds_texts(column) else name: [self._encoded(value) for value in column]
            for name, column in columns.items()
        }

    def _encoded(self, value: Value) -> object:
        if isinstance(value, str):
            return self._index(value)
        if isinstance(value, Sequence):
            return [self._index(item) if isinstance(item, str) else item for item in value]
        return value

    def _index(self, text: str) -> int:
        index = self._indices.setdefault(text, len(self.texts))
        if index == len(self.texts):
            self.texts.append(text)
        return index


def _holds_texts(column: Sequence[Value]) -> bool:
    """Tell whether a column has texts; its other values are None or empty lists."""
    return any(isinstance(value, str) or (isinstance(value, Sequence) and _first_is_text(value)) for value in column)


def _first_is_text(values: Sequence[str] | Sequence[int]) -> bool:
    return bool(values) and isinstance(values[0], str)
