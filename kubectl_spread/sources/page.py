"""One page of a list, whichever wire it came over."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Generic, TypeVar

from kubectl_spread.kube.model import ListMeta, Message

T = TypeVar("T", bound=Message)


class Page(Generic[T]):
    """A page of a list; an object is decoded when it is reached, and again in a second iteration.

    Attributes:
        metadata: Says what revision was read and how to go on; see ``ListMeta``.
    """

    def __init__(self, metadata: ListMeta, records: Sequence[Any], decode: Callable[[Any], T]) -> None:
        """Hold the undecoded ``records`` together with what decodes one of them."""
        self.metadata = metadata
        self._records = records
        self._decode = decode

    def __len__(self) -> int:
        """Return the number of objects."""
        return len(self._records)

    def __iter__(self) -> Iterator[T]:
        """Decode one object after the other, in the order of the apiserver."""
        return map(self._decode, self._records)

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
