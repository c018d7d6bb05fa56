"""Where ``check --watch`` shows one answer after the other: a screen that is drawn over, or a pipe."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Sequence
from textwrap import wrap
from typing import Protocol, Self

import msgspec

from kubectl_spread.app import output
from kubectl_spread.render import screen


class Picture(msgspec.Struct, frozen=True):
    """One answer.

    Attributes:
        head: When it was the answer, and what was otherwise before; one line.
        text: Returns the answer, as wide as the terminal is now.
        messages: What is said beside it.
    """

    head: str
    text: Callable[[], str]
    messages: Sequence[str]


class Display(Protocol):
    """Where answers are shown, one after the other."""

    def __enter__(self) -> Self:
        """Begin."""

    def __exit__(self, *_: object) -> None:
        """Leave the terminal as it was."""

    def show(self, picture: Picture) -> None:
        """Show an answer in the place of the last one, or below it."""

    def lose(self, reason: str) -> None:
        """Say that the connection is lost."""

    def regain(self) -> None:
        """Say that the connection is there again."""

    def fit(self) -> None:
        """Follow a change of the terminal's size."""


def is_screen() -> bool:
    """Tell whether stdout is a terminal that can be drawn over."""
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


class Pipe:
    """Prints one answer below the other."""

    def __init__(self, separated: Callable[[Picture, str], str]) -> None:
        """Print what ``separated`` makes of an answer and its text."""
        self._separated = separated
        self._messages: Sequence[str] = ()

    def __enter__(self) -> Self:
        """Begin; there is nothing to do."""
        return self

    def __exit__(self, *_: object) -> None:
        """End; there is nothing to undo."""

    def show(self, picture: Picture) -> None:
        """Print an answer, and on stderr what was not said beside the last one."""
        for text in picture.messages:
            if text not in self._messages:
                output.note(text)
        self._messages = picture.messages
        output.data(self._separated(picture, picture.text()))

    def lose(self, reason: str) -> None:
        """Say on stderr that the connection is lost."""
        output.note(_lost(reason))

    def regain(self) -> None:
        """Say on stderr that it is there again."""
        output.note("the connection is there again")

    def fit(self) -> None:
        """Do nothing: a pipe has no size."""


class Screen:
    """Draws one answer over the other, and leaves the last one below what was on the terminal before."""

    def __init__(self) -> None:
        """Draw nothing yet, so that what goes wrong at the beginning is not hidden."""
        self._picture: Picture | None = None
        self._size = shutil.get_terminal_size()
        self._lost = ""
        self._stderr_is_seen = sys.stderr.isatty()

    def __enter__(self) -> Self:
        """Begin; the screen changes with the first answer."""
        return self

    def __exit__(self, *_: object) -> None:
        """Show what was on the terminal before, and below it the last answer."""
        if self._picture is not None:
            output.data(screen.LEAVE + self._picture.text())

    def show(self, picture: Picture) -> None:
        """Draw an answer over the last one."""
        if self._picture is None:
            output.data(screen.ENTER)
        self._tell(*(text for text in picture.messages if not self._picture or text not in self._picture.messages))
        self._picture = picture
        self._draw()

    def lose(self, reason: str) -> None:
        """Show that the connection is lost."""
        self._lost = _lost(reason)
        self._tell(self._lost)
        self._draw()

    def regain(self) -> None:
        """Show that the connection is there again."""
        self._lost = ""
        self._tell("the connection is there again")
        self._draw()

    def fit(self) -> None:
        """Draw the answer again where the window has another size."""
        size = shutil.get_terminal_size()
        if size != self._size:
            self._size = size
            self._draw()

    def _draw(self) -> None:
        if self._picture is None:
            return
        said = [*([self._lost] if self._lost else []), *self._picture.messages]
        above = [line for text in (self._picture.head, *said) for line in wrap(output.safe(text), self._size.columns)]
        lines = [*above, "", *self._picture.text().splitlines()]
        output.data(screen.frame(lines, self._size.lines))

    def _tell(self, *texts: str) -> None:
        """Print on stderr what stands on the screen too, unless that is where it would be seen."""
        for text in texts if not self._stderr_is_seen else ():
            output.note(text)


def _lost(reason: str) -> str:
    return f"the connection is lost, and tried again: {reason}"
