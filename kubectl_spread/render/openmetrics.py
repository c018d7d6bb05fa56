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

from kubectl_spread.render.words import safe, value
from kubectl_spread.report.model import Cluster, Report, Row, Summary
from kubectl_spread.report.severity import SEVEREST_FIRST

MOST_DOMAINS: Final = 32
"""A constraint with more domains has no series for them, because each new hostname would begin a series."""
_Labels: TypeAlias = tuple[tuple[str, str], ...]
_Samples: TypeAlias = Iterable[tuple[_Labels, int]]
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
        sums[labels] += number
    made = GaugeMetricFamily(f"kube_spread_{name}", text)
    for labels, number in sums.items():
        made.add_sample(made.name, dict(labels), number)
    return made


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
    read = "When pods were read, by the clock of the API server."
    yield _gauge("read_timestamp_seconds", read, _single(_timestamp(cluster.read_at)))
    yield _gauge("nodes", "Nodes that were listed.", _single(cluster.node_count))


def _totals(summary: Summary) -> Iterator[Metric]:
    yield _gauge("judged_pods", "Pods that were evaluated.", _single(summary.pods))
    yield _gauge("judged_templates", "Pod templates that were evaluated.", _single(summary.templates))
    yield _gauge("constraint_rows", "Constraints of the report.", _single(summary.constraints))
    severities = ((_labels(severity=str(severity)), summary.findings.of(severity)) for severity in SEVEREST_FIRST)
    yield _gauge("severity_findings", "Findings by severity.", severities)
    yield _gauge("silenced_findings", "Findings that were silenced.", _single(summary.silenced))
    yield _gauge("known_findings", "Findings that the baseline has.", _single(summary.known))
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
    rows = [(place, row) for place, rows_there in places.items() for row in rows_there]
    yield _gauge("pods", "Pods with the constraint.", ((place, row.pod_count) for place, row in rows))
    yield _gauge("pending_pods", "Pods without a node.", ((place, row.pending) for place, row in rows))
    verdicts = (
        ((*place, *_labels(verdict=verdict)), number) for place, row in rows for verdict, number in row.verdicts.items()
    )
    yield _gauge("verdict_pods", "Pods by the verdict on their stored selector.", verdicts)


def _counted(places: _Places) -> Iterator[Metric]:
    """Yield the counts of the worst row of each place."""
    worst = {place: max(rows, key=_excess) for place, rows in places.items()}
    measures = [(place, _measures(row)) for place, row in worst.items()]
    for name, text in _COUNTED.items():
        yield _gauge(name, text, ((place, number) for place, values in measures for number in _numbers(values[name])))
    domains = (
        ((*place, ("domain", value(domain.value))), domain.match_num)
        for place, row in worst.items()
        if not isinstance(row.domains, UnsetType) and len(row.domains) + _empty(row) <= MOST_DOMAINS
        for domain in row.domains
    )
    yield _gauge("domain_pods", f"Matching pods of a domain, where there are up to {MOST_DOMAINS}.", domains)


def _excess(row: Row) -> float:
    """Return how far a row is above its maxSkew; rows without a count are lowest."""
    return float("-inf") if row.excess is None else row.excess


def _measures(row: Row) -> dict[str, int | UnsetType]:
    counted = not isinstance(row.domains, UnsetType)
    counts = [] if isinstance(row.domains, UnsetType) else [domain.match_num for domain in row.domains]
    return {
        "skew": row.skew,
        "max_skew": row.max_skew,
        "lower_bound": row.lower_bound,
        "domains": len(counts) + _empty(row) if counted else UNSET,
        "min_match": row.min_match_num,
        "max_match": max(counts, default=0) if counted else UNSET,
    }


def _empty(row: Row) -> int:
    """Return the number of domains that are not listed because they have no pod."""
    return 0 if isinstance(row.empty_domains, UnsetType) else row.empty_domains


def _numbers(number: int | UnsetType) -> list[int]:
    """Return a number as a list, which is empty if the number does not apply."""
    return [] if isinstance(number, UnsetType) else [int(number)]


def _timestamp(time: str | UnsetType) -> int | UnsetType:
    return UNSET if isinstance(time, UnsetType) else int(datetime.fromisoformat(time).timestamp())


def _single(number: int | UnsetType) -> _Samples:
    return [] if isinstance(number, UnsetType) else [((), int(number))]
