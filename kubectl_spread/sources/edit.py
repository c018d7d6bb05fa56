"""The documents of a file with the text around them, to be written again as they are or with other values.

ruamel.yaml's round trip writes YAML, and keeps comments, order, quotes and anchors. What it would not keep is refused.
"""

from __future__ import annotations

import io
import json
import re
import sys
from collections.abc import Generator, Iterator, Sequence
from functools import cached_property
from typing import Any, Final

import msgspec
from msgspec import UNSET

from kubectl_spread.errors import DecodeError, Position, SourceError
from kubectl_spread.phrases import plural
from kubectl_spread.sources.decode import json_documents
from kubectl_spread.sources.decode.json_documents import Marks, Record
from kubectl_spread.sources.decode.json_objects import Path, format_path, is_too_deep

_ENCODING: Final = ("utf-8", "surrogateescape")
# Possessive: a comment that ends in a space could match in two ways without that, and each such line would double the
# time.
_BEGINS: Final = re.compile(r"(?:\s|#[^\r\n]*+)*+(?P<marker>---(?=\s|\Z)|%)?")
_JSON_INDENT: Final = re.compile(r"\s*[{\[]\r?\n([ \t]*)")
_HEAD: Final = re.compile(r"(?:(?:---(?=\s))?[ \t]*+(?:[#%][^\n]*+)?\n)*+(?:---[ \t]++)?")
"""Blank lines, comments, directives and the marker before the content of a document."""
_END: Final = re.compile(r"^\.\.\.(?=\s|\Z)", re.MULTILINE)
_MAPPING: Final = re.compile(r"^( *)[^\s#-][^\s#]*:\n\1( +)[^\s#-]", re.MULTILINE)
_SEQUENCE: Final = re.compile(r"^( *)[^\s#-][^\s#]*:\n\1( *)(- +)[^\s#]", re.MULTILINE)
"""A key and the line with its first field or item, whose indentation is that of the document."""
_COMMENT: Final = re.compile(r"(?<!\S)#")
_ANOTHER: Final = "cannot be edited: it would get another value (write an alias out, or quote a date)"
_PLAIN: Final = re.compile(r"[A-Za-z]([-\w./]*\w)?", re.ASCII)
"""Text that needs no quotes, if it is not a word such as ``on``."""


class Chunk(msgspec.Struct, frozen=True, dict=True):
    """A document and the text around it, up to the next document.

    Attributes:
        text: The text.
        place: The name of the file, and the number of the chunk in it.
        record: Its document; None where there is none.
        is_json: Whether it is a JSON document.
        fault: The reason why it cannot be read.
    """

    text: str
    place: tuple[str, int]
    record: Record | None = None
    is_json: bool = False
    fault: SourceError | None = None

    @property
    def empty(self) -> bool:
        """Whether there is no document in it."""
        return self.record is None and self.fault is None

    @cached_property
    def value(self) -> Any:
        """The value of the document.

        Raises:
            SourceError: It is JSON with a number or text that cannot be decoded, or it is nested too deeply.
        """
        try:
            value = None if self.record is None else msgspec.json.decode(self.record.content)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise SourceError(f"invalid JSON: {error}") from error
        except RecursionError as error:
            raise SourceError("nested too deeply") from error
        if is_too_deep(value):
            raise SourceError("nested too deeply")
        return value

    def at(self, path: Path) -> Any:
        """Return the value at ``path``, which must exist."""
        value = self.value
        for step in path:
            value = value[step]
        return value

    def edited(self, changes: dict[Path, object]) -> str:
        """Return the text with the values at some paths replaced; an item of a list that becomes UNSET is removed.

        Args:
            changes: The new values, in the order of the document.

        Raises:
            DecodeError: The text would get another value, or lose a comment.
        """
        expected = self.value
        for path, value in reversed(changes.items()):
            expected = _replaced(expected, path, value)
        if self.is_json:
            return _json_text(expected, self.text)
        try:
            text = self._yaml_text(changes)
        except Exception as error:  # ruamel.yaml raises errors of many types.
            what = getattr(error, "problem", None) or str(error).partition("\n")[0]
            raise self._refusal((), f"cannot be edited: ruamel.yaml says: {what}") from error
        differs_at = _difference(_value(text), expected)
        if differs_at is not None:
            raise self._refusal(differs_at, _ANOTHER)
        lost = len(_COMMENT.findall(self.text)) - len(_COMMENT.findall(text))
        if lost > 0:
            raise self._refusal((), f"cannot be edited: {plural(lost, 'comment')} would be lost")
        return text

    def _yaml_text(self, changes: dict[Path, object]) -> str:
        from ruamel.yaml import YAML  # noqa: PLC0415 - JSON does not wait for it

        text = self.text.replace("\r\n", "\n").replace("\r", "\n")
        head = _HEAD.match(text)
        begin = head.end() if head else 0
        marker = _END.search(text, begin)
        end = marker.start() if marker else len(text)
        body = text[begin:end]
        yaml = YAML()
        yaml.preserve_quotes = True
        yaml.width = sys.maxsize
        yaml.composer.warn_double_anchors = False
        if mapping := _MAPPING.search(body):
            yaml.map_indent = len(mapping[2])
        if sequence := _SEQUENCE.search(body):
            yaml.sequence_dash_offset = len(sequence[2])
            yaml.sequence_indent = len(sequence[2] + sequence[3])
        document = yaml.load(body)
        for path, value in reversed(changes.items()):
            _replace(document, path, self.at(path), value)
        output = io.StringIO()
        yaml.dump(document, output)
        written = output.getvalue() if body.endswith("\n") else output.getvalue().rstrip("\n")
        return f"{text[:begin]}{written}{text[end:]}".replace("\n", "\r\n" if "\r\n" in self.text else "\n")

    def _refusal(self, path: Path, problem: str) -> DecodeError:
        line = self.record.line_of(path) if self.record else None
        return DecodeError(Position(self.place[0], line), "", format_path(path), problem)


