"""The report of ``recommend``: the sentences and cells of all its formats, Markdown, and the table that it prints."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec import UnsetType

from kubectl_spread.kube.api.labels import ZONE
from kubectl_spread.phrases import domains, named, plural
from kubectl_spread.render import about, words
from kubectl_spread.render.markdown import escaped
from kubectl_spread.render.markdown import table as markdown_table
from kubectl_spread.render.terminal import Cell, Column, Terminal, between_phrases, hanging
from kubectl_spread.render.terminal import table as terminal_table
from kubectl_spread.report.recommendation import EventLoss, RecommendedEvent, SpreadRecommendation

_INDENT: Final = "  "
TITLES: Final = ("Event", "Now", "With the patch")
_COLUMNS: Final = (Column("EVENT"), Column("NOW", fit="wrap", least=16), Column("WITH THE PATCH", fit="wrap", least=16))
_SHOWN: Final = 4
"""The most tried changes that are named."""


def header(report: SpreadRecommendation) -> list[str]:
    """Return the parts of the header: the cluster, its Kubernetes, and the workload with its places."""
    summary = report.summary
    name = words.safe(named(report.workload.kind, report.workload.name))
    where = plural(summary.nodes, "node")
    where += f" in {plural(len(summary.zones), 'zone')}" if summary.zones else ""
    return [*about.identified(report.cluster), f"{name}, {plural(summary.replicas, 'replica')}, {where}"]


def cell(report: SpreadRecommendation, event: RecommendedEvent, loss: EventLoss) -> str:
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
    return f"{text} ({domains(ZONE, [words.safe(loss.domain)])})"


def rows(report: SpreadRecommendation) -> Iterator[tuple[str, ...]]:
    """Yield the cells of each event: its name, what is left now, and with the change."""
    for event in report.events:
        patched = "" if isinstance(event.patched, UnsetType) else cell(report, event, event.patched)
        yield event.event, cell(report, event, event.now), patched


def conclusion(report: SpreadRecommendation) -> str:
    """Return the answer in one sentence."""
    change = report.change
    if isinstance(change, UnsetType):
        if all(event.now.survived for event in report.events):
            return "Nothing to change: it survives all of these events."
        return "No change of the workload helps."
    lead = "The smallest change that reaches this" if not report.not_reachable else "The change that misses least"
    return f"{lead}: {words.safe('; '.join(change.changes))}."


def tried(report: SpreadRecommendation) -> list[str]:
    """Return the changes that were tried and are not enough, a sentence each."""
    lines = [
        f"{words.safe('; '.join(each.changes))} ({words.safe(each.event)}: {words.safe(each.why)})"
        for each in report.tried[:_SHOWN]
    ]
    more = len(report.tried) - len(lines)
    return [*lines, *([f"{more} more"] if more else [])]


def remarks(report: SpreadRecommendation) -> Iterator[str]:
    """Yield the limits of the change, and what is not reachable or not known."""
    if not isinstance(report.change, UnsetType):
        yield from report.change.limits
    for event in report.not_reachable:
        yield f"Not reachable with this cluster: {words.safe(event.event)}: {words.safe(event.why)}."
    yield from map(words.safe, report.remarks)
    if not report.summary.complete:
        yield "There was no time for all changes: give more with --seconds."
    if left_out := report.summary.not_simulated:
        yield f"Not simulated: {'; '.join(map(words.safe, left_out))}."
    runs = report.summary.runs
    yield f"{plural(runs, 'simulated run')} of each event{'; others may end differently' if runs == 1 else ''}."


def commands(report: SpreadRecommendation) -> list[str]:
    """Return the commands that make the change."""
    return [] if isinstance(report.change, UnsetType) else report.change.commands


def lines(report: SpreadRecommendation) -> Iterator[str]:
    """Yield the lines of YAML that make the change, each with its place."""
    change = report.change
    if isinstance(change, UnsetType) or isinstance(change.lines, UnsetType):
        return
    for each in change.lines:
        yield f"{words.safe(each.file)}:{each.line}: {words.safe(each.action)}"
        yield from (f"    {words.safe(line)}" for line in each.yaml.splitlines())


def markdown(report: SpreadRecommendation) -> str:
    """Return a report as Markdown."""
    parts = ["## Recommendation", " · ".join(map(escaped, header(report)))]
    parts.append(markdown_table(TITLES, rows(report)))
    parts.append(f"**{escaped(conclusion(report))}**")
    if block := [*(f"$ {words.safe(line)}" for line in commands(report)), *lines(report)]:
        parts.append("\n".join(("```console", *block, "```")))
    if not_enough := tried(report):
        parts.append("\n".join(("Tried and not enough:", "", *(f"- {escaped(line)}" for line in not_enough))))
    parts += map(escaped, remarks(report))
    return "\n\n".join(parts) + "\n"


def text(report: SpreadRecommendation, terminal: Terminal) -> str:
    """Return the header, the events, the change with its commands, and what was tried."""
    parts = [between_phrases(_INDENT.join(header(report)), _INDENT, terminal)]
    columns = _COLUMNS if not isinstance(report.change, UnsetType) else _COLUMNS[:2]
    cells = [list(map(Cell, row[: len(columns)])) for row in rows(report)]
    parts.append(terminal_table(columns, cells, terminal))
    answer = hanging(conclusion(report), _INDENT, terminal)
    # A command is one line of any length, so that it can be copied.
    answer += "".join(f"{_INDENT}$ {words.safe(line)}\n" for line in commands(report))
    answer += "".join(f"{_INDENT}{line}\n" for line in lines(report))
    parts.append(answer)
    last = ""
    if not_enough := tried(report):
        last = hanging("Tried and not enough:", _INDENT, terminal)
        last += "".join(hanging(f"{_INDENT}{line}", _INDENT * 2, terminal) for line in not_enough)
    parts.append(last + "".join(hanging(line, _INDENT, terminal) for line in remarks(report)))
    return "\n".join(parts)
