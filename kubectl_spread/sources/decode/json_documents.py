"""The documents of a file, and JSON documents, which msgspec reads in place, with the places of their fields."""

from __future__ import annotations

import json
import re
from collections.abc import Generator, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from kubectl_spread.errors import Position, SourceError
from kubectl_spread.sources.decode.json_objects import Json, MalformedFieldError, Path

LIST: Final = "List"
ITEMS: Final = "items"
HEADER: Final = ("apiVersion", "kind")
METADATA: Final = "metadata"
_YAML_START: Final = re.compile(rb"---")
_SPACE: Final = re.compile(rb"[ \t\r\n]*+")
_BETWEEN: Final = re.compile(rb"[ \t\r\n,]*+")
_BEGINS: Final = re.compile(rb"[ \t\r\n]*+\{(?!\{)")
_STRING: Final = rb'"(?:[^"\\]++|\\.)*+"'
_NAME: Final = re.compile(_STRING + rb"\s*:\s*")
_TOKEN: Final = re.compile(rb'[{}\[\],]|[^\s{}\[\],":]++|' + _STRING)
_FAULT: Final = re.compile(r"JSON is malformed: (?P<problem>.*) \(byte (?P<offset>\d+)\)")
"""The words of msgspec for what is wrong with a text, and where."""
_TRAILING: Final = "trailing characters"
_TRUNCATED: Final = "input data was truncated"
_CONTINUATION: Final = bytes(range(0x80, 0xC0))
"""The bytes of UTF-8 with which no character begins."""
_BLOCK: Final = 1 << 20


class Place(NamedTuple):
    """Where a value begins: its line, and its column in characters if it is known, both from 1."""

    line: int
    column: int | None = 1


class Record(msgspec.Struct, frozen=True, eq=False):
    """One value of a file: a document, or an item of a list.

    Attributes:
        content: The value: a part of the file that is JSON, or YAML converted to JSON.
        place: The place where it begins.
        path: The path to it in its document.
        fields: The undecoded fields of a JSON document, if they were separated when its end was searched.
    """

    content: Json
    place: Place
    path: Path = ()
    fields: Mapping[str, Json] | None = None

    def place_of(self, path: Path) -> Place:
        """Return where the field at ``path``, or the innermost field around it, begins: at its key, or at the item."""
        raise NotImplementedError

    def elements(self, items: Sequence[Json]) -> Iterator[Record]:
        """Yield a record for each item of this list; ``items`` are its items, in order."""
        raise NotImplementedError

    def line_of(self, path: Path = ()) -> int:
        """Return the line where the field at ``path``, or the innermost field around it, begins."""
        return self.place_of(path).line

    def position_of(self, source: str, path: Path) -> Position:
        """Return the position in the file ``source`` where the field at ``path`` begins."""
        return Position(source, *self.place_of(path))


class JsonRecord(Record, frozen=True, kw_only=True, eq=False):
    """A value of a JSON file, whose content is ``body`` from ``start`` on."""

    body: memoryview
    start: int

    def place_of(self, path: Path) -> Place:
        """Return where the field at ``path``, or the innermost field around it, begins."""
        return Marks(self.body, self.start, self.place).at(self.start + self._offset(path)) if path else self.place

    def elements(self, items: Sequence[Json]) -> Iterator[Record]:
        """Yield a record for each item of this list."""
        position = self._first_items() + len("[")
        marks = Marks(self.body, self.start, self.place)
        for index, item in enumerate(items):
            position = _after(_BETWEEN, self.body, position)
            place, path = marks.at(position), (*self.path, ITEMS, index)
            end = position + len(memoryview(item))
            yield JsonRecord(self.body[position:end], place, path, body=self.body, start=position)
            position = end

    def confirm_keys(self, items: Json) -> None:
        """Confirm that no key of this object is duplicated: a decoder keeps the last value only, without an error.

        Args:
            items: Its last ``items``.

        Raises:
            MalformedFieldError: A key is duplicated.
        """
        start, content = self._first_items() - self.start, memoryview(self.content)
        # If these are the first items, too, the text around them is JSON.
        text = b"".join([content[:start], b"0", content[start + len(memoryview(items)) :]])
        try:
            _ENVELOPE.decode(str(text, errors="replace").strip())
        except ValueError as error:
            raise _duplicated(ITEMS) from error
        except RecursionError as error:
            raise MalformedFieldError((), "nested too deeply") from error

    def _first_items(self) -> int:
        return _after(_NAME, self.body, self.start + self._offset((ITEMS,)))

    def _offset(self, path: Path) -> int:
        """Return the offset of the key of a field or of an item of a list, or of the innermost field around it."""
        begins, depth = 0, 0
        here: list[str | int | None] = []
        for token in _TOKEN.finditer(self.content):
            text = token[0]
            if text in b"}]":
                here.pop()
            elif text == b",":
                # In a list the next index follows, in an object the next key, which is not read yet.
                here[-1] = here[-1] + 1 if isinstance(here[-1], int) else None
            else:
                is_key = bool(here) and here[-1] is None
                if is_key:
                    here[-1] = _key(text)
                if depth < len(here) and tuple(here) == path[: len(here)]:
                    begins, depth = token.start(), len(here)
                if text in b"{[" and not is_key:
                    here.append(None if text == b"{" else 0)
            if depth == len(path):
                break
        return begins


