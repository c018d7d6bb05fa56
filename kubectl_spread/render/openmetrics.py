"""Which metrics does a report have? Gauges in the text format of Prometheus 0.0.4, which OpenMetrics 1.0.0 shares.

Each family is declared once, and docs/metrics.md is generated from them. All are gauges, because a value may fall at
any time.

Several rows may share a workload, path and topology key and differ in the selector, as the revisions of a rollout do.
A label for the selector would begin new series with every rollout, so these rows share their series: pods are added
up, the allowed domains are those of the row with the fewest, and the other values are those of the row furthest above
its maxSkew. Thus ``kube_spread_constraint_skew > kube_spread_constraint_max_skew`` holds if it holds for one of the
rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Final, TypeAlias

import msgspec
from msgspec import UNSET, UnsetType

from kubectl_spread.diagnosis.exposure import RunningPods
from kubectl_spread.kube.api.labels import HOSTNAME, ZONE
from kubectl_spread.phrases import value
from kubectl_spread.render.figures import domain_counts
from kubectl_spread.render.words import safe
from kubectl_spread.report.model import SEVEREST_FIRST, Cluster, Finding, Report, Row, Summary

MOST_DOMAINS: Final = 32
"""A constraint or workload with more domains has no series for them, because each new hostname would begin a series."""
WORKLOAD: Final = ("namespace", "workload", "workload_type")
"""The labels of a workload, as kubernetes-mixin has them; the type is the kind in lower case."""
CONSTRAINT: Final = (*WORKLOAD, "path", "topology_key")
"""The labels of a constraint or affinity term."""


class Family(msgspec.Struct, frozen=True, eq=False):
    """The metrics with one name.

    Attributes:
        name: The complete name.
        labels: The names of the labels, in the order of a line.
        help: The meaning of the value.
        source: The part of the cluster or of the report that the value comes from.
        experimental: Whether the name, the labels and the meaning may change in any release.
        totals: Whether there is one value for the whole report, and not one for each workload.
    """

    name: str
    labels: tuple[str, ...]
    help: str
    source: str
    experimental: bool = False
    totals: bool = False

    @property
    def stability(self) -> str:
        """How far the name can be relied on, in the words of Kubernetes' own metrics."""
        return "EXPERIMENTAL" if self.experimental else "STABLE"

    @property
    def header(self) -> str:
        """The lines before the samples."""
        return f"# HELP {self.name} [{self.stability}] {self.help}\n# TYPE {self.name} gauge\n"


def _total(name: str, meaning: str, source: str, *labels: str) -> Family:
    return Family(f"kube_spread_{name}", labels, meaning, source, totals=True)


def _of_constraint(name: str, meaning: str, source: str, *labels: str, experimental: bool = False) -> Family:
    return Family(f"kube_spread_constraint_{name}", (*CONSTRAINT, *labels), meaning, source, experimental)


def _of_workload(name: str, meaning: str, *labels: str) -> Family:
    family = f"kube_spread_workload_{name}"
    return Family(family, (*WORKLOAD, *labels), meaning, _PLACED, experimental=True)


