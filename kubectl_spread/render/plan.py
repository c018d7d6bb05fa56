"""The report of ``plan``: the sentences and cells of all its formats, Markdown, and the table that it prints."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec import UnsetType

from kubectl_spread.phrases import named, plural
from kubectl_spread.render import about, words
from kubectl_spread.render.markdown import escaped
from kubectl_spread.render.markdown import table as markdown_table
from kubectl_spread.render.terminal import Cell, Column, Terminal, between_phrases, hanging
from kubectl_spread.render.terminal import table as terminal_table
from kubectl_spread.report.plan import PlannedEviction, SpreadPlan

_TITLES: Final = ("Wave", "Pod", "From", "To", "Why")
_INDENT: Final = "  "
_COLUMNS: Final = (
    Column("WAVE", "right"),
    Column("POD", fit="middle", least=16),
    Column("FROM", fit="end"),
    Column("TO", fit="end"),
    Column("WHY", fit="wrap", least=24),
)
_LISTED: Final = 3
"""With more domains than this, their number is printed."""


def header(report: SpreadPlan) -> list[str]:
    """Return the parts of the header: the cluster, its Kubernetes, and what the plan does."""
    return [*about.identified(report.cluster), conclusion(report)]


def conclusion(report: SpreadPlan) -> str:
    """Return the answer in a few words."""
    summary = report.summary
    if not summary.uneven:
        return "nothing to correct"
    uneven = f"{summary.corrected} of {plural(summary.uneven, 'uneven workload')}"
    if not summary.evictions:
        return f"no eviction corrects any of {plural(summary.uneven, 'uneven workload')}"
    verb = "corrects" if summary.evictions == 1 else "correct"
    return f"{plural(summary.evictions, 'eviction')} in {plural(summary.waves, 'wave')} {verb} {uneven}"


def _rows(report: SpreadPlan) -> Iterator[tuple[str, ...]]:
    """Yield the cells of each eviction: wave, pod, from, to, and why."""
    several = _several_namespaces(report)
    for number, wave in enumerate(report.waves, 1):
        for eviction in wave.evictions:
            pod = words.safe(eviction.pod)
            yield (
                str(number),
                f"{words.safe(eviction.namespace)}/{pod}" if several else pod,
                words.value(eviction.domain.value),
                destination(eviction),
                words.safe(eviction.why),
            )


def _several_namespaces(report: SpreadPlan) -> bool:
    return isinstance(report.cluster.namespace, UnsetType)


def destination(eviction: PlannedEviction) -> str:
    """Return the domains to which a replacement may go: ``b or c``; the number of many."""
    if len(eviction.to) > _LISTED:
        return f"any of {len(eviction.to)}"
    return " or ".join(words.value(value) for value in eviction.to)


def remaining(report: SpreadPlan) -> list[str]:
    """Return why workloads are not corrected, a sentence each."""
    sentences = []
    for left in report.not_correctable:
        name = words.safe(named(left.workload.kind, left.workload.name))
        whose = f"{words.safe(left.namespace)}: {name}" if _several_namespaces(report) else name
        sentences.append(f"Not correctable: {whose}, because {words.safe(left.why)}.")
    return sentences


def remarks(report: SpreadPlan) -> list[str]:
    """Return what the simulation leaves out."""
    left_out = report.summary.not_simulated
    if not (report.waves or report.summary.unknown):
        return []
    return [f"Not simulated: {'; '.join(map(words.safe, left_out))}."] if left_out else []


def markdown(report: SpreadPlan) -> str:
    """Return a report as Markdown."""
    parts = ["## Plan", " · ".join(map(escaped, header(report)))]
    if report.waves:
        parts.append(markdown_table(_TITLES, _rows(report)))
    parts += map(escaped, [*remaining(report), *remarks(report)])
    return "\n\n".join(parts) + "\n"


def text(report: SpreadPlan, terminal: Terminal, command: str) -> str:
    """Return the header, the evictions, the workloads that stay as they are, and the ``command`` of the script."""
    parts = [between_phrases(_INDENT.join(header(report)), _INDENT, terminal)]
    if report.waves:
        parts.append(terminal_table(_COLUMNS, [list(map(Cell, row)) for row in _rows(report)], terminal))
    last = "".join(hanging(sentence, _INDENT, terminal) for sentence in [*remaining(report), *remarks(report)])
    if report.waves and command:
        # A command is one line of any length, so that it can be copied.
        last += f"$ {words.safe(command)}\n"
    return "\n".join([*parts, *([last] if last else [])])
