"""The tables of docs/metrics.md, from the declared families."""

from __future__ import annotations

from collections.abc import Iterable

from kubectl_spread.render.openmetrics.families import CONSTRAINT, FAMILIES, WORKLOAD, Family


def tables() -> str:
    """Return the families of workloads, then the totals, as Markdown."""
    totals = [family for family in FAMILIES if family.totals]
    constraints = [family for family in FAMILIES if family.labels[: len(CONSTRAINT)] == CONSTRAINT]
    workloads = [family for family in FAMILIES if family not in totals and family not in constraints]
    return (
        f"\n## Of constraints and affinity terms\n\nEach has the labels {_names(CONSTRAINT)}.\n\n"
        f"{_table(constraints, CONSTRAINT)}"
        f"\n## Of workloads\n\nEach has the labels {_names(WORKLOAD)}.\n\n{_table(workloads, WORKLOAD)}"
        f"\n## Totals\n\n{_table(totals, ())}\n"
    )


def _table(families: Iterable[Family], shared: tuple[str, ...]) -> str:
    further = "labels" if not shared else "further labels"
    rows = [
        (f"`{family.name}`", _names(family.labels[len(shared) :]), family.help, family.source, family.stability.value)
        for family in families
    ]
    lines = [("metric", further, "meaning", "read from", "stability"), ("---",) * 5, *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _names(labels: Iterable[str]) -> str:
    return ", ".join(f"`{label}`" for label in labels)