_PLACED: Final = "bound pods and nodes"
INFO: Final = _total(
    "info",
    "The cluster, and the Kubernetes minor that it was evaluated as. The value is 1.",
    "kubeconfig, `/version`, namespace `kube-system`",
    *("context", "cluster_name", "cluster_uid", "evaluated_as", "server_version", "version_source", "nodes"),
)
READ: Final = _total(
    "read_timestamp_seconds",
    "When the pods were read, by the clock of the API server.",
    "the `Date` header of the API server",
)
NODES: Final = _total("nodes", "Nodes that were listed.", "nodes")
EVALUATED_PODS: Final = _total("evaluated_pods", "Pods that were evaluated.", "pods")
EVALUATED_TEMPLATES: Final = _total("evaluated_templates", "Pod templates that were evaluated.", "workloads")
CONSTRAINTS: Final = _total("constraints", "Constraints and affinity terms in the report.", "the report")
FINDINGS: Final = _total("findings", "Findings by severity, also where there are none.", "rules", "severity")
SILENCED: Final = _total(
    "silenced_findings", "Findings that --ignore, --severity or an annotation leaves out.", "rules"
)
KNOWN: Final = _total("known_findings", "Findings that the baseline has.", "the file of `--baseline`")
SKIPPED: Final = _total(
    "skipped_objects", "Objects or lists that were not evaluated, by reason.", "the report", "reason"
)
FINDING: Final = Family(
    "kube_spread_finding",
    (*WORKLOAD, "code", "severity"),
    "The workload has a finding with this code and severity. The value is 1.",
    "rules",
)
CONSTRAINT_INFO: Final = _of_constraint(
    "info",
    "The fields of the constraint, with defaults; empty where a field does not apply. The value is 1.",
    "pods",
    *("when_unsatisfiable", "max_skew", "min_domains", "node_affinity_policy", "node_taints_policy"),
)
SKEW: Final = _of_constraint("skew", "Matching pods of the fullest eligible domain above the global minimum.", _PLACED)
MAX_SKEW: Final = _of_constraint("max_skew", "The maxSkew of the constraint.", "pods")
GLOBAL_MINIMUM: Final = _of_constraint(
    "global_minimum", "Matching pods of the emptiest eligible domain; 0 with fewer domains than minDomains.", _PLACED
)
ELIGIBLE_DOMAINS: Final = _of_constraint(
    "eligible_domains", "Domains that have a node which counts for the pods.", "nodes"
)
ALLOWED_DOMAINS: Final = _of_constraint(
    "allowed_domains",
    "Domains where this constraint allows one more such pod.",
    _PLACED,
    experimental=True,
)
LOWER_BOUND: Final = _of_constraint(
    "lower_bound",
    "1 where domains are inferred from pods, so that the skew may be larger.",
    "zone labels of pods, where nodes cannot be listed",
    experimental=True,
)
CONSTRAINT_PODS: Final = _of_constraint("pods", "Pods with the constraint.", "pods")
PENDING_PODS: Final = _of_constraint("pending_pods", "Pods with the constraint that have no node.", "pods")
DOMAIN_PODS: Final = _of_constraint(
    "domain_pods",
    f"Matching pods of an eligible domain, where there are up to {MOST_DOMAINS} domains.",
    _PLACED,
    "domain",
    experimental=True,
)
VERDICT_PODS: Final = Family(
    "kube_spread_pods",
    (*CONSTRAINT, "verdict"),
    "Pods with the constraint by the verdict on their stored selector.",
    "labels and selectors of pods",
)
WORKLOAD_PODS: Final = _of_workload("pods", "Running pods of a workload with replicas, on nodes that were listed.")
WORKLOAD_DOMAIN_PODS: Final = _of_workload(
    "domain_pods",
    f"Running pods of a workload in each zone that has any, where there are up to {MOST_DOMAINS} such zones.",
    *("topology_key", "domain"),
)
LARGEST_DOMAIN_RATIO: Final = _of_workload(
    "largest_domain_ratio",
    "Share of a workload's running pods in the zone, or on the node, with the most of them; from 0 to 1.",
    "topology_key",
)
FAMILIES: Final = tuple(family for family in vars().values() if isinstance(family, Family))
"""The families above, in the order of a page."""


Lines: TypeAlias = Mapping[Family, bytes]
"""The sample lines of each family, each with its line feed; families without samples are left out."""
_ESCAPES: Final = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


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
    samples.add(INFO, _labels(INFO.labels, texts), 1)
    samples.add(READ, "", _timestamp(cluster.read_at))
    samples.add(NODES, "", cluster.node_count)
    samples.add(EVALUATED_PODS, "", summary.pods)
    samples.add(EVALUATED_TEMPLATES, "", summary.templates)
    samples.add(CONSTRAINTS, "", summary.constraints)
    for severity in SEVEREST_FIRST:
        labels = _labels(FINDINGS.labels, (severity.value,))
        samples.add(FINDINGS, labels, summary.findings.of(severity))
    samples.add(SILENCED, "", summary.silenced)
    samples.add(KNOWN, "", summary.known)
    for reason, number in summary.skipped.items():
        samples.add(SKIPPED, _labels(SKIPPED.labels, (reason,)), number)
    return samples.lines()


class _Samples:
    """Values by family and labels. Labels may be equal for different texts, because of escapes."""

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


