"""Everything that can go wrong in a way the user can act on.

SpreadError            printed as one line on stderr, exit status 2
├── UsageError         options that contradict each other or make no sense
├── SourceError        a file or the cluster could not be read
│   ├── NotFoundError  an object that was asked for does not exist
│   └── ForbiddenError the apiserver does not let this user read a resource
└── DecodeError        an object is not what it says it is
"""

from __future__ import annotations

from typing import Final

import msgspec

STDIN: Final = "STDIN"
"""What standard input is called where a file would be named."""


class SpreadError(Exception):
    """Anything the user can act on."""


class UsageError(SpreadError):
    """Options or arguments that contradict each other or make no sense."""


class SourceError(SpreadError):
    """A file or the cluster could not be read."""


class NotFoundError(SourceError):
    """An object that was asked for by name does not exist."""


class ForbiddenError(SourceError):
    """The apiserver does not let this user read a resource."""


class Position(msgspec.Struct, frozen=True):
    """Where an object or a field was read: the source's name and, when known, its line and column (from 1)."""

    source: str
    line: int | None = None
    column: int | None = None

    def __str__(self) -> str:
        """Return ``file:line``, as compilers print it."""
        return self.source if self.line is None else f"{self.source}:{self.line}"


class DecodeError(SpreadError):
    """A field of a known object has the wrong JSON type."""

    def __init__(self, position: Position, subject: str, path: str, problem: str) -> None:
        """Say where (``position``), which object, which field, and what is wrong with it."""
        place = ": ".join(part for part in (subject, path) if part)
        super().__init__(f"{position}: {place}: {problem}" if place else f"{position}: {problem}")
        self.position = position
        self.subject = subject
        self.path = path
        self.problem = problem
