"""Faults: bugs of this program, each of which costs one part of an answer, and the line that reports a bug."""

from __future__ import annotations

import re
import traceback
from collections.abc import Callable
from typing import Final, TypeVar

import msgspec

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
