"""The table that ``simulate`` prints."""

from __future__ import annotations

from typing import Final

from kubectl_spread.render import words
from kubectl_spread.render.simulation import figures
from kubectl_spread.render.terminal import Cell, Column, Terminal, between_phrases, hanging, table
from kubectl_spread.report.simulation import SimulatedWorkload, SpreadSimulation

_INDENT: Final = "  "
_COLUMNS: Final = (
    Column("WORKLOAD", fit="middle", least=16),
    Column("RUNNING", "right", short="RUN"),
    Column("LOST", "right"),
    Column("PENDING", "right", short="PEND"),
    Column("SKEW AFTER", fit="end", short="SKEW"),
    Column("WHY", fit="wrap", least=24),
)


def simulation(report: SpreadSimulation, terminal: Terminal, *, wide: bool) -> str:
    """Return the header, the workloads that change (all if ``wide``), the findings and the conclusion."""
    workloads = report.workloads if wide else figures.changed(report)
    with_namespace = figures.several_namespaces(report)
    columns = [*([Column("NAMESPACE", fit="end")] if with_namespace else []), *_COLUMNS]
    parts = [between_phrases(_INDENT.join(figures.header(report)), _INDENT, terminal)]
    if workloads:
        rows = [_row(workload, with_namespace=with_namespace) for workload in workloads]
        parts.append(table(columns, rows, terminal))
    for finding in report.findings:
        first, *others = figures.sentences(finding)
        severity = terminal.styled(finding.severity.value, "red")
        text = hanging(f"{severity} {first}", _INDENT, terminal)
        text += "".join(hanging(f"{_INDENT}{sentence}", _INDENT * 2, terminal) for sentence in others)
        # A command is one line of any length, so that it can be copied.
        text += "".join(f"{_INDENT}$ {words.safe(command)}\n" for command in figures.commands(finding))
        parts.append(text)
    last = [figures.conclusion(report), *figures.remarks(report)]
    parts.append("".join(hanging(sentence, _INDENT, terminal) for sentence in last))
    return "\n".join(parts)


def _row(workload: SimulatedWorkload, *, with_namespace: bool) -> list[Cell]:
    before, after, pending = str(workload.before.running), workload.after.running, workload.after.pending
    return [
        *([Cell(words.safe(workload.namespace))] if with_namespace else []),
        Cell(words.workload(workload.workload)),
        Cell(before if before == after.text else f"{before} to {after.text}", "" if after.min else "red"),
        Cell(str(workload.lost)),
        Cell(pending.text, "red" if pending.max else ""),
        Cell(figures.skews(workload)),
        Cell(figures.why(workload)),
    ]
