"""The documents of a file: records, and lists that are read item by item."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Protocol, TypeAlias

import msgspec

from kubectl_spread.errors import SourceError
from kubectl_spread.kube.api.types import Message
from kubectl_spread.sources.decode.json_objects import Json, Path
from kubectl_spread.sources.decode.places import Place

LIST: Final = "List"
ITEMS: Final = "items"


class Text(Protocol):
    """A text that knows the places of its fields."""

    def line_of(self, path: Path = ()) -> int:
        """Return the line, from 1, where the field at ``path``, or the innermost field around it, begins."""

    def place_of(self, path: Path) -> Place:
        """Return where the field at ``path``, or the innermost field around it, begins: at its key, or at the item."""


class Record(Text, Protocol):
    """One value of a file: its JSON, its place, and the places of its fields."""

    @property
    def raw(self) -> Json:
        """Its JSON."""

    @property
    def path(self) -> Path:
        """The path to it in its document."""

    def elements(self, raw_items: Sequence[msgspec.Raw]) -> Iterator[Record]:
        """Yield a record for each item of this list; ``raw_items`` are its items, in order."""


class Header(Message, frozen=True):
    """The fields by which an object or a list is recognised; ``items`` and ``metadata`` stay undecoded.

    ``items`` is empty where the object has no such field; Go writes an empty list as null.
    """

    api_version: str = ""
    kind: str = ""
    items: msgspec.Raw = msgspec.Raw()
    metadata: msgspec.Raw = msgspec.Raw(b"null")


NO_HEADER: Final = Header()
HEADER: Final = ("apiVersion", "kind")
METADATA: Final = "metadata"


class Listing(msgspec.Struct):
    """A document with ``items``, which are gone once they are iterated over.

    Attributes:
        line: The line where the document begins, from 1.
        fields: Its header and metadata; in YAML all fields except ``items``. They are complete once ``items`` is
            exhausted.
        items: Its items, in the order in which they are written.
    """

    line: int
    fields: dict[str, object]
    items: Iterable[Record | SourceError] = ()

    @property
    def complete(self) -> bool:
        """Whether its API version and kind are read."""
        return all(self.fields.get(name) for name in HEADER)

    @property
    def item_header(self) -> Header:
        """The header that its items may leave out, as far as it is read."""
        match [self.fields.get(name) for name in HEADER]:
            case [str(api_version), str(kind)]:
                return item_header(api_version, kind)
        return NO_HEADER


def item_header(api_version: str, kind: str) -> Header:
    """Return the header that the items of a list may leave out; items of a ``List`` need their own headers."""
    item_kind = kind.removesuffix(LIST)
    return Header(api_version=api_version, kind=item_kind) if item_kind else NO_HEADER


def may_be_list(fields: dict[str, object]) -> bool:
    """Tell whether a document whose first fields are ``fields`` may be a list."""
    kind = fields.get("kind")
    return not kind or (isinstance(kind, str) and kind.endswith(LIST))


Document: TypeAlias = Record | Listing | SourceError
"""A document, a list that is read item by item, or the fault of a part of the file that cannot be read."""
