"""Chunks: the documents of a file with the text around them, to be passed on byte by byte or with edits.

This module is the interface of the editor; the others of this package are its parts.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Generator, Iterator, Mapping
from functools import cached_property
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

    from kubectl_spread.sources.decode.yaml_documents import Document

_MARKER: Final = re.compile(r"(?:(?<=[\r\n])|(?<!.))(?:(?P<begins>---)|\.\.\.)(?=\s|\Z)", re.DOTALL)
_BLANKS: Final = re.compile(rb"[ \t\r\n]*")
_LINE: Final = re.compile(r"[^\r\n]*(?:\r\n|\r|\n|\Z)")
_ALL_BUT_LINES: Final = re.compile(r"[^\r\n]")
# Possessive, as all patterns for comments are: a comment that ends in a space could else be read in two ways, and
# thirty such lines in as many as there are seconds in a life.
_BLANK: Final = re.compile(r"(?:\s|#[^\r\n]*+|---(?=\s|\Z)|\.\.\.(?=\s|\Z))*+")
_BEGINS: Final = re.compile(r"(?:\s|#[^\r\n]*+)*+(?P<marker>---(?=\s|\Z)|%)?")
_ENCODING: Final = ("utf-8", "surrogateescape")


__all__ = ["GONE", "Chunk", "Stream", "encoded", "read"]


class Chunk(msgspec.Struct, frozen=True, dict=True):
    """A document and the text around it, up to the next one.

    Attributes:
        text: The text in which ``start`` and ``end`` count.
        start: Where the chunk begins.
        end: Where it ends.
        record: Its document; None: there is none.
        root: The node of a YAML document.
        fault: Why it cannot be read.
    """

    text: str
    start: int
    end: int
    record: Record | None = None
    root: Node | None = None
    fault: SourceError | None = None

    @property
    def empty(self) -> bool:
        """Whether there is no document in it."""
        return self.record is None and self.fault is None

    @property
    def own_text(self) -> str:
        """The text of this chunk alone."""
        return self.text[self.start : self.end]

    @cached_property
    def value(self) -> Any:
        """The value of the document.

        Raises:
            SourceError: It is JSON that cannot be read after all, or it is nested too deeply.
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
        """Return the text with the values at some paths replaced, or taken out where they are GONE.

        Returns:
            The text; None: this text cannot be edited in place.
        """
        target = self.value
        for path, value in changes.items():
            target = _replaced(target, path, value)
        editor = Editor(self.text, json=self.root is None)
        if self.root is None:
            part = outline.of_json(self.text, self.start, self.value, target)
        else:
            part = outline.of_yaml(self.root, self.text)
        editor.sync(part, self.value, target)
        text = splice(self.text, editor.edits, self.start, self.end)
        return text if text is not None and self._says(text, without_gone(target)) else None

    def rewritten(self, changes: Mapping[Path, object]) -> str:
        """Return the document with the same changes, rewritten as JSON, which is YAML too."""
        target = self.value
        for path, value in changes.items():
            target = _replaced(target, path, value)
        body = msgspec.json.format(msgspec.json.encode(without_gone(target)), indent=2).decode()
        return f"{body}\n" if self.root is None else f"---\n{body}\n"

    def _says(self, text: str, value: object) -> bool:
        if self.root is None:
            return bool(msgspec.json.decode(text) == value)
        from kubectl_spread.sources.decode import yaml_documents  # noqa: PLC0415 - JSON does not wait for it

        try:
            values = [document.value() for document in yaml_documents.documents(text.encode(), "")]
        except SourceError:
            return False
        return values == [value]


def read(body: bytes, source: str) -> Iterator[Chunk]:
    """Yield the chunks of a file, which together are its text; of one that cannot be read ``fault`` says why."""
    text = body.decode(*_ENCODING)
    window = Window([body], source)
    start = (yield from _json(text, body, window, source)) if json_documents.begins(window) else 0
    if start < len(text):
        yield from _yaml(text, start, source)


def encoded(text: str) -> bytes:
    """Return the bytes of a text that was read from a file."""
    return text.encode(*_ENCODING)


