"""The report of ``simulate`` as one HTML page, which loads nothing and runs no script."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from kubectl_spread.phrases import capitalized
from kubectl_spread.render import about, words
from kubectl_spread.render.html import PAGES, policy, source
from kubectl_spread.render.simulation import figures
from kubectl_spread.report.simulation import SimulatedWorkload, SimulationFinding, SpreadSimulation


class _Advice(msgspec.Struct, frozen=True):
    """A finding: its severity, its sentences and commands."""

    severity: str
    sentences: Sequence[str]
    commands: Sequence[str]


class _Bar(msgspec.Struct, frozen=True):
    """A zone: its pods before and after the events, and both as shares of the fullest zone, in percent."""

    name: str
    before: int
    after: str
    before_share: int
    after_share: int


def page(report: SpreadSimulation) -> str:
    """Return a report as an HTML document."""
    style = source("page.css") + source("domains.css") + source("simulation.css")
    return PAGES.get_template("simulation.html").render(
        policy=policy(style, ""),
        style=style,
        cluster=about.label(report.cluster),
        header=figures.header(report),
        headline=capitalized(figures.conclusion(report)),
        zones=_bars(report),
        findings=[_advice(finding) for finding in report.findings],
        workloads=[_cells(workload) for workload in figures.changed(report)],
        marked=[bool(workload.after.pending.max) for workload in figures.changed(report)],
        remarks=figures.remarks(report),
    )


def _bars(report: SpreadSimulation) -> list[_Bar]:
    zones = figures.zones(report)
    most = max((max(before, after.max) for _, before, after in zones), default=1) or 1
    return [
        _Bar(words.value(zone), before, after.text, 100 * before // most, 100 * after.max // most)
        for zone, before, after in zones
    ]


def _advice(finding: SimulationFinding) -> _Advice:
    commands = [words.safe(command) for command in figures.commands(finding)]
    return _Advice(finding.severity.value, list(figures.sentences(finding)), commands)


def _cells(workload: SimulatedWorkload) -> Sequence[str]:
    return (
        words.workload(workload.workload),
        words.safe(workload.namespace),
        str(workload.before.running),
        workload.after.running.text,
        str(workload.lost),
        workload.after.pending.text,
        figures.skews(workload),
        figures.why(workload),
    )
