"""JSON documents from a file that need not fit into memory: of a list, one item at a time."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import msgspec

from kubectl_spread.errors import Position, SourceError
from kubectl_spread.sources.decode import json_documents
from kubectl_spread.sources.decode.json_documents import JsonRecord
from kubectl_spread.sources.decode.listing import HEADER, ITEMS, METADATA, Listing, may_be_list
from kubectl_spread.sources.decode.window import Window

_YAML_START: Final = b"---"
_BRACE: Final = b"{"
_BRACES: Final = b"{{"
_SPACE: Final = re.compile(rb"[ \t\r\n]*")
_TRUNCATED: Final = "Input data was truncated"
_CUT_OFF: Final = 8


def is_blank(window: Window) -> bool:
    """Tell whether there is nothing in a file that nobody has read yet."""
    found = not _Reader(window, "").next_byte()
    window.position = window.kept
    return found


def begins(window: Window) -> bool:
    """Tell whether a file that nobody has read yet begins as JSON; a Helm template may begin with two braces."""
    reader = _Reader(window, "")
    reader.next_byte()
    found = reader.continues_as(_BRACE) and not reader.continues_as(_BRACES)
    window.position = window.kept
    return found


def documents(window: Window, source: str) -> Iterator[JsonRecord | Listing]:
    """Yield the documents of a file, which may stand one after the other, up to YAML if that follows.

    Of a ``Listing`` the items must be exhausted before the next document is asked for.

    Raises:
        SourceError: This is not JSON.
    """
    reader = _Reader(window, source)
    while reader.next_byte(kept=False):
        if reader.continues_as(_YAML_START):
            return
        yield reader.document()


class _Reader(msgspec.Struct, frozen=True):
    window: Window
    source: str

    def continues_as(self, text: bytes) -> bool:
        window = self.window
        while len(window.body) < window.position + len(text) and window.more():
            pass
        return window.body.startswith(text, window.position)

    def document(self) -> JsonRecord | Listing:
        """Return the document at the position, or the beginning of one that is a list, it seems."""
        window = self.window
        line = window.line_at(window.position)
        fields: dict[str, object] = {}
        if self.next_byte() == b"{" and self._reaches_items(fields):
            listing = Listing(line, fields)
            listing.items = self._items(listing)
            return listing
        window.position = window.kept
        return json_documents.record(self._value(), line)

    def _reaches_items(self, fields: dict[str, object]) -> bool:
        """Read fields up to the brackets of ``items``; False: it is not a list, or not JSON; the caller reports it."""
        separator = b"{"
        while self._passes(separator) and self.next_byte() == b'"':
            key = self._key()
            if not self._passes(b":"):
                return False
            if key == ITEMS and self.next_byte() == b"[" and may_be_list(fields):
                return True
            self._field(key, fields)
            separator = b","
        return False

    def _items(self, listing: Listing) -> Iterator[JsonRecord]:
        """Yield the items of a list, and read the fields behind them."""
        separator, index = b"[", 0
        while self._passes(separator) and (index or self.next_byte(kept=False) != b"]"):
            self.next_byte(kept=False)
            line = self.window.line_at(self.window.position)
            yield json_documents.record(self._value(), line, (ITEMS, index))
            separator, index = b",", index + 1
        self._expect(b"]", b",")
        while self._passes(b","):
            if self.next_byte(kept=False) != b'"':
                raise self._invalid("object keys must be strings")
            key = self._key()
            self._expect(b":")
            if key == ITEMS:
                raise self._invalid("items is duplicated")
            self._field(key, listing.fields)
        self._expect(b"}", b",")

    def _key(self) -> str:
        return json_documents.key(self._value())

    def _field(self, key: str, fields: dict[str, object]) -> None:
        self.next_byte()
        value = self._value()
        if key == METADATA:
            # That it is there is all that is asked.
            fields[key] = {}
        if key in HEADER:
            try:
                fields[key] = msgspec.json.decode(value)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                raise self._invalid(f"{key} is not what it should be") from error

    def _passes(self, byte: bytes) -> bool:
        """Step over ``byte`` if it is what comes next."""
        found = self.next_byte() == byte
        self.window.position += found
        return found

    def _expect(self, byte: bytes, *others: bytes) -> None:
        if not self._passes(byte):
            wanted = " or ".join(f"'{one.decode()}'" for one in (*others, byte))
            raise self._invalid(f"expected {wanted}" if self.next_byte() else _TRUNCATED)

    def next_byte(self, *, kept: bool = True) -> bytes:
        """Return what comes next behind blanks, "" at the end; what comes before is forgotten unless ``kept``."""
        window = self.window
        while True:
            found = _SPACE.match(window.body, window.position)
            window.position = found.end() if found else window.position
            if not kept:
                window.forget(window.position)
            if window.position < len(window.body) or not window.more():
                return bytes(window.body[window.position : window.position + 1])

    def _value(self) -> bytes:
        """Step over the value at the position, and return it.

        Raises:
            SourceError: It is not JSON.
        """
        window = self.window
        while True:
            with memoryview(window.body) as whole, whole[window.position :] as view:
                size, fault = self._measured(view)
                there = len(view)
            # What is cut off at the end of the window may look like a fault.
            if size < there - _CUT_OFF or not window.more():
                break
        if fault:
            raise fault
        return window.taken(window.position + size)

    def _measured(self, view: memoryview) -> tuple[int, SourceError | None]:
        """Return how many bytes the value takes with which ``view`` begins, and what is wrong with it, if it ends so.

        Raises:
            SourceError: It is nested too deeply.
        """
        window = self.window
        try:
            return json_documents.length(view), None
        except RecursionError as error:
            line = window.line_at(window.position + json_documents.deepest(view))
            raise json_documents.too_deep(Position(self.source, line)) from error
        except msgspec.DecodeError as error:
            problem, byte = json_documents.told(error)
            size = len(view) if byte is None else byte
            return size, self._invalid(problem, window.position + size)

    def _invalid(self, problem: str, position: int | None = None) -> SourceError:
        window = self.window
        line = window.line_at(window.position if position is None else position)
        return json_documents.invalid(Position(self.source, line), problem)
