"""The values of plain YAML by libyaml, many times faster than the reader that knows the place of every field.

It reads what kubectl prints and what people mostly write, and leaves all else, faults included, to ``yaml_documents``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any, Final

import msgspec
import yaml
from yaml import MappingEndEvent, MappingStartEvent, ScalarEvent, SequenceEndEvent, StreamEndEvent

from kubectl_spread.sources import memory
from kubectl_spread.sources.decode import yaml_scalars
from kubectl_spread.sources.decode.listing import ITEMS

_MERGE: Final = "<<"
_DEEP: Final = 64
_DEPTH_OF_ITEMS: Final = 2
_VALUE: Final = 200
"""Bytes of memory that a value takes, with its key and its place."""
_AT_ONCE: Final = 1 << 10
_UNLIKE: Final = re.compile(rb"\t|\xc2\x85|\xe2\x80[\xa8\xa9]|\xef\xbb\xbf|\r(?!\n)|^%", re.MULTILINE)
"""Characters that readers take differently: tabs, line breaks of YAML 1.1, marks of byte order; and directives."""


class NotPlainError(Exception):
    """Only the careful reader can read this."""


class AnchorError(NotPlainError):
    """There is an anchor or an alias, whose meaning depends on the rest of the document."""


class Plain(msgspec.Struct):
    """A document that is plain YAML.

    Attributes:
        value: Its content as JSON values.
        line: The line of its first key or item, counted from 0.
        lines: The lines of its items, if it is a sequence, or of its field ``items``.
    """

    value: object = None
    line: int = 0
    lines: list[int] = msgspec.field(default_factory=list)


def read(text: bytes, source: str) -> Plain:
    """Return the one document of ``text``, a part of ``source``; of nothing it is null.

    Raises:
        NotPlainError: It is more than that.
        TooLargeError: Its values do not fit into memory.
    """
    if _UNLIKE.search(text) or not yaml.__with_libyaml__:
        raise NotPlainError
    parser = yaml.CBaseLoader(text)
    try:
        with memory.RUN.claim(source) as claim:
            return _Loader(parser.get_event, claim).document()
    except yaml.YAMLError as error:
        raise NotPlainError from error


def read_all(text: bytes, source: str) -> list[object]:
    """Return the values of all documents of a file, whatever its YAML is.

    Raises:
        SourceError: The file is not YAML.
    """
    try:
        return [read(text, source).value]
    except NotPlainError:
        from kubectl_spread.sources.decode import yaml_documents  # noqa: PLC0415 - most files are plain

        return [document.value() for document in yaml_documents.documents(text, source)]


def nodes(text: bytes) -> Any:
    """Return the root node of the one document of ``text``, which ``read`` takes; nodes know their places."""
    return yaml.compose(text, Loader=yaml.CSafeLoader)


class _Loader:
    """Makes JSON values of events."""

    def __init__(self, event: Callable[[], Any], claim: memory.Claim) -> None:
        self._event = event
        self._claim = claim
        self._unclaimed = 0
        self._plain: dict[str, yaml_scalars.Scalar] = {}
        self._depth = 0
        self._found = Plain()

    def document(self) -> Plain:
        """Return the only document."""
        self._event()
        plain = self._found
        if type(self._event()) is StreamEndEvent:
            return plain
        first = self._event()
        if type(first) is ScalarEvent and (first.value or first.style):
            # No object, and where its text may begin readers differ.
            raise NotPlainError
        plain.line = first.start_mark.line
        plain.value = self._value(first, ITEMS)
        self._event()
        if type(self._event()) is not StreamEndEvent:
            raise NotPlainError
        return plain

    def _value(self, event: Any, key: object = None) -> object:
        kind = type(event)
        if event.anchor:
            raise AnchorError
        if kind is ScalarEvent:
            return self._scalar(event)
        if event.tag or self._depth == _DEEP:
            raise NotPlainError
        self._depth += 1
        lines = self._found.lines if key == ITEMS and self._depth <= _DEPTH_OF_ITEMS else None
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
            self._unclaimed += 1
            if self._unclaimed == _AT_ONCE:
                self._claim_values()
        return mapping

    def _sequence(self, lines: list[int] | None) -> list[object]:
        sequence: list[object] = []
        while type(event := self._event()) is not SequenceEndEvent:
            if lines is not None:
                lines.append(event.start_mark.line)
            sequence.append(self._value(event))
            self._unclaimed += 1
            if self._unclaimed == _AT_ONCE:
                self._claim_values()
        return sequence

    def _claim_values(self) -> None:
        """Claim the memory of the values that were made since the last time."""
        self._claim.grow(self._unclaimed * _VALUE)
        self._unclaimed = 0

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
            return self._plain[text]
        except KeyError:
            value = yaml_scalars.plain(text)
            if isinstance(value, float) and not math.isfinite(value):
                raise NotPlainError from None
            self._plain[text] = value
            return value
