"""Figures: the sentences and cells that the formats of ``plan`` have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import UnsetType

from kubectl_spread.phrases import named, plural
from kubectl_spread.render import about, words
from kubectl_spread.report.plan import NotCorrectable, PlannedEviction, SpreadPlan

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


def several_namespaces(report: SpreadPlan) -> bool:
    """Tell whether more than one namespace may be in the report."""
    return isinstance(report.cluster.namespace, UnsetType)


def pod(eviction: PlannedEviction, *, with_namespace: bool) -> str:
    """Return the name of a pod, after its namespace where there are several."""
    name = words.safe(eviction.pod)
    return f"{words.safe(eviction.namespace)}/{name}" if with_namespace else name


def origin(eviction: PlannedEviction) -> str:
    """Return the domain that a pod leaves."""
    return words.value(eviction.domain.value)


def destination(eviction: PlannedEviction) -> str:
    """Return the domains to which a replacement may go: ``b or c``; the number of many."""
    if len(eviction.to) > _LISTED:
        return f"any of {len(eviction.to)}"
    return " or ".join(words.value(value) for value in eviction.to)


def remaining(left: NotCorrectable, *, with_namespace: bool) -> str:
    """Return why a workload is not corrected, as a sentence."""
    name = words.safe(named(left.workload.kind, left.workload.name))
    whose = f"{words.safe(left.namespace)}: {name}" if with_namespace else name
    return f"Not correctable: {whose}, because {words.safe(left.why)}."


def remarks(report: SpreadPlan) -> Sequence[str]:
    """Return what the simulation leaves out."""
    left_out = report.summary.not_simulated
    return [f"Not simulated: {', '.join(map(words.safe, left_out))}."] if left_out and report.waves else []
