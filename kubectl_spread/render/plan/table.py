"""The table that ``plan`` prints."""

from __future__ import annotations

from typing import Final

from kubectl_spread.render import words
from kubectl_spread.render.plan import figures
from kubectl_spread.render.terminal import Cell, Column, Terminal, between_phrases, hanging, table
from kubectl_spread.report.plan import PlannedEviction, SpreadPlan

_INDENT: Final = "  "
_COLUMNS: Final = (
    Column("WAVE", "right"),
    Column("POD", fit="middle", least=16),
    Column("FROM", fit="end"),
    Column("TO", fit="end"),
    Column("WHY", fit="wrap", least=24),
)


def plan(report: SpreadPlan, terminal: Terminal, command: str) -> str:
    """Return the header, the evictions, the workloads that stay as they are, and the ``command`` of the script."""
    several = figures.several_namespaces(report)
    parts = [between_phrases(_INDENT.join(figures.header(report)), _INDENT, terminal)]
    if report.waves:
        rows = [
            _row(number, eviction, with_namespace=several)
            for number, wave in enumerate(report.waves, 1)
            for eviction in wave.evictions
        ]
        parts.append(table(_COLUMNS, rows, terminal))
    last = [figures.remaining(left, with_namespace=several) for left in report.not_correctable]
    last += figures.remarks(report)
    text = "".join(hanging(sentence, _INDENT, terminal) for sentence in last)
    if report.waves and command:
        # A command is one line of any length, so that it can be copied.
        text += f"$ {words.safe(command)}\n"
    return "\n".join([*parts, *([text] if text else [])])


def _row(number: int, eviction: PlannedEviction, *, with_namespace: bool) -> list[Cell]:
    return [
        Cell(str(number)),
        Cell(figures.pod(eviction, with_namespace=with_namespace)),
        Cell(figures.origin(eviction)),
        Cell(figures.destination(eviction)),
        Cell(words.safe(eviction.why)),
    ]
