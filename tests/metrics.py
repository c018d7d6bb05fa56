"""The tables of docs/metrics.md, from the declared families and from a page of telemetry."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from prometheus_client.parser import text_string_to_metric_families as parse

from kubectl_spread.follow.monitor import Telemetry
from kubectl_spread.render.openmetrics import CONSTRAINT, FAMILIES, WORKLOAD, Family

_RULE: Final = "---"


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


def telemetry() -> str:
    """Return the metrics of the monitor about itself, as Markdown."""
    shown = Telemetry()
    shown.expect("pods", lambda: 0.0)
    families = [family for family in parse(shown.page("")[0].decode()) if family.name.startswith("kubectl_spread_")]
    rows = []
    for family in families:
        name = family.name + ("_total" if family.type == "counter" else "")
        labels = sorted({label for sample in family.samples for label in sample.labels} - {"le"})
        rows.append((f"`{name}`", family.type, _names(labels), family.documentation))
    return _markdown(("metric", "type", "labels", "meaning"), rows)


def _table(families: Iterable[Family], shared: tuple[str, ...]) -> str:
    rows = [
        (f"`{family.name}`", _names(family.labels[len(shared) :]), family.help, family.source, family.stability)
        for family in families
    ]
    return _markdown(("metric", "further labels" if shared else "labels", "meaning", "read from", "stability"), rows)


def _markdown(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    return "".join(f"| {' | '.join(cells)} |\n" for cells in (head, (_RULE,) * len(head), *rows))


def _names(labels: Iterable[str]) -> str:
    return ", ".join(f"`{label}`" for label in labels)
