"""The last handler: prints an error that no other code expects as one line on stderr, without a traceback."""

from __future__ import annotations

import re
import traceback
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

import click

from kubectl_spread.cli import output
from kubectl_spread.cli.help import Option
from kubectl_spread.errors import REPORT, bug

if TYPE_CHECKING:
    from kubectl_spread.errors import Fault

_VERBOSE: Final = re.compile(r"(?<= )(?:--verbose|--v|-[A-Za-z]*v[A-Za-z]*)(?:[ =]?(\d+)|=[tT]\w*)?(?= )")
_VERBOSE_KEY: Final = f"{__name__}.verbose"
_NO_MEMORY: Final = ("can't start new thread", "failed to map segment", "annot allocate memory")
"""Parts of other messages about a lack of memory: of Python, of the loader of libraries, and of the system."""
reported: list[Exception] = []
"""The errors that were printed. A lack of memory also makes the end of the program fail."""


def _note_verbose(context: click.Context, _option: click.Parameter, value: object) -> None:
    context.meta[_VERBOSE_KEY] = value


option: Final = Option(
    ["-v", "--verbose"],
    is_flag=True,
    expose_value=False,
    callback=_note_verbose,
    help="Print the traceback of an unexpected error.",
)
"""An option of every command. ``report`` searches the arguments for it, as they may not be parsed yet."""


class EscapedError(Exception):
    """Carries an error, its cause, past click, which would end the program with exit status 1."""


def report(error: Exception, arguments: Sequence[str]) -> None:
    """Print the error in one line, after its traceback if the arguments have ``--verbose``."""
    if isinstance(error, EscapedError) and isinstance(error.__cause__, Exception):
        error = error.__cause__
    if is_verbose(arguments):
        _trace(error)
    output.error(text(error))
    reported.append(error)


def trace(context: click.Context, faults: Iterable[Fault]) -> None:
    """Print the traceback of each fault if the command has ``--verbose``."""
    for fault in faults if context.meta.get(_VERBOSE_KEY) else ():
        _trace(fault.error)


def _trace(error: Exception) -> None:
    for line in "".join(traceback.format_exception(error)).splitlines():
        output.note(line)


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
        return f"{file}{error.strerror.lower()} (unexpected; {REPORT})"
    return bug(error)
