"""The displays of ``check --watch``: a screen, which is redrawn in place, or a pipe."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Sequence
from textwrap import wrap
from typing import Final

import msgspec

from kubectl_spread.cli import output

_ENTER: Final = "\x1b[?1049h\x1b[?25l\x1b[?7l"
"""Saves the content of the screen, hides the cursor, and cuts long lines at the edge."""
_LEAVE: Final = "\x1b[?7h\x1b[?25h\x1b[?1049l"
_HOME: Final = "\x1b[H"
_REST_OF_LINE: Final = "\x1b[K"
_REST_OF_SCREEN: Final = "\x1b[J"
_LEAST_LINES: Final = 4


class Picture(msgspec.Struct, frozen=True):
    """A report to show.

    Attributes:
        head: The time and the changes since the report before, in one line.
        text: Returns the text, as wide as the terminal is now.
        messages: Notes and errors.
    """

    head: str
    text: Callable[[], str]
    messages: Sequence[str]


def is_screen() -> bool:
    """Tell whether stdout is a terminal that can be redrawn."""
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


class Pipe:
    """Prints one report below the other, and messages to stderr."""

    def __init__(self, separated: Callable[[Picture, str], str]) -> None:
        """Separate reports by a function of the picture and its text."""
        self._separated = separated
        self._messages: Sequence[str] = ()

    def show(self, picture: Picture) -> None:
        """Print a report, and to stderr the messages that the last one did not have."""
        for text in picture.messages:
            if text not in self._messages:
                output.note(text)
        self._messages = picture.messages
        output.data(self._separated(picture, picture.text()))

    def lose(self, reason: str) -> None:
        """Print to stderr that the connection is lost."""
        output.note(_lost(reason))

    def regain(self) -> None:
        """Print to stderr that the connection is back."""
        output.note("reconnected")

    def fit(self) -> None:
        """Do nothing: a pipe has no size."""

    def close(self) -> None:
        """Do nothing: the reports stay where they are."""


class Screen:
    """Draws each report over the last one, and leaves the last one below the earlier content of the terminal.

    Nothing is drawn before the first report, so that errors at the beginning stay visible.
    """

    def __init__(self) -> None:
        self._picture: Picture | None = None
        self._size = shutil.get_terminal_size()
        self._lost = ""
        self._stderr_is_seen = sys.stderr.isatty()

    def show(self, picture: Picture) -> None:
        """Draw a report over the last one."""
        if self._picture is None:
            output.data(_ENTER)
        self._print(*(text for text in picture.messages if not self._picture or text not in self._picture.messages))
        self._picture = picture
        self._draw()

    def lose(self, reason: str) -> None:
        """Show that the connection is lost."""
        self._lost = _lost(reason)
        self._print(self._lost)
        self._draw()

    def regain(self) -> None:
        """Show that the connection is back."""
        self._lost = ""
        self._print("reconnected")
        self._draw()

    def fit(self) -> None:
        """Draw the report again if the window has another size."""
        size = shutil.get_terminal_size()
        if size != self._size:
            self._size = size
            self._draw()

    def close(self) -> None:
        """Restore the terminal, and print the last report below its earlier content."""
        if self._picture is not None:
            output.data(_LEAVE + self._picture.text())

    def _draw(self) -> None:
        if self._picture is None:
            return
        messages = [*([self._lost] if self._lost else []), *self._picture.messages]
        above = [
            line for text in (self._picture.head, *messages) for line in wrap(output.safe(text), self._size.columns)
        ]
        output.data(frame([*above, "", *self._picture.text().splitlines()], self._size.lines))

    def _print(self, *texts: str) -> None:
        """Print messages to stderr too, unless stderr is this screen."""
        for text in texts if not self._stderr_is_seen else ():
            output.note(text)


def frame(lines: Sequence[str], height: int) -> str:
    """Return the text that redraws a screen of this height; the last line of the screen stays empty."""
    redrawn = "".join(f"{line}{_REST_OF_LINE}\n" for line in fitted(lines, height - 1))
    return f"{_HOME}{redrawn}{_REST_OF_SCREEN}"


def fitted(lines: Sequence[str], height: int) -> list[str]:
    """Return the lines that fit: of too many the first, a line with the number of missing ones, and the last."""
    room = max(height, _LEAST_LINES)
    if len(lines) <= room:
        return list(lines)
    return [*lines[: room - 2], f"... {len(lines) - room + 1} more lines", lines[-1]]


def _lost(reason: str) -> str:
    return f"the connection is lost, and tried again: {reason}"