def _labels(names: Iterable[str], texts: Iterable[str | int | UnsetType]) -> str:
    """Return labels with their values, which are safe to show; "" for UNSET."""
    values = ("" if isinstance(text, UnsetType) else safe(str(text)).translate(_ESCAPES) for text in texts)
    return ",".join([f'{name}="{value}"' for name, value in zip(names, values, strict=True)])


def _workload(namespace: str, kind: str, name: str) -> str:
    return _labels(WORKLOAD, (namespace, name, kind.lower()))


def _place(row: Row) -> str:
    """Return the labels of a constraint."""
    texts = (row.namespace, row.workload.name, row.workload.kind.lower(), row.path, row.topology_key)
    return _labels(CONSTRAINT, texts)


def _add_findings(samples: _Samples, findings: Iterable[Finding]) -> None:
    for finding in findings:
        workload = _workload(finding.namespace, finding.object.kind, finding.object.name)
        labels = _labels(("code", "severity"), (finding.code, finding.severity.value))
        samples.raise_to(FINDING, f"{workload},{labels}", 1)


def _add_place(samples: _Samples, place: str, rows: list[Row]) -> None:
    for row in rows:
        samples.add(CONSTRAINT_PODS, place, row.pod_count)
        samples.add(PENDING_PODS, place, row.pending)
        for verdict, number in row.verdicts.items():
            samples.add(VERDICT_PODS, f"{place},{_labels(('verdict',), (verdict,))}", number)
    samples.add(ALLOWED_DOMAINS, place, min(_allowed(rows), default=UNSET))
    _add_counts(samples, place, max(rows, key=lambda row: float("-inf") if row.excess is None else row.excess))


def _add_counts(samples: _Samples, place: str, row: Row) -> None:
    fields = (row.when_unsatisfiable, row.max_skew, row.min_domains, row.node_affinity_policy, row.node_taints_policy)
    names = CONSTRAINT_INFO.labels[len(CONSTRAINT) :]
    samples.add(CONSTRAINT_INFO, f"{place},{_labels(names, fields)}", 1)
    samples.add(MAX_SKEW, place, row.max_skew)
    samples.add(SKEW, place, row.skew)
    samples.add(GLOBAL_MINIMUM, place, row.min_match_num)
    samples.add(LOWER_BOUND, place, row.lower_bound)
    counts = domain_counts(row)
    if counts is None or isinstance(row.domains, UnsetType):
        return
    samples.add(ELIGIBLE_DOMAINS, place, counts.number)
    for domain in row.domains if counts.number <= MOST_DOMAINS else ():
        labels = _labels(("domain",), (value(domain.value),))
        samples.add(DOMAIN_PODS, f"{place},{labels}", domain.match_num)


def _add_running(samples: _Samples, running: RunningPods) -> None:
    workload = _workload(running.workload.namespace, running.workload.kind, running.workload.name)
    samples.add(WORKLOAD_PODS, workload, running.pods)
    if len(running.zones) <= MOST_DOMAINS:
        for zone, pods in running.zones:
            labels = _labels(("topology_key", "domain"), (ZONE, value(zone)))
            samples.add(WORKLOAD_DOMAIN_PODS, f"{workload},{labels}", pods)
    for key, pods in ((ZONE, running.fullest_zone), (HOSTNAME, running.fullest_node)):
        if pods:
            labels = f"{workload},{_labels(('topology_key',), (key,))}"
            samples.raise_to(LARGEST_DOMAIN_RATIO, labels, pods / running.pods)


def _allowed(rows: Iterable[Row]) -> Iterator[int]:
    """Yield the number of domains that each row allows, where it is known."""
    for row in rows:
        if not isinstance(row.next, UnsetType):
            allowed = row.next.allowed
            yield allowed if isinstance(allowed, int) else len(allowed)


def _timestamp(time: str | UnsetType) -> int | UnsetType:
    return time if isinstance(time, UnsetType) else int(datetime.fromisoformat(time).timestamp())


END: Final = b"# EOF\n"


def text(report: Report, running: Iterable[RunningPods] = ()) -> str:
    """Return a report as gauges without timestamps, which all readers of both text formats accept."""
    totals = lines(of_totals(report.cluster, report.summary))
    return (totals + lines(of_report(report, running)) + END).decode()


def lines(samples: Lines) -> bytes:
    """Return the lines of some families with their headers; the totals come before all others."""
    return b"".join(family.header.encode() + samples[family] for family in FAMILIES if family in samples)