class Stream:
    """Chunks put one behind the other so that each stays a document of its own."""

    def __init__(self) -> None:
        """Start with nothing written."""
        self._last: Chunk | None = None
        self._last_text = ""
        self._yaml = False

    def add(self, chunk: Chunk, text: str) -> str:
        """Return the output for a chunk whose text, with its edits, is ``text``."""
        last, before = self._last, self._last_text
        is_yaml = chunk.record is None or chunk.root is not None
        self._last, self._last_text = chunk, text
        apart = self._apart(last, chunk, text, is_yaml=is_yaml)
        self._yaml = self._yaml or (is_yaml and bool(text.strip()))
        glue = "\n" if apart is not None and before and not before.endswith(("\n", "\r")) else ""
        return f"{glue}{apart or ''}{text}"

    def _apart(self, last: Chunk | None, chunk: Chunk, text: str, *, is_yaml: bool) -> str | None:
        """Return the separator before a chunk; None: it follows the last one as in its file."""
        follows = last is not None and last.text is chunk.text and last.end == chunk.start
        if last is None or (follows and (is_yaml or not self._yaml)):
            return None
        if not is_yaml and not self._yaml:
            return ""
        begins = _BEGINS.match(text)
        marker = begins["marker"] if begins else None
        if marker == "---" or (chunk.record is None and marker is None):
            return ""
        return "...\n" if marker == "%" else "---\n"


def _json(text: str, body: bytes, window: Window, source: str) -> Generator[Chunk, None, int]:
    """Yield the JSON documents with which a file begins, and return where YAML follows them."""
    end = end_byte = 0
    try:
        for record in json_documents.records(window, source):
            blanks = _BLANKS.match(body, record.offset + len(memoryview(record.raw)))
            behind = blanks.end() if blanks else len(body)
            start, end = end, end + len(body[end_byte:behind].decode(*_ENCODING))
            end_byte = behind
            yield Chunk(text, start, end, record)
    except SourceError as error:
        yield Chunk(text, end, len(text), fault=error)
        return len(text)
    if window.position < len(window.body):
        return end
    if end < len(text):
        yield Chunk(text, end, len(text))
    return len(text)


def _yaml(text: str, start: int, source: str) -> Iterator[Chunk]:
    """Yield the YAML documents from ``start`` on; a fault ends one document, not the file."""
    from kubectl_spread.sources.decode import yaml_documents  # noqa: PLC0415 - JSON does not wait for it

    starts = _starts(text, start)
    pieces = [Chunk(text, *ends) for ends in zip(starts, (*starts[1:], len(text)), strict=True)]
    done = 0
    while done < len(pieces):
        try:
            for document in yaml_documents.documents(_hidden(text, pieces[done].start, len(text)), source):
                index = bisect_right(starts, document.root.start_mark.index) - 1
                yield from pieces[done:index]
                done = index + 1
                yield _document(pieces[index], document)
        except SourceError:
            # Whatever is wrong with the file, the next document may be right.
            index = next((index for index in range(done, len(pieces)) if not _is_blank(pieces[index])), len(pieces))
            yield from pieces[done:index]
            done = index + 1
            yield from (_alone(piece, source) for piece in pieces[index:done])
        else:
            yield from pieces[done:]
            return


def _alone(piece: Chunk, source: str) -> Chunk:
    """Read one piece as if it were all that the file holds."""
    from kubectl_spread.sources.decode import yaml_documents  # noqa: PLC0415 - likewise

    try:
        documents = list(yaml_documents.documents(_hidden(piece.text, piece.start, piece.end), source))
    except SourceError as error:
        return msgspec.structs.replace(piece, fault=error)
    return _document(piece, documents[0]) if documents else piece


def _hidden(text: str, start: int, end: int) -> bytes:
    """Return a file of which only a part is left, in its place."""
    return (_ALL_BUT_LINES.sub(" ", text[:start]) + text[start:end]).encode(*_ENCODING)


def _document(piece: Chunk, document: Document) -> Chunk:
    from kubectl_spread.sources.decode import yaml_documents  # noqa: PLC0415 - likewise

    try:
        return msgspec.structs.replace(piece, record=yaml_documents.record(document), root=document.root)
    except SourceError as error:
        return msgspec.structs.replace(piece, fault=error)


def _starts(text: str, start: int) -> list[int]:
    """Return where the pieces of a YAML file begin: at a marker, at its directives, or behind an end marker."""
    starts = [start]
    for marker in _MARKER.finditer(text, start):
        here = marker.start()
        if not marker["begins"]:
            rest = _LINE.match(text, marker.end())
            here = rest.end() if rest else len(text)
        elif _has_directives(text[starts[-1] : here]):
            continue
        if starts[-1] < here < len(text):
            starts.append(here)
    return starts


def _has_directives(text: str) -> bool:
    """Tell whether a text is nothing but the directives of the document that follows."""
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    return bool(lines) and all(line.startswith("%") for line in lines)


def _is_blank(piece: Chunk) -> bool:
    return _BLANK.fullmatch(piece.own_text) is not None


def _replaced(value: Any, path: Path, new: object) -> Any:
    if not path:
        return new
    step, *rest = path
    if isinstance(value, dict):
        return {**value, step: _replaced(value[step], tuple(rest), new)}
    return [_replaced(item, tuple(rest), new) if index == step else item for index, item in enumerate(value)]
