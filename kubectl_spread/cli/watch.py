"""``kubectl spread check --watch``: print the report, and print it again whenever it changes, until an interrupt."""

from __future__ import annotations

import gc
import os
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from datetime import datetime
from textwrap import wrap
from typing import Final, NoReturn

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from kubectl_spread.cli import ending, formats, output
from kubectl_spread.cli.formats import Output
from kubectl_spread.errors import SourceError, UsageError
from kubectl_spread.follow.following import Following
from kubectl_spread.render import structured, table
from kubectl_spread.render.table import Layout
from kubectl_spread.render.terminal import Terminal
from kubectl_spread.report.model import Report
from kubectl_spread.rules.engine import Baseline
from kubectl_spread.run import hints
from kubectl_spread.run.options import check_options, options_of
from kubectl_spread.run.run import CheckRun
from kubectl_spread.sources.apiserver.watch import WatchedCluster
from kubectl_spread.sources.auth.connection import ConnectionFlags

_INTERVAL: Final = 1.0
"""The least number of seconds between two evaluations."""
_TICK: Final = 0.25
"""Seconds between two looks at the size of the window and the state of the connection."""


def follow(
    parameters: Mapping[str, object],
    outputs: Sequence[Output],
    color: str,
    layout_of: Callable[[CheckRun, str], Layout],
    baseline: Baseline | None,
) -> NoReturn:
    """Show the report, and show it again whenever it changes.

    Args:
        parameters: The values of the command's options, by parameter name.
        outputs: The values of ``-o``.
        color: The value of ``--color``.
        layout_of: Returns the layout of a table for a run and a format.
        baseline: The findings to leave out.

    Raises:
        UsageError: Options contradict ``--watch``, or each other.
        SourceError: A list cannot be read at the beginning, or cannot be watched.
    """
    form, options = _form(outputs), check_options(parameters)
    if options.reads_files:
        raise UsageError("--watch: only a cluster can be watched, not files (-f, -k)")
    display = Screen() if form != "json" and is_screen() else Pipe(form)
    cluster = WatchedCluster.connect(options_of(parameters, ConnectionFlags), display.note, display.progress)
    with closing(cluster), closing(display):
        following = Following(options, cluster, interval=_INTERVAL, events=True)
        last_text: tuple[str, Sequence[str]] | None = None

        def look() -> None:
            nonlocal last_text
            with following.evaluation() as run:
                hints.add(run)
                picture = _picture(run, run.report(baseline), form, layout_of, color)
                if picture.lasting != last_text:
                    display.show(picture)
                    last_text = picture.lasting

        look()
        trouble = ""
        while True:
            # The automatic collection is off, and each report leaves cycles behind.
            gc.collect()
            while not following.due:
                ending.exit_if_signalled()
                following.wait(_TICK)
                display.tell_connection(cluster.lost or trouble)
                display.fit()
            try:
                look()
                trouble = ""
            except SourceError as error:
                # The first report worked, so that this one works too when the API server has recovered.
                trouble = str(error)


def _form(outputs: Sequence[Output]) -> str:
    """Return the only format.

    Raises:
        UsageError: There are several formats, one that cannot be watched, or a file.
    """
    first, *others = outputs
    if others or first.file is not None:
        raise UsageError("--watch prints one format to standard output, and writes no files")
    watched = sorted(name for name, each in formats.FORMATS.items() if each.watched)
    if first.form not in watched:
        raise UsageError(f"--watch: -o {first.form} cannot be watched: choose {', '.join(watched)}")
    return first.form


class Picture(msgspec.Struct, frozen=True):
    """A report to show.

    Attributes:
        time: When it was made.
        text: Returns the text, as wide as the terminal is now.
        messages: Notes and errors.
        lasting: The text and the messages, without what changes even if the cluster does not.
    """

    time: str
    text: Callable[[], str]
    messages: Sequence[str]
    lasting: tuple[str, Sequence[str]]


