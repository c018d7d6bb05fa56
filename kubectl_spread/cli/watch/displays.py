"""The displays of ``check --watch``: a screen, which is redrawn, or a pipe."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Sequence
from textwrap import wrap
from typing import Protocol, Self

import msgspec

from kubectl_spread.cli import output
from kubectl_spread.cli.watch import screen


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


class Display(Protocol):
    """A place to show reports, one after the other."""

    def __enter__(self) -> Self:
        """Begin."""

    def __exit__(self, *_: object) -> None:
        """Leave the terminal as it was."""

    def show(self, picture: Picture) -> None:
        """Show a report in place of the last one, or below it."""

    def lose(self, reason: str) -> None:
        """Show that the connection is lost."""

    def regain(self) -> None:
        """Show that the connection is back."""

    def fit(self) -> None:
        """Follow a change of the terminal's size."""


def is_screen() -> bool:
    """Tell whether stdout is a terminal that can be redrawn."""
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


class Pipe:
    """Prints one report below the other."""

    def __init__(self, separated: Callable[[Picture, str], str]) -> None:
        """Separate reports by a function of the picture and its text."""
        self._separated = separated
        self._messages: Sequence[str] = ()

    def __enter__(self) -> Self:
        """Begin; there is nothing to do."""
        return self

    def __exit__(self, *_: object) -> None:
        """End; there is nothing to undo."""

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


class Screen:
    """Draws each report over the last one, and leaves the last one below the earlier content of the terminal."""

    def __init__(self) -> None:
        """Draw nothing yet, so that errors at the beginning stay visible."""
        self._picture: Picture | None = None
        self._size = shutil.get_terminal_size()
        self._lost = ""
        self._stderr_is_seen = sys.stderr.isatty()

    def __enter__(self) -> Self:
        """Begin; the screen changes with the first report."""
        return self

    def __exit__(self, *_: object) -> None:
        """Restore the terminal, and print the last report below its earlier content."""
        if self._picture is not None:
            output.data(screen.LEAVE + self._picture.text())

    def show(self, picture: Picture) -> None:
        """Draw a report over the last one."""
        if self._picture is None:
            output.data(screen.ENTER)
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

    def _draw(self) -> None:
        if self._picture is None:
            return
        messages = [*([self._lost] if self._lost else []), *self._picture.messages]
        above = [
            line for text in (self._picture.head, *messages) for line in wrap(output.safe(text), self._size.columns)
        ]
        lines = [*above, "", *self._picture.text().splitlines()]
        output.data(screen.frame(lines, self._size.lines))

    def _print(self, *texts: str) -> None:
        """Print messages to stderr too, unless stderr is this screen."""
        for text in texts if not self._stderr_is_seen else ():
            output.note(text)


def _lost(reason: str) -> str:
    return f"the connection is lost, and tried again: {reason}"
