"""YAML documents of a file that need not fit into memory, because a list is read item by item.

A line that begins with anything but a blank or a comment begins a piece of the file. An item is read by itself, which
does not change its meaning as long as the document has no anchor.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import Final, NamedTuple, TypeAlias

import msgspec

from kubectl_spread.errors import Position, SourceError
from kubectl_spread.sources.decode import yaml_values
from kubectl_spread.sources.decode.listing import ITEMS, Listing, Record, may_be_list
from kubectl_spread.sources.decode.window import Window
from kubectl_spread.sources.decode.yaml_records import YamlRecord
from kubectl_spread.sources.decode.yaml_values import AnchorError, NotPlainError, Plain

_CUT: Final = re.compile(rb"\n((?:---[ \t]*\r?\n(?=---\s))*+)(?=[^\s#])")
"""Ends a piece; its group is empty documents, which follow the piece."""
_DIRECTIVE: Final = b"%"
_BEGINS: Final = re.compile(rb"---(?=\s|\Z)")
_ENDS: Final = re.compile(rb"\.\.\.(?:\s|(?<=\s)#[^\n]*+)*+")
_DIRECTIVES: Final = re.compile(rb"(?:[%#][^\n]*+|\s)*+")
_OPENS_ITEMS: Final = re.compile(rb"items:[ \t]*(?:[ \t]#[ -~\t]*)?(?:\r?\n[ \t]*(?:#[ -~\t]*)?)*")
_ITEM: Final = re.compile(rb"-(?=\s|\Z)")
_ANCHOR: Final = re.compile(rb"[&*]")
_ITEMS_ABOVE: Final = b"items:\n"
_NO_ITEMS: Final = b"items: []\n"

Part: TypeAlias = Record | SourceError
"""A document or an item of a list, or its fault."""


class Piece(NamedTuple):
    """A part of a file, and the line where it begins."""

    text: bytes
    line: int


def documents(window: Window, source: str, *, listed: bool) -> Iterator[Part | Listing]:
    """Yield the documents of the rest of a file.

    Args:
        window: The file.
        source: The name of the file in messages.
        listed: Whether a list is a ``Listing``, whose items must be exhausted before the next document is requested.
    """
    reader = _Reader(_pieces(window), source)
    while reader.following:
        yield from reader.document(listed=listed)


class _Reader:
    """Joins the pieces of a file to documents and items.

    Attributes:
        following: The next piece; None: the file ends.
    """

    def __init__(self, pieces: Iterator[Piece], source: str) -> None:
        self._pieces = pieces
        self._source = source
        self.following = next(pieces, None)

    def document(self, *, listed: bool) -> Iterator[Part | Listing]:
        """Yield the next document, or the list that it seems to be; several documents if one of them is at fault."""
        pieces: list[Piece] = []
        for piece in self._to_next_document():
            listing = self._listing(pieces, piece) if listed and self._opens_items(piece) else None
            pieces.append(piece)
            if listing:
                yield listing
                return
        yield from self._whole(_joined(pieces))

    def _to_next_document(self) -> Iterator[Piece]:
        """Yield the pieces of the current document; its directives are part of it, and its end marker."""
        only_directives = True
        while piece := self.following:
            if _BEGINS.match(piece.text) and not only_directives:
                return
            self.following = next(self._pieces, None)
            yield piece
            if _ENDS.fullmatch(piece.text):
                return
            only_directives = only_directives and _DIRECTIVES.fullmatch(piece.text) is not None

    def _plain(self, piece: Piece) -> Plain:
        return yaml_values.read(piece.text, str(Position(self._source, piece.line)), piece.line)

    def _opens_items(self, piece: Piece) -> bool:
        is_item = self.following and _ITEM.match(self.following.text)
        return bool(is_item and _OPENS_ITEMS.fullmatch(piece.text))

    def _listing(self, above: list[Piece], opening: Piece) -> Listing | None:
        """Return the list whose items come next; None: the fields above them are not those of a list."""
        try:
            plain = self._plain(_joined([*above, opening._replace(text=_NO_ITEMS)]))
        except NotPlainError:
            return None
        fields = plain.value
        if not isinstance(fields, dict) or fields.pop(ITEMS, None) != [] or not may_be_list(fields):
            return None
        listing = Listing(plain.line_of(), fields)
        listing.items = self._items(listing)
        return listing

    def _items(self, listing: Listing) -> Iterator[Part]:
        rest = self._to_next_document()
        for index, piece in enumerate(rest):
            if not _ITEM.match(piece.text):
                yield from self._rest(listing, _NO_ITEMS, chain([piece], rest), index)
                return
            try:
                yield self._item(piece, index)
            except SourceError as error:
                yield error
            except NotPlainError:
                yield from self._rest(listing, _ITEMS_ABOVE, chain([piece], rest), index)
                return

    def _item(self, piece: Piece, index: int) -> Record:
        """Return the item in a piece.

        Raises:
            SourceError: The item cannot be read.
            NotPlainError: The meaning of the item depends on the rest of the document.
        """
        try:
            plain = self._plain(piece)
        except AnchorError:
            raise
        except NotPlainError:
            return self._careful_item(piece, index)
        match plain.value:
            case [value]:
                return YamlRecord(msgspec.json.encode(value), plain, (ITEMS, index), (0,))
        raise NotPlainError

    def _careful_item(self, piece: Piece, index: int) -> Record:
        from kubectl_spread.sources.decode import yaml_documents  # noqa: PLC0415 - most files have no faults

        if _ANCHOR.search(piece.text):
            raise AnchorError
        try:
            (document,) = yaml_documents.documents(piece.text, self._source, piece.line)
        except (SourceError, ValueError) as error:
            raise NotPlainError from error
        (raw,) = msgspec.json.decode(yaml_documents.record(document).raw, type=list[msgspec.Raw])
        return YamlRecord(raw, document, (ITEMS, index), (0,))

    def _rest(self, listing: Listing, above: bytes, pieces: Iterator[Piece], index: int) -> Iterator[Part]:
        """Yield the items from ``index`` on, read together with the fields below them."""
        text, line = _joined(pieces)
        whole = self._whole(Piece(above + text, line - 1))
        for first in islice(whole, 1):
            yield from [first] if isinstance(first, SourceError) else self._continued(listing, first, index)
        yield from whole

    def _continued(self, listing: Listing, record: Record, index: int) -> Iterator[Part]:
        fields = msgspec.json.decode(record.raw, type=dict[str, msgspec.Raw])
        items = msgspec.json.decode(fields.pop(ITEMS), type=list[msgspec.Raw])
        for number, raw in enumerate(items):
            yield YamlRecord(raw, record, (ITEMS, index + number), (ITEMS, number))
        for key, value in fields.items():
            if key in listing.fields:
                yield SourceError(f"{Position(self._source, record.line_of((key,)))}: key {key!r} is duplicated")
            listing.fields[key] = msgspec.json.decode(value)

    def _whole(self, piece: Piece) -> Iterator[Part]:
        """Yield the documents in a piece that contains only whole documents."""
        try:
            plain = self._plain(piece)
        except NotPlainError:
            yield from self._carefully(piece)
            return
        if plain.value is not None:
            yield YamlRecord(msgspec.json.encode(plain.value), plain)

    def _carefully(self, piece: Piece) -> Iterator[Part]:
        from kubectl_spread.sources.decode import yaml_documents  # noqa: PLC0415 - likewise

        try:
            for document in yaml_documents.documents(piece.text, self._source, piece.line):
                try:
                    yield yaml_documents.record(document)
                except SourceError as error:
                    yield error
        except SourceError as error:
            yield error


def _joined(pieces: Iterable[Piece]) -> Piece:
    parts = list(pieces)
    return Piece(b"".join(piece.text for piece in parts), parts[0].line)


def _pieces(window: Window) -> Iterator[Piece]:
    """Yield the pieces of the rest of a file."""
    scanned = window.position
    while True:
        for cut in _CUT.finditer(window.body, scanned):
            piece = _taken(window, cut.start(1))
            if not piece.text.startswith(_DIRECTIVE):
                # Reading an empty document would cost as much as reading a pod.
                window.forget(cut.end())
            yield piece
        behind = len(window.body) - window.position
        if not window.more():
            break
        # The last byte may be a line break whose line was not in memory yet.
        scanned = window.position + max(behind - 1, 0)
    if window.position < len(window.body):
        yield _taken(window, len(window.body))


def _taken(window: Window, end: int) -> Piece:
    line = window.place_at(window.position).line
    piece = Piece(window.taken(end), line)
    window.forget(end)
    return piece