def _picture(
    run: CheckRun, report: Report, form: str, layout_of: Callable[[CheckRun, str], Layout], color: str
) -> Picture:
    silent = run.empty and formats.FORMATS[form].silent
    layout = layout_of(run, form) if form in formats.TABLES else None

    def text(answer: Report, terminal: Terminal) -> str:
        if layout and not silent:
            return table.check(answer, layout, terminal)
        return "" if silent else structured.names(answer) if form == "name" else structured.json_line(answer)

    messages = [*run.notes, *map(output.problem, run.problems), *filter(None, [hints.gone(report.summary)])]
    messages += [run.nothing_found()] if silent and not run.problems else []
    return Picture(
        time=datetime.now().astimezone().isoformat(timespec="seconds"),
        text=lambda: text(report, output.terminal(color)),
        messages=messages,
        lasting=(text(lasting(report), Terminal()), messages),
    )


def lasting(report: Report) -> Report:
    """Return a report without the time and the lists' revisions, which change even if the cluster does not."""
    return replace(report, cluster=replace(report.cluster, read_at=UNSET, resource_versions={}))


_ENTER: Final = "\x1b[?1049h\x1b[?25l\x1b[?7l"
"""Saves the content of the screen, hides the cursor, and cuts long lines at the edge."""
_LEAVE: Final = "\x1b[?7h\x1b[?25h\x1b[?1049l"
_HOME: Final = "\x1b[H"
_REST_OF_LINE: Final = "\x1b[K"
_REST_OF_SCREEN: Final = "\x1b[J"
_LEAST_LINES: Final = 4


def is_screen() -> bool:
    """Tell whether stdout is a terminal that can be redrawn."""
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


class Pipe:
    """Prints one report below the other, and messages to stderr."""

    def __init__(self, form: str = formats.TABLE) -> None:
        """Separate the reports as those of this format are."""
        self._form = form
        self._picture: Picture | None = None
        self._lost = ""

    def note(self, text: str) -> None:
        """Print a message about reading, until the first report is there; nobody waits for the later ones."""
        if self._picture is None:
            output.note(text)

    def progress(self, text: str) -> None:
        """Show the progress of reading, until the first report is there."""
        if self._picture is None:
            output.progress(text)

    def show(self, picture: Picture) -> None:
        """Show a report, and to stderr the messages that the last one did not have."""
        self._say(*(text for text in picture.messages if not self._picture or text not in self._picture.messages))
        self._picture = picture
        self._draw()

    def tell_connection(self, trouble: str) -> None:
        """Show once that the connection is lost, and once that it is back."""
        was_lost, self._lost = self._lost, f"the connection is lost, and tried again: {trouble}" if trouble else ""
        if bool(was_lost) != bool(trouble):
            self._say(self._lost or "reconnected")

    def fit(self) -> None:
        """Do nothing: a pipe has no size."""

    def close(self) -> None:
        """Do nothing: the reports stay where they are."""

    def _say(self, *texts: str) -> None:
        for text in texts:
            output.note(text)

    def _draw(self) -> None:
        if self._picture:
            before = "" if self._form in ("json", "name") else f"--- {self._picture.time}\n"
            after = "\n" if self._form == "name" else ""
            output.data(before + self._picture.text() + after)


class Screen(Pipe):
    """Draws each report over the last one, and leaves the last one below the earlier content of the terminal.

    Nothing is drawn before the first report, so that errors at the beginning stay visible.
    """

    def __init__(self) -> None:
        super().__init__()
        self._size = shutil.get_terminal_size()

    def show(self, picture: Picture) -> None:
        """Draw a report over the last one."""
        if self._picture is None:
            output.data(_ENTER)
        super().show(picture)

    def tell_connection(self, trouble: str) -> None:
        """Show on the screen that the connection is lost."""
        before = self._lost
        super().tell_connection(trouble)
        if bool(before) != bool(self._lost):
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

    def _say(self, *texts: str) -> None:
        """Print messages to stderr too, unless stderr is this screen."""
        if not output.is_seen():
            super()._say(*texts)

    def _draw(self) -> None:
        if self._picture is None:
            return
        messages = [*filter(None, [self._lost]), *self._picture.messages]
        above = [
            line for text in (self._picture.time, *messages) for line in wrap(output.safe(text), self._size.columns)
        ]
        output.data(frame([*above, "", *self._picture.text().splitlines()], self._size.lines))


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
