"""The errors that a user can act on.

SpreadError            printed as one line on stderr, exit status 2
├── UsageError         options that contradict each other or make no sense
├── SourceError        a file or the cluster could not be read
│   ├── NotFoundError  an object that the user named does not exist
│   └── ForbiddenError the API server does not let this user read a resource
├── DecodeError        a field of an object has the wrong type
└── CombinedError      several of these, one line each
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from kubectl_spread.kube.api.objects import ObjectRef

STDIN: Final = "STDIN"
"""The name of standard input in messages and reports."""


class SpreadError(Exception):
    """An error that the user can act on."""

    @property
    def messages(self) -> tuple[str, ...]:
        """The lines to print."""
        return (str(self),)


class UsageError(SpreadError):
    """Options or arguments that contradict each other or make no sense."""


class SourceError(SpreadError):
    """A file or the cluster could not be read."""


class NotFoundError(SourceError):
    """An object that the user named does not exist."""


class ForbiddenError(SourceError):
    """The API server does not let this user read a resource."""


class Position(msgspec.Struct, frozen=True):
    """The place of an object or a field: the source's name and, if known, its line and column (from 1)."""

    source: str
    line: int | None = None
    column: int | None = None

    def __str__(self) -> str:
        """Return ``file:line``, as compilers print it."""
        return self.source if self.line is None else f"{self.source}:{self.line}"


class DecodeError(SpreadError):
    """A field of a known object has the wrong JSON type."""

    def __init__(
        self, position: Position, subject: str, path: str, problem: str, *, ref: ObjectRef | None = None
    ) -> None:
        """Compose the message from the position, the object, the path of the field, and the problem.

        ``ref`` is the object of a manifest, if its kind and name can be read.
        """
        place = ": ".join(part for part in (subject, path) if part)
        super().__init__(f"{position}: {place}: {problem}" if place else f"{position}: {problem}")
        self.position = position
        self.subject = subject
        self.ref = ref
        self.path = path
        self.problem = problem


class CombinedError(SpreadError):
    """Several errors, such as those of one file."""

    def __init__(self, errors: Iterable[SpreadError]) -> None:
        self._messages = tuple(str(error) for error in errors)
        super().__init__("; ".join(self._messages))

    @property
    def messages(self) -> tuple[str, ...]:
        """The lines to print: one for each error."""
        return self._messages
