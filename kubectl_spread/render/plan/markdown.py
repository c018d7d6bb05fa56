"""The report of ``plan`` in Markdown."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kubectl_spread.render.markdown import escaped, table
from kubectl_spread.render.plan import figures
from kubectl_spread.report.plan import SpreadPlan

_TITLES: Final = ("Wave", "Pod", "From", "To", "Why")


def plan(report: SpreadPlan) -> str:
    """Return a report as Markdown."""
    return "\n\n".join(_parts(report)) + "\n"


def _parts(report: SpreadPlan) -> Iterator[str]:
    yield "## Plan"
    several = figures.several_namespaces(report)
    yield " · ".join(map(escaped, figures.header(report)))
    if report.waves:
        rows = [
            (
                str(number),
                figures.pod(eviction, with_namespace=several),
                figures.origin(eviction),
                figures.destination(eviction),
                eviction.why,
            )
            for number, wave in enumerate(report.waves, 1)
            for eviction in wave.evictions
        ]
        yield table(_TITLES, rows)
    yield from (escaped(figures.remaining(left, with_namespace=several)) for left in report.not_correctable)
    yield from map(escaped, figures.remarks(report))
