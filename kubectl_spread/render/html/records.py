"""The records of the page: texts are safe to show, and a field that does not apply is None."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Final, Generic, TypeVar

import msgspec
from msgspec import UNSET, UnsetType

from kubectl_spread.kube.api import labels
from kubectl_spread.kube.api.types import LabelSelector
from kubectl_spread.phrases import plural
from kubectl_spread.render import about, figures, words
from kubectl_spread.render import findings as grouped
from kubectl_spread.report.model import SEVEREST_FIRST, Cluster, Finding, Report, Row

Value = str | int | bool | Sequence[str] | Sequence[int] | None
"""A value in a record; a list has texts or numbers, not both."""
Record = dict[str, Value]
_T = TypeVar("_T")


class Shared(Generic[_T]):
    """Values that several records share, each once, in order of appearance: records have their indices."""

    def __init__(self) -> None:
        self.values: list[_T] = []
        self._indices: dict[Hashable, int] = {}

    def index(self, key: Hashable, make: Callable[[], _T]) -> int:
        """Return the index of the value of a key, which is made when it is first asked for."""
        index = self._indices.setdefault(key, len(self.values))
        if index == len(self.values):
            self.values.append(make())
        return index


class Texts(Shared[str]):
    """The texts of all columns."""

    def columns(self, records: Sequence[Mapping[str, Value]]) -> dict[str, list[object]]:
        """Return records with the same field names as one list for each name.

        The name of a column of texts, or of lists of texts, ends with ``$``.
        """
        columns = {name: [record[name] for record in records] for name in (records[0] if records else ())}
        return {
            f"{name}$" if any(map(_has_text, column)) else name: [self._encoded(value) for value in column]
            for name, column in columns.items()
        }

    def _encoded(self, value: Value) -> object:
        if isinstance(value, str):
            return self.index(value, lambda: value)
        if isinstance(value, Sequence):
            return [self._encoded(element) for element in value]
        return value


def _has_text(value: Value) -> bool:
    if isinstance(value, str):
        return True
    return isinstance(value, Sequence) and bool(value) and isinstance(value[0], str)


_FIELDS: Final = {
    "pods": "pod_count",
    "pending": "pending",
    "terminating": "terminating",
    "maxSkew": "max_skew",
    "minDomains": "min_domains",
    "nodeAffinityPolicy": "node_affinity_policy",
    "nodeTaintsPolicy": "node_taints_policy",
    "emptyDomains": "empty_domains",
    "minMatchNum": "min_match_num",
    "selfMatchNum": "self_match_num",
    "lowerBound": "lower_bound",
}
"""Maps the names of fields of a row to those in the report."""
_NAMED: Final = 10
"""The most pods of a finding that are listed."""
_GATES: Final = {"metrics": "from metrics", "version": "assumed by version", "flag": "from flags"}


def facts(cluster: Cluster) -> list[tuple[str, str]]:
    """Return the known facts about the cluster as names and values; the title has the label already."""
    named_values = (
        ("Cluster", cluster.name),
        ("Context", cluster.context),
        ("Cluster UID", cluster.uid),
        ("Read at", cluster.read_at),
        ("Namespace", cluster.namespace),
        ("Kubernetes", cluster.server_version),
        ("Evaluated as", cluster.evaluated_as),
        ("Compared with", cluster.compared_with),
        ("Feature gates", _GATES[cluster.gates_source]),
        ("Nodes", about.nodes(cluster)),
        ("Revision of pods", cluster.resource_versions.get("pods")),
    )
    safe_values = [(name, words.safe(value)) for name, value in named_values if value]
    return [(name, value) for name, value in safe_values if value != about.label(cluster)]


def totals(report: Report) -> list[tuple[str, str]]:
    """Return the totals with their names."""
    summary = report.summary
    above = sum(row.exceeds_max_skew for row in report.constraints)
    counts = [("Pods", summary.pods), ("Constraints", summary.constraints), ("Above maxSkew", above)]
    if isinstance(summary.templates, int):
        counts.append(("Pod templates", summary.templates))
    return [(name, f"{number:,}") for name, number in counts]


def severities(findings: Sequence[Finding]) -> list[tuple[str, str]]:
    """Return the severities of the causes with their numbers: ``2 warnings``."""
    causes = figures.causes(findings)
    return [(str(severity), plural(causes[severity], figures.noun(severity))) for severity in SEVEREST_FIRST]


def findings(report: Report) -> list[Record]:
    """Return the findings in the order of their blocks and causes, with the numbers of both."""
    pods = figures.pods_by_place(report)
    return [
        {"block": number, "cause": index, **about_all, **_finding(finding, pods[finding.place])}
        for number, block in enumerate(grouped.blocks(report.findings))
        for index, cause in enumerate(block.causes)
        for about_all in [_closed(cause.findings)]
        for finding in cause.findings
    ]


def _closed(findings: Sequence[Finding]) -> Record:
    """Return a message about all findings of a cause, how to open the closed domains, and when else to do more."""
    domains = about.closed_domains(findings)
    if domains is None:
        return {"about": None, "opening": None, "opened": [], "condition": None, "lasting": False}
    return {
        "about": words.safe(about.message(findings)),
        "opening": words.safe(domains.fix),
        "opened": [words.safe(command) for command in domains.commands or ()],
        "condition": domains.condition,
        "lasting": domains.lasting and bool(about.alternatives(findings)),
    }


def _finding(finding: Finding, pods: int) -> Record:
    """Return a finding; ``pods`` is the number of pods with the constraint or term."""
    is_own = isinstance(finding.closed, UnsetType) or finding.has_alternative
    return {
        "code": finding.code,
        "name": finding.name,
        "severity": finding.severity.value,
        "namespace": words.safe(finding.namespace),
        "object": words.workload(finding.object),
        "path": words.short_path(finding.path),
        "concerned": figures.concerned(finding, pods),
        "podCount": finding.pod_count,
        "pods": [words.safe(name) for name in finding.pods[:_NAMED]],
        "message": words.safe(finding.message),
        "fix": words.safe(finding.fix) if is_own else "",
        "commands": [words.safe(command) for command in finding.own_commands] if is_own else [],
        "patch": _patch(finding),
        "written": _written(finding),
    }


def _patch(finding: Finding) -> str:
    """Return the lines to write in a manifest, or the operations of a finding's patch as ASCII, one a line, or ""."""
    if finding.lines:
        return "\n".join(
            words.safe(f"# {each.file}:{each.line}: {each.action}") + f"\n{each.yaml}" for each in finding.lines
        )
    if isinstance(finding.patch, UnsetType):
        return ""
    operations = (json.dumps(msgspec.to_builtins(operation)) for operation in finding.patch.operations)
    return "\n".join(("[", ",\n".join(f"  {operation}" for operation in operations), "]"))


