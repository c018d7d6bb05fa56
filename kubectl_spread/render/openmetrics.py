"""Metrics: gauges in the text that Prometheus, node_exporter's textfile collector and OpenMetrics parsers all take.

Several rows may share a workload, path and topology key: they differ in the selector, as the revisions of a rollout do.
A label for that would begin new series with every rollout, so they share one: pods are added up, and what is counted is
that of the row furthest above its maxSkew. Then ``kube_spread_skew > kube_spread_max_skew`` holds if it holds for any.
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
"""A constraint with more domains has no series for each of them: those of hostnames would never end."""
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
    """Return a report as gauges without timestamps, which every reader of either text format takes."""
    registry = CollectorRegistry()
    registry.register(_Gauges(report))
    text: bytes = generate_latest(registry)
    return text.decode()


class _Gauges(Collector):
    """The gauges of a report: an environment variable would put the values of prometheus_client's own into files."""

    def __init__(self, report: Report) -> None:
        self._report = report

    def collect(self) -> Iterator[Metric]:
        """Yield the gauges that have a value."""
        report = self._report
        places = _places(report.constraints)
        for found in (
            *_cluster(report.cluster),
            *_totals(report.summary),
            _findings(report),
            *_pods(places),
            *_counted(places),
        ):
            if found.samples:
                yield found


def _gauge(name: str, text: str, samples: _Samples) -> Metric:
    """Return a gauge, values with the same labels added up: escaping may make two texts alike."""
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
    found = (
        (_labels(code=one.code, name=one.name, severity=str(one.severity), namespace=one.namespace), 1)
        for one in report.findings
    )
    return _gauge("findings", "Findings by rule and namespace.", found)


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
    rows = [(place, row) for place, found in places.items() for row in found]
    yield _gauge("pods", "Pods with the constraint.", ((place, row.pod_count) for place, row in rows))
    yield _gauge("pending_pods", "Pods without a node.", ((place, row.pending) for place, row in rows))
    verdicts = (
        ((*place, *_labels(verdict=verdict)), number) for place, row in rows for verdict, number in row.verdicts.items()
    )
    yield _gauge("verdict_pods", "Pods by the verdict on their stored selector.", verdicts)


def _counted(places: _Places) -> Iterator[Metric]:
    """Yield what is counted, of the worst row of each place."""
    worst = {place: max(rows, key=_excess) for place, rows in places.items()}
    measures = [(place, _measures(row)) for place, row in worst.items()]
    for name, text in _COUNTED.items():
        yield _gauge(name, text, ((place, number) for place, found in measures for number in _known(found[name])))
    domains = (
        ((*place, ("domain", value(domain.value))), domain.match_num)
        for place, row in worst.items()
        if not isinstance(row.domains, UnsetType) and len(row.domains) + _empty(row) <= MOST_DOMAINS
        for domain in row.domains
    )
    yield _gauge("domain_pods", f"Matching pods of a domain, where there are up to {MOST_DOMAINS}.", domains)


def _excess(row: Row) -> float:
    """Return how far a row is above its maxSkew; nothing is less than not to be counted."""
    return float("-inf") if row.excess is None else row.excess


def _measures(row: Row) -> dict[str, int | UnsetType]:
    known = not isinstance(row.domains, UnsetType)
    counts = [] if isinstance(row.domains, UnsetType) else [domain.match_num for domain in row.domains]
    return {
        "skew": row.skew,
        "max_skew": row.max_skew,
        "lower_bound": row.lower_bound,
        "domains": len(counts) + _empty(row) if known else UNSET,
        "min_match": row.min_match_num,
        "max_match": max(counts, default=0) if known else UNSET,
    }


def _empty(row: Row) -> int:
    """Return how many domains are not listed because they hold no pod."""
    return 0 if isinstance(row.empty_domains, UnsetType) else row.empty_domains


def _known(found: int | UnsetType) -> list[int]:
    """Return a number if there is one."""
    return [] if isinstance(found, UnsetType) else [int(found)]


def _timestamp(time: str | UnsetType) -> int | UnsetType:
    return UNSET if isinstance(time, UnsetType) else int(datetime.fromisoformat(time).timestamp())


def _single(found: int | UnsetType) -> _Samples:
    return (((), number) for number in _known(found))