def read(body: bytes, source: str) -> Iterator[Chunk]:
    """Yield the chunks of a file, which together are its text."""
    view = memoryview(body)
    number, end = (yield from _json(view, source)) if json_documents.begins(view) else (0, 0)
    rest = view[end:]
    if json_documents.is_blank(rest):
        yield from [Chunk(_text(rest), (source, number))] if rest else ()
        return
    from kubectl_spread.sources.decode import yaml_values  # noqa: PLC0415 - JSON does not wait for it

    for place, (part, line) in enumerate(yaml_values.parts(rest, Marks(view).at(end).line), number):
        documents = list(yaml_values.documents(part, source, line))
        fault = next((document for document in documents if isinstance(document, SourceError)), None)
        record = next((document for document in documents if isinstance(document, Record)), None)
        yield Chunk(_text(part), (source, place), None if fault else record, fault=fault)


def _json(body: memoryview, source: str) -> Generator[Chunk, None, tuple[int, int]]:
    """Yield the JSON documents with which a file begins; return their number, and the byte where YAML follows them."""
    number = end = 0
    try:
        for record in json_documents.documents(body, source):
            start, end = end, record.start + len(record.content)
            yield Chunk(_text(body[start:end]), (source, number), record, is_json=True)
            number += 1
    except SourceError as error:
        yield Chunk(_text(body[end:]), (source, number), is_json=True, fault=error)
        return number, len(body)
    return number, end


def _text(part: memoryview) -> str:
    return str(part, *_ENCODING)


def encoded(text: str) -> bytes:
    """Return the bytes of a text that was read from a file."""
    return text.encode(*_ENCODING)


class Stream:
    """Joins chunks so that each remains a document of its own."""

    def __init__(self) -> None:
        self._last: tuple[str, int] | None = None
        self._last_text = ""
        self._yaml = False

    def add(self, chunk: Chunk, text: str) -> str:
        """Return the output for a chunk whose text, with its edits, is ``text``."""
        before = self._last_text
        separator = self._separator(chunk, text)
        self._last, self._last_text = chunk.place, text
        self._yaml = self._yaml or (not chunk.is_json and bool(text.strip()))
        glue = "\n" if separator is not None and before and not before.endswith(("\n", "\r")) else ""
        return f"{glue}{separator or ''}{text}"

    def _separator(self, chunk: Chunk, text: str) -> str | None:
        """Return the separator before a chunk; None where it follows the last one as in its file."""
        source, number = chunk.place
        follows = self._last == (source, number - 1)
        if self._last is None or (follows and not (chunk.is_json and self._yaml)):
            return None
        if chunk.is_json and not self._yaml:
            return ""
        begins = _BEGINS.match(text)
        marker = begins["marker"] if begins else None
        if marker == "---" or (chunk.record is None and marker is None):
            return ""
        return "...\n" if marker == "%" else "---\n"


