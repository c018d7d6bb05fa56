"""``kubectl spread check --watch``: the answer, and again whenever it has changed, until it is interrupted."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Final, NoReturn

import msgspec

from kubectl_spread.app import output
from kubectl_spread.app.baseline import gone
from kubectl_spread.app.checkrun import CheckRun
from kubectl_spread.app.collect import asked_in
from kubectl_spread.app.hints import hints
from kubectl_spread.app.live import Live, flags
from kubectl_spread.cli import formats
from kubectl_spread.cli.displays import Display, Picture, Pipe, Screen, is_screen
from kubectl_spread.errors import SourceError, UsageError
from kubectl_spread.render import structured, table
from kubectl_spread.render.changes import Changes, lasting
from kubectl_spread.render.table import Layout
from kubectl_spread.render.terminal import Terminal
from kubectl_spread.report.model import Report
from kubectl_spread.rules.engine import Baseline
from kubectl_spread.sources.apiserver.watch import WatchedCluster

_JSON: Final = "json"
_NAME: Final = "name"
_TABLES: Final = (formats.TABLE, formats.WIDE)
_FORMS: Final = (_JSON, _NAME, *_TABLES)
_PAUSE: Final = 1.0
"""Seconds between two answers, at least; on a large cluster as long as it takes to find one."""
_TICK: Final = 0.25
"""Seconds until a change of the window's size, or a lost connection, is noticed."""


class View(msgspec.Struct, frozen=True):
    """How answers are shown.

    Attributes:
        wanted: The formats of ``-o``.
        layout: Returns how a table is laid out; None for other formats.
        color: The value of ``--color``.
        baseline: What is neither shown nor counted.
    """

    wanted: Sequence[formats.Output]
    layout: Callable[[CheckRun, str], Layout | None]
    color: str
    baseline: Baseline | None

    @property
    def form(self) -> str:
        """The only format.

        Raises:
            UsageError: there are several, one that cannot be watched, or a file.
        """
        one, *others = self.wanted
        if others or one.file is not None:
            raise UsageError("--watch prints one format to standard output, and writes no files")
        if one.form not in _FORMS:
            raise UsageError(f"--watch: -o {one.form} cannot be watched: choose {', '.join(sorted(_FORMS))}")
        return one.form


def watch(asked: Mapping[str, object], view: View) -> NoReturn:
    """Show the answer whenever it has changed.

    Raises:
        UsageError: options contradict ``--watch``, or each other.
        SourceError: something cannot be read at the beginning, or watched.
    """
    form, question = view.form, asked_in(asked)
    if question.filename:
        raise UsageError("--watch: only a cluster can be watched, not files (-f)")
    display = Screen() if form != _JSON and is_screen() else Pipe(_SEPARATED[form])
    voice = _Voice()
    cluster = WatchedCluster.connect(flags(asked), voice.say, voice.progress)

    def gather(*, again: bool) -> CheckRun:
        found = Live(question, cluster, again=again).gather()
        found.notes += hints(question, found.audit)
        return found

    with display:
        watching = _Watch(gather, lambda found: found.completed(question, view.baseline), cluster, view, display)
        voice.hush()
        watching.go_on()


class _Watch:
    """One view of one cluster, for as long as it is watched."""

    def __init__(
        self,
        gather: Callable[..., CheckRun],
        completed: Callable[[CheckRun], Report],
        cluster: WatchedCluster,
        view: View,
        display: Display,
    ) -> None:
        """Show the first answer."""
        self._gather = gather
        self._completed = completed
        self._cluster = cluster
        self._view = view
        self._display = display
        self._shown: Report | None = None
        self._plain: tuple[str, Sequence[str]] = "", ()
        self._took = 0.0
        self._trouble = self._lost = ""
        self._look()

    def go_on(self) -> NoReturn:
        """Show every other answer."""
        while True:
            # Nobody else looks for cycles, and each answer leaves some behind.
            gc.collect()
            self._rest()
            try:
                self._look()
            except SourceError as error:
                # What was read at the beginning can be read again when the apiserver has recovered.
                self._trouble = str(error)
            else:
                self._trouble = ""

    def _look(self) -> None:
        began = time.monotonic()
        found = self._gather(again=self._shown is not None)
        report = self._completed(found)
        form, layout = self._view.form, self._view.layout(found, self._view.form)
        silent = found.empty and form in formats.FOR_PEOPLE
        messages = _messages(found, report, silent=silent)
        plain = ("" if silent else _text(lasting(report), form, layout, Terminal()), messages)
        if self._shown is None or plain != self._plain:
            changes = Changes(self._shown, report)
            marked, color = layout and msgspec.structs.replace(layout, changes=changes), self._view.color
            head = f"{datetime.now().astimezone().isoformat(timespec='seconds')}  {changes.summary()}".rstrip()
            self._display.show(
                Picture(
                    head=head,
                    text=lambda: "" if silent else _text(report, form, marked, output.terminal(color)),
                    messages=messages,
                )
            )
            self._shown, self._plain = report, plain
        self._took = time.monotonic() - began

    def _rest(self) -> None:
        """Wait until there may be another answer."""
        earliest = time.monotonic() + max(_PAUSE, self._took)
        while True:
            if time.monotonic() < earliest:
                time.sleep(_TICK)
                changed = False
            else:
                changed = self._cluster.wait(_TICK) or bool(self._trouble)
            self._tell(self._cluster.lost or self._trouble)
            self._display.fit()
            if changed:
                return

    def _tell(self, lost: str) -> None:
        """Say once that the connection is lost, and once that it is there again."""
        if lost and not self._lost:
            self._display.lose(lost)
        if self._lost and not lost:
            self._display.regain()
        self._lost = lost


class _Voice:
    """What is said while lists are read: at the beginning only, where somebody waits for it."""

    def __init__(self) -> None:
        self._hushed = False

    def hush(self) -> None:
        """Say nothing more."""
        self._hushed = True

    def say(self, text: str) -> None:
        if not self._hushed:
            output.note(text)

    def progress(self, text: str) -> None:
        if not self._hushed:
            output.progress(text)


def _messages(found: CheckRun, report: Report, *, silent: bool) -> list[str]:
    """Return what is said beside an answer."""
    messages = [*found.notes, *map(output.problem, found.problems)]
    if text := gone(report.summary):
        messages.append(text)
    if silent and not found.problems:
        messages.append(found.nothing_found())
    return messages


def _text(report: Report, form: str, layout: Layout | None, terminal: Terminal) -> str:
    if layout:
        return table.check(report, layout, terminal)
    return structured.names(report) if form == _NAME else structured.json_line(report)


def _behind_a_line(picture: Picture, text: str) -> str:
    return f"--- {picture.head}\n{text}"


def _before_an_empty_line(_picture: Picture, text: str) -> str:
    return f"{text}\n"


def _alone(_picture: Picture, text: str) -> str:
    return text


_SEPARATED: Final[dict[str, Callable[[Picture, str], str]]] = {
    _JSON: _alone,
    _NAME: _before_an_empty_line,
    **dict.fromkeys(_TABLES, _behind_a_line),
}
"""Maps a format to how one answer is told from the next."""
