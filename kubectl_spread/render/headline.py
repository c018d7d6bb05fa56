"""The top of a page: how many workloads have which problem, the worst first, and the picture of the zones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import msgspec

from kubectl_spread.kube.api.labels import HOSTNAME, ZONE
from kubectl_spread.kube.api.objects import ObjectRef
from kubectl_spread.phrases import domains, named, plural, value
from kubectl_spread.render import about, figures
from kubectl_spread.render.document import Table, bar
from kubectl_spread.render.terminal import Cell, Column
from kubectl_spread.report.model import Finding, Report, Row, Severity, Zone

_EXPOSED: Final = ("SPR501", "SPR502", "SPR505")
"""The rules about workloads with all pods in one domain."""
_NOUNS: Final = {ZONE: "zone", HOSTNAME: "node", "": "domain"}
_DRAWN: Final = 6
"""The most zones of the picture."""
_SEVERAL: Final = 2
"""The least number of pods of which most can be lost; one pod cannot be spread."""


class Loss(msgspec.Struct, frozen=True):
    """The domain whose loss takes most of a workload's pods, and whether it takes all of them."""

    key: str
    value: str
    everything: bool


def facts(report: Report) -> list[str]:
    """Return what is wrong as sentences, the worst first: pods that wait for domains, lost pods, other warnings."""
    return [f"{fact}." for fact in (*_closed(report), *_facts(report))]


def _facts(report: Report) -> Iterator[str]:
    """Yield the worst first: errors, then lost pods, then other warnings."""
    total = figures.workloads(report.summary)
    refused = _objects(report.findings, Severity.ERROR)
    warned = _objects(report.findings, Severity.WARNING)
    if refused:
        yield f"Pods of {_of(len(refused), total)} do not run or will be refused"
    lost = losses(report)
    yield from _lost(lost, total)
    uneven = _uneven(report) - set(lost)
    if uneven:
        verb, whose = ("is", "its constraint asks") if len(uneven) == 1 else ("are", "their constraints ask")
        yield f"{_of(len(uneven), total)} {verb} spread less evenly than {whose}"
    if others := warned - set(lost) - uneven:
        what = "has a constraint that does not do what it says"
        if len(others) > 1:
            what = "have constraints that do not do what they say"
        yield f"{_of(len(others), total)} {what}"


def _closed(report: Report) -> Iterator[str]:
    """Yield a sentence about closed domains for which pods wait, those with the most such pods first."""
    causes: dict[str, list[Finding]] = {}
    for finding in report.findings:
        if finding.severity is Severity.ERROR and about.closed_domains([finding]):
            causes.setdefault(finding.group, []).append(finding)
    for findings in sorted(causes.values(), key=about.waiting, reverse=True):
        if domains_of_all := about.closed_domains(findings):
            yield about.summary(domains_of_all, findings)


def _objects(findings: Iterable[Finding], severity: Severity) -> set[ObjectRef]:
    return {finding.ref for finding in findings if finding.severity is severity}


def _of(number: int, total: int) -> str:
    return f"{number} of {plural(total, 'workload')}"


def _lost(lost: dict[ObjectRef, Loss], total: int) -> Iterator[str]:
    """Yield a sentence about zones, one about nodes, and one about other domains."""
    for key, noun in _NOUNS.items():
        those = [loss for loss in lost.values() if key == (loss.key if loss.key in _NOUNS else "")]
        if not those:
            continue
        is_single = len({(loss.key, loss.value) for loss in those}) == 1
        where = domains(those[0].key, [those[0].value]) if is_single else f"one {noun}"
        verb, whose = ("loses", "its") if len(those) == 1 else ("lose", "their")
        share = "all" if all(loss.everything for loss in those) else "most"
        yield f"{_of(len(those), total)} {verb} {share} of {whose} pods with {where}"


def _uneven(report: Report) -> set[ObjectRef]:
    """Return the workloads with a warning about pods whose skew is above maxSkew."""
    rows = report.constraints
    return {rows[index].place.object for index in _warned_rows(report) if rows[index].exceeds_max_skew}


def _warned_rows(report: Report) -> set[int]:
    return {index for finding in report.findings if finding.severity > Severity.INFO for index in finding.rows or ()}


def losses(report: Report) -> dict[ObjectRef, Loss]:
    """Return the workloads that lose more than half of their pods with one domain, needlessly.

    Only constraints with a finding count, and of these only those with a skew above maxSkew or with all pods in one of
    several domains: two pods of three in one zone can be all that a constraint promises. Workloads with all pods in
    one domain count too, whatever their constraints are.
    """
    places = figures.by_place(report.constraints)
    warned = figures.by_place(report.constraints[index] for index in sorted(_warned_rows(report)))
    lost: dict[ObjectRef, Loss] = {}
    for place, rows in sorted(warned.items(), key=lambda item: (item[1][0].topology_key != ZONE, item[0])):
        if loss := _loss(rows, places[place]):
            lost.setdefault(place.object, loss)
    for finding in report.findings:
        if finding.code in _EXPOSED and finding.severity is Severity.WARNING:
            key, value = str(finding.values["topology_key"]), str(finding.values["domain"])
            lost.setdefault(finding.ref, Loss(key, value, everything=True))
    return lost


def _loss(warned: Sequence[Row], rows: Iterable[Row]) -> Loss | None:
    """Return the loss of a workload by one of its constraints; ``warned`` are the rows of it that have a finding."""
    counts: Counter[str] = Counter()
    pods = 0
    for row in rows:
        pods += row.pod_count
        counts.update({domain.value: domain.match_num for domain in row.domains or ()})
    if not counts or counts.total() > pods or pods < _SEVERAL:
        # More pods than the workload's own: the constraint counts other workloads as well.
        return None
    ((value, number),) = counts.most_common(1)
    everything = number == pods
    several = any(len(row.domains or ()) + (row.empty_domains or 0) > 1 for row in warned)
    against = any(row.exceeds_max_skew for row in warned) or (everything and several)
    return Loss(warned[0].topology_key, value, everything) if against and number * 2 > pods else None


def picture(report: Report) -> Table | None:
    """Return the nodes and pods of the zones, and the pods that the worst constraint counts there.

    Of many zones these are the ones with the most counted pods, or with the most pods. None stands for no zones.
    """
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
