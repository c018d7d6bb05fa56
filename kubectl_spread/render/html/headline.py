"""The headline of the page: the worst fact in words, and what else was found, left out or not checked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec
from msgspec import UnsetType

from kubectl_spread.kube.api.labels import ZONE
from kubectl_spread.kube.api.objects import ObjectRef
from kubectl_spread.phrases import capitalized, domains, listed, plural
from kubectl_spread.render import about, closed, figures, words
from kubectl_spread.report.model import FieldRef, Finding, Report, Row, Severity, Summary

_EXPOSED: Final = ("SPR501", "SPR502", "SPR505")
"""The rules about workloads with all pods in one domain."""
_HOSTNAME: Final = "kubernetes.io/hostname"
_NOUNS: Final = {ZONE: "zone", _HOSTNAME: "node", "": "domain"}
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
        facts[0], severity, (*unanswered, *map(_sentence, unchecked), *map(_sentence, facts[1:]), *_left_out(report))
    )


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
        if finding.severity is Severity.ERROR and closed.closed_domains([finding]):
            causes.setdefault(finding.group, []).append(finding)
    for findings in sorted(causes.values(), key=closed.waiting, reverse=True):
        if domains_of_all := closed.closed_domains(findings):
            yield words.safe(closed.summary(domains_of_all, findings))


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
        values = {(loss.key, loss.value) for loss in those}
        where = domains(*_only(values)) if len(values) == 1 else f"one {noun}"
        verb, whose = ("loses", "its") if len(those) == 1 else ("lose", "their")
        share = "all" if all(loss.everything for loss in those) else "most"
        yield f"{_of(len(those), total)} {verb} {share} of {whose} pods with {words.safe(where)}"


def _only(values: set[tuple[str, str]]) -> tuple[str, list[str]]:
    ((key, value),) = values
    return key, [value]


def _uneven(report: Report) -> set[ObjectRef]:
    """Return the workloads with a warning about pods whose skew is above maxSkew."""
    rows = report.constraints
    return {rows[index].place.object for index in _warned_rows(report) if rows[index].exceeds_max_skew}


def _warned_rows(report: Report) -> set[int]:
    """Return the indices of the rows with pods of a warning or error."""
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
    for row in sorted((report.constraints[index] for index in _warned_rows(report)), key=_zones_first):
        loss = _loss(row, places[row.place])
        if loss is not None:
            lost.setdefault(row.place.object, loss)
    for finding in report.findings:
        if finding.code in _EXPOSED and finding.severity is Severity.WARNING:
            key, value = str(finding.values["topology_key"]), str(finding.values["domain"])
            lost.setdefault(finding.ref, Loss(key, value, everything=True))
    return lost


def _zones_first(row: Row) -> tuple[bool, FieldRef]:
    return row.topology_key != ZONE, row.place


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
    against = row.exceeds_max_skew or (everything and _has_several_domains(row))
    return Loss(row.topology_key, value, everything) if against and counts[value] * 2 > pods else None


def _has_several_domains(row: Row) -> bool:
    counts = figures.domain_counts(row)
    return counts is not None and counts.number > 1


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
