"""YAML documents as JSON, made of libyaml's events, and the places of their fields.

A file is cut at lines that begin with ``---`` or ``...``, which are markers of documents wherever
they appear, so that a fault ends one document only.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
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
from kubectl_spread.sources.decode.json_documents import ITEMS, Marks, Place, Record
from kubectl_spread.sources.decode.json_objects import MOST_LEVELS, Json, Path

LARGEST: Final = 32 << 20
"""The most characters of a document, or of one item of a list; an API server takes a tenth of it."""
MOST_BYTES: Final = 64 << 20
"""The most bytes of a part of a file in which the places of fields are searched."""
_BUDGET: Final = 1_000_000
"""The most that aliases may add to a document: values, and characters of scalars divided by 64."""
_MERGE: Final = "<<"
_MARKER: Final = re.compile(rb"[\r\n](?:(?P<begins>---)(?=\s|\Z)|\.\.\.(?=\s|\Z)[^\r\n]*+(?:\r?\n|\r|\Z))")
_DIRECTIVES: Final = re.compile(rb"(?:#[^\n]*+|\s)*+%[^\n]*+(?:[%#][^\n]*+|\s)*+")
_EMPTY: Final = re.compile(rb"(?:---(?=\s|\Z))?\s*+")
_ACTION: Final = re.compile(rb"\{\{")
"""The brackets around actions of Go templates."""
_TEMPLATE_HINT: Final = " (if this is a Helm template, render it with helm template first)"
_QUOTE_HINT: Final = " (quote a value that begins with * or !)"
_OPEN_QUOTE: Final = ("while scanning a quoted scalar", "found unexpected end of stream")
_CONTROL: Final = "control characters are not allowed"
_UNDEFINED: Final = "found undefined"
_OPEN: Final = object()
"""The value of an anchor while it is read."""


class _Text(msgspec.Struct, eq=False):
    """The text of a document, or of an item of a list.

    Attributes:
        body: The part of the file that contains it.
        start: The index in ``body`` of its first character.
        end: The index behind its last character.
        place: The place where it begins.
        document: The text of the document around an item.
        path: The path to an item in its document.
        items: The texts of the items of a document.
    """

    body: memoryview
    start: int
    end: int
    place: Place
    document: _Text | None = None
    path: Path = ()
    items: Sequence[_Text] = ()

    def place_of(self, path: Path) -> Place:
        if not path:
            return self.place
        if len(self.body) > MOST_BYTES:
            return Place(self.place.line, None)
        begin = node = _root(self)
        if node is None:
            return self.document.place_of((*self.path, *path)) if self.document else self.place
        for step in path:
            child = _child(node, step)
            if child is None:
                break
            begin, node = child
        mark = begin.start_mark
        return Place(mark.line + self.place.line, mark.column + 1)


class _YamlRecord(Record, frozen=True, kw_only=True, eq=False):
    """A value of a YAML file.

    Attributes:
        text: The text that contains it.
        inner: The path to it in ``text``.
    """

    text: _Text
    inner: Path = ()

    def place_of(self, path: Path) -> Place:
        return self.text.place_of((*self.inner, *path))

    def elements(self, items: Sequence[Json]) -> Iterator[Record]:
        for index, item in enumerate(items):
            step = (ITEMS, index)
            text, inner = (self.text.items[index], ()) if self.text.items else (self.text, (*self.inner, *step))
            yield _YamlRecord(item, text.place, (*self.path, *step), text=text, inner=inner)


@lru_cache(maxsize=1)
def _root(text: _Text) -> Any:
    """Return the root node of a text; None for one with an alias of a value outside of it."""
    # The blanks keep the indentation of a block, and the columns.
    part = " " * ((text.place.column or 1) - 1) + _decoded(text.document or text)[text.start : text.end]
    try:
        return yaml.compose(part, Loader=yaml.CBaseLoader)
    except yaml.YAMLError:
        return None


@lru_cache(maxsize=1)
def _decoded(document: _Text) -> str:
    return str(document.body, "utf-8")


def _child(node: Any, step: str | int) -> tuple[Any, Any] | None:
    """Return the node with which an entry or item begins, and the node of its value; None: there is no such part."""
    match node.id, step:
        case "sequence", int():
            return (node.value[step], node.value[step]) if step < len(node.value) else None
        case "mapping", str():
            return next(((key, value) for key, value in node.value if key.value == step), None)
    return None


class _Stream:
    def __init__(self, body: memoryview) -> None:
        self._body = body
        self._position = 0

    def read(self, size: int = -1, /) -> bytes:
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
        if isinstance(parsed, SourceError):
            yield parsed
        else:
            value, text = parsed
            yield _YamlRecord(msgspec.json.encode(value), text.place, text=text)


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


def _parsed(body: memoryview, source: str, first: int) -> Iterator[tuple[Any, _Text] | SourceError]:
    for part, line in parts(body, first):
        if not _EMPTY.fullmatch(part):
            yield from _Parser(part, source, line).documents()


def parts(body: memoryview, first: int = 1) -> Iterator[tuple[memoryview, int]]:
    """Yield the parts of a text, each with a document and the directives before it, and the lines where they begin.

    Args:
        body: The text.
        first: The line of the file with which the text begins.
    """
    start, marks = 0, Marks(body, 0, Place(first))
    for end in _ends(body):
        if end > start:
            yield body[start:end], marks.at(start).line
            start = end


def _ends(body: memoryview) -> Iterator[int]:
    start = 0
    for marker in _MARKER.finditer(body):
        end = marker.end()
        if marker["begins"]:
            end = marker.start() + 1
            if _DIRECTIVES.fullmatch(body, start, end):
                continue
        yield end
        start = end
    yield len(body)


class _Parser:
    """Makes JSON values of the events of a text; the items of a list become JSON at once, which takes less memory."""

    _text: _Text
    """The document that is read; its end is known last."""
    _last: Any
    """The last event of the value that was read last."""

    def __init__(self, body: memoryview, source: str, first: int) -> None:
        self._next: Callable[[], Any] = yaml.CBaseLoader(_Stream(body)).get_event
        self._body = body
        self._source = source
        self._first = first
        self._anchors: dict[str, object] = {}
        self._most = LARGEST
        self._depth = 0
        self._budget = _BUDGET

    def documents(self) -> Iterator[tuple[Any, _Text] | SourceError]:
        try:
            self._next()
            while type(self._next()) is not StreamEndEvent:
                event = self._next()
                start = event.start_mark.index
                self._most = start + LARGEST
                self._text = _Text(self._body, start, start, self._place(event))
                value = self._value(event)
                self._text.end = self._last.end_mark.index
                if value is not None:
                    yield value, self._text
                self._next()
                self._anchors.clear()
                self._budget = _BUDGET
        except SourceError as error:
            yield error
        except yaml.YAMLError as error:
            yield self._syntax_error(error)

    def _place(self, event: Any) -> Place:
        return Place(event.start_mark.line + self._first, event.start_mark.column + 1)

    def _list(self) -> list[msgspec.Raw]:
        items: list[msgspec.Raw] = []
        texts: list[_Text] = []
        self._depth += 1
        for event in self._until(SequenceEndEvent):
            start = event.start_mark.index
            self._most = start + LARGEST
            items.append(msgspec.Raw(msgspec.json.encode(self._value(event))))
            texts.append(
                _Text(self._body, start, self._last.end_mark.index, self._place(event), self._text, (ITEMS, len(texts)))
            )
        self._text.items = texts
        self._depth -= 1
        self._most = self._last.end_mark.index + LARGEST
        return items

    def _value(self, event: Any) -> object:
        kind, mark = type(event), event.start_mark
        if mark.index > self._most:
            raise self._error(mark, f"more than {LARGEST >> 20} Mi characters of YAML in one object")
        if kind is AliasEvent:
            self._last = event
            return self._aliased(event)
        if event.anchor:
            self._anchors[event.anchor] = _OPEN
        value = self._scalar(event) if kind is ScalarEvent else self._collection(event)
        if event.anchor:
            self._anchors[event.anchor] = value
        return value

    def _aliased(self, event: Any) -> object:
        """Return the value of an alias, within the limits for the document with this value in its place."""
        if event.anchor not in self._anchors:
            raise self._error(event.start_mark, f"{_UNDEFINED} alias{_QUOTE_HINT}")
        value = self._anchors[event.anchor]
        if value is _OPEN:
            raise self._error(event.start_mark, "an anchor's value contains itself")
        level, depth = [value], self._depth
        while level:
            self._budget -= sum(1 + (len(inner) >> 6 if type(inner) is str else 0) for inner in level)
            if self._budget < 0:
                raise self._error(event.start_mark, "document contains excessive aliasing")
            collections = [inner for inner in level if isinstance(inner, dict | list)]
            depth += bool(collections)
            self._confirm_depth(depth, event.start_mark)
            level = [
                inner
                for outer in collections
                for inner in ((*outer, *outer.values()) if isinstance(outer, dict) else outer)
            ]
        return value

    def _confirm_depth(self, depth: int, mark: Any) -> None:
        if depth > MOST_LEVELS:
            raise self._error(mark, "nested too deeply")

    def _collection(self, event: Any) -> object:
        self._depth += 1
        self._confirm_depth(self._depth, event.start_mark)
        value: object
        if type(event) is MappingStartEvent:
            value = self._mapping()
        else:
            value = [self._value(item) for item in self._until(SequenceEndEvent)]
        self._depth -= 1
        return value

    def _until(self, end: Any) -> Iterator[Any]:
        event = self._next()
        while type(event) is not end:
            yield event
            event = self._next()
        self._last = event

    def _mapping(self) -> dict[str, Any]:
        mapping: dict[str, Any] = {}
        merged: dict[str, Any] = {}
        for event in self._until(MappingEndEvent):
            self._entry(event, mapping, merged)
        return {**merged, **mapping} if merged else mapping

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
        mapping[name] = self._list() if is_list else self._value(following)

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
        self._last = event
        if not (event.tag or event.implicit[0]):
            return event.value  # type: ignore[no-any-return]
        try:
            value = yaml_scalars.tagged(event.value, event.tag) if event.tag else yaml_scalars.plain(event.value)
        except ValueError as error:
            raise self._error(event.start_mark, str(error)) from error
        if type(value) is float and not math.isfinite(value):
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
