"""The engine: run the selected rules over an audit and complete the report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from msgspec import UNSET

from kubectl_spread.audit import projections, report
from kubectl_spread.audit.clauses import path_order
from kubectl_spread.audit.evaluate import Audit
from kubectl_spread.audit.records import PodRecord
from kubectl_spread.audit.scope import Target
from kubectl_spread.rules.model import Evidence, Rule, Severity, Subject
from kubectl_spread.rules.subjects import subjects

_RESTARTABLE: Final[Mapping[str, str]] = {
    "Deployment": "deploy",
    "StatefulSet": "sts",
    "DaemonSet": "ds",
}


@dataclass(frozen=True, slots=True)
class Selection:
    """Which rules run and which are silenced, by code or by prefix of a code; an empty ``select`` runs all."""

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()

    def selected(self, rules: Iterable[Rule]) -> tuple[Rule, ...]:
        """Return the rules that run at all."""
        return tuple(rule for rule in rules if not self.select or _named(rule.code, self.select))


def complete(
    audit: Audit,
    cluster: report.Cluster,
    rules: Iterable[Rule],
    selection: Selection,
    skipped: Mapping[str, int],
) -> report.Report:
    """Return the report of an audit, with the findings of the selected rules."""
    found: list[report.Finding] = []
    silenced = 0
    told: set[tuple[object, ...]] = set()
    for subject in subjects(audit):
        ignored = (*selection.ignore, *_annotated(subject))
        for rule in selection.selected(rules):
            for evidence in _news(rule, subject, told):
                if _named(rule.code, ignored):
                    silenced += 1
                else:
                    found.append(_finding(rule, subject, evidence))
    found.sort(key=_finding_order)
    rows = [projections.constraint_row(row) for row in audit.rows]
    counts = Counter(finding.severity for finding in found)
    return report.Report(
        cluster=cluster,
        constraints=rows,
        groups=[projections.group(group) for group in audit.groups],
        pods=projections.pods(audit),
        findings=found,
        summary=report.Summary(
            pods=len(audit.pods),
            templates=len(audit.templates) or UNSET,
            constraints=len(rows),
            findings=report.FindingCounts(error=counts["error"], warning=counts["warning"], info=counts["info"]),
            silenced=silenced,
            skipped={reason: number for reason, number in sorted(skipped.items()) if number},
        ),
    )


def _news(rule: Rule, subject: Subject, told: set[tuple[object, ...]]) -> list[Evidence]:
    """Return what a rule finds, unless it found it before: on the pods of the template that is looked at now."""
    place = (rule.code, subject.namespace, subject.workload, subject.clause_path)
    if subject.template is not None and place in told:
        return []
    found = list(rule.check(subject))
    if found:
        told.add(place)
    return found


def _named(code: str, prefixes: Iterable[str]) -> bool:
    return any(code.startswith(prefix) for prefix in prefixes)


def _annotated(subject: Subject) -> tuple[str, ...]:
    """Return the codes that the annotation on the workload, or on every one of its pods, asks to ignore."""
    if subject.template is not None:
        return _codes(subject.template.ignored)
    pods = [pod for row in subject.rows for pod in row.pods] or _refused_pods(subject)
    on_pods = [frozenset(_codes(pod.shape.ignored)) for pod in pods]
    owners = subject.audit.snapshot.owner_chain(pods[0])
    on_owners = (code for owner in owners for code in _codes(owner.ignored))
    return (*sorted(frozenset.intersection(*on_pods)), *on_owners)


def _refused_pods(subject: Subject) -> list[PodRecord]:
    names = {name for _, pods in subject.refusals for name in pods}
    return [pod for pod in subject.audit.pods if pod.shape.namespace == subject.namespace and pod.name in names]


def _codes(annotation: str) -> tuple[str, ...]:
    return tuple(code.strip() for code in annotation.split(",") if code.strip())


def _finding(rule: Rule, subject: Subject, evidence: Evidence) -> report.Finding:
    values = {name: evidence.values[name] for name in sorted(evidence.values)}
    severity = rule.severity if evidence.severity is None else evidence.severity
    return report.Finding(
        code=rule.code,
        name=rule.name,
        severity=_word(severity),
        namespace=subject.namespace,
        object=projections.workload(subject.workload),
        path=subject.path,
        pods=list(evidence.pods),
        pod_count=len(evidence.pods),
        message=rule.message.format_map(values),
        values=values,
        fix=rule.fix.format_map({**values, "restart": restart(subject.namespace, subject.workload)}),
    )


def restart(namespace: str, workload: Target) -> str:
    """Return the safe way to replace a workload's pods: by its owner, by eviction, or by hand for a bare pod."""
    if workload.kind in _RESTARTABLE:
        resource = f"{_RESTARTABLE[workload.kind]}/{workload.name}"
        return f"restart them by their owner: kubectl rollout restart {resource} -n {namespace}"
    if workload.kind == "Pod":
        return "save the manifest, run it through kubectl spread unmerge, delete the pod and create it again"
    return "evict them; their owner replaces them and disruption budgets hold"


def _word(severity: Severity) -> report.SeverityWord:
    match severity:
        case Severity.ERROR:
            return "error"
        case Severity.WARNING:
            return "warning"
        case Severity.INFO:
            return "info"


def _finding_order(finding: report.Finding) -> tuple[object, ...]:
    place = (finding.namespace, finding.object.kind, finding.object.name)
    return (*place, path_order(finding.path), finding.code, finding.pods, finding.message)
