"""The headline of the page, which is the worst fact in words, the sentences below it, and the picture of the zones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import msgspec
from msgspec import UnsetType

from kubectl_spread.kube.api.labels import HOSTNAME, ZONE
from kubectl_spread.kube.api.objects import ObjectRef
from kubectl_spread.phrases import capitalized, domains, listed, plural
from kubectl_spread.render import about, figures, words
from kubectl_spread.report.model import Finding, Report, Row, Severity, Summary, Zone

_EXPOSED: Final = ("SPR501", "SPR502", "SPR505")
"""The rules about workloads with all pods in one domain."""
_NOUNS: Final = {ZONE: "zone", HOSTNAME: "node", "": "domain"}
_SEVERAL: Final = 2
"""The least number of pods of which most can be lost; one pod cannot be spread."""


class Headline(msgspec.Struct, frozen=True):
    """The headline, and the sentences below it.

    Attributes:
        text: The worst fact, or the number of objects without findings; without a full stop.
        severity: The highest severity of the findings; None if there are none.
        further: The other facts, and the objects that were left out or not checked, as sentences.
    """

    text: str
    severity: Severity | None
    further: tuple[str, ...]


class Loss(msgspec.Struct, frozen=True):
    """The domain whose loss takes most of a workload's pods, and whether it takes all of them."""

    key: str
    value: str
    everything: bool


def headline(report: Report) -> Headline:
    """Return the headline of a report."""
    waiting = list(_closed(report))
    zones = "" if waiting else capitalized(about.closed_zones(report.cluster))
    facts = [*waiting, *_facts(report), *filter(None, [figures.pending(report), zones])]
    severity = max((finding.severity for finding in report.findings), default=None)
    unanswered = tuple(figures.unanswered(report.summary.skipped))
    unchecked = figures.unchecked_lines(figures.unchecked(report))
    if unanswered and not (severity and severity > Severity.INFO):
        facts.insert(0, "Not everything was checked")
    return Headline(
        facts[0],
        severity,
        (*unanswered, *map(_sentence, unchecked), *map(_sentence, facts[1:]), *_plan(report), *_left_out(report)),
    )


def _plan(report: Report) -> Iterator[str]:
    """Yield a sentence about the command that orders the evictions for skews."""
    if isinstance(report.summary.plan, str):
        yield f"Several evictions correct the skews: {words.safe(report.summary.plan)} orders them."


def _sentence(text: str) -> str:
    return f"{text}."


def _facts(report: Report) -> Iterator[str]:
    """Yield at least one fact, the worst first: errors, then lost pods, then other warnings; else what was checked."""
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
    if not (refused or warned):
        yield _nothing(report)


def _closed(report: Report) -> Iterator[str]:
    """Yield a sentence about closed domains for which pods wait, those with the most such pods first."""
    causes: dict[str, list[Finding]] = {}
    for finding in report.findings:
        if finding.severity is Severity.ERROR and about.closed_domains([finding]):
            causes.setdefault(finding.group, []).append(finding)
    for findings in sorted(causes.values(), key=about.waiting, reverse=True):
        if domains_of_all := about.closed_domains(findings):
            yield words.safe(about.summary(domains_of_all, findings))


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
        yield f"{_of(len(those), total)} {verb} {share} of {whose} pods with {words.safe(where)}"


def _uneven(report: Report) -> set[ObjectRef]:
    """Return the workloads with a warning about pods whose skew is above maxSkew."""
    rows = report.constraints
    return {rows[index].place.object for index in _warned_rows(report) if rows[index].exceeds_max_skew}


def _warned_rows(report: Report) -> set[int]:
    return {
        index
        for finding in report.findings
        if finding.severity > Severity.INFO and not isinstance(finding.rows, UnsetType)
        for index in finding.rows
    }


