"""YAML documents as JSON, made of libyaml's events, and the places of their fields.

A file is cut where a line begins with ``---``, which is the marker of a document wherever
it appears, so that a fault ends one document only.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import islice
from typing import Any, Final

import msgspec
import yaml
from yaml import (
    AliasEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
    StreamEndEvent,
)
from yaml.reader import ReaderError

from kubectl_spread.errors import Position, SourceError
from kubectl_spread.sources.decode import yaml_scalars
from kubectl_spread.sources.decode.json_documents import Marks
from kubectl_spread.sources.decode.json_objects import MOST_LEVELS, Json, Path
from kubectl_spread.sources.decode.listing import ITEMS, Place, Record, of_field

LARGEST: Final = 32 << 20
"""The most characters of a document, or of one item of a list; an API server takes a tenth of it."""
MOST_BYTES: Final = 64 << 20
"""The most bytes of a document in which the places of fields are searched."""
_BUDGET: Final = 1_000_000
"""The most that aliases may add to a document: values, and characters of scalars divided by 64."""
_REMEMBERED: Final = 1 << 12
"""The number of distinct scalars whose values are remembered."""
_MERGE: Final = "<<"
_MARKER: Final = re.compile(rb"\n---(?=\s|\Z)")
_DIRECTIVE: Final = re.compile(rb"^%", re.MULTILINE)
_DIRECTIVES: Final = re.compile(rb"(?:[%#][^\n]*+|\s)*+")
_EMPTY: Final = re.compile(rb"(?:---(?=\s|\Z))?\s*+")
_ACTION: Final = re.compile(rb"\{\{")
"""The brackets around actions of Go templates."""
_TEMPLATE_HINT: Final = " (if this is a Helm template, render it with helm template first)"
_QUOTE_HINT: Final = " (quote a value that begins with * or !)"
_OPEN_QUOTE: Final = ("while scanning a quoted scalar", "found unexpected end of stream")
_CONTROL: Final = "control characters are not allowed"
_UNDEFINED: Final = "found undefined"


class _Text:
    """A text whose values are converted already."""

    def elements(self, record: Record, items: Sequence[Json]) -> Iterator[Record]:
        """Yield a record for each item of the list ``record``."""
        for index, item in enumerate(items):
            step = (ITEMS, index)
            yield Record(item, record.text, (*record.path, *step), (*record.inner, *step))


class _Document(_Text, msgspec.Struct, frozen=True, eq=False):
    """One YAML document.

    Attributes:
        body: The part of the file that contains it.
        first: The line of the file with which ``body`` begins.
        number: How many documents are before it in ``body``.
        line: The line of its first key or item.
        items: The texts of its ``items``.
    """

    body: memoryview
    first: int
    number: int
    line: int
    items: list[_Item] = msgspec.field(default_factory=list)

    def place_of(self, path: Path) -> Place:
        """Return where the field at ``path``, or the innermost field around it, begins."""
        root = _root(self) if path else None
        return of_field(root, path, self.first) if root else Place(self.line, None)

    def elements(self, record: Record, items: Sequence[Json]) -> Iterator[Record]:
        """Yield a record for each item of the list ``record``."""
        if record.path or not self.items:
            return super().elements(record, items)
        return (Record(item, text, text.path) for item, text in zip(items, self.items, strict=True))


class _Item(_Text, msgspec.Struct, frozen=True, eq=False):
    """One item of a list.

    Attributes:
        document: Its document.
        path: The path to it.
        start: The index in the document's ``body`` of its first character.
        end: The index behind its last character.
        place: The place where it begins.
    """

    document: _Document
    path: Path
    start: int
    end: int
    place: Place

    def place_of(self, path: Path) -> Place:
        """Return where the field at ``path``, or the innermost field around it, begins."""
        if not path:
            return self.place
        root = _root(self)
        if root is None:
            return self.document.place_of((*self.path, *path))
        return of_field(root, path, self.place.line)


@lru_cache(maxsize=1)
def _root(text: _Document | _Item) -> Any:
    """Return the root node of a text; None for a large one, or an item with an alias of a value outside of it."""
    body = text.body if isinstance(text, _Document) else text.document.body
    if len(body) > MOST_BYTES:
        return None
    if isinstance(text, _Document):
        return next(islice(yaml.compose_all(_Stream(body), Loader=yaml.CBaseLoader), text.number, None), None)
    # The blanks keep the indentation of a block, and the columns.
    part = " " * ((text.place.column or 1) - 1) + _decoded(text.document)[text.start : text.end]
    try:
        return yaml.compose(part, Loader=yaml.CBaseLoader)
    except yaml.YAMLError:
        return None


@lru_cache(maxsize=1)
def _decoded(document: _Document) -> str:
    return str(document.body, "utf-8")


class _Stream:
    """A text that libyaml reads in parts."""

    def __init__(self, body: memoryview) -> None:
        self._body = body
        self._position = 0

    def read(self, size: int = -1, /) -> bytes:
        """Return the next bytes; "" at the end."""
        part = bytes(self._body[self._position : self._position + size])
        self._position += len(part)
        return part


def documents(body: memoryview, source: str, first: int = 1) -> Iterator[Record | SourceError]:
    """Yield the documents of a text that are not empty; a fault ends one document.

    Args:
        body: The text.
        source: The name of the file in messages.
        first: The line of the file with which the text begins.
    """
    for parsed in _parsed(body, source, first):
        yield parsed if isinstance(parsed, SourceError) else Record(msgspec.json.encode(parsed[0]), parsed[1])


def read_all(text: bytes, source: str) -> list[Any]:
    """Return the values of all documents of a file.

    Raises:
        SourceError: The file is not YAML.
    """
    values = []
    for parsed in _parsed(memoryview(text), source, 1):
        if isinstance(parsed, SourceError):
            raise parsed
        values.append(parsed[0])
    return values


def _parsed(body: memoryview, source: str, first: int) -> Iterator[tuple[Any, _Document] | SourceError]:
    """Yield the value of each document that is not empty, or its fault."""
    start, marks = 0, Marks(body, 0, Place(first))
    for end in _ends(body):
        part = body[start:end]
        if not _EMPTY.fullmatch(part):
            yield from _Parser(part, source, marks.at(start).line).documents()
        start = end


def _ends(body: memoryview) -> Iterator[int]:
    """Yield where the parts of a file end, each with whole documents and the directives before them."""
    start = 0
    for marker in _MARKER.finditer(body):
        end = marker.start() + 1
        for directive in _DIRECTIVE.finditer(body[start:end]):
            if _DIRECTIVES.fullmatch(body, start + directive.start(), end):
                end = start + directive.start()
                break
        if end > start:
            yield end
            start = end
    yield len(body)


class _Parser:
    """Makes JSON values of the events of a text; the items of a list become JSON at once, which takes less memory."""

    _document: _Document
    """The document that is read."""
    _end: Any
    """The last event of the collection that was read last."""

    def __init__(self, body: memoryview, source: str, first: int) -> None:
        self._next: Callable[[], Any] = yaml.CBaseLoader(_Stream(body)).get_event
        self._body = body
        self._source = source
        self._first = first
        self._scalars: dict[str, yaml_scalars.Scalar] = {}
        self._anchors: dict[str, tuple[object, int, int] | None] = {}
        """Maps an anchor to its value, cost and levels; None while the value is read."""
        self._most = LARGEST
        self._depth = self._deepest = self._cost = 0
        self._budget = _BUDGET

    def documents(self) -> Iterator[tuple[Any, _Document] | SourceError]:
        """Yield the values of the documents that are not empty, up to the first fault."""
        try:
            self._next()
            number = 0
            while type(self._next()) is not StreamEndEvent:
                event = self._next()
                self._most = event.start_mark.index + LARGEST
                self._document = _Document(self._body, self._first, number, event.start_mark.line + self._first)
                value = self._value(event)
                if value is not None:
                    yield value, self._document
                self._next()
                self._anchors.clear()
                self._budget = _BUDGET
                number += 1
        except SourceError as error:
            yield error
        except yaml.YAMLError as error:
            yield self._syntax_error(error)

    def _items(self) -> list[msgspec.Raw]:
        items: list[msgspec.Raw] = []
        self._depth += 1
        while type(event := self._next()) is not SequenceEndEvent:
            mark = event.start_mark
            self._most = mark.index + LARGEST
            if len(self._scalars) > _REMEMBERED:
                self._scalars.clear()
            path, place = (ITEMS, len(items)), Place(mark.line + self._first, mark.column + 1)
            items.append(msgspec.Raw(msgspec.json.encode(self._value(event))))
            end = (event if type(event) in {ScalarEvent, AliasEvent} else self._end).end_mark.index
            self._document.items.append(_Item(self._document, path, mark.index, end, place))
        self._depth -= 1
        self._end = event
        self._most = self._end.end_mark.index + LARGEST
        return items

    def _value(self, event: Any) -> object:
        kind, mark = type(event), event.start_mark
        if mark.index > self._most:
            raise self._error(mark, f"more than {LARGEST >> 20} Mi characters of YAML in one object")
        if kind is AliasEvent:
            return self._aliased(event)
        if event.anchor:
            return self._anchored(event)
        return self._scalar(event) if kind is ScalarEvent else self._collection(event)

    def _anchored(self, event: Any) -> object:
        cost, deepest = self._cost, self._deepest
        self._anchors[event.anchor] = None
        self._deepest = self._depth
        value = self._scalar(event) if type(event) is ScalarEvent else self._collection(event)
        self._anchors[event.anchor] = (value, self._cost - cost, self._deepest - self._depth)
        self._deepest = max(deepest, self._deepest)
        return value

    def _aliased(self, event: Any) -> object:
        if event.anchor not in self._anchors:
            raise self._error(event.start_mark, f"{_UNDEFINED} alias{_QUOTE_HINT}")
        anchored = self._anchors[event.anchor]
        if anchored is None:
            raise self._error(event.start_mark, "an anchor's value contains itself")
        value, cost, levels = anchored
        self._cost += cost
        self._budget -= cost
        if self._budget < 0:
            raise self._error(event.start_mark, "document contains excessive aliasing")
        self._reach(self._depth + levels, event.start_mark)
        return value

    def _reach(self, depth: int, mark: Any) -> None:
        if depth > MOST_LEVELS:
            raise self._error(mark, "nested too deeply")
        self._deepest = max(self._deepest, depth)

    def _collection(self, event: Any) -> object:
        self._cost += 1
        self._depth += 1
        self._reach(self._depth, event.start_mark)
        value: object = self._mapping() if type(event) is MappingStartEvent else self._sequence()
        self._depth -= 1
        return value

    def _mapping(self) -> dict[str, Any]:
        mapping: dict[str, Any] = {}
        merged: dict[str, Any] = {}
        while type(event := self._next()) is not MappingEndEvent:
            self._entry(event, mapping, merged)
        self._end = event
        return {**merged, **mapping} if merged else mapping

    def _sequence(self) -> list[object]:
        sequence: list[object] = []
        while type(event := self._next()) is not SequenceEndEvent:
            sequence.append(self._value(event))
        self._end = event
        return sequence

    def _entry(self, event: Any, mapping: dict[str, Any], merged: dict[str, Any]) -> None:
        """Read an entry of a mapping, whose key begins with ``event``; ``merged`` has the entries of each ``<<``."""
        if type(event) is ScalarEvent and event.value == _MERGE and event.implicit[0]:
            self._merge(self._value(self._next()), merged, event.start_mark)
            return
        key = self._value(event)
        name = key if type(key) is str else self._name(key, event)
        if name in mapping:
            raise self._error(event.start_mark, f"key {name!r} is duplicated")
        following = self._next()
        is_list = self._depth == 1 and name == ITEMS and type(following) is SequenceStartEvent and not following.anchor
        mapping[name] = self._items() if is_list else self._value(following)

    def _name(self, key: object, event: Any) -> str:
        if key is None or isinstance(key, dict | list):
            # The first brace of {{ .Values.name }} opens a mapping, and the second brace opens a key.
            is_action = type(event) is MappingStartEvent and event.flow_style
            raise self._error(event.start_mark, f"a key must be a string{_TEMPLATE_HINT if is_action else ''}")
        return yaml_scalars.as_key(key)  # type: ignore[arg-type]

    def _merge(self, value: object, merged: dict[str, Any], mark: Any) -> None:
        """Add the entries that ``<<`` merges; among several mappings the first has priority."""
        for source in value if isinstance(value, list) else [value]:
            if isinstance(source, dict):
                for name, entry in source.items():
                    merged.setdefault(name, entry)
            else:
                raise self._error(mark, "map merge requires map or sequence of maps as the value")

    def _scalar(self, event: Any) -> yaml_scalars.Scalar:
        text: str = event.value
        self._cost += 1 + (len(text) >> 6)
        if event.tag:
            try:
                return self._in_json(yaml_scalars.tagged(text, event.tag), event)
            except ValueError as error:
                raise self._error(event.start_mark, str(error)) from error
        if not event.implicit[0]:
            return text
        try:
            return self._scalars[text]
        except KeyError:
            value = self._scalars[text] = self._in_json(yaml_scalars.plain(text), event)
            return value

    def _in_json(self, value: yaml_scalars.Scalar, event: Any) -> yaml_scalars.Scalar:
        if isinstance(value, float) and not math.isfinite(value):
            raise self._error(event.start_mark, f"JSON has no number {event.value}")
        return value

    def _error(self, mark: Any, problem: str) -> SourceError:
        return SourceError(f"{Position(self._source, mark.line + self._first)}: {problem}")

    def _syntax_error(self, error: yaml.YAMLError) -> SourceError:
        hint = _TEMPLATE_HINT if _ACTION.search(self._body) else ""
        if isinstance(error, ReaderError):
            before = bytes(self._body[: error.position])
            line = self._first + before.count(b"\n")
            what = f"character U+{error.character:04X} is not allowed"
            if error.reason != _CONTROL:
                what = f"byte 0x{self._body[error.position]:02x} is not UTF-8 text"
            return SourceError(f"{Position(self._source, line)}: {what}")
        if not isinstance(error, yaml.MarkedYAMLError):
            return SourceError(f"{self._source}: {' '.join(str(error).split())}")
        if (error.context, error.problem) == _OPEN_QUOTE:
            return self._error(error.context_mark, f"the quote that opens here is never closed{hint}")
        # The words do not show the text of a value, which may be a password that should have been quoted.
        problem = error.problem or error.context or ""
        quote = _QUOTE_HINT if problem.startswith(_UNDEFINED) else ""
        # A text that breaks off has the fault on its last line, not on the empty line behind it.
        last = bytes(self._body).rstrip().count(b"\n")
        mark = error.problem_mark or error.context_mark
        line = self._first + (min(mark.line, last) if mark else 0)
        return SourceError(f"{Position(self._source, line)}: {problem}{quote}{hint}")
