"""Lists that are read item by item, so that a file need not fit into memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple, Protocol

import msgspec

from kubectl_spread.errors import SourceError
from kubectl_spread.kube.api.types import Message
from kubectl_spread.sources.decode.json_objects import Json, Path

LIST: Final = "List"
ITEMS: Final = "items"


class Place(NamedTuple):
    """Where something begins: its line, and its column in characters, both from 1."""

    line: int
    column: int


class Record(Protocol):
    """One value of a file: its JSON, and where it and its fields are."""

    @property
    def raw(self) -> Json:
        """Its JSON."""

    @property
    def line(self) -> int:
        """The line where it begins, from 1."""

    @property
    def path(self) -> Path:
        """Where it stands in its document."""

    def line_of(self, path: Path) -> int:
        """Return the line where the field at ``path``, or what of it is there, begins."""

    def place_of(self, path: Path) -> Place:
        """Return where the field at ``path``, or what of it is there, begins: at its key, or at the item.

        The column is right in a record of a file that is all there, and in YAML.
        """

    def elements(self, items: Sequence[msgspec.Raw]) -> Iterator[Record]:
        """Yield a record for each of ``items``, which must be those of this value, in order."""


class Header(Message, frozen=True):
    """What tells what an object is; ``items`` stays undecoded."""

    api_version: str = ""
    kind: str = ""
    items: msgspec.Raw = msgspec.Raw(b"null")


NOTHING: Final = Header()
HEADER: Final = ("apiVersion", "kind")
METADATA: Final = "metadata"


class Listing(msgspec.Struct):
    """A document with ``items``, which are gone once they are iterated over.

    Attributes:
        line: The line where the document begins, from 1.
        fields: Its fields but for ``items``, as far as they are read: all of them once ``items`` is exhausted.
        items: Its items, in the order in which they are written.
    """

    line: int
    fields: dict[str, object]
    items: Iterable[Record | SourceError] = ()

    @property
    def complete(self) -> bool:
        """Whether it is known what it is a list of."""
        return all(self.fields.get(name) for name in HEADER)

    @property
    def of_item(self) -> Header:
        """What its items may leave out, as far as is known."""
        match [self.fields.get(name) for name in HEADER]:
            case [str(api_version), str(kind)]:
                return of_item(api_version, kind)
        return NOTHING


def of_item(api_version: str, kind: str) -> Header:
    """Return what an item of a list may leave out; those of a ``List`` nothing."""
    of = kind.removesuffix(LIST)
    return Header(api_version=api_version, kind=of) if of else NOTHING


def may_be_list(fields: dict[str, object]) -> bool:
    """Tell whether a document whose ``fields`` were read may be a list, as far as can be known."""
    kind = fields.get("kind")
    return not kind or (isinstance(kind, str) and kind.endswith(LIST))
