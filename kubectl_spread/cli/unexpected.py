"""The last handler: prints an error that no other code expects as one line on stderr, without a traceback."""

from __future__ import annotations

import re
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from kubectl_spread.cli import output
from kubectl_spread.cli.help import Option

_PACKAGE: Final = Path(__file__).parents[1]
_VERBOSE: Final = re.compile(r"(?<= )(?:--verbose|--v|-[A-Za-z]*v[A-Za-z]*)(?:[ =]?(\d+)|=[tT]\w*)?(?= )")
ISSUES: Final = "https://github.com/kubectl-spread/kubectl-spread/issues"
_HINT: Final = f"run the command again with -v and report the traceback at {ISSUES}"

_NO_MEMORY: Final = ("can't start new thread", "failed to map segment", "annot allocate memory")
"""Parts of other messages about a lack of memory: of Python, of the loader of libraries, and of the system."""
reported: list[Exception] = []
"""The errors that were printed. A lack of memory also makes the end of the program fail."""

option: Final = Option(
    ["-v", "--verbose"], is_flag=True, expose_value=False, help="Print the traceback of an unexpected error."
)
"""An option of every command. ``report`` searches the arguments for it, as they may not be parsed yet."""


class EscapedError(Exception):
    """Carries an error, its cause, past click, which would end the program with exit status 1."""


def report(error: Exception, arguments: Sequence[str]) -> None:
    """Print the error in one line, after its traceback if the arguments have ``--verbose``."""
    if isinstance(error, EscapedError) and isinstance(error.__cause__, Exception):
        error = error.__cause__
    if is_verbose(arguments):
        for line in "".join(traceback.format_exception(error)).splitlines():
            output.note(line)
    output.error(text(error))
    reported.append(error)


def is_verbose(arguments: Sequence[str]) -> bool:
    """Tell whether the arguments have ``--verbose``, in a form that ``go_flags`` reads."""
    words = " ".join(arguments)
    return any(int(level or 1) for level in _VERBOSE.findall(f" {words} "))


def text(error: Exception) -> str:
    """Return the line to print, without the message of the error, which may have secrets."""
    if isinstance(error, MemoryError) or any(part in str(error) for part in _NO_MEMORY):
        return "there is not enough memory: check fewer objects at once, or set a smaller --chunk-size"
    if isinstance(error, OSError) and error.strerror:
        file = "" if error.filename is None else f"{error.filename}: "
        return f"{file}{error.strerror.lower()} (unexpected; {_HINT})"
    return f"unexpected {type(error).__name__}{_place(error)}; this is a bug: {_HINT}"


def _place(error: Exception) -> str:
    """Return the line of this package that raised the error, such as `` at sources/oidc.py:93``."""
    for frame in reversed(list(traceback.walk_tb(error.__traceback__))):
        file = Path(frame[0].f_code.co_filename)
        if file.is_relative_to(_PACKAGE):
            return f" at {file.relative_to(_PACKAGE)}:{frame[1]}"
    return ""
