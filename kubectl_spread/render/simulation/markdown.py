"""The report of ``simulate`` in Markdown, for comments on pull requests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kubectl_spread.render import words
from kubectl_spread.render.markdown import escaped
from kubectl_spread.render.simulation import figures
from kubectl_spread.report.simulation import SimulatedWorkload, SpreadSimulation

_TITLES = ("Namespace", "Workload", "Running", "After", "Lost", "Pending", "Skew after", "Why")
_ZONES = ("Zone", "Pods before", "Pods after")


def simulation(report: SpreadSimulation) -> str:
    """Return a report as Markdown."""
    return "\n\n".join(_parts(report)) + "\n"


def _parts(report: SpreadSimulation) -> Iterator[str]:
    yield "## Simulation"
    yield " · ".join(map(escaped, figures.header(report)))
    yield f"**{escaped(figures.conclusion(report))}**"
    if workloads := figures.changed(report):
        yield _table(_TITLES, [_row(workload) for workload in workloads])
    if zones := figures.zones(report):
        yield _table(_ZONES, [(zone, str(before), after.text) for zone, before, after in zones])
    for finding in report.findings:
        first, *others = figures.sentences(finding)
        yield " ".join((f"**{finding.severity.value}** {escaped(first)}", *map(escaped, others)))
        if commands := figures.commands(finding):
            yield "```console\n" + "\n".join(f"$ {words.safe(command)}" for command in commands) + "\n```"
    yield from map(escaped, figures.remarks(report))


def _row(workload: SimulatedWorkload) -> Sequence[str]:
    return (
        words.safe(workload.namespace),
        words.workload(workload.workload),
        *figures.cells(workload),
    )


def _table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [titles, ["---"] * len(titles), *([escaped(cell) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
