"""The distinct objects of one list, whose pages may overlap."""

from __future__ import annotations

from array import array

from kubectl_spread.errors import SourceError


class Distinct:
    """Tells which objects of a list are repeated.

    An API server lists objects in ascending order of their keys in etcd, in which a name cannot be repeated. Two
    numbers are stored for each object, to look up objects that are out of order.

    Attributes:
        number: The number of distinct objects so far.
    """

    def __init__(self) -> None:
        """Start before the first object."""
        self.number = 0
        self._last = ""
        self._names = array("q")
        self._contents = array("q")
        self._index: dict[int, int] | None = None

    def is_new(self, name: str, content: int) -> bool:
        """Tell whether an object is the first one of its name.

        Args:
            name: Its namespace and name.
            content: A hash of everything that the API server sent of it.

        Raises:
            SourceError: An earlier object of this name differs.
        """
        if self._index is None and name > self._last:
            self._last = name
            self._names.append(hash(name))
            self._contents.append(content)
        elif self._index_of_all().setdefault(hash(name), content) != content:
            msg = f"Server returned an unexpected response: two different objects are called {name.lstrip('/')}"
            raise SourceError(msg)
        elif len(self._index_of_all()) == self.number:
            return False
        self.number += 1
        return True

    def _index_of_all(self) -> dict[int, int]:
        if self._index is None:
            self._index = dict(zip(self._names, self._contents, strict=True))
        return self._index
