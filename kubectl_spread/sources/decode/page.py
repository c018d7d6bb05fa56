"""One page of a list, from JSON or from protobuf."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Generic, TypeVar

import msgspec

from kubectl_spread.kube.api.types import ListMeta, Message

T = TypeVar("T", bound=Message)
U = TypeVar("U", bound=Message)


class Page(msgspec.Struct, Generic[T], eq=False):
    """A page of a list; an object is decoded when it is reached, and again in a second iteration.

    Attributes:
        metadata: The revision of the list, and how to continue; see ``ListMeta``.
        records: The objects as they came.
        decode: Decodes a record.
    """

    metadata: ListMeta
    records: Sequence[Any]
    decode: Callable[[Any], T]

    def __len__(self) -> int:
        return len(self.records)

    def __iter__(self) -> Iterator[T]:
        """Decode one object after the other, in the order of the API server."""
        return map(self.decode, self.records)

    def map(self, convert: Callable[[T], U]) -> Page[U]:
        """Return a page of this page's objects, each converted by ``convert``."""
        decode = self.decode
        return Page(self.metadata, self.records, lambda record: convert(decode(record)))

    @property
    def resource_version(self) -> str:
        """The revision of the whole list; the pages of one list share it."""
        return self.metadata.resource_version

    @property
    def remaining(self) -> int | None:
        """How many objects follow this page; None: unknown, as with a field selector."""
        if self.metadata.continue_ and not self.metadata.remaining_item_count:
            return None
        return self.metadata.remaining_item_count
