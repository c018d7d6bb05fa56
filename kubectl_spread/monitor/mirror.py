"""A mirror: the objects of one resource in the world, as lists and watch events say they are."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Generic, NamedTuple, TypeVar

_T = TypeVar("_T")


class ObjectName(NamedTuple):
    """The namespace, which may be "", and the name of an object."""

    namespace: str
    name: str


class StoredObjects(NamedTuple, Generic[_T]):
    """The objects of one resource in the world, which a mirror changes.

    Attributes:
        put: Stores an object in its present state.
        remove: Removes an object that no longer exists.
        names: Returns the names of all stored objects.
    """

    put: Callable[[_T], None]
    remove: Callable[[ObjectName], None]
    names: Callable[[], Iterable[ObjectName]]


class Mirror(Generic[_T]):
    """The objects of one resource.

    Attributes:
        version: The resourceVersion that the objects have; "" before the first list is complete.
        complete: Whether the objects are those of ``version``. They are not while a list is read: the objects of the
            pages that came are newer than the others, and objects that are gone are still there.
    """

    def __init__(self, target: StoredObjects[_T]) -> None:
        """Start without objects."""
        self.version = ""
        self.complete = False
        self._target = target
        self._listed: set[ObjectName] = set()

    def begin_list(self) -> None:
        """Expect the pages of a list; those of a list that ended early count for nothing."""
        self.complete = False
        self._listed = set()

    def add_page(self, objects: Iterable[tuple[ObjectName, _T]]) -> None:
        """Store the objects of one page."""
        for name, listed in objects:
            self._listed.add(name)
            self._target.put(listed)

    def end_list(self, version: str) -> None:
        """Remove the objects that are not in the list, which is complete."""
        for name in [name for name in self._target.names() if name not in self._listed]:
            self._target.remove(name)
        self._listed = set()
        self.version, self.complete = version, True

    def put(self, changed: _T, version: str) -> None:
        """Apply an event about an object that exists."""
        self._target.put(changed)
        self.version = version

    def remove(self, name: ObjectName, version: str) -> None:
        """Apply an event about an object that was deleted."""
        self._target.remove(name)
        self.version = version

    def advance(self, version: str) -> None:
        """Apply a bookmark: nothing has changed up to a resourceVersion."""
        self.version = version
