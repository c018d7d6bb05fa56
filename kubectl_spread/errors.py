"""The errors that a user can act on.

SpreadError            printed as one line on stderr, exit status 2
├── UsageError         options that contradict each other or make no sense
├── SourceError        a file or the cluster could not be read
│   ├── NotFoundError  an object that the user named does not exist
│   └── ForbiddenError the API server does not let this user read a resource
├── DecodeError        a field of an object has the wrong type
└── CombinedError      several of these, one line each

A fault is another error, a bug of this program. Each costs one part of an answer, and a line reports it.
"""

from __future__ import annotations

import re
import traceback
from collections.abc import Callable, Iterable
from typing import Final, TypeVar

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


_T = TypeVar("_T")
_PACKAGE: Final = __name__.partition(".")[0]
_SEPARATOR: Final = re.compile(r"[/\\]")
ISSUES: Final = "https://github.com/kubectl-spread/kubectl-spread/issues"
REPORT: Final = f"run the command again with -v and report the traceback at {ISSUES}"
"""What a user does about a bug."""


class Fault(msgspec.Struct, frozen=True):
    """An unexpected error, and the part of an answer that is missing because of it, in words."""

    missing: str
    error: Exception

    def __str__(self) -> str:
        """Return the line to print."""
        return f"{self.missing}: {bug(self.error)}"


class Faults(list[Fault]):
    """The faults of one answer."""

    def guard(self, missing: Callable[[], str], compute: Callable[[], _T], default: _T) -> _T:
        """Return the result of ``compute``, or a default if it raises an unexpected error, which is added.

        This is the only place where an unexpected error does not end the command.

        Args:
            missing: Returns which part of the answer is missing then, in words.
            compute: Returns that part.
            default: The part where there was an error.
        """
        try:
            return compute()
        except MemoryError:
            raise
        except Exception as error:  # noqa: BLE001 - one part of an answer must not cost all others
            self.append(Fault(missing(), error))
            return default


def bug(error: Exception) -> str:
    """Return the error in one line, without its message, which may have secrets."""
    return f"unexpected {type(error).__name__}{_place(error)}; this is a bug: {REPORT}"


def _place(error: Exception) -> str:
    """Return the line of this package that raised the error, such as `` at sources/oidc.py:93``."""
    for frame, line in reversed(list(traceback.walk_tb(error.__traceback__))):
        package, *rooms = str(frame.f_globals.get("__package__")).split(".")
        if package == _PACKAGE:
            return f" at {'/'.join([*rooms, _SEPARATOR.split(frame.f_code.co_filename)[-1]])}:{line}"
    return ""
