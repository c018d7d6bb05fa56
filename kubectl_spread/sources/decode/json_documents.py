"""JSON documents, cut into objects without a copy, with the line of every field."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator, Sequence
from typing import Final

import msgspec

from kubectl_spread.errors import Position, SourceError
from kubectl_spread.sources.decode.json_objects import Json, Path
from kubectl_spread.sources.decode.listing import Place

_YAML_START: Final = b"---"
_SPACE: Final = re.compile(rb"[ \t\r\n]*")
_BETWEEN: Final = re.compile(rb"[ \t\r\n,]*")
_ITEMS: Final = re.compile(rb'"items"[ \t\r\n]*:[ \t\r\n]*\[[ \t\r\n]*')
_STRING: Final = rb'"(?:[^"\\]++|\\.)*+"'
_BRACKET: Final = re.compile(rb"[{}\[\]]|" + _STRING)
_TOKEN: Final = re.compile(rb'[{}\[\],]|[^\s{}\[\],":]+|' + _STRING)
# The number counts the first of the trailing characters in.
_TRAILING: Final = re.compile(r"trailing characters \(byte (\d+)\)")
_BYTE: Final = re.compile(r"(?:JSON is malformed: )?(.*?)(?: \(byte (\d+)\))?")


class _Text(msgspec.Struct):
    """The bytes of a file; lines and columns are asked for in ascending order, mostly.

    ``column`` is that of the byte ``mark``.
    """

    body: bytes
    first: int = 1
    offset: int = 0
    line: int = 1
    mark: int = 0
    column: int = 1

    def line_at(self, offset: int) -> int:
        if offset < self.offset or not self.offset:
            self.offset, self.line = 0, self.first
        self.line += self.body.count(b"\n", self.offset, offset)
        self.offset = offset
        return self.line

    def place_at(self, offset: int) -> Place:
        since = self.mark if offset >= self.mark else 0
        newline = self.body.rfind(b"\n", since, offset)
        if newline >= 0 or not since:
            since, self.column = newline + 1, 1
        self.column += len(self.body[since:offset].decode(errors="replace"))
        self.mark = offset
        return Place(self.line_at(offset), self.column)


class JsonRecord(msgspec.Struct, frozen=True):
    """One JSON value of a file.

    Attributes:
        raw: Its bytes.
        line: The line where it begins, from 1.
        start: The byte of the file where it begins.
        path: Where it stands in its document.
    """

    raw: Json
    line: int
    _text: _Text
    start: int
    path: Path = ()

    def line_of(self, path: Path) -> int:
        """Return the line where the field at ``path``, or what of it is there, begins."""
        return self._text.line_at(self.start + _offset(bytes(self.raw), path))

    def place_of(self, path: Path) -> Place:
        """Return where the field at ``path``, or what of it is there, begins."""
        return self._text.place_at(self.start + _offset(bytes(self.raw), path))

    def elements(self, items: Sequence[msgspec.Raw]) -> Iterator[JsonRecord]:
        """Yield a record for each of ``items``, which must be those of this value, in order."""
        if not items:
            return
        body = self._text.body
        first = bytes(items[0])
        # A list's metadata may have a field of the same name, but not with the same content.
        starts = (found.end() for found in _ITEMS.finditer(body, self.start))
        start = next((start for start in starts if body.startswith(first, start)), self.start)
        for index, item in enumerate(items):
            yield JsonRecord(item, self._text.line_at(start), self._text, start, (*self.path, "items", index))
            end = _BETWEEN.match(body, start + len(memoryview(item)))
            start = end.end() if end else start


def record(raw: bytes, line: int, path: Path = ()) -> JsonRecord:
    """Return the record of a value that begins at ``line`` and is all that is kept of its file."""
    return JsonRecord(raw, line, _Text(raw, line), 0, path)


def records(body: bytes, source: str) -> Generator[JsonRecord, None, bytes]:
    """Yield the documents of ``body``, which may stand one after the other.

    Returns:
        What follows them when that is YAML, after as many line breaks as there are lines before it.

    Raises:
        SourceError: This is not JSON.
    """
    text = _Text(body)
    view = memoryview(body)
    start = _skip_space(body, 0)
    while start < len(body):
        if body.startswith(_YAML_START, start):
            return b"\n" * (text.line_at(start) - 1) + body[start:]
        end = _end(text, view, start, source)
        yield JsonRecord(view[start:end], text.line_at(start), text, start)
        start = _skip_space(body, end)
    return b""


def _end(text: _Text, view: memoryview, start: int, source: str) -> int:
    """Return where the document that begins at ``start`` ends."""
    try:
        return start + length(view[start:])
    except RecursionError as error:
        raise too_deep(Position(source, text.line_at(start + deepest(view[start:])))) from error
    except msgspec.DecodeError as error:
        problem, byte = told(error)
        line = text.line_at(len(view) if byte is None else start + byte)
        raise invalid(Position(source, line), problem) from error


def length(view: memoryview) -> int:
    """Return how many bytes the value takes with which ``view`` begins.

    Raises:
        msgspec.DecodeError: It is not JSON, or not all of it is there.
        RecursionError: It is nested too deeply.
    """
    try:
        msgspec.json.decode(view, type=msgspec.Raw)
    except msgspec.DecodeError as error:
        trailing = _TRAILING.search(str(error))
        if trailing:
            return int(trailing[1]) - 1
        raise
    return len(view)


def told(error: msgspec.DecodeError) -> tuple[str, int | None]:
    """Return what msgspec says is wrong, and at which byte; None: at the end."""
    found = _BYTE.fullmatch(str(error))
    problem, byte = found.groups() if found else (str(error), None)
    return problem, None if byte is None else int(byte)


def too_deep(position: Position) -> SourceError:
    """Return the error of a file that no recursion can follow."""
    return SourceError(f"{position}: nested too deeply")


def deepest(view: memoryview) -> int:
    """Return where most brackets are open for the first time."""
    depth, most, where = 0, 0, 0
    for token in _BRACKET.finditer(view):
        depth += {b"{": 1, b"[": 1, b"}": -1, b"]": -1}.get(token[0], 0)
        if depth > most:
            most, where = depth, token.start()
    return where


def invalid(position: Position, problem: str) -> SourceError:
    """Return the error of a file that is not JSON after all."""
    return SourceError(f"{position}: invalid JSON: {problem[:1].lower()}{problem[1:]}")


def _skip_space(body: bytes, start: int) -> int:
    found = _SPACE.match(body, start)
    return found.end() if found else start


def _offset(raw: bytes, path: Path) -> int:
    """Return where the field at ``path``, or the deepest that is there, begins in ``raw``: its key, or the item."""
    offset, depth = 0, 0
    here: list[str | int | None] = []
    for token in _TOKEN.finditer(raw):
        text = token[0]
        if text in b"}]":
            here.pop()
        elif text == b",":
            # After an index the path continues; a key is read next.
            here[-1] = here[-1] + 1 if isinstance(here[-1], int) else None
        else:
            is_key = bool(here) and here[-1] is None
            if is_key:
                here[-1] = key(text)
            if depth < len(here) and tuple(here) == path[: len(here)]:
                offset, depth = token.start(), len(here)
            if text in b"{[" and not is_key:
                here.append(None if text == b"{" else 0)
        if depth == len(path):
            break
    return offset


def key(text: bytes) -> str:
    """Return what the string ``text`` says; "" if it is not UTF-8."""
    try:
        return msgspec.json.decode(text, type=str)
    except (msgspec.DecodeError, UnicodeDecodeError):
        # Only what is decoded is checked, so that the keys of other fields may be anything.
        return ""
