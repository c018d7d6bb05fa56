"""The values of plain YAML by libyaml, many times faster than ``yaml_documents``, which knows the place of every field.

Plain YAML is the YAML that kubectl prints and that most people write. All other YAML, also with faults, is left to
``yaml_documents``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from functools import cached_property
from typing import Any, Final

import msgspec
import yaml
from yaml import MappingEndEvent, MappingStartEvent, ScalarEvent, SequenceEndEvent, StreamEndEvent

from kubectl_spread.sources import memory
from kubectl_spread.sources.decode import places, yaml_scalars
from kubectl_spread.sources.decode.json_objects import Path
from kubectl_spread.sources.decode.listing import ITEMS
from kubectl_spread.sources.decode.places import Place

_MERGE: Final = "<<"
_DEEP: Final = 64
_DEPTH_OF_ITEMS: Final = 2
_VALUE: Final = 200
"""Bytes of memory that a value takes, with its key and its place."""
_AT_ONCE: Final = 1 << 10
_UNLIKE: Final = re.compile(rb"\t|\xc2\x85|\xe2\x80[\xa8\xa9]|\xef\xbb\xbf|\r(?!\n)|^%", re.MULTILINE)
"""Text that libyaml and go-yaml read differently: tabs, line breaks of YAML 1.1, byte order marks, directives."""


class NotPlainError(Exception):
    """Only ``yaml_documents`` can read the text."""


class AnchorError(NotPlainError):
    """The text has an anchor or an alias, whose meaning depends on the rest of the document."""


class Plain(msgspec.Struct, dict=True):
    """A document that is plain YAML, with the lines of its items; other places are found by parsing it again.

    Attributes:
        text: Its text.
        first: The line of the file with which the text begins.
        value: Its content as JSON values.
        line: The line of the text, from 0, with its first key or item.
        lines: The lines of the text, from 0, with the items of the document or of its field ``items``.
    """

    text: bytes
    first: int
    value: object = None
    line: int = 0
    lines: list[int] = msgspec.field(default_factory=list)

    def line_of(self, path: Path = ()) -> int:
        """Return the line where the field at ``path``, or the innermost field around it, begins."""
        match path:
            case ():
                return self.first + self.line
            case (int(index),) | ("items", int(index)):
                return self.first + self.lines[index]
        return self.place_of(path).line

    def place_of(self, path: Path) -> Place:
        """Return where the field at ``path``, or the innermost field around it, begins."""
        return places.of_field(self._root, path, self.first)

    @cached_property
    def _root(self) -> Any:
        return yaml.compose(self.text, Loader=yaml.CSafeLoader)


def read(text: bytes, source: str, first: int = 1) -> Plain:
    """Return the only document of a text; its value is None if the text is empty.

    Args:
        text: The text, a part of a file.
        source: The part, as errors name it.
        first: The line of the file with which the text begins.

    Raises:
        NotPlainError: The text is not plain YAML, or has several documents.
        TooLargeError: Its values do not fit into memory.
    """
    if _UNLIKE.search(text) or not yaml.__with_libyaml__:
        raise NotPlainError
    parser = yaml.CBaseLoader(text)
    try:
        with memory.RUN.claim(source) as claim:
            return _Loader(parser.get_event, claim, Plain(text, first)).document()
    except yaml.YAMLError as error:
        raise NotPlainError from error


def read_all(text: bytes, source: str) -> list[object]:
    """Return the values of all documents of a file, which need not be plain YAML.

    Raises:
        SourceError: The file is not YAML.
    """
    try:
        return [read(text, source).value]
    except NotPlainError:
        from kubectl_spread.sources.decode import yaml_documents  # noqa: PLC0415 - most files are plain

        return [document.value() for document in yaml_documents.documents(text, source)]


class _Loader:
    """Makes JSON values of events."""

    def __init__(self, event: Callable[[], Any], claim: memory.Claim, plain: Plain) -> None:
        self._event = event
        self._claim = claim
        self._document = plain
        self._unclaimed = 0
        self._scalars: dict[str, yaml_scalars.Scalar] = {}
        self._depth = 0

    def document(self) -> Plain:
        """Return the only document."""
        self._event()
        plain = self._document
        if type(self._event()) is StreamEndEvent:
            return plain
        first = self._event()
        if type(first) is ScalarEvent and (first.value or first.style):
            # It is not an object, and parsers differ about where its text begins.
            raise NotPlainError
        plain.line = first.start_mark.line
        plain.value = self._value(first, ITEMS)
        self._event()
        if type(self._event()) is not StreamEndEvent:
            raise NotPlainError
        return plain

    def _value(self, event: Any, key: object = None) -> object:
        self._unclaimed += 1
        if self._unclaimed == _AT_ONCE:
            self._claim.grow(_AT_ONCE * _VALUE)
            self._unclaimed = 0
        kind = type(event)
        if event.anchor:
            raise AnchorError
        if kind is ScalarEvent:
            return self._scalar(event)
        if event.tag or self._depth == _DEEP:
            raise NotPlainError
        self._depth += 1
        lines = self._document.lines if key == ITEMS and self._depth <= _DEPTH_OF_ITEMS else None
        value = self._mapping() if kind is MappingStartEvent else self._sequence(lines)
        self._depth -= 1
        return value

    def _mapping(self) -> dict[str, object]:
        mapping: dict[str, object] = {}
        while type(event := self._event()) is not MappingEndEvent:
            key = self._key(event)
            if key in mapping:
                raise NotPlainError
            mapping[key] = self._value(self._event(), key)
        return mapping

    def _sequence(self, lines: list[int] | None) -> list[object]:
        sequence: list[object] = []
        while type(event := self._event()) is not SequenceEndEvent:
            if lines is not None:
                lines.append(event.start_mark.line)
            sequence.append(self._value(event))
        return sequence

    def _key(self, event: Any) -> str:
        if event.anchor:
            raise AnchorError
        value = self._scalar(event) if type(event) is ScalarEvent else None
        if value is None or (value == _MERGE and event.implicit[0]):
            raise NotPlainError
        return value if type(value) is str else yaml_scalars.as_key(value)

    def _scalar(self, event: Any) -> yaml_scalars.Scalar:
        if event.tag:
            raise NotPlainError
        text: str = event.value
        if not event.implicit[0]:
            return text
        try:
            return self._scalars[text]
        except KeyError:
            value = yaml_scalars.plain(text)
            if isinstance(value, float) and not math.isfinite(value):
                raise NotPlainError from None
            self._scalars[text] = value
            return value
