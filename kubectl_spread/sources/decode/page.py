"""One page of a list, whichever wire it came over."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Generic, TypeVar

from kubectl_spread.kube.api.types import ListMeta, Message
from kubectl_spread.sources.decode.distinct import Distinct

T = TypeVar("T", bound=Message)


class Page(Generic[T]):
    """A page of a list; an object is decoded when it is reached, and again in a second iteration.

    Attributes:
        metadata: Says what revision was read and how to continue; see ``ListMeta``.
    """

    def __init__(self, metadata: ListMeta, records: Sequence[Any], decode: Callable[[Any], T]) -> None:
        """Hold the undecoded ``records`` together with what decodes one of them."""
        self.metadata = metadata
        self._records = records
        self._decode = decode
        self._distinct: Distinct | None = None

    def __len__(self) -> int:
        """Return the number of objects."""
        return len(self._records)

    def __iter__(self) -> Iterator[T]:
        """Decode one object after the other, in the order of the apiserver."""
        return map(self._decode, self._records) if self._distinct is None else self._new_ones(self._distinct)

    def once(self, distinct: Distinct) -> Page[T]:
        """Return the same page without the objects that came before, to be iterated over once."""
        page = Page(self.metadata, self._records, self._decode)
        page._distinct = distinct
        return page

    def _new_ones(self, distinct: Distinct) -> Iterator[T]:
        for record in self._records:
            decoded: Any = self._decode(record)
            metadata = decoded.metadata
            if distinct.is_new(f"{metadata.namespace}/{metadata.name}", hash(bytes(record))):
                yield decoded

    def through(self, wrap: Callable[[Callable[[Any], T]], Callable[[Any], T]]) -> Page[T]:
        """Return the same page, its objects decoded by what ``wrap`` makes of their decoder."""
        return Page(self.metadata, self._records, wrap(self._decode))

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