def losses(report: Report) -> dict[ObjectRef, Loss]:
    """Return the workloads that lose more than half of their pods with one domain, needlessly.

    Only constraints with a finding count, and of these only those with a skew above maxSkew or with all pods in one of
    several domains: two pods of three in one zone can be all that a constraint promises. Workloads with all pods in
    one domain count too, whatever their constraints are.
    """
    places = figures.by_place(report.constraints)
    lost: dict[ObjectRef, Loss] = {}
    for row in sorted(
        (report.constraints[index] for index in _warned_rows(report)),
        key=lambda row: (row.topology_key != ZONE, row.place),
    ):
        loss = _loss(row, places[row.place])
        if loss is not None:
            lost.setdefault(row.place.object, loss)
    for finding in report.findings:
        if finding.code in _EXPOSED and finding.severity is Severity.WARNING:
            key, value = str(finding.values["topology_key"]), str(finding.values["domain"])
            lost.setdefault(finding.ref, Loss(key, value, everything=True))
    return lost


def _loss(row: Row, siblings: Iterable[Row]) -> Loss | None:
    """Return the loss of a workload by one of its constraints; ``siblings`` are all rows of that constraint."""
    counts: dict[str, int] = {}
    pods = 0
    for sibling in siblings:
        pods += sibling.pod_count
        for domain in () if isinstance(sibling.domains, UnsetType) else sibling.domains:
            counts[domain.value] = counts.get(domain.value, 0) + domain.match_num
    if not counts or sum(counts.values()) > pods or pods < _SEVERAL:
        # More pods than the workload's own: the constraint counts other workloads as well.
        return None
    value = max(counts, key=lambda value: counts[value])
    everything = counts[value] == pods
    domains_of_row = figures.domain_counts(row)
    has_several = domains_of_row is not None and domains_of_row.number > 1
    against = row.exceeds_max_skew or (everything and has_several)
    return Loss(row.topology_key, value, everything) if against and counts[value] * 2 > pods else None


def _nothing(report: Report) -> str:
    """Return the headline of a report without errors and warnings; it names the objects that were checked."""
    summary = report.summary
    total = figures.workloads(summary)
    if not total:
        return "Nothing was checked: no pods and no pod templates"
    has_terms = summary.constraints or "unevaluated" in summary.skipped
    if not (has_terms or summary.findings.info or figures.is_exposure_checked(report)):
        return f"Nothing to check: no constraint or affinity term in {plural(total, 'workload')}"
    new = "new " if isinstance(summary.known, int) else ""
    what = "errors or warnings" if summary.findings.info else "findings"
    return f"No {new}{what} in {plural(total, 'workload')}"


def _left_out(report: Report) -> Iterator[str]:
    """Yield sentences about the objects that were checked if nothing is wrong, then about all that was not checked."""
    summary, cluster = report.summary, report.cluster
    if not (summary.findings.error or summary.findings.warning):
        checked = [plural(summary.pods, "pod")] if summary.pods else []
        if isinstance(summary.templates, int):
            checked.append(plural(summary.templates, "pod template"))
        checked.append(plural(summary.constraints, "constraint"))
        yield f"Checked: {listed(checked)}."
    if not summary.pods:
        yield "Not checked: where pods run, because no pods were read."
    elif cluster.nodes == "none":
        yield "Not checked: where pods run, because no nodes were read."
    elif cluster.nodes == "inferred":
        yield "Zones are known from pods only, so zones without pods are missing."
    if upgrade := figures.upgrade(cluster, summary):
        yield f"{capitalized(upgrade)}."
    if skipped := figures.skipped(summary):
        yield skipped
    yield from _withheld(summary)


def _withheld(summary: Summary) -> Iterator[str]:
    """Yield sentences about findings that the options leave out."""
    if selected := figures.selected(summary):
        yield f"{capitalized(selected)}."
    if summary.silenced:
        yield f"{plural(summary.silenced, 'finding')} silenced."
    if isinstance(summary.known, int):
        yield f"{plural(summary.known, 'finding')} known by the baseline."
    if isinstance(summary.gone, int) and summary.gone:
        yield f"{plural(summary.gone, 'finding')} of the baseline gone."


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
    left_out = _not_drawn(report, cluster.zones, len(cluster.zones) - len(drawn))
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


def _not_drawn(report: Report, zones: Sequence[Zone], undrawn: int) -> list[str]:
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
