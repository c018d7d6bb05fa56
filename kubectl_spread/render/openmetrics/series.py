"""Series: the sample lines of a report, by family.

Several rows may share a workload, path and topology key and differ in the selector, as the revisions of a rollout do.
A label for the selector would begin new series with every rollout, so these rows share their series: pods are added
up, the allowed domains are those of the row with the fewest, and the other values are those of the row furthest above
its maxSkew. Thus ``kube_spread_constraint_skew > kube_spread_constraint_max_skew`` holds if it holds for one of the
rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from hashlib import sha256
from typing import Final, TypeAlias

from msgspec import UNSET, UnsetType

from kubectl_spread.diagnosis.exposure import RunningPods
from kubectl_spread.kube.api.topologykeys import HOSTNAME, ZONE
from kubectl_spread.render.figures import domain_counts
from kubectl_spread.render.openmetrics import families
from kubectl_spread.render.openmetrics.families import MOST_CHARACTERS, MOST_DOMAINS, Family
from kubectl_spread.render.words import safe, value
from kubectl_spread.report.model import SEVEREST_FIRST, Cluster, Finding, Report, Row, Summary

Lines: TypeAlias = Mapping[Family, bytes]
"""The sample lines of each family, each with its line feed; families without samples are left out."""
_ESCAPES: Final = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})
_DIGITS: Final = 12
"""The length of the digest at the end of a label value that was shortened."""


def of_report(report: Report, running: Iterable[RunningPods]) -> Lines:
    """Return the lines of the workloads in a report, or in a part of one; not its totals."""
    samples = _Samples()
    _add_findings(samples, report.findings)
    places: dict[str, list[Row]] = {}
    for row in report.constraints:
        places.setdefault(_place(row), []).append(row)
    for place, rows in places.items():
        _add_place(samples, place, rows)
    for workload in running:
        _add_running(samples, workload)
    return samples.lines()


def of_totals(cluster: Cluster, summary: Summary) -> Lines:
    """Return the lines of the cluster and the totals."""
    samples = _Samples()
    texts = (
        cluster.context,
        cluster.name,
        cluster.uid,
        cluster.evaluated_as,
        cluster.server_version,
        cluster.version_source,
        cluster.nodes,
    )
    samples.add(families.INFO, _labels(families.INFO.labels, texts), 1)
    samples.add(families.READ, "", _timestamp(cluster.read_at))
    samples.add(families.NODES, "", cluster.node_count)
    samples.add(families.EVALUATED_PODS, "", summary.pods)
    samples.add(families.EVALUATED_TEMPLATES, "", summary.templates)
    samples.add(families.CONSTRAINTS, "", summary.constraints)
    for severity in SEVEREST_FIRST:
        labels = _labels(families.FINDINGS.labels, (severity.value,))
        samples.add(families.FINDINGS, labels, summary.findings.of(severity))
    samples.add(families.SILENCED, "", summary.silenced)
    samples.add(families.KNOWN, "", summary.known)
    for reason, number in summary.skipped.items():
        samples.add(families.SKIPPED, _labels(families.SKIPPED.labels, (reason,)), number)
    return samples.lines()


class _Samples:
    """Values by family and labels. Labels may be equal for different texts, because of escapes and the bound."""

    def __init__(self) -> None:
        self._values: dict[Family, dict[str, float]] = {}

    def add(self, family: Family, labels: str, number: float | UnsetType) -> None:
        """Add a number to a series; UNSET does not apply, and has no sample."""
        if not isinstance(number, UnsetType):
            values = self._values.setdefault(family, {})
            values[labels] = values.get(labels, 0) + number

    def raise_to(self, family: Family, labels: str, number: float) -> None:
        """Give a series a value, unless it has a larger one."""
        values = self._values.setdefault(family, {})
        values[labels] = max(values.get(labels, number), number)

    def lines(self) -> Lines:
        """Return the lines of each family."""
        return {
            family: "".join(
                f"{family.name}{{{labels}}} {number}\n" if labels else f"{family.name} {number}\n"
                for labels, number in values.items()
            ).encode()
            for family, values in self._values.items()
        }


def label_value(text: str | int | UnsetType) -> str:
    """Return the value of a label: "" for UNSET, without control characters, and at most ``MOST_CHARACTERS`` long.

    The digest at the end of a shortened text keeps the series of two texts with one beginning apart.
    """
    if isinstance(text, UnsetType):
        return ""
    escaped = safe(str(text))
    if len(escaped) <= MOST_CHARACTERS:
        return escaped
    digest = sha256(escaped.encode()).hexdigest()[:_DIGITS]
    return f"{escaped[: MOST_CHARACTERS - _DIGITS - 1]}…{digest}"


def _labels(names: Iterable[str], texts: Iterable[str | int | UnsetType]) -> str:
    pairs = zip(names, texts, strict=True)
    return ",".join([f'{name}="{label_value(text).translate(_ESCAPES)}"' for name, text in pairs])


def _workload(namespace: str, kind: str, name: str) -> str:
    return _labels(families.WORKLOAD, (namespace, name, kind.lower()))


def _place(row: Row) -> str:
    """Return the labels of a constraint."""
    texts = (row.namespace, row.workload.name, row.workload.kind.lower(), row.path, row.topology_key)
    return _labels(families.CONSTRAINT, texts)


def _add_findings(samples: _Samples, findings: Iterable[Finding]) -> None:
    for finding in findings:
        workload = _workload(finding.namespace, finding.object.kind, finding.object.name)
        labels = _labels(("code", "severity"), (finding.code, finding.severity.value))
        samples.raise_to(families.FINDING, f"{workload},{labels}", 1)


def _add_place(samples: _Samples, place: str, rows: list[Row]) -> None:
    for row in rows:
        samples.add(families.CONSTRAINT_PODS, place, row.pod_count)
        samples.add(families.PENDING_PODS, place, row.pending)
        for verdict, number in row.verdicts.items():
            samples.add(families.VERDICT_PODS, f"{place},{_labels(('verdict',), (verdict,))}", number)
    samples.add(families.ALLOWED_DOMAINS, place, min(_allowed(rows), default=UNSET))
    _add_counts(samples, place, max(rows, key=lambda row: float("-inf") if row.excess is None else row.excess))


def _add_counts(samples: _Samples, place: str, row: Row) -> None:
    fields = (row.when_unsatisfiable, row.max_skew, row.min_domains, row.node_affinity_policy, row.node_taints_policy)
    names = families.CONSTRAINT_INFO.labels[len(families.CONSTRAINT) :]
    samples.add(families.CONSTRAINT_INFO, f"{place},{_labels(names, fields)}", 1)
    samples.add(families.MAX_SKEW, place, row.max_skew)
    samples.add(families.SKEW, place, row.skew)
    samples.add(families.GLOBAL_MINIMUM, place, row.min_match_num)
    samples.add(families.LOWER_BOUND, place, row.lower_bound)
    counts = domain_counts(row)
    if counts is None or isinstance(row.domains, UnsetType):
        return
    samples.add(families.ELIGIBLE_DOMAINS, place, counts.number)
    for domain in row.domains if counts.number <= MOST_DOMAINS else ():
        labels = _labels(("domain",), (value(domain.value),))
        samples.add(families.DOMAIN_PODS, f"{place},{labels}", domain.match_num)


def _add_running(samples: _Samples, running: RunningPods) -> None:
    workload = _workload(running.workload.namespace, running.workload.kind, running.workload.name)
    samples.add(families.WORKLOAD_PODS, workload, running.pods)
    if len(running.zones) <= MOST_DOMAINS:
        for zone, pods in running.zones:
            labels = _labels(("topology_key", "domain"), (ZONE, value(zone)))
            samples.add(families.WORKLOAD_DOMAIN_PODS, f"{workload},{labels}", pods)
    for key, pods in ((ZONE, running.fullest_zone), (HOSTNAME, running.fullest_node)):
        if pods:
            labels = f"{workload},{_labels(('topology_key',), (key,))}"
            samples.raise_to(families.LARGEST_DOMAIN_RATIO, labels, pods / running.pods)


def _allowed(rows: Iterable[Row]) -> Iterator[int]:
    """Yield the number of domains that each row allows, where it is known."""
    for row in rows:
        if not isinstance(row.next, UnsetType):
            allowed = row.next.allowed
            yield allowed if isinstance(allowed, int) else len(allowed)


def _timestamp(time: str | UnsetType) -> int | UnsetType:
    return time if isinstance(time, UnsetType) else int(datetime.fromisoformat(time).timestamp())
