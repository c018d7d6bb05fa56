"""OpenReports: manifests of ``openreports.io/v1alpha1``, one Report a namespace, for the tools that show such reports.

Results without a namespace, about objects that were not evaluated, go into a ClusterReport. Nothing is applied.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, Literal, TypeAlias

import msgspec
from msgspec import UNSET, UnsetType

from kubectl_spread.kube.api.objects import ObjectRef
from kubectl_spread.kube.api.workloads import KINDS
from kubectl_spread.phrases import plural, some
from kubectl_spread.render import about, words, yaml_text
from kubectl_spread.render.words import safe
from kubectl_spread.report.model import FieldRef, Finding, Report, Row
from kubectl_spread.report.severity import Severity

SOURCE: Final = "kubectl-spread"
MOST_BYTES: Final = 1_000_000
"""The most bytes of results in one object: etcd accepts 1.5 MiB."""
_Outcome: TypeAlias = Literal["pass", "fail", "warn", "error", "skip"]
_ReportSeverity: TypeAlias = Literal["high", "medium", "info"]
_WORDS: Final = re.compile(r"(?=[A-Z])")
"""The beginning of a word in a name such as ``readAt``."""
_CATEGORY: Final = "Topology Spread"
_API_VERSIONS: Final = {"Pod": "v1", **{kind: f"{group}/v1".lstrip("/") for group, kind in KINDS}}
_OUTCOMES: Final[dict[Severity, tuple[_Outcome, _ReportSeverity]]] = {
    Severity.ERROR: ("fail", "high"),
    Severity.WARNING: ("warn", "medium"),
    Severity.INFO: ("warn", "info"),
}
_UNANSWERED: Final = frozenset({"conflicting", "forbidden", "malformed", "unreadable"})
"""Reasons why objects in scope were not evaluated; other skipped objects are not in scope."""


class _Reference(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The object of a result; the API version of a kind from outside Kubernetes is unknown."""

    api_version: str | UnsetType
    kind: str
    namespace: str
    name: str


class _Result(msgspec.Struct, frozen=True, kw_only=True):
    """The finding of a rule, or the result that no rule has a finding on a workload and path."""

    policy: str
    rule: str
    category: str = _CATEGORY
    severity: _ReportSeverity | UnsetType = UNSET
    result: _Outcome
    scored: bool
    message: str
    resources: list[_Reference] | UnsetType = UNSET
    properties: dict[str, str]


def openreports(report: Report) -> str:
    """Return a report as YAML documents by namespace, the ClusterReport last; "" if nothing was evaluated."""
    identity, cluster = about.identity(report.cluster), about.label(report.cluster)
    namespaces: dict[str, list[_Result]] = {}
    for finding in report.findings:
        namespaces.setdefault(finding.namespace, []).append(_finding(finding))
    for namespace, passed in _passes(report):
        namespaces.setdefault(namespace, []).append(passed)
    documents = [
        document
        for namespace, results in sorted(namespaces.items())
        for document in _manifests(_within(cluster, results), namespace, identity)
    ]
    documents += _manifests(_within(cluster, _not_judged(report)), None, identity)
    return yaml_text.dump(map(_safe, documents), explicit_start=True)


def _finding(finding: Finding) -> _Result:
    outcome, severity = _OUTCOMES[finding.severity]
    pods = {"podCount": str(finding.pod_count), "pods": some(finding.pods)} if finding.pods else {}
    return _Result(
        policy=finding.code,
        rule=finding.name,
        severity=severity,
        result=outcome,
        scored=outcome == "fail",
        message=finding.message,
        resources=[_reference(finding.ref)],
        properties={"path": finding.path, **pods, "fix": finding.fix},
    )


def _passes(report: Report) -> Iterator[tuple[str, _Result]]:
    """Yield a result, with its namespace, for each workload and path without findings."""
    places: dict[FieldRef, list[Row]] = {}
    for row in report.constraints:
        places.setdefault(row.place, []).append(row)
    for finding in report.findings:
        places.pop(finding.place, None)
    for (ref, path), rows in places.items():
        pods = sum(row.pod_count for row in rows)
        yield (
            ref.namespace,
            _Result(
                policy=SOURCE,
                rule="all",
                result="pass",
                scored=True,
                message=f"no findings on {plural(pods, 'pod')}",
                resources=[_reference(ref)],
                properties={"path": path, "podCount": str(pods), "topologyKey": rows[0].topology_key},
            ),
        )


def _not_judged(report: Report) -> Iterator[_Result]:
    """Yield results about skipped objects: errors for those in scope."""
    for reason, number in report.summary.skipped.items():
        outcome: _Outcome = "error" if reason in _UNANSWERED else "skip"
        properties = {"count": str(number)}
        message = f"not evaluated: {number} {reason}"
        yield _Result(policy=SOURCE, rule=reason, result=outcome, scored=False, message=message, properties=properties)
    for text in words.warnings(report.cluster):
        yield _Result(policy=SOURCE, rule="warning", result="warn", scored=False, message=text, properties={})
    if report.cluster.nodes == "none" and report.constraints:
        message = "placement not evaluated: no nodes"
        yield _Result(policy=SOURCE, rule="no-nodes", result="skip", scored=False, message=message, properties={})


def _within(cluster: str, results: Iterable[_Result]) -> list[_Result]:
    """Return results with the name of their cluster, if it has one: tools that forward results drop the annotations."""
    if not cluster:
        return list(results)
    return [msgspec.structs.replace(result, properties={**result.properties, "cluster": cluster}) for result in results]


def _reference(ref: ObjectRef) -> _Reference:
    version = _API_VERSIONS.get(ref.kind, UNSET)
    return _Reference(api_version=version, kind=ref.kind, namespace=ref.namespace, name=ref.name)


def _manifests(results: list[_Result], namespace: str | None, identity: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the objects that hold the results; without a namespace they are ClusterReports."""
    annotations = {f"{SOURCE}/cluster-{_WORDS.sub('-', key).lower()}": value for key, value in identity.items()}
    return [
        {
            "apiVersion": "openreports.io/v1alpha1",
            "kind": "ClusterReport" if namespace is None else "Report",
            "metadata": {
                "name": SOURCE if number == 1 else f"{SOURCE}-{number}",
                **({} if namespace is None else {"namespace": namespace}),
                "labels": {"app.kubernetes.io/managed-by": SOURCE},
                "annotations": annotations,
            },
            "source": SOURCE,
            "summary": _summary(part),
            "results": msgspec.to_builtins(part),
        }
        for number, part in enumerate(_parts(results), start=1)
    ]


def _parts(results: Iterable[_Result]) -> Iterator[list[_Result]]:
    """Yield results in parts that fit into one object each."""
    part: list[_Result] = []
    size = 0
    for result in results:
        more = len(msgspec.json.encode(result))
        if part and size + more > MOST_BYTES:
            yield part
            part, size = [], 0
        part.append(result)
        size += more
    if part:
        yield part


def _summary(results: Iterable[_Result]) -> dict[str, int]:
    outcomes = [result.result for result in results]
    return {outcome: outcomes.count(outcome) for outcome in ("pass", "fail", "warn", "error", "skip")}


def _safe(document: Any) -> Any:
    """Return a document in which all texts are safe."""
    match document:
        case dict():
            return {key: _safe(below) for key, below in document.items()}
        case list():
            return [_safe(below) for below in document]
        case str():
            return safe(document)
    return document
