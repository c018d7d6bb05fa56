"""OpenReports: manifests of ``openreports.io/v1alpha1``, one Report a namespace, for the tools that show such reports.

Results without a namespace, about objects that were not evaluated, go into a ClusterReport. Nothing is applied.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

import msgspec

from kubectl_spread.kube.api.objects import ObjectRef
from kubectl_spread.kube.api.workloads import KINDS
from kubectl_spread.phrases import plural, some
from kubectl_spread.render import about, figures, words, yaml_text
from kubectl_spread.render.ci import common
from kubectl_spread.render.words import safe
from kubectl_spread.report.model import Report, Severity

SOURCE: Final = "kubectl-spread"
MOST_BYTES: Final = 1_000_000
"""The most bytes of results in one object: etcd accepts 1.5 MiB."""
_Json: TypeAlias = dict[str, Any]
_OUTCOMES: Final = ("pass", "fail", "warn", "error", "skip")
_WORDS: Final = re.compile(r"(?=[A-Z])")
"""The beginning of a word in a name such as ``readAt``."""
_API_VERSIONS: Final = {"Pod": "v1", **{kind: f"{group}/v1".lstrip("/") for group, kind in KINDS}}
_SEVERITIES: Final = {
    Severity.ERROR: ("fail", "high"),
    Severity.WARNING: ("warn", "medium"),
    Severity.INFO: ("warn", "info"),
}
"""Maps a severity to the outcome and the severity of a result."""


def openreports(report: Report) -> str:
    """Return a report as YAML documents by namespace, the ClusterReport last; "" if nothing was evaluated."""
    identity, cluster = about.identity(report.cluster), about.label(report.cluster)
    namespaces: dict[str, list[_Json]] = {}
    for namespace, result in (*_findings(report), *_passes(report)):
        namespaces.setdefault(namespace, []).append(result)
    documents = [
        document
        for namespace, results in sorted(namespaces.items())
        for document in _manifests(_within(cluster, results), namespace, identity)
    ]
    documents += _manifests(_within(cluster, _unevaluated(report)), None, identity)
    return yaml_text.dump(map(_safe, documents), explicit_start=True)


def _findings(report: Report) -> Iterator[tuple[str, _Json]]:
    """Yield a result, with its namespace, for each finding."""
    for finding in report.findings:
        outcome, severity = _SEVERITIES[finding.severity]
        pods = {"podCount": str(finding.pod_count), "pods": some(finding.pods)} if finding.pods else {}
        properties = {"path": finding.path, **pods, "fix": "\n".join(finding.fixes)}
        if patch := common.patch(finding):
            properties["patch"] = patch
        rule = (finding.code, finding.name)
        yield finding.namespace, _result(rule, outcome, finding.message, properties, ref=finding.ref, severity=severity)


def _passes(report: Report) -> Iterator[tuple[str, _Json]]:
    """Yield a result, with its namespace, for each workload and path without findings."""
    findings = figures.by_place(report.findings)
    for place, rows in figures.by_place(report.constraints).items():
        if place in findings:
            continue
        ref, path = place
        pods = sum(row.pod_count for row in rows)
        properties = {"path": path, "podCount": str(pods), "topologyKey": rows[0].topology_key}
        yield (
            ref.namespace,
            _result((SOURCE, "all"), "pass", f"no findings on {plural(pods, 'pod')}", properties, ref=ref),
        )


def _unevaluated(report: Report) -> Iterator[_Json]:
    """Yield results about skipped objects: errors for those in scope, with the objects that have names."""
    unanswered = common.unanswered(report)
    for reason, number in report.summary.skipped.items():
        outcome = "error" if reason in unanswered else "skip"
        names = "\n".join(unanswered.get(reason, [])[1:])
        properties = {"count": str(number), **({"objects": names} if names else {})}
        yield _result((SOURCE, reason), outcome, f"not evaluated: {number} {reason}", properties)
    for text in words.warnings(report.cluster):
        yield _result((SOURCE, "warning"), "warn", text, {})
    if report.cluster.nodes == "none" and report.constraints:
        yield _result((SOURCE, "no-nodes"), "skip", "placement not evaluated: no nodes", {})


def _result(
    rule: tuple[str, str],
    outcome: str,
    message: str,
    properties: Mapping[str, str],
    *,
    ref: ObjectRef | None = None,
    severity: str | None = None,
) -> _Json:
    """Return a result about an object, or about the cluster."""
    policy, name = rule
    return {
        "policy": policy,
        "rule": name,
        "category": "Topology Spread",
        **({"severity": severity} if severity else {}),
        "result": outcome,
        "scored": outcome in ("pass", "fail"),
        "message": message,
        **({"resources": [_reference(ref)]} if ref else {}),
        "properties": properties,
    }


def _reference(ref: ObjectRef) -> _Json:
    """Return the object of a result; the API version of a kind from outside Kubernetes is unknown."""
    version = {"apiVersion": _API_VERSIONS[ref.kind]} if ref.kind in _API_VERSIONS else {}
    return {**version, "kind": ref.kind, "namespace": ref.namespace, "name": ref.name}


def _within(cluster: str, results: Iterable[_Json]) -> list[_Json]:
    """Return results with the name of their cluster, if it has one: tools that forward results drop the annotations."""
    if not cluster:
        return list(results)
    return [{**result, "properties": {**result["properties"], "cluster": cluster}} for result in results]


def _manifests(results: Sequence[_Json], namespace: str | None, identity: Mapping[str, str]) -> list[_Json]:
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
            "summary": _summary(results_in_object),
            "results": results_in_object,
        }
        for number, results_in_object in enumerate(_split(results), start=1)
    ]


def _split(results: Iterable[_Json]) -> Iterator[list[_Json]]:
    """Yield results in lists that fit into one object each."""
    fitting: list[_Json] = []
    size = 0
    for result in results:
        result_size = len(msgspec.json.encode(result))
        if fitting and size + result_size > MOST_BYTES:
            yield fitting
            fitting, size = [], 0
        fitting.append(result)
        size += result_size
    if fitting:
        yield fitting


def _summary(results: Iterable[_Json]) -> dict[str, int]:
    outcomes = Counter(result["result"] for result in results)
    return {outcome: outcomes[outcome] for outcome in _OUTCOMES}


def _safe(document: Any) -> Any:
    match document:
        case dict():
            return {key: _safe(below) for key, below in document.items()}
        case list():
            return [_safe(below) for below in document]
        case str():
            return safe(document)
    return document
