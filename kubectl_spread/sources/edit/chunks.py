"""Chunks: the documents of a file with the text around them, to be written again as they are or with edits.

This module is the interface of the editor; the other modules of this package are its parts.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator, Mapping
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import msgspec

from kubectl_spread.errors import SourceError
from kubectl_spread.sources.decode import json_documents
from kubectl_spread.sources.decode.json_objects import Path, is_too_deep
from kubectl_spread.sources.decode.listing import Record
from kubectl_spread.sources.decode.window import Window
from kubectl_spread.sources.edit import outline
from kubectl_spread.sources.edit.edits import GONE, Editor, splice, without_gone

if TYPE_CHECKING:
    from ruamel.yaml.nodes import Node

_MARKER: Final = re.compile(r"(?:(?<=[\r\n])|(?<!.))(?:(?P<begins>---)|\.\.\.)(?=\s|\Z)", re.DOTALL)
_BLANKS: Final = re.compile(rb"[ \t\r\n]*")
_LINE: Final = re.compile(r"[^\r\n]*(?:\r\n|\r|\n|\Z)")
_LINE_END: Final = re.compile(r"\r\n|\r|\n")
# Patterns for comments are possessive. A comment that ends in a space could match in two ways without that, and each
# such line would double the time.
_BLANK: Final = re.compile(r"(?:\s|#[^\r\n]*+|---(?=\s|\Z)|\.\.\.(?=\s|\Z))*+")
_BEGINS: Final = re.compile(r"(?:\s|#[^\r\n]*+)*+(?P<marker>---(?=\s|\Z)|%)?")
_ENCODING: Final = ("utf-8", "surrogateescape")


__all__ = ["GONE", "Chunk", "Stream", "encoded", "read"]


class Chunk(msgspec.Struct, frozen=True, dict=True):
    """A document and the text around it, up to the next document.

    Attributes:
        text: The text.
        place: The name of the file, and the number of the chunk in it.
        record: Its document; None where there is none.
        root: The node of a YAML document.
        fault: The reason why it cannot be read.
    """

    text: str
    place: tuple[str, int]
    record: Record | None = None
    root: Node | None = None
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
            value = None if self.record is None else msgspec.json.decode(self.record.raw)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise SourceError(f"invalid JSON: {error}") from error
        if is_too_deep(value):
            raise SourceError("nested too deeply")
        return value

    def at(self, path: Path) -> Any:
        """Return the value at ``path``, which must exist."""
        value = self.value
        for step in path:
            value = value[step]
        return value

    def edited(self, changes: Mapping[Path, object]) -> str | None:
        """Return the text with the values at some paths replaced, or removed where they are GONE.

        Returns:
            The text; None where it cannot be edited in place.
        """
        target = self._with(changes)
        if self.root is None:
            part = outline.of_json(self.text, self.value, target)
        else:
            part = outline.of_yaml(self.root, self.text)
        editor = Editor(self.text, json=self.root is None)
        editor.sync(part, self.value, target)
        text = splice(self.text, editor.edits)
        return text if text is not None and self._has_value(text, without_gone(target)) else None

    def rewritten(self, changes: Mapping[Path, object]) -> str:
        """Return the document with the same changes, rewritten as JSON, which is YAML too."""
        body = msgspec.json.format(msgspec.json.encode(without_gone(self._with(changes))), indent=2).decode()
        return f"{body}\n" if self.root is None else f"---\n{body}\n"

    def _with(self, changes: Mapping[Path, object]) -> Any:
        target = self.value
        for path, value in changes.items():
            target = _replaced(target, path, value)
        return target

    def _has_value(self, text: str, value: object) -> bool:
        if self.root is None:
            return bool(msgspec.json.decode(text) == value)
        from kubectl_spread.sources.decode import yaml_documents  # noqa: PLC0415 - JSON does not wait for it

        try:
            values = [document.value() for document in yaml_documents.documents(text.encode(), "")]
        except SourceError:
            return False
        return values == [value]


def read(body: bytes, source: str) -> Iterator[Chunk]:
    """Yield the chunks of a file, which together are its text."""
    window = Window([body], source)
    number, end = (yield from _json(body, window, source)) if json_documents.begins(window) else (0, 0)
    if end < len(body):
        line = len(_LINE_END.findall(body[:end].decode(*_ENCODING))) + 1
        yield from _yaml(body[end:].decode(*_ENCODING), (source, number), line)


def encoded(text: str) -> bytes:
    """Return the bytes of a text that was read from a file."""
    return text.encode(*_ENCODING)


class Stream:
    """Joins chunks so that each remains a document of its own."""

    def __init__(self) -> None:
        """Start with nothing written."""
        self._last: tuple[str, int] | None = None
        self._last_text = ""
        self._yaml = False

    def add(self, chunk: Chunk, text: str) -> str:
        """Return the output for a chunk whose text, with its edits, is ``text``."""
        before = self._last_text
        is_yaml = chunk.record is None or chunk.root is not None
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


def _json(body: bytes, window: Window, source: str) -> Generator[Chunk, None, tuple[int, int]]:
    """Yield the JSON documents with which a file begins; return their number, and the byte where YAML follows them."""
    number = end = 0
    try:
        for record in json_documents.records(window, source):
            blanks = _BLANKS.match(body, record.offset + len(memoryview(record.raw)))
            start, end = end, blanks.end() if blanks else len(body)
            yield Chunk(body[start:end].decode(*_ENCODING), (source, number), record)
            number += 1
    except SourceError as error:
        yield Chunk(body[end:].decode(*_ENCODING), (source, number), fault=error)
        return number, len(body)
    return number, end


def _yaml(text: str, place: tuple[str, int], line: int) -> Iterator[Chunk]:
    """Yield YAML documents, the first of them at ``place``; a fault ends one document, not the file."""
    source, first = place
    starts = _starts(text)
    for number, (start, end) in enumerate(pairwise((*starts, len(text))), first):
        chunk = Chunk(text[start:end], (source, number))
        yield chunk if _BLANK.fullmatch(chunk.text) else _with_document(chunk, line)
        line += len(_LINE_END.findall(chunk.text))


def _with_document(chunk: Chunk, line: int) -> Chunk:
    """Return a chunk with its YAML document or its fault; ``line`` is the line of the file where the chunk begins."""
    from kubectl_spread.sources.decode import yaml_documents  # noqa: PLC0415 - JSON does not wait for it

    try:
        documents = list(yaml_documents.documents(encoded(chunk.text), chunk.place[0], line))
        if not documents:
            return chunk
        (document,) = documents
        return msgspec.structs.replace(chunk, record=yaml_documents.record(document), root=document.root)
    except SourceError as error:
        return msgspec.structs.replace(chunk, fault=error)


def _starts(text: str) -> list[int]:
    """Return where the pieces of a YAML file begin: at a marker, at its directives, or behind an end marker."""
    starts = [0]
    for marker in _MARKER.finditer(text):
        start = marker.start()
        if not marker["begins"]:
            line = _LINE.match(text, marker.end())
            start = line.end() if line else len(text)
        elif _has_directives(text[starts[-1] : start]):
            continue
        if starts[-1] < start < len(text):
            starts.append(start)
    return starts


def _has_directives(text: str) -> bool:
    """Tell whether a text has only the directives of the document that follows."""
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    return bool(lines) and all(line.startswith("%") for line in lines)


def _replaced(value: Any, path: Path, new: object) -> Any:
    if not path:
        return new
    step, *rest = path
    if isinstance(value, dict):
        return {**value, step: _replaced(value[step], tuple(rest), new)}
    return [_replaced(item, tuple(rest), new) if index == step else item for index, item in enumerate(value)]
