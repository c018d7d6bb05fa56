"""The records of the page; a field that does not apply is None."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final, TypeVar

from msgspec import UNSET, UnsetType

from kubectl_spread.kube.api import labels
from kubectl_spread.kube.api.objects import ObjectRef
from kubectl_spread.kube.api.types import LabelSelector
from kubectl_spread.phrases import named, plural
from kubectl_spread.phrases import value as value_of
from kubectl_spread.render import about, figures, words
from kubectl_spread.render import findings as grouped
from kubectl_spread.report.model import SEVEREST_FIRST, Cluster, Finding, Report, Row

Value = str | int | bool | Sequence[str] | Sequence[int] | None
"""A value in a record; a list has texts or numbers, not both."""
Record = dict[str, Value]
_T = TypeVar("_T")
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
_UPPER: Final = re.compile("[A-Z]")


def facts(cluster: Cluster) -> list[tuple[str, str]]:
    """Return the identity of the cluster as names and values; the title has the label already."""
    names = {"uid": "UID", "serverVersion": "Kubernetes"}
    identity = {name: value for name, value in about.identity(cluster).items() if value != about.label(cluster)}
    return [(names.get(name) or _UPPER.sub(r" \g<0>", name).capitalize(), value) for name, value in identity.items()]


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


def data(report: Report) -> dict[str, object]:
    """Return the records of rows, workloads, sets of domains and findings, by columns, with each text once.

    A row has the indices of its workload and its domains, and a finding those of its workload and of the card of its
    cause, from 1. Findings of workloads without rows are left out.
    """
    workloads: dict[ObjectRef, int] = {}
    domains: dict[tuple[tuple[str, int], ...], int] = {}
    rows = [
        {"workload": workloads.setdefault(row.place.object, len(workloads)), **_counts(row, domains), **_fields(row)}
        for row in report.constraints
    ]
    tables: dict[str, list[Record]] = {
        "findings": _findings(report.findings, workloads),
        "rows": rows,
        "workloads": [{"namespace": ref.namespace, "name": named(ref.kind, ref.name)} for ref in workloads],
        "domains": [
            {"values": [value_of(value) for value, _ in pairs], "nodes": [nodes for _, nodes in pairs]}
            for pairs in domains
        ],
    }
    texts: dict[str, int] = {}
    columns = {name: by_columns(records, texts) for name, records in tables.items()}
    return {**columns, "texts": [*texts]}


def by_columns(records: Sequence[Mapping[str, Value]], texts: dict[str, int]) -> dict[str, list[object]]:
    """Return records with the same field names as one list for each name.

    Texts are their indices in ``texts``, which are safe to show. The name of a column of texts, or of lists of texts,
    ends with ``$``.
    """
    columns = {name: [record[name] for record in records] for name in (records[0] if records else ())}
    return {
        f"{name}$" if any(map(_has_text, column)) else name: [_encoded(value, texts) for value in column]
        for name, column in columns.items()
    }


def _has_text(value: Value) -> bool:
    return isinstance(value, str) or (isinstance(value, Sequence) and bool(value) and isinstance(value[0], str))


def _encoded(value: Value, texts: dict[str, int]) -> object:
    if isinstance(value, str):
        return texts.setdefault(words.safe(value), len(texts))
    if isinstance(value, Sequence):
        return [_encoded(element, texts) for element in value]
    return value


def _findings(findings: Sequence[Finding], workloads: Mapping[ObjectRef, int]) -> list[Record]:
    causes = (cause for block in grouped.blocks(findings) for cause in block.causes)
    return [
        {
            "workload": workloads[finding.ref],
            "cause": number,
            "severity": finding.severity.value,
            "rule": f"{finding.code} {finding.name}",
        }
        for number, cause in enumerate(causes, 1)
        for finding in cause.findings
        if finding.ref in workloads
    ]


def _counts(row: Row, sets: dict[tuple[tuple[str, int], ...], int]) -> Record:
    """Return the index of a row's domains, the matching pods in each, and where the next pod may go."""
    domains = None if figures.matches_nothing(row) else _value_or_none(row.domains)
    if domains is None:
        return {"domains": None, "counts": None, "allowed": None}
    pairs = tuple((domain.value, domain.nodes) for domain in domains)
    counts = [domain.match_num for domain in domains]
    return {"domains": sets.setdefault(pairs, len(sets)), "counts": counts, "allowed": _pattern(row)}


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
        "key": row.topology_key,
        "path": words.short_path(row.path),
        **values,
        "skew": _value_or_none(row.skew) if figures.is_counted(row) else None,
        "allowedNumber": following.allowed if following and isinstance(following.allowed, int) else None,
        **{name: _described(getattr(selector, name)) for name in ("authored", "merged", "stored", "effective")},
        "diff": [*row.diff] if row.diff else [],
        "verdicts": [f"{verdict} {number}" for verdict, number in row.verdicts.items()],
        "doubted": figures.is_doubtful(row),
    }


def _described(selector: LabelSelector | UnsetType | None) -> str | None:
    return None if selector is UNSET else labels.describe(selector)


def _value_or_none(value: _T | UnsetType) -> _T | None:
    """Return the value of a field, or None if it does not apply."""
    return None if isinstance(value, UnsetType) else value
