"""Metrics: gauges in the text format of Prometheus, node_exporter's textfile collector and OpenMetrics parsers.

Several rows may share a workload, path and topology key and differ in the selector, as the revisions of a rollout do.
A label for the selector would begin new series with every rollout, so these rows share one series: pods are added up,
and counts are those of the row furthest above its maxSkew. Thus ``kube_spread_skew > kube_spread_max_skew`` holds if it
holds for one of the rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Final, TypeAlias

from msgspec import UNSET, UnsetType
from prometheus_client import CollectorRegistry
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.openmetrics.exposition import generate_latest
from prometheus_client.registry import Collector

from kubectl_spread.render.figures import domain_counts
from kubectl_spread.render.words import safe, value
from kubectl_spread.report.model import Cluster, Report, Row, Summary
from kubectl_spread.report.severity import SEVEREST_FIRST

MOST_DOMAINS: Final = 32
"""A constraint with more domains has no series for them, because each new hostname would begin a series."""
_Labels: TypeAlias = tuple[tuple[str, str], ...]
_Samples: TypeAlias = Iterable[tuple[_Labels, int | UnsetType]]
"""Labels and their value; UNSET does not apply, and has no sample."""
_Places: TypeAlias = dict[_Labels, list[Row]]
_COUNTED: Final = {
    "skew": "Pods of the fullest eligible domain above the global minimum.",
    "max_skew": "The maxSkew of the constraint.",
    "lower_bound": "1 where domains are inferred from pods, so that the skew may be larger.",
    "domains": "Eligible domains.",
    "min_match": "The global minimum of matching pods in a domain.",
    "max_match": "Matching pods of the fullest eligible domain.",
}


def openmetrics(report: Report) -> str:
    """Return a report as gauges without timestamps, which all readers of both text formats accept."""
    registry = CollectorRegistry()
    registry.register(_Gauges(report))
    text: bytes = generate_latest(registry)
    return text.decode()


class _Gauges(Collector):
    """The gauges of a report; those of prometheus_client would be in files if PROMETHEUS_MULTIPROC_DIR is set."""

    def __init__(self, report: Report) -> None:
        self._report = report

    def collect(self) -> Iterator[Metric]:
        """Yield the gauges that have a value."""
        report = self._report
        places = _places(report.constraints)
        for metric in (
            *_cluster(report.cluster),
            *_totals(report.summary),
            _findings(report),
            *_pods(places),
            *_counted(places),
        ):
            if metric.samples:
                yield metric


def _gauge(name: str, text: str, samples: _Samples) -> Metric:
    """Return a gauge; values with the same labels are added up, because escapes may make two texts equal."""
    sums: Counter[_Labels] = Counter()
    for labels, number in samples:
        if not isinstance(number, UnsetType):
            sums[labels] += number
    gauge = GaugeMetricFamily(f"kube_spread_{name}", text)
    for labels, total in sums.items():
        gauge.add_sample(gauge.name, dict(labels), total)
    return gauge


def _labels(**texts: str | UnsetType) -> _Labels:
    return tuple((name, "" if isinstance(text, UnsetType) else safe(text)) for name, text in texts.items())


def _cluster(cluster: Cluster) -> Iterator[Metric]:
    labels = _labels(
        context=cluster.context,
        cluster_name=cluster.name,
        cluster_uid=cluster.uid,
        judged_as=cluster.judged_as,
        server_version=cluster.server_version,
        version_source=cluster.version_source,
        nodes=cluster.nodes,
    )
    yield _gauge("info", "The cluster of the report, and what it was evaluated as.", [(labels, 1)])
    read_at = _timestamp(cluster.read_at)
    yield _gauge("read_timestamp_seconds", "When pods were read, by the clock of the API server.", [((), read_at)])
    yield _gauge("nodes", "Nodes that were listed.", [((), cluster.node_count)])


def _totals(summary: Summary) -> Iterator[Metric]:
    yield _gauge("judged_pods", "Pods that were evaluated.", [((), summary.pods)])
    yield _gauge("judged_templates", "Pod templates that were evaluated.", [((), summary.templates)])
    yield _gauge("constraint_rows", "Constraints of the report.", [((), summary.constraints)])
    severities = ((_labels(severity=str(severity)), summary.findings.of(severity)) for severity in SEVEREST_FIRST)
    yield _gauge("severity_findings", "Findings by severity.", severities)
    yield _gauge("silenced_findings", "Findings that were silenced.", [((), summary.silenced)])
    yield _gauge("known_findings", "Findings that the baseline has.", [((), summary.known)])
    skipped = ((_labels(reason=reason), number) for reason, number in summary.skipped.items())
    yield _gauge("skipped_objects", "Objects or lists that were not evaluated, by reason.", skipped)


def _findings(report: Report) -> Metric:
    samples = (
        (_labels(code=finding.code, name=finding.name, severity=str(finding.severity), namespace=finding.namespace), 1)
        for finding in report.findings
    )
    return _gauge("findings", "Findings by rule and namespace.", samples)


def _places(rows: Iterable[Row]) -> _Places:
    """Return the rows of each workload, path and topology key."""
    places: _Places = {}
    for row in rows:
        labels = _labels(
            namespace=row.namespace,
            workload_kind=row.workload.kind,
            workload=row.workload.name,
            path=row.path,
            topology_key=row.topology_key,
            when_unsatisfiable=row.when_unsatisfiable,
        )
        places.setdefault(labels, []).append(row)
    return places


def _pods(places: _Places) -> Iterator[Metric]:
    rows = [(place, row) for place, place_rows in places.items() for row in place_rows]
    yield _gauge("pods", "Pods with the constraint.", ((place, row.pod_count) for place, row in rows))
    yield _gauge("pending_pods", "Pods without a node.", ((place, row.pending) for place, row in rows))
    verdicts = (
        ((*place, *_labels(verdict=verdict)), number) for place, row in rows for verdict, number in row.verdicts.items()
    )
    yield _gauge("verdict_pods", "Pods by the verdict on their stored selector.", verdicts)


def _counted(places: _Places) -> Iterator[Metric]:
    """Yield the counts of the worst row of each place."""
    worst = {place: max(rows, key=_excess) for place, rows in places.items()}
    measures = {place: _measures(row) for place, row in worst.items()}
    for name, text in _COUNTED.items():
        yield _gauge(name, text, ((place, values[name]) for place, values in measures.items()))
    domains = (
        ((*place, ("domain", value(domain.value))), domain.match_num)
        for place, row in worst.items()
        if isinstance(row.domains, list) and (counts := domain_counts(row)) and counts.number <= MOST_DOMAINS
        for domain in row.domains
    )
    yield _gauge("domain_pods", f"Matching pods of a domain, where there are up to {MOST_DOMAINS}.", domains)


def _excess(row: Row) -> float:
    """Return how far a row is above its maxSkew; rows without a count are lowest."""
    return float("-inf") if row.excess is None else row.excess


def _measures(row: Row) -> dict[str, int | UnsetType]:
    counts = domain_counts(row)
    return {
        "skew": row.skew,
        "max_skew": row.max_skew,
        "lower_bound": row.lower_bound,
        "domains": counts.number if counts else UNSET,
        "min_match": row.min_match_num,
        "max_match": counts.most if counts else UNSET,
    }


def _timestamp(time: str | UnsetType) -> int | UnsetType:
    return UNSET if isinstance(time, UnsetType) else int(datetime.fromisoformat(time).timestamp())