class Marks:
    """The places in a text, looked up in ascending order."""

    def __init__(self, body: memoryview, offset: int = 0, place: Place | None = None) -> None:
        self._body = body
        self._offset = offset
        self._line, self._column = place or Place(1)

    def at(self, offset: int) -> Place:
        """Return the place of a byte of the text, which is not before the last one."""
        while self._offset < offset:
            end = min(offset, self._offset + _BLOCK)
            part = bytes(self._body[self._offset : end])
            newline = part.rfind(b"\n")
            if newline >= 0:
                self._line += part.count(b"\n")
                self._column = 1
            self._column = (self._column or 1) + len(part[newline + 1 :].translate(None, _CONTINUATION))
            self._offset = end
        return Place(self._line, self._column)


def is_blank(body: memoryview) -> bool:
    """Tell whether a file contains only white space."""
    return _after(_SPACE, body, 0) == len(body)


def begins(body: memoryview) -> bool:
    """Tell whether a file begins as JSON does; a Helm template may begin with two braces."""
    return _BEGINS.match(body) is not None


def documents(body: memoryview, source: str) -> Generator[JsonRecord, None, int]:
    """Yield the JSON documents of a file; return where the first YAML document begins, or the end.

    Raises:
        SourceError: The file is not JSON.
    """
    marks, end = Marks(body), 0
    while (start := _after(_SPACE, body, end)) < len(body) and not _YAML_START.match(body, start):
        end, fields = _end(body, start, source, marks)
        yield JsonRecord(body[start:end], marks.at(start), fields=fields, body=body, start=start)
    return start


def _end(body: memoryview, start: int, source: str, marks: Marks) -> tuple[int, Mapping[str, Json] | None]:
    """Return where the value at ``start`` ends, or what follows it begins; and its fields, if it is the last one."""
    try:
        try:
            return len(body), msgspec.json.decode(body[start:], type=dict[str, msgspec.Raw])
        except (msgspec.ValidationError, UnicodeDecodeError):
            msgspec.json.decode(body[start:], type=msgspec.Raw)
    except RecursionError as error:
        raise SourceError(f"{Position(source, marks.at(start).line)}: nested too deeply") from error
    except msgspec.DecodeError as error:
        fault = _FAULT.fullmatch(str(error))
        offset, problem = (start + int(fault["offset"]), fault["problem"]) if fault else (len(body), _TRUNCATED)
        if problem == _TRAILING:
            # This offset is that of the byte behind the first one that is too many.
            return offset - 1, None
        raise SourceError(f"{Position(source, marks.at(offset).line)}: invalid JSON: {problem}") from error
    return len(body), None


def _duplicated(name: str) -> MalformedFieldError:
    return MalformedFieldError((name,), "is duplicated")


def _distinct(pairs: list[tuple[str, object]]) -> None:
    names: set[str] = set()
    for name, _ in pairs:
        if name in names:
            raise _duplicated(name)
        names.add(name)


_ENVELOPE: Final = json.JSONDecoder(object_pairs_hook=_distinct, parse_int=float, strict=False)


def _key(text: bytes) -> str:
    """Return a key without its quotes and escapes; "" if it is not UTF-8."""
    try:
        return msgspec.json.decode(text, type=str)
    except (msgspec.DecodeError, UnicodeDecodeError):
        # A decoder skips the keys of fields that no type declares, whatever their bytes.
        return ""


def _after(pattern: re.Pattern[bytes], body: memoryview, position: int) -> int:
    match = pattern.match(body, position)
    return match.end() if match else position
