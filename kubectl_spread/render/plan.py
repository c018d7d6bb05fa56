"""The document of ``plan``: the evictions in waves, and what they do not correct."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec import UnsetType

from kubectl_spread.phrases import named, plural, sentence, value
from kubectl_spread.render import about
from kubectl_spread.render.document import Card, Document, Instruction, Table
from kubectl_spread.render.terminal import Cell, Column
from kubectl_spread.report.model import Severity
from kubectl_spread.report.plan import PlannedEviction, SpreadPlan

_COLUMNS: Final = (
    Column("Wave", "right"),
    Column("Pod", fit="middle", least=16),
    Column("From", fit="end"),
    Column("To", fit="end"),
    Column("Why", fit="wrap", least=24),
)
_LISTED: Final = 3
"""With more domains than this, their number is printed."""


def document(report: SpreadPlan, command: str = "") -> Document:
    """Return a report as a document; ``command`` carries the plan out."""
    return Document(
        command="plan",
        title="Plan",
        cluster=about.label(report.cluster),
        header=[*about.identified(report.cluster), *about.autoscaling(report.summary.not_simulated)],
        headline=sentence(conclusion(report)),
        cards=[*_not_correctable(report)],
        tables=[Table("Evictions", _COLUMNS, [*_rows(report)])],
        notes=remarks(report),
        next_steps=[Instruction("Carry it out:", [command])] if report.waves and command else [],
    )


def conclusion(report: SpreadPlan) -> str:
    """Return the answer in a few words."""
    summary = report.summary
    if not summary.uneven:
        return "whether there is anything to correct is not known" if summary.unknown else "nothing to correct"
    uneven = f"{summary.corrected} of {plural(summary.uneven, 'uneven workload')}"
    if not summary.evictions:
        return f"no eviction corrects any of {plural(summary.uneven, 'uneven workload')}"
    verb = "corrects" if summary.evictions == 1 else "correct"
    return f"{plural(summary.evictions, 'eviction')} in {plural(summary.waves, 'wave')} {verb} {uneven}"


def _rows(report: SpreadPlan) -> Iterator[list[Cell]]:
    """Yield the cells of each eviction: wave, pod, from, to, and why."""
    for number, wave in enumerate(report.waves, 1):
        for eviction in wave.evictions:
            pod = _named(report, eviction.namespace, eviction.pod)
            source = value(eviction.domain.value)
            yield [*map(Cell, (str(number), pod, source, destination(eviction), eviction.why))]


def _named(report: SpreadPlan, namespace: str, name: str) -> str:
    """Return a name, with its namespace unless the report is about one."""
    return f"{namespace}/{name}" if isinstance(report.cluster.namespace, UnsetType) else name


def destination(eviction: PlannedEviction) -> str:
    """Return the domains to which a replacement may go: ``b or c``; the number of many."""
    if len(eviction.to) > _LISTED:
        return f"any of {len(eviction.to)}"
    return " or ".join(map(value, eviction.to))


def remaining(report: SpreadPlan) -> dict[str, list[str]]:
    """Map each reason why workloads are not corrected to these."""
    names: dict[str, list[str]] = {}
    for left in report.not_correctable:
        name = _named(report, left.namespace, named(left.workload.kind, left.workload.name))
        names.setdefault(left.why, []).append(name)
    return names


def _not_correctable(report: SpreadPlan) -> Iterator[Card]:
    for why, names in remaining(report).items():
        several = len(names) > 1
        subject = plural(len(names), "workload") if several else names[0]
        yield Card(f"Not correctable: {subject}, because {why}.", Severity.WARNING, names if several else [])


def remarks(report: SpreadPlan) -> list[str]:
    """Return what the simulation leaves out."""
    return about.not_simulated(report.summary.not_simulated) if report.waves or report.summary.unknown else []
