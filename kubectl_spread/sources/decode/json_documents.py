"""JSON documents of a file that need not fit into memory, because a list is read item by item."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Final

import msgspec

from kubectl_spread.errors import Position, SourceError
from kubectl_spread.sources.decode import json_grammar
from kubectl_spread.sources.decode.json_grammar import Fault, Scanner
from kubectl_spread.sources.decode.json_objects import Json, Path
from kubectl_spread.sources.decode.listing import HEADER, ITEMS, METADATA, Listing, may_be_list
from kubectl_spread.sources.decode.places import START, Marks, Place
from kubectl_spread.sources.decode.window import Window

_YAML_START: Final = b"---"
_BRACE: Final = b"{"
_NEXT_DOCUMENT: Final = b"\n{"
_SPACE: Final = re.compile(rb"[ \t\r\n]*")
_BETWEEN: Final = re.compile(rb"[ \t\r\n,]*")
_BLANKS: Final = frozenset(b" \t\r\n,")
_HEAD: Final = 24
"""The number of bytes of the first item that are searched for, to guess where other items begin."""


class JsonRecord(msgspec.Struct, frozen=True):
    """One JSON value of a file.

    Attributes:
        raw: Its bytes.
        start: The place where it begins.
        path: The path to it in its document.
        offset: The offset in the file of a document; 0 for an item.
    """

    raw: Json
    start: Place = START
    path: Path = ()
    offset: int = 0

    def place_of(self, path: Path) -> Place:
        """Return where the field at ``path``, or the innermost field around it, begins."""
        if not path:
            return self.start
        raw = bytes(self.raw)
        return Marks(raw, self.start).at(json_grammar.offset(raw, path))

    def line_of(self, path: Path = ()) -> int:
        """Return the line where the field at ``path``, or the innermost field around it, begins."""
        return self.place_of(path).line

    def elements(self, raw_items: Sequence[msgspec.Raw]) -> Iterator[JsonRecord]:
        """Yield a record for each item of this list; ``raw_items`` are its items, in order."""
        raw = bytes(self.raw)
        marks = Marks(raw, self.start)
        position = raw.find(b"[", json_grammar.offset(raw, (ITEMS,))) + 1
        for index, raw_item in enumerate(raw_items):
            position = _after(_BETWEEN, raw, position)
            yield JsonRecord(raw_item, marks.at(position), (*self.path, ITEMS, index))
            position += len(memoryview(raw_item))


def is_blank(window: Window) -> bool:
    """Tell whether a file that is not read yet contains only white space."""
    blank = not _Reader(window, "").next_byte()
    window.position = window.needed
    return blank


def begins(window: Window) -> bool:
    """Tell whether a file that is not read yet begins as JSON does; a Helm template may begin with two braces."""
    reader = _Reader(window, "")
    reader.next_byte()
    is_json = reader.continues_as(_BRACE) and not reader.continues_as(b"{{")
    window.position = window.needed
    return is_json


def documents(window: Window, source: str) -> Iterator[JsonRecord | Listing]:
    """Yield the JSON documents of a file, up to the first YAML document.

    The items of a ``Listing`` must be exhausted before the next document is requested.

    Raises:
        SourceError: The file is not JSON.
    """
    reader = _Reader(window, source)
    while reader.comes_to_document():
        yield reader.document()


def records(window: Window, source: str) -> Iterator[JsonRecord]:
    """Yield the same documents, but lists as a whole, so that the file must fit into memory.

    Raises:
        SourceError: The file is not JSON.
    """
    reader = _Reader(window, source)
    while reader.comes_to_document():
        while window.more():
            pass
        yield reader.record()


class _Reader(msgspec.Struct, frozen=True):
    window: Window
    source: str

    def continues_as(self, text: bytes) -> bool:
        window = self.window
        while len(window.body) < window.position + len(text) and window.more():
            pass
        return window.body.startswith(text, window.position)

    def comes_to_document(self) -> bool:
        """Step to the next document, and forget all documents before it; False: the file ends, or YAML follows."""
        return bool(self.next_byte(keep=False)) and not self.continues_as(_YAML_START)

    def document(self) -> JsonRecord | Listing:
        """Return the document at the position, or the beginning of one that seems to be a list."""
        window = self.window
        line = window.place_at(window.position).line
        fields: dict[str, object] = {}
        if self.next_byte() == _BRACE and self._reaches_items(fields):
            listing = Listing(line, fields)
            listing.items = self._items(listing)
            return listing
        window.position = window.needed
        return self.record()

    def record(self) -> JsonRecord:
        """Return the document at the position as a whole."""
        window = self.window
        start, offset = window.place_at(window.position), window.offset + window.position
        return JsonRecord(self._whole(), start, offset=offset)

    def _whole(self) -> bytes:
        """Return the document at the position; most end with the file, or where a line begins with a brace."""
        window = self.window
        if self.next_byte() != _BRACE:
            return self._value()
        end = window.body.find(_NEXT_DOCUMENT, window.position)
        if end < 0 and window.more():
            end = window.body.find(_NEXT_DOCUMENT, window.position)
        end = self._before_blanks(len(window.body) if end < 0 else end)
        return window.taken(end) if self._is_value(end) else self._value()

    def _reaches_items(self, fields: dict[str, object]) -> bool:
        """Read fields up to the bracket of ``items``; False: this is not a list, or not JSON, which shows later."""
        separator = b"{"
        while may_be_list(fields) and self._passes(separator) and self.next_byte() == b'"':
            key = self._key()
            if not self._passes(b":"):
                return False
            if key == ITEMS and self.next_byte() == b"[":
                return True
            self._field(key, fields)
            separator = b","
        return False

    def _items(self, listing: Listing) -> Iterator[JsonRecord]:
        """Yield the items of a list, and read the fields after them."""
        separator, index, head = b"[", 0, b""
        while self._passes(separator) and (index or self.next_byte(keep=False) != b"]"):
            self.next_byte(keep=False)
            for place, raw in self._next_items(head):
                yield JsonRecord(raw, place, (ITEMS, index))
                index += 1
                head = bytes(memoryview(raw)[:_HEAD]) if index == 1 else head
            separator = b","
        self._expect(b"]", b",")
        while self._passes(b","):
            if self.next_byte(keep=False) != b'"':
                raise self._invalid(json_grammar.NO_KEY)
            key = self._key()
            self._expect(b":")
            if key == ITEMS:
                raise self._invalid("items is duplicated")
            self._field(key, listing.fields)
        self._expect(b"}", b",")

    def _next_items(self, head: bytes) -> Iterator[tuple[Place, Json]]:
        """Yield at least one item with its place; ``head`` begins the first item of the list, and is "" before it."""
        window = self.window
        raw_items = self._items_before(head) if head.startswith(_BRACE) else []
        if not raw_items:
            place = window.place_at(window.position)
            yield place, self._value()
        for raw_item in raw_items:
            window.position = _after(_BETWEEN, window.body, window.position)
            yield window.place_at(window.position), raw_item
            window.position += len(memoryview(raw_item))

    def _items_before(self, head: bytes) -> list[msgspec.Raw]:
        """Return the items before the last ``head`` in memory, or else before the next one.

        A value inside an item may begin with ``head``, too. Then the text before it is not a list of whole items,
        which msgspec refuses.
        """
        window = self.window
        if window.body.find(head, window.position + 1) < 0:
            window.more()
        for find in (window.body.rfind, window.body.find):
            end = self._before_blanks(find(head, window.position + 1))
            if end < 0:
                break
            with memoryview(window.body) as body, body[window.position : end] as text:
                array = b"".join((b"[", text, b"]"))
            with suppress(msgspec.DecodeError, RecursionError):
                return msgspec.json.decode(array, type=list[msgspec.Raw])
        return []

    def _before_blanks(self, end: int) -> int:
        """Return where the blanks and commas before ``end`` begin."""
        while end > self.window.position and self.window.body[end - 1] in _BLANKS:
            end -= 1
        return end

    def _is_value(self, end: int) -> bool:
        """Tell whether the text up to ``end`` is exactly one value."""
        window = self.window
        with memoryview(window.body) as body, body[window.position : end] as text:
            try:
                msgspec.json.decode(text, type=msgspec.Raw)
            except (msgspec.DecodeError, RecursionError):
                return False
        return True

    def _key(self) -> str:
        return json_grammar.key(self._value())

    def _field(self, key: str, fields: dict[str, object]) -> None:
        self.next_byte()
        value = self._value()
        if key in (*HEADER, METADATA):
            try:
                fields[key] = msgspec.json.decode(value)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                if key in HEADER:
                    raise self._invalid(f"{key} is not what it should be") from error
                fields[key] = None

    def _passes(self, byte: bytes) -> bool:
        """Step over ``byte`` if it comes next."""
        comes = self.next_byte() == byte
        self.window.position += comes
        return comes

    def _expect(self, byte: bytes, *others: bytes) -> None:
        if not self._passes(byte):
            expected = " or ".join(f"'{mark.decode()}'" for mark in (*others, byte))
            raise self._invalid(f"expected {expected}" if self.next_byte() else json_grammar.TRUNCATED)

    def next_byte(self, *, keep: bool = True) -> bytes:
        """Return the next byte after blanks, "" at the end; the text before it is forgotten unless ``keep``."""
        window = self.window
        while True:
            window.position = _after(_SPACE, window.body, window.position)
            if not keep:
                window.forget(window.position)
            if window.position < len(window.body) or not window.more():
                return bytes(window.body[window.position : window.position + 1])

    def _value(self) -> bytes:
        """Step over the value at the position, and return it.

        Raises:
            SourceError: The value is not JSON, or is nested too deeply.
        """
        window, scanner, is_all = self.window, Scanner(), False
        while not (end := scanner.reaches_end(window.body, window.position, is_all=is_all)):
            is_all = not window.more()
        if isinstance(end, Fault) and not scanner.is_too_deep:
            raise self._invalid(end.problem, end.offset)
        if scanner.is_too_deep or not self._is_value(window.position + scanner.size):
            with memoryview(window.body) as body, body[window.position :] as text:
                where = window.position + json_grammar.deepest(text)
            raise SourceError(f"{Position(self.source, window.place_at(where).line)}: nested too deeply")
        return window.taken(window.position + scanner.size)

    def _invalid(self, problem: str, offset: int = 0) -> SourceError:
        place = self.window.place_at(self.window.position + offset)
        return SourceError(f"{Position(self.source, place.line)}: invalid JSON: {problem}")


def _after(pattern: re.Pattern[bytes], text: bytes | bytearray, position: int) -> int:
    """Return the end of the match of ``pattern`` at ``position``."""
    match = pattern.match(text, position)
    return match.end() if match else position
