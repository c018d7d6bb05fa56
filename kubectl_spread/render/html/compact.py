"""Records as columns in which a text is a number, so that what many rows share is written once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

Value = str | int | bool | Sequence[str] | Sequence[int] | None
"""What a record holds; lists hold texts or numbers, not both."""


class Texts:
    """The texts of all columns, each once, in the order they were met in.

    Attributes:
        found: The texts; a column refers to them by index.
    """

    def __init__(self) -> None:
        self.found: list[str] = []
        self._indices: dict[str, int] = {}

    def columns(self, records: Sequence[Mapping[str, Value]]) -> dict[str, list[object]]:
        """Return records that have the same names as one list a name.

        The name of a column that holds texts, or lists of texts, ends with ``$``.
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
            return [self._index(one) if isinstance(one, str) else one for one in value]
        return value

    def _index(self, text: str) -> int:
        index = self._indices.setdefault(text, len(self.found))
        if index == len(self.found):
            self.found.append(text)
        return index


def _holds_texts(column: Sequence[Value]) -> bool:
    """Tell whether a column holds texts; the other values of such a column are None or empty lists."""
    return any(isinstance(value, str) or (isinstance(value, Sequence) and _first_is_text(value)) for value in column)


def _first_is_text(values: Sequence[str] | Sequence[int]) -> bool:
    return bool(values) and isinstance(values[0], str)
