"""``kubectl spread check --watch``: print the report, and print it again whenever it changes, until an interrupt."""

from __future__ import annotations

import gc
import os
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from datetime import datetime
from functools import partial
from textwrap import wrap
from typing import Final, NoReturn

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from kubectl_spread.cli import ending, formats, output
from kubectl_spread.errors import SourceError, UsageError
from kubectl_spread.follow.following import Following
from kubectl_spread.render import structured, table
from kubectl_spread.render.table import Layout
from kubectl_spread.render.terminal import Terminal
from kubectl_spread.report.model import Report
from kubectl_spread.rules.engine import Baseline
from kubectl_spread.run.collect import check_options
from kubectl_spread.run.hints import gone, hints, unknown_keys
from kubectl_spread.run.options import CheckOptions
from kubectl_spread.run.output_files import Output
from kubectl_spread.run.requests import flags
from kubectl_spread.run.run import CheckRun
from kubectl_spread.sources.apiserver.watch import WatchedCluster

_INTERVAL: Final = 1.0
"""The least number of seconds between two evaluations."""
_TICK: Final = 0.25
"""Seconds between two looks at the size of the window and the state of the connection."""


class View(msgspec.Struct, frozen=True):
    """The options for the presentation of reports.

    Attributes:
        outputs: The values of ``-o``.
        layout: Returns the layout of a table; None for other formats.
        color: The value of ``--color``.
        baseline: The findings to leave out.
    """

    outputs: Sequence[Output]
    layout: Callable[[CheckRun, str], Layout | None]
    color: str
    baseline: Baseline | None

    @property
    def form(self) -> str:
        """The only format.

        Raises:
            UsageError: There are several formats, one that cannot be watched, or a file.
        """
        form = self.outputs[0].form
        if len(self.outputs) > 1 or self.outputs[0].file is not None:
            raise UsageError("--watch prints one format to standard output, and writes no files")
        watched = sorted(name for name, each in formats.FORMATS.items() if each.watched)
        if form not in watched:
            raise UsageError(f"--watch: -o {form} cannot be watched: choose {', '.join(watched)}")
        return form


def follow(parameters: Mapping[str, object], view: View) -> NoReturn:
    """Show the report, and show it again whenever it changes.

    Raises:
        UsageError: Options contradict ``--watch``, or each other.
        SourceError: A list cannot be read at the beginning, or cannot be watched.
    """
    form, options = view.form, check_options(parameters)
    if options.reads_files:
        raise UsageError("--watch: only a cluster can be watched, not files (-f, -k)")
    display = Screen() if form != "json" and is_screen() else Pipe(partial(_separated, form))
    messages = _StartMessages()
    cluster = WatchedCluster.connect(flags(parameters), messages.note, messages.progress)
    with closing(cluster), closing(display):
        watching = _Watch(options, cluster, view, display)
        messages.stop()
        watching.go_on()


class _Watch:
    """One view of one cluster, while it is watched."""

    def __init__(self, options: CheckOptions, cluster: WatchedCluster, view: View, display: Pipe | Screen) -> None:
        """Show the first report."""
        self._options = options
        self._cluster = cluster
        self._view = view
        self._display = display
        self._last_text: tuple[str, Sequence[str]] | None = None
        self._following = Following(options, cluster, interval=_INTERVAL, events=True)
        self._trouble = self._reported_trouble = ""
        self._look()

    def go_on(self) -> NoReturn:
        """Show all later reports."""
        while True:
            # The automatic collection is off, and each report leaves cycles behind.
            gc.collect()
            self._rest()
            try:
                self._look()
            except SourceError as error:
                # The first report worked, so that this one works too when the API server has recovered.
                self._trouble = str(error)
            else:
                self._trouble = ""

    def _look(self) -> None:
        with self._following.evaluation() as run:
            run.notes += hints(self._options, run.audit)
            run.problems += unknown_keys(self._options, run.audit.snapshot.nodes, listed=run.nodes == "listed")
            self._show(run)

    def _show(self, run: CheckRun) -> None:
        report = run.report(self._view.baseline)
        form, layout = self._view.form, self._view.layout(run, self._view.form)
        silent = run.empty and formats.FORMATS[form].silent
        messages = _messages(run, report, silent=silent)
        text = ("" if silent else _text(lasting(report), form, layout, Terminal()), messages)
        if text != self._last_text:
            self._display.show(
                Picture(
                    time=datetime.now().astimezone().isoformat(timespec="seconds"),
                    text=lambda: "" if silent else _text(report, form, layout, output.terminal(self._view.color)),
                    messages=messages,
                )
            )
            self._last_text = text

    def _rest(self) -> None:
        """Wait until the report may have changed."""
        while not self._following.due:
            ending.exit_if_signalled()
            self._following.wait(_TICK)
            self._report_connection(self._cluster.lost or self._trouble)
            self._display.fit()

    def _report_connection(self, trouble: str) -> None:
        """Show once that the connection is lost, and once that it is back."""
        if trouble and not self._reported_trouble:
            self._display.lose(trouble)
        if self._reported_trouble and not trouble:
            self._display.regain()
        self._reported_trouble = trouble


class _StartMessages:
    """Prints messages about reading until the first report is there; nobody waits for the later ones."""

    def __init__(self) -> None:
        self._stopped = False

    def stop(self) -> None:
        """Print no more messages."""
        self._stopped = True

    def note(self, text: str) -> None:
        if not self._stopped:
            output.note(text)

    def progress(self, text: str) -> None:
        if not self._stopped:
            output.progress(text)


def _messages(run: CheckRun, report: Report, *, silent: bool) -> list[str]:
    messages = [*run.notes, *map(output.problem, run.problems)]
    if text := gone(report.summary):
        messages.append(text)
    if silent and not run.problems:
        messages.append(run.nothing_found())
    return messages


def _text(report: Report, form: str, layout: Layout | None, terminal: Terminal) -> str:
    if layout:
        return table.check(report, layout, terminal)
    return structured.names(report) if form == "name" else structured.json_line(report)


def lasting(report: Report) -> Report:
    """Return a report without the time and the lists' revisions, which change even if the cluster does not."""
    return replace(report, cluster=replace(report.cluster, read_at=UNSET, resource_versions={}))


def _separated(form: str, picture: Picture, text: str) -> str:
    """Return the text of a report, separated from the report before or after it."""
    match form:
        case "json":
            return text
        case "name":
            return f"{text}\n"
    return f"--- {picture.time}\n{text}"


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
        time: When it was made.
        text: Returns the text, as wide as the terminal is now.
        messages: Notes and errors.
    """

    time: str
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
        self._stderr_is_seen = output.is_seen()

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
            line for text in (self._picture.time, *messages) for line in wrap(output.safe(text), self._size.columns)
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