def _replaced(value: Any, path: Path, new: object) -> Any:
    """Return a JSON value with another value at a path, or without the item there if it becomes UNSET."""
    if not path:
        return new
    step: Any = path[0]
    inner = _replaced(value[step], path[1:], new)
    if isinstance(value, dict):
        return {**value, step: inner}
    return [*value[:step], *([] if inner is UNSET else [inner]), *value[step + 1 :]]


def _json_text(value: object, like: str) -> str:
    """Return a value as JSON with the indentation, the line ends and the blanks around it of the document ``like``."""
    content = like.strip(" \t\r\n")
    before, _, after = like.partition(content)
    style = _JSON_INDENT.match(content)
    text = json.dumps(value, indent=style[1] if style else None, ensure_ascii=like.isascii())
    return f"{before}{text}{after}".replace("\n", "\r\n" if "\r\n" in like else "\n")


def _replace(document: Any, path: Path, old: object, new: object) -> None:
    """Replace the value ``old`` at a path in ruamel.yaml's values."""
    parent: Any = None
    for step in path:
        parent, document = document, document[step]
    if new is UNSET:
        del parent[path[-1]]
    else:
        _change(document, old, new)


def _change(values: Any, old: Any, new: Any) -> Any:
    """Return ruamel.yaml's values for ``old`` after they were changed to ``new``, or other values in their place.

    An alias is changed with its anchor, so nothing happens the second time.
    """
    match old, new:
        case dict(), dict():
            for name in old.keys() - new.keys():
                values.pop(name, None)
            for name in new:
                if name not in old or old[name] != new[name]:
                    values[name] = _change(values.get(name), old.get(name), new[name])
            return values
        case list(), list():
            for index, item in reversed(list(enumerate(_aligned(old, new)))):
                if item is not UNSET and item != old[index]:
                    values[index] = _change(values[index], old[index], item)
                elif item is UNSET and len(values) > len(new):
                    del values[index]
            values.extend(map(_fresh, new[len(values) :]))
            return values
    return _fresh(new)


def _aligned(old: Sequence[object], new: Sequence[object]) -> Sequence[object]:
    """Return the new value of each old item; UNSET for an item that is removed."""
    if len(old) <= len(new):
        return new[: len(old)]
    rest = [*new, UNSET]
    return [rest.pop(0) if value == rest[0] else UNSET for value in old]


def _fresh(value: object) -> object:
    """Return a copy of a value, in which a string that a reader of YAML might not read as a string is quoted."""
    from ruamel.yaml.scalarstring import DoubleQuotedScalarString  # noqa: PLC0415 - likewise

    from kubectl_spread.sources.decode import yaml_scalars  # noqa: PLC0415 - likewise

    match value:
        case dict():
            return {name: _fresh(field) for name, field in value.items()}
        case list():
            return [_fresh(item) for item in value]
        case str() if not (_PLAIN.fullmatch(value) and isinstance(yaml_scalars.plain(value), str)):
            return DoubleQuotedScalarString(value)
    return value


def _value(text: str) -> Any:
    """Return the value of a text with one document; UNSET if it cannot be read."""
    from kubectl_spread.sources.decode import yaml_values  # noqa: PLC0415 - likewise

    try:
        values = yaml_values.read_all(encoded(text), "")
    except SourceError:
        return UNSET
    # The items of a list are JSON already.
    decoded = msgspec.json.decode(msgspec.json.encode(values))
    return decoded[0] if len(decoded) == 1 else UNSET


def _difference(value: Any, other: Any, path: Path = ()) -> Path | None:
    """Return the path of the first difference between two JSON values; None: they are equal."""
    steps: Sequence[Any]
    if isinstance(value, dict) and isinstance(other, dict) and value.keys() == other.keys():
        steps = list(value)
    elif isinstance(value, list) and isinstance(other, list) and len(value) == len(other):
        steps = range(len(value))
    else:
        return None if type(value) is type(other) and value == other else path
    differences = (_difference(value[step], other[step], (*path, step)) for step in steps)
    return next((difference for difference in differences if difference is not None), None)
