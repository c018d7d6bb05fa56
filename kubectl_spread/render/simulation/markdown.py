"""The report of ``simulate`` in Markdown, for comments on pull requests."""

from __future__ import annotations

from collections.abc import Iterator

from kubectl_spread.render import words
from kubectl_spread.render.markdown import escaped, table
from kubectl_spread.render.simulation import figures
from kubectl_spread.report.simulation import SpreadSimulation

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
        rows = [(words.safe(each.namespace), words.workload(each.workload), *figures.cells(each)) for each in workloads]
        yield table(_TITLES, rows)
    if zones := figures.zones(report):
        yield table(_ZONES, [(zone, str(before), after.text) for zone, before, after in zones])
    for finding in report.findings:
        first, *others = figures.sentences(finding)
        yield " ".join((f"**{finding.severity.value}** {escaped(first)}", *map(escaped, others)))
        if commands := figures.commands(finding):
            yield "```console\n" + "\n".join(f"$ {words.safe(command)}" for command in commands) + "\n```"
    yield from map(escaped, figures.remarks(report))
