"""Chunks: the documents of a file with the text around them, to be written again as they are or with other values.

This module is the interface of the editor.
"""

from __future__ import annotations

import json
import re
from collections.abc import Generator, Iterator, Mapping
from functools import cached_property
from typing import Any, Final

import msgspec
from msgspec import UNSET

from kubectl_spread.errors import SourceError
from kubectl_spread.sources.decode import json_documents
from kubectl_spread.sources.decode.json_documents import Marks, Record
from kubectl_spread.sources.decode.json_objects import Path, is_too_deep

# Possessive: a comment that ends in a space could match in two ways without that, and each such line would double the
# time.
_BEGINS: Final = re.compile(r"(?:\s|#[^\r\n]*+)*+(?P<marker>---(?=\s|\Z)|%)?")
_ENCODING: Final = ("utf-8", "surrogateescape")
_JSON: Final = re.compile(r'[{\[](?:\r?\n(?P<indent>[ \t]*))?\s*(?:"(?:[^"\\]|\\.)*"\s*:(?P<blank> )?)?', re.DOTALL)
"""The beginning of a JSON document, whose blanks are those of the rest."""
_NOT_IN_YAML: Final = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
"""The characters of JSON that YAML has no place for, or reads as line breaks."""


class Edited(msgspec.Struct, frozen=True):
    """The text of a document with another value.

    Attributes:
        text: The text.
        lost: The number of comments that are missing in it, besides those of removed fields.
        rewritten: Whether YAML became JSON, because it cannot be edited.
    """

    text: str
    lost: int = 0
    rewritten: bool = False


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

    def edited(self, changes: Mapping[Path, object]) -> Edited:
        """Return the text with the values at some paths replaced; an item of a list that becomes UNSET is removed."""
        target = self.value
        for path, value in changes.items():
            target = _replaced(target, path, value)
        expected = _without_unset(target)
        if self.is_json:
            return Edited(_json_text(expected, self.text))
        from kubectl_spread.sources.edit import roundtrip  # noqa: PLC0415 - JSON does not wait for it

        edited = roundtrip.edited(self.text, self.value, target)
        if edited and _has_value(edited[0], expected):
            return Edited(*edited)
        return Edited(_json_in_yaml(expected), rewritten=True)


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
        is_yaml = not chunk.is_json
        separator = self._separator(chunk, text, is_yaml=is_yaml)
        self._last, self._last_text = chunk.place, text
        self._yaml = self._yaml or (is_yaml and bool(text.strip()))
        glue = "\n" if separator is not None and before and not before.endswith(("\n", "\r")) else ""
        return f"{glue}{separator or ''}{text}"

    def _separator(self, chunk: Chunk, text: str, *, is_yaml: bool) -> str | None:
        """Return the separator before a chunk; None where it follows the last one as in its file."""
        source, number = chunk.place
        follows = self._last == (source, number - 1)
        if self._last is None or (follows and (is_yaml or not self._yaml)):
            return None
        if not is_yaml and not self._yaml:
            return ""
        begins = _BEGINS.match(text)
        marker = begins["marker"] if begins else None
        if marker == "---" or (chunk.record is None and marker is None):
            return ""
        return "...\n" if marker == "%" else "---\n"


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


def _replaced(value: Any, path: Path, new: object) -> Any:
    if not path:
        return new
    step, *rest = path
    if isinstance(value, dict):
        return {**value, step: _replaced(value[step], tuple(rest), new)}
    return [_replaced(item, tuple(rest), new) if index == step else item for index, item in enumerate(value)]


def _without_unset(value: Any) -> Any:
    match value:
        case dict():
            return {key: _without_unset(field) for key, field in value.items()}
        case list():
            return [_without_unset(item) for item in value if item is not UNSET]
    return value


def _json_text(value: object, like: str) -> str:
    """Return a value as JSON with the indentation, the line ends and the blanks around it of the document ``like``."""
    content = like.strip(" \t\r\n")
    before, _, after = like.partition(content)
    style = _JSON.match(content)
    indent, blank = style.group("indent", "blank") if style else (None, " ")
    separators = (", " if blank and indent is None else ",", ": " if blank else ":")
    text = json.dumps(value, indent=indent, separators=separators, ensure_ascii=like.isascii())
    return f"{before}{text}{after}".replace("\n", "\r\n" if "\r\n" in like else "\n")


def _json_in_yaml(value: object) -> str:
    """Return a YAML document in JSON; characters that YAML has no place for are escaped."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    text = _NOT_IN_YAML.sub(lambda match: rf"\u{ord(match[0]):04x}", text)
    return f"---\n{text}\n"


def _has_value(text: str, value: object) -> bool:
    from kubectl_spread.sources.decode import yaml_values  # noqa: PLC0415 - likewise

    try:
        values = yaml_values.read_all(encoded(text), "")
    except SourceError:
        return False
    written = msgspec.json.decode(msgspec.json.encode(values))
    return msgspec.json.encode(written, order="sorted") == msgspec.json.encode([value], order="sorted")
