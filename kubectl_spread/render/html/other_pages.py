"""The reports of ``domains``, ``simulate`` and ``recommend``: HTML pages that load nothing and run no script."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec import UnsetType

from kubectl_spread.phrases import capitalized, plural
from kubectl_spread.render import about, domain_figures, words
from kubectl_spread.render import recommendation as advice
from kubectl_spread.render import simulation as figures
from kubectl_spread.render.html import PAGES, policy, source
from kubectl_spread.report.domains import DomainRow, LostWorkload, SpreadDomains
from kubectl_spread.report.recommendation import SpreadRecommendation
from kubectl_spread.report.simulation import SpreadSimulation


class _Column(msgspec.Struct, frozen=True):
    """A column of the page's table; ``text`` columns are not numbers."""

    title: str
    text: bool = False


class _Line(msgspec.Struct, frozen=True):
    """A line of the page's table: its head, the other cells, and whether it is marked."""

    head: str
    cells: Sequence[str]
    marked: bool


_DOMAIN_COLUMNS = tuple(
    map(_Column, ("Nodes", "Ready", "Cordoned", "Pods", "Share", "Workloads", "Only here", "Half here", "Terminating"))
)
_REQUEST_COLUMNS = (_Column("CPU requests"), _Column("Memory requests"))
_WORKLOAD_COLUMNS = (
    _Column("Namespace", text=True),
    _Column("Here"),
    _Column("Left"),
    _Column("Budget", text=True),
)


def domains(report: SpreadDomains) -> str:
    """Return a report of ``domains`` as an HTML document."""
    style = source("page.css") + source("domains.css")
    noun = domain_figures.noun(report.topology_key)
    if isinstance(report.workloads, UnsetType):
        with_requests = not any(isinstance(domain.requests, UnsetType) for domain in report.domains)
        with_value = sum(domain.value is not None for domain in report.domains)
        headline, summary = f"{plural(with_value, noun)}, {plural(report.totals.pods, 'running pod')}", ""
        columns = (*_DOMAIN_COLUMNS, *(_REQUEST_COLUMNS if with_requests else ()))
        lines = [_domain(domain, report.totals.pods) for domain in report.domains]
        title, caption, legend = noun.capitalize(), f"Nodes and pods by {noun}", domain_figures.LEGEND
    else:
        headline, summary, columns = domain_figures.subject(report), domain_figures.summary(report), _WORKLOAD_COLUMNS
        lines = [_workload(workload) for workload in report.workloads]
        title, caption, legend = "Workload", "Workloads with running pods here", domain_figures.left(report)
    return PAGES.get_template("domains.html").render(
        policy=policy(style, ""),
        style=style,
        cluster=about.label(report.cluster),
        header=domain_figures.header(report),
        headline=capitalized(headline),
        about=summary,
        key=words.safe(report.topology_key),
        title=title,
        caption=caption,
        columns=columns,
        lines=lines,
        closed=domain_figures.closed(report),
        remarks=[legend, *domain_figures.remarks(report)],
    )


def _domain(domain: DomainRow, total: int) -> _Line:
    numbers = (domain.nodes, domain.ready, domain.cordoned, domain.pods)
    cells = [
        *(f"{number:,}" for number in numbers),
        domain_figures.share(domain.pods, total),
        *(f"{number:,}" for number in (domain.workloads, domain.only_here, domain.half_here, domain.terminating)),
    ]
    if not isinstance(domain.requests, UnsetType):
        cells += [domain_figures.use(domain.requests, resource)[0] for resource in ("cpu", "memory")]
    return _Line(domain_figures.name(domain), cells, domain.only_here > 0)


def _workload(lost: LostWorkload) -> _Line:
    cells = [
        words.safe(lost.namespace),
        f"{lost.here:,} of {lost.running:,}",
        f"{lost.left:,}",
        domain_figures.budgets(lost),
    ]
    return _Line(words.workload(lost.workload), cells, not lost.left or domain_figures.is_below(lost))


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


def simulation(report: SpreadSimulation) -> str:
    """Return a report of ``simulate`` as an HTML document."""
    style = source("page.css") + source("domains.css") + source("simulation.css")
    changed = figures.changed(report)
    return PAGES.get_template("simulation.html").render(
        policy=policy(style, ""),
        style=style,
        cluster=about.label(report.cluster),
        header=figures.header(report),
        headline=capitalized(figures.conclusion(report)),
        zones=_bars(report),
        findings=[
            _Advice(
                finding.severity.value,
                sentences,
                [words.safe(command) for command in commands],
            )
            for finding in report.findings
            for sentences, commands in (
                (list(figures.sentences(finding)), figures.commands(finding)),
                *(([text], lines) for text, lines in figures.alternatives(finding)),
            )
        ],
        workloads=[
            (words.workload(each.workload), words.safe(each.namespace), *figures.cells(each)) for each in changed
        ],
        marked=[bool(workload.after.pending.max) for workload in changed],
        remarks=[f"At once: {figures.at_once(report)}", figures.ending(report), *figures.remarks(report)],
    )


def _bars(report: SpreadSimulation) -> list[_Bar]:
    zones = figures.zones(report)
    most = max((max(before, after.max) for _, before, after in zones), default=1) or 1
    return [
        _Bar(words.value(zone), before, after.text, 100 * before // most, 100 * after.max // most)
        for zone, before, after in zones
    ]


def recommendation(report: SpreadRecommendation) -> str:
    """Return a report of ``recommend`` as an HTML document."""
    style = source("page.css") + source("domains.css")
    return PAGES.get_template("recommendation.html").render(
        policy=policy(style, ""),
        style=style,
        cluster=about.label(report.cluster),
        header=advice.header(report),
        headline=advice.conclusion(report),
        commands=[*map(words.safe, advice.commands(report)), *advice.lines(report)],
        columns=advice.TITLES,
        rows=[*advice.rows(report)],
        marked=[not event.now.survived for event in report.events],
        tried=advice.tried(report),
        remarks=[*advice.remarks(report)],
    )
