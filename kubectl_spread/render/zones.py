"""The picture of the zones of a cluster: their nodes and pods, and those that the worst constraint counts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from kubectl_spread.kube.api.labels import ZONE
from kubectl_spread.phrases import named, plural, value
from kubectl_spread.render import figures
from kubectl_spread.render.document import Table, bar
from kubectl_spread.render.terminal import Cell, Column
from kubectl_spread.report.model import Report, Row, Severity, Zone

_DRAWN: Final = 6
"""The most zones of the picture."""


def picture(report: Report) -> Table | None:
    """Return the zones, of many those with the most pods of the worst constraint, or the most; None without zones."""
    zones, worst = report.cluster.zones or [], _worst(report)
    if not zones:
        return None
    counts = {} if worst is None else {domain.value: domain.match_num for domain in worst.domains or ()}
    by_interest = sorted(zones, key=lambda zone: (-counts.get(zone.zone, -1), -zone.pods))
    drawn = sorted(by_interest[:_DRAWN], key=lambda zone: zone.zone)
    nodes, pods = max(zone.nodes for zone in drawn), max(zone.pods for zone in drawn)
    rows = [[_name(zone), bar(zone.nodes, nodes), bar(zone.pods, pods)] for zone in drawn]
    columns, note = ["Zone", "Nodes", "Pods"], []
    if worst is not None:
        columns.append(named(worst.workload.kind, worst.workload.name))
        of = f"{worst.namespace}/{columns[-1]}"
        note.append(f"The worst constraint is that of {of}: skew {worst.skew}, maxSkew {worst.max_skew}.")
        rows = [[*row, _matching(zone, worst, counts)] for row, zone in zip(rows, drawn, strict=True)]
    if left_out := [*_not_drawn(report, zones, len(zones) - len(drawn))]:
        note.append(f"Not drawn: {', '.join(left_out)}.")
    return Table("Nodes and pods by zone", [*map(Column, columns)], rows, note=" ".join(note))


def _name(zone: Zone) -> Cell:
    name = value(zone.zone)
    return Cell(f"{name} ({zone.closed})", "yellow") if zone.closed else Cell(name)


def _worst(report: Report) -> Row | None:
    """Return the constraint by zone with the highest severity of its findings, then with the highest excess."""
    severities: dict[int, Severity] = {}
    for finding in report.findings:
        for index in finding.rows or ():
            severities[index] = max(severities.get(index, Severity.INFO), finding.severity)
    above = [
        (severities.get(index, Severity.INFO), row.excess or 0, row.pod_count, -index)
        for index, row in enumerate(report.constraints)
        if row.topology_key == ZONE and row.exceeds_max_skew and not figures.matches_nothing(row)
    ]
    return report.constraints[-max(above)[3]] if above else None


def _matching(zone: Zone, worst: Row, counts: dict[str, int]) -> Cell:
    """Return the pods of a zone that the worst constraint counts; more than it allows are marked."""
    if zone.zone not in counts:
        return Cell("not eligible")
    number, allowed = counts[zone.zone], (worst.min_match_num or 0) + (worst.max_skew or 0)
    return bar(number, max(counts.values()), above=number > allowed)


def _not_drawn(report: Report, zones: Sequence[Zone], undrawn: int) -> Iterator[str]:
    """Yield phrases about zones that are not drawn, nodes without a zone, and pods that are in no zone."""
    without = (report.cluster.node_count or 0) - sum(zone.nodes for zone in zones)
    elsewhere = report.summary.pods - sum(zone.pods for zone in zones)
    if undrawn:
        yield plural(undrawn, "more zone")
    if without > 0:
        yield f"{plural(without, 'node')} without a zone"
    if elsewhere > 0:
        yield f"{plural(elsewhere, 'pod')} in no zone"
