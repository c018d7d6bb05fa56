"""The picture of the zones: their nodes and pods, and the counts of the worst constraint."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec import UnsetType

from kubectl_spread.kube.api.labels import ZONE
from kubectl_spread.phrases import plural
from kubectl_spread.render import figures, words
from kubectl_spread.report.model import Report, Row, Severity, Zone

SHOWN: Final = 6
"""The most zones of the picture."""
_SQUARES: Final = 8
"""The most nodes that are squares of their own."""


class Count(msgspec.Struct, frozen=True):
    """A number of pods in a zone: its share of the largest one in percent, and whether it is above the limit."""

    number: int
    share: int
    above: bool = False


class Line(msgspec.Struct, frozen=True):
    """A zone of the picture.

    Attributes:
        name: The value of the zone's label.
        nodes: The number of nodes.
        squares: The number of nodes that are drawn.
        pods: The evaluated pods.
        matching: The pods that the worst constraint counts; None where the zone is not eligible.
        closed: How all nodes of the zone keep pods away; "" if some node takes them.
    """

    name: str
    nodes: int
    squares: int
    pods: Count
    matching: Count | None
    closed: str


class ZonePicture(msgspec.Struct, frozen=True):
    """The zones of a cluster.

    Attributes:
        lines: The zones, those with the most pods if there are many.
        worst: The workload of the worst constraint; "" if the skew of none is above maxSkew.
        object: This workload with its namespace.
        place: The id of this workload in the page.
        rule: The skew and maxSkew of this constraint.
        left_out: The zones and nodes that are not drawn, as phrases.
    """

    lines: list[Line]
    worst: str
    object: str
    place: str
    rule: str
    left_out: list[str]


def picture(report: Report) -> ZonePicture | None:
    """Return the picture of a report; None without zones."""
    cluster = report.cluster
    if isinstance(cluster.zones, UnsetType) or not cluster.zones:
        return None
    worst = _worst(report)
    matching = _counts(worst)
    by_interest = sorted(cluster.zones, key=lambda zone: (-matching.get(zone.zone, -1), -zone.pods))
    drawn = sorted(by_interest[:SHOWN], key=lambda zone: zone.zone)
    most = max((zone.pods for zone in drawn), default=0)
    limit = _limit(worst)
    lines = [
        Line(
            name=words.value(zone.zone),
            nodes=zone.nodes,
            squares=min(zone.nodes, _SQUARES),
            pods=Count(zone.pods, _share(zone.pods, most)),
            matching=_matching(zone, matching, limit),
            closed=zone.closed or "",
        )
        for zone in drawn
    ]
    left_out = _left_out(report, cluster.zones, len(cluster.zones) - len(drawn))
    if worst is None:
        return ZonePicture(lines, worst="", object="", place="", rule="", left_out=left_out)
    name = words.workload(worst.workload)
    place = f"{words.safe(worst.namespace)}/{name}"
    return ZonePicture(
        lines,
        worst=name,
        object=place,
        place=f"workload/{place}",
        rule=f"skew {worst.skew}, maxSkew {worst.max_skew}",
        left_out=left_out,
    )


def _worst(report: Report) -> Row | None:
    """Return the constraint by zone with the highest severity of its findings, then with the highest excess."""
    severities: dict[int, Severity] = {}
    for finding in report.findings:
        for index in () if isinstance(finding.rows, UnsetType) else finding.rows:
            severities[index] = max(severities.get(index, Severity.INFO), finding.severity)
    above = [
        (severities.get(index, Severity.INFO), row.excess or 0, row.pod_count, -index)
        for index, row in enumerate(report.constraints)
        if row.topology_key == ZONE and row.exceeds_max_skew and not figures.matches_nothing(row)
    ]
    return report.constraints[-max(above)[3]] if above else None


def _counts(row: Row | None) -> dict[str, int]:
    """Return the pods that a constraint counts in each zone that it lists."""
    if row is None or isinstance(row.domains, UnsetType):
        return {}
    return {domain.value: domain.match_num for domain in row.domains}


def _limit(row: Row | None) -> int:
    """Return the most pods that the constraint allows in a zone."""
    if row is None or isinstance(row.max_skew, UnsetType) or isinstance(row.min_match_num, UnsetType):
        return 0
    return row.min_match_num + row.max_skew


def _matching(zone: Zone, counts: dict[str, int], limit: int) -> Count | None:
    if zone.zone not in counts:
        return None
    number = counts[zone.zone]
    return Count(number, _share(number, max(counts.values())), above=number > limit)


def _share(number: int, most: int) -> int:
    """Return a share in percent; at least 1 for what is there."""
    return max(round(100 * number / most), 1) if number else 0


def _left_out(report: Report, zones: Sequence[Zone], undrawn: int) -> list[str]:
    """Return phrases about zones that are not drawn, nodes without a zone, and pods that are in no zone."""
    nodes = report.cluster.node_count
    without = nodes - sum(zone.nodes for zone in zones) if isinstance(nodes, int) else 0
    elsewhere = report.summary.pods - sum(zone.pods for zone in zones)
    return [
        phrase
        for number, phrase in (
            (undrawn, plural(undrawn, "more zone")),
            (without, f"{plural(without, 'node')} without a zone"),
            (elsewhere, f"{plural(elsewhere, 'pod')} in no zone"),
        )
        if number > 0
    ]
