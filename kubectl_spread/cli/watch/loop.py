"""``kubectl spread check --watch``: print the report, and print it again whenever it changes, until an interrupt."""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from datetime import datetime
from functools import partial
from typing import Final, NoReturn

import msgspec

from kubectl_spread.cli import formats, output
from kubectl_spread.cli.watch.displays import Picture, Pipe, Screen, is_screen
from kubectl_spread.errors import SourceError, UsageError
from kubectl_spread.follow.following import Following
from kubectl_spread.render import structured
from kubectl_spread.render.screen import table
from kubectl_spread.render.screen.changes import Changes, lasting
from kubectl_spread.render.screen.table import Layout
from kubectl_spread.render.terminal import Terminal
from kubectl_spread.report.model import Report
from kubectl_spread.rules.engine import Baseline
from kubectl_spread.run.checkrun import CheckRun
from kubectl_spread.run.collect import check_options
from kubectl_spread.run.hints import gone, hints, unknown_keys
from kubectl_spread.run.live import flags
from kubectl_spread.run.options import CheckOptions
from kubectl_spread.run.output_files import Output
from kubectl_spread.sources.apiserver.watch import WatchedCluster

_FORMS: Final = ("json", "name", formats.TABLE, formats.WIDE)
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
        if form not in _FORMS:
            raise UsageError(f"--watch: -o {form} cannot be watched: choose {', '.join(sorted(_FORMS))}")
        return form


def watch(parameters: Mapping[str, object], view: View) -> NoReturn:
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
        self._last: Report | None = None
        self._last_text: tuple[str, Sequence[str]] = "", ()
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
        report = run.report(self._options, self._view.baseline)
        form, layout = self._view.form, self._view.layout(run, self._view.form)
        silent = run.empty and form in formats.FOR_PEOPLE
        messages = _messages(run, report, silent=silent)
        text = ("" if silent else _text(lasting(report), form, layout, Terminal()), messages)
        if self._last is None or text != self._last_text:
            changes = Changes(self._last, report)
            marked, color = layout and msgspec.structs.replace(layout, changes=changes), self._view.color
            head = f"{datetime.now().astimezone().isoformat(timespec='seconds')}  {changes.summary()}".rstrip()
            self._display.show(
                Picture(
                    head=head,
                    text=lambda: "" if silent else _text(report, form, marked, output.terminal(color)),
                    messages=messages,
                )
            )
            self._last, self._last_text = report, text

    def _rest(self) -> None:
        """Wait until the report may have changed."""
        while not self._following.due:
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
    """Return the messages of a run."""
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


def _separated(form: str, picture: Picture, text: str) -> str:
    """Return the text of a report, separated from the report before or after it."""
    match form:
        case "json":
            return text
        case "name":
            return f"{text}\n"
    return f"--- {picture.head}\n{text}"
