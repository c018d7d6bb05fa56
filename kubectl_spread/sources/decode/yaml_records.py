"""Values of a YAML file as JSON; the places of their fields are searched only on request."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from kubectl_spread.sources.decode.json_objects import Path
from kubectl_spread.sources.decode.listing import ITEMS, Text
from kubectl_spread.sources.decode.places import Place


class YamlRecord(msgspec.Struct, frozen=True):
    """One value of a document.

    Attributes:
        raw: The value as JSON.
        text: The text that contains it.
        path: The path to it in its document.
        inner: The path to it in ``text``, which may be only a part of the document.
    """

    raw: bytes | msgspec.Raw
    text: Text
    path: Path = ()
    inner: Path = ()

    def line_of(self, path: Path = ()) -> int:
        """Return the line where the field at ``path``, or the innermost field around it, begins."""
        return self.text.line_of((*self.inner, *path))

    def place_of(self, path: Path) -> Place:
        """Return where the field at ``path``, or the innermost field around it, begins."""
        return self.text.place_of((*self.inner, *path))

    def elements(self, raw_items: Sequence[msgspec.Raw]) -> Iterator[YamlRecord]:
        """Yield a record for each item of this list; ``raw_items`` are its items, in order."""
        for index, raw_item in enumerate(raw_items):
            step = (ITEMS, index)
            yield YamlRecord(raw_item, self.text, (*self.path, *step), (*self.inner, *step))
