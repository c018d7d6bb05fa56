"""The document of ``recommend``: the change that helps, what each event leaves, and what was tried."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec import UnsetType

from kubectl_spread.kube.api.labels import ZONE
from kubectl_spread.phrases import domains, listed, named, plural
from kubectl_spread.render import about
from kubectl_spread.render.document import AnswerSection, Document, Instruction, Table, written
from kubectl_spread.render.terminal import Cell, Column
from kubectl_spread.report.recommendation import EventLoss, RecommendedEvent, SpreadRecommendation

_COLUMNS: Final = (Column("Event"), Column("Now", fit="wrap", least=16), Column("With the patch", fit="wrap", least=16))
_SHOWN: Final = 4
"""The most tried changes that are named."""


def document(report: SpreadRecommendation) -> Document:
    """Return a report as a document."""
    summary = report.summary
    where = plural(summary.nodes, "node")
    where += f" in {plural(len(summary.zones), 'zone')}" if summary.zones else ""
    subject = f"{named(report.workload.kind, report.workload.name)}, {plural(summary.replicas, 'replica')}, {where}"
    not_enough = _tried(report)
    return Document(
        command="recommend",
        title="Recommendation",
        cluster=about.label(report.cluster),
        header=[*about.identified(report.cluster), subject, *about.autoscaling(summary.not_simulated)],
        headline=_conclusion(report),
        instructions=[*_change(report)],
        tables=[_table(report)],
        sections=[AnswerSection("Tried and not enough", not_enough)] if not_enough else [],
        notes=[*_remarks(report)],
    )


def _table(report: SpreadRecommendation) -> Table:
    """Return what each event leaves now, and with the change."""
    columns = _COLUMNS if not isinstance(report.change, UnsetType) else _COLUMNS[:2]
    rows = []
    for event in report.events:
        patched = "" if isinstance(event.patched, UnsetType) else _cell(report, event, event.patched)
        now = Cell(_cell(report, event, event.now), "" if event.now.survived else "yellow")
        rows.append([Cell(event.event), now, Cell(patched)][: len(columns)])
    return Table("What each event leaves", columns, rows)


def _cell(report: SpreadRecommendation, event: RecommendedEvent, loss: EventLoss) -> str:
    """Return what is left: ``6 of 6``, ``5 at once, 6 after``, ``4 of 6, 2 wait``, ``never ends``."""
    parts = []
    if not isinstance(loss.budget, UnsetType) or (event.survive == "restart" and loss.pending):
        parts.append("never ends")
    at_once = loss.least < loss.running
    if at_once:
        parts.append(f"{loss.least} at once")
    after = f"{loss.running} after" if at_once else f"{loss.running} of {report.summary.replicas}"
    parts.append(after)
    if loss.pending:
        parts.append(f"{loss.pending} {'waits' if loss.pending == 1 else 'wait'}")
    elif loss.not_replaced:
        parts.append(f"{loss.not_replaced} not replaced")
    text = ", ".join(parts)
    if isinstance(loss.domain, UnsetType) or loss.survived:
        return text
    return f"{text} ({domains(ZONE, [loss.domain])})"


def _conclusion(report: SpreadRecommendation) -> str:
    """Return the answer in one sentence."""
    change = report.change
    if isinstance(change, UnsetType):
        if all(event.now.survived for event in report.events):
            return "Nothing to change: it survives all of these events."
        if report.summary.complete:
            return "No change of the workload helps."
        return f"No change that helps was found in time ({plural(len(report.tried), 'change')} tried)."
    lead = "The smallest change that reaches this" if not report.not_reachable else "The change that misses least"
    return f"{lead}: {'; '.join(change.changes)}."


def _tried(report: SpreadRecommendation) -> list[str]:
    """Return the changes that were tried and are not enough, a sentence each."""
    lines = [f"{'; '.join(each.changes)} ({each.event}: {each.why})" for each in report.tried[:_SHOWN]]
    more = len(report.tried) - len(lines)
    return [*lines, *([f"{more} more"] if more else [])]


def _remarks(report: SpreadRecommendation) -> Iterator[str]:
    """Yield the limits of the change, and what is not reachable or not known."""
    if not isinstance(report.change, UnsetType):
        yield from report.change.limits
    unmet = "Not reachable with this cluster" if report.summary.complete else "Not reached so far"
    now = {event.event: event.now.survived for event in report.events}
    events_by_reason: dict[tuple[str, str], list[str]] = {}
    for event in report.not_reachable:
        lead = "No longer survived with the change" if now[event.event] else unmet
        events_by_reason.setdefault((lead, event.why), []).append(event.event)
    for (lead, why), events in events_by_reason.items():
        yield f"{lead}: {listed(events, len(events))}: {why}."
    yield from report.remarks
    if not report.summary.complete:
        yield "There was no time for all changes: give more with --seconds."
    yield from about.not_simulated(report.summary.not_simulated)
    runs = report.summary.runs
    yield f"{plural(runs, 'simulated run')} of each event{'; others may end differently' if runs == 1 else ''}."


def _change(report: SpreadRecommendation) -> Iterator[Instruction]:
    """Yield the commands that make the change, or the lines of YAML, each with its place."""
    if isinstance(report.change, UnsetType):
        return
    yield Instruction(commands=report.change.commands)
    yield from written(report.change.lines)