def _written(finding: Finding) -> str:
    """Return the file and line of a finding on a manifest, or ""."""
    source = finding.source
    return "" if isinstance(source, UnsetType) else f"{words.safe(source.file)}:{source.line}"


class Rows:
    """Rows next to the records that they share: a row has the indices of its workload and its domains.

    Attributes:
        rows: A record for each row, in the report's order.
        workloads: Namespace and name.
        domains: Topology values and the nodes of each.
    """

    def __init__(self, rows: Iterable[Row]) -> None:
        """Make the records of rows."""
        self.workloads, self.domains = Shared[Record](), Shared[Record]()
        self.rows = [{**self._shared(row), **_fields(row)} for row in rows]

    def _shared(self, row: Row) -> Record:
        ref = row.place.object
        workload = self.workloads.index(
            ref, lambda: {"namespace": words.safe(ref.namespace), "name": words.workload(ref)}
        )
        domains = None if figures.matches_nothing(row) else _value_or_none(row.domains)
        if domains is None:
            return {"workload": workload, "domains": None, "counts": None, "allowed": None}
        nodes = [domain.nodes for domain in domains]
        key = tuple((domain.value, domain.nodes) for domain in domains)
        return {
            "workload": workload,
            "domains": self.domains.index(
                key, lambda: {"values": [words.value(domain.value) for domain in domains], "nodes": nodes}
            ),
            "counts": [domain.match_num for domain in domains],
            "allowed": _pattern(row),
        }


def _pattern(row: Row) -> str | None:
    """Return ``1`` for each domain where the next pod may go, else ``0``; None if the report only counts domains."""
    following, domains = _value_or_none(row.next), _value_or_none(row.domains)
    if following is None or domains is None or isinstance(following.allowed, int):
        return None
    allowed = frozenset(following.allowed)
    return "".join("1" if domain.value in allowed else "0" for domain in domains)


def _fields(row: Row) -> Record:
    """Return the fields of a row that need no other records."""
    following, selector = _value_or_none(row.next), row.selector
    values = {name: _value_or_none(getattr(row, field)) for name, field in _FIELDS.items()}
    return {
        "clause": words.requirement(row),
        "key": words.safe(row.topology_key),
        "path": words.short_path(row.path),
        **{name: words.safe(value) if isinstance(value, str) else value for name, value in values.items()},
        "skew": _value_or_none(row.skew) if figures.is_counted(row) else None,
        "allowedNumber": following.allowed if following and isinstance(following.allowed, int) else None,
        **{name: _described(getattr(selector, name)) for name in ("authored", "merged", "stored", "effective")},
        "diff": [words.safe(line) for line in row.diff or ()],
        "verdicts": [f"{verdict} {number}" for verdict, number in row.verdicts.items()],
        "doubted": figures.is_doubtful(row),
    }


def _described(selector: LabelSelector | UnsetType | None) -> str | None:
    return None if selector is UNSET else words.safe(labels.describe(selector))


def _value_or_none(value: _T | UnsetType) -> _T | None:
    """Return the value of a field, or None if it does not apply."""
    return None if isinstance(value, UnsetType) else value
