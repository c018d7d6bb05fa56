"""The engine: run the selected rules on an audit, and complete the report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping
from typing import Final, NamedTuple

import msgspec
from msgspec import UNSET, UnsetType

from kubectl_spread.audit.evaluation.evaluate import Audit
from kubectl_spread.audit.snapshot.records import PodClass
from kubectl_spread.audit.snapshot.scope import Scope
from kubectl_spread.kube.api.fieldpath import FieldPath
from kubectl_spread.kube.api.objects import ObjectRef
from kubectl_spread.report import model, projections
from kubectl_spread.report.severity import Severity
from kubectl_spread.rules.inputs import rule_inputs
from kubectl_spread.rules.model import Evidence, Rule
from kubectl_spread.rules.rule_input import InputPart, RuleInput

_RESTARTABLE: Final[Mapping[str, str]] = {
    "Deployment": "deploy",
    "StatefulSet": "sts",
    "DaemonSet": "ds",
}


_FEW: Final = 3
"""The most pods that a command names to replace only them."""
_UNREAD: Final = ("conflicting", "malformed", "unreadable")
"""Reasons why objects that may have findings were skipped."""


class Selection(msgspec.Struct, frozen=True):
    """The rules to run and to silence, by code, prefix of a code or name; an empty ``select`` runs all.

    Findings below the severity ``least`` are silenced too.
    """

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    least: Severity = Severity.INFO

    def selected(self, rules: Iterable[Rule]) -> tuple[Rule, ...]:
        """Return the rules to run."""
        return tuple(rule for rule in rules if not self.select or named(rule, self.select))


class FindingKey(NamedTuple):
    """The code, object and path of a finding, by which a finding of two reports is the same."""

    code: str
    object: ObjectRef
    path: str


def key_of(finding: model.Finding) -> FindingKey:
    """Return the key of a finding."""
    return FindingKey(finding.code, finding.ref, finding.path)


class Baseline(msgspec.Struct, frozen=True):
    """The findings of an earlier report: the severity of each, by its key; several may share one."""

    findings: Mapping[FindingKey, tuple[Severity, ...]]

    def knows(self, finding: model.Finding) -> bool:
        """Tell whether the earlier report has a finding, at its severity or a higher one."""
        return any(severity >= finding.severity for severity in self.findings.get(key_of(finding), ()))

    def gone(self, occurring: Iterable[FindingKey], codes: Container[str], scope: Scope) -> int:
        """Count the earlier findings that no longer occur, among those that could.

        Args:
            occurring: The present findings, with silenced ones.
            codes: The rules that ran on everything they need.
            scope: The scope of the run; a finding in another namespace is not gone.
        """
        now = frozenset(occurring)
        return sum(
            len(severities)
            for key, severities in self.findings.items()
            if key not in now and key.code in codes and scope.covers(key.object.namespace)
        )


class _Sifted(msgspec.Struct, frozen=True):
    """The findings to report, the numbers of the others, and the keys of all findings."""

    reported: list[model.Finding]
    silenced: int
    in_baseline: int
    occurring: frozenset[FindingKey]


def complete(
    audit: Audit,
    cluster: model.Cluster,
    rules: Iterable[Rule],
    selection: Selection,
    skipped: Mapping[str, int],
    *,
    baseline: Baseline | None = None,
) -> model.Report:
    """Return the report of an audit, with the findings of the selected rules that the baseline does not have."""
    rules = selection.selected(rules)
    sifted = _sift(_findings(audit, rules, selection), selection.least, baseline)
    gone = None
    if baseline is not None and _everything_is_evaluated(audit.snapshot.scope, skipped):
        answered = {rule.code for rule in rules if cluster.nodes == "listed" or not rule.needs_nodes}
        gone = baseline.gone(sifted.occurring, answered, audit.snapshot.scope)
    rows = [projections.constraint_row(row) for row in audit.rows]
    counts = Counter(finding.severity for finding in sifted.reported)
    return model.Report(
        cluster=cluster,
        constraints=rows,
        groups=[projections.group(group) for group in audit.groups],
        pods=projections.pods(audit),
        findings=sifted.reported,
        summary=model.Summary(
            pods=len(audit.pods),
            workloads=audit.workloads,
            templates=len(audit.templates) or UNSET,
            constraints=len(rows),
            findings=model.FindingCounts(**{severity.value: counts[severity] for severity in Severity}),
            silenced=sifted.silenced,
            known=UNSET if baseline is None else sifted.in_baseline,
            gone=model.unset_none(gone),
            skipped={reason: number for reason, number in sorted(skipped.items()) if number},
        ),
    )


def _sift(findings: Iterable[tuple[model.Finding, bool]], least: Severity, baseline: Baseline | None) -> _Sifted:
    """Separate findings to ignore and those below ``least``, then findings in the baseline, from those to report."""
    occurring: set[FindingKey] = set()
    loud: list[model.Finding] = []
    silenced = 0
    for finding, ignored in findings:
        occurring.add(key_of(finding))
        if ignored or finding.severity < least:
            silenced += 1
        else:
            loud.append(finding)
    new = [finding for finding in loud if baseline is None or not baseline.knows(finding)]
    new.sort(key=_finding_order)
    return _Sifted(new, silenced, len(loud) - len(new), frozenset(occurring))


def _everything_is_evaluated(scope: Scope, skipped: Mapping[str, int]) -> bool:
    """Tell whether all pods and templates of the namespaces in scope were read and evaluated."""
    return not (scope.labels or scope.fields or scope.targets or any(skipped.get(reason) for reason in _UNREAD))


def _findings(audit: Audit, rules: tuple[Rule, ...], selection: Selection) -> Iterator[tuple[model.Finding, bool]]:
    """Yield the findings of the rules, and whether to ignore them."""
    reported: set[tuple[object, ...]] = set()
    rules_for: dict[frozenset[InputPart], tuple[Rule, ...]] = {}
    for subject in rule_inputs(audit):
        ignored: tuple[str, ...] | None = None
        if (parts := subject.parts) not in rules_for:
            rules_for[parts] = tuple(rule for rule in rules if rule.of & parts)
        for rule in rules_for[parts]:
            evidences = list(rule.check(subject))
            if not evidences or _is_reported(rule, subject, reported):
                continue
            ignored = (*selection.ignore, *_annotated(subject)) if ignored is None else ignored
            for evidence in evidences:
                yield _finding(rule, subject, evidence), named(rule, ignored)


def _is_reported(rule: Rule, subject: RuleInput, reported: set[tuple[object, ...]]) -> bool:
    """Tell whether a rule has reported the pods of this template already."""
    place = (rule.code, subject.workload, subject.pod_path)
    if subject.template is not None and place in reported:
        return True
    reported.add(place)
    return False


def named(rule: Rule, words: Iterable[str]) -> bool:
    """Tell whether one of the words is a rule's code, a prefix of it, or its name, in any letter case."""
    return any(rule.code.startswith(word.upper()) or rule.name == word.lower() for word in words)


def _annotated(subject: RuleInput) -> tuple[str, ...]:
    """Return the codes to ignore by annotations on the workload, or on all of its pods."""
    if subject.template is not None:
        above = subject.audit.snapshot.template_owners(subject.template)
        annotations = (subject.template.ignored, *(owner.ignored for owner in above))
        return tuple(code for annotation in annotations for code in codes(annotation))
    pod_classes = [evaluation.pod_class for row in subject.rows for evaluation, _ in row.evaluations] or _named_classes(
        subject
    )
    on_pods = [frozenset(codes(pod_class.ignored)) for pod_class in pod_classes]
    owners = subject.audit.snapshot.ownership.chain(pod_classes[0].namespace, pod_classes[0].owner)
    on_owners = (code for owner in owners for code in codes(owner.ignored))
    return (*sorted(frozenset.intersection(*on_pods)), *on_owners)


def _named_classes(subject: RuleInput) -> list[PodClass]:
    names = {name for _, pods in (*subject.refusals, *subject.unknown_fields) for name in pods}
    return [
        pod.pod_class
        for pod in subject.audit.pods
        if pod.pod_class.namespace == subject.namespace and pod.name in names
    ]


def codes(annotation: str) -> tuple[str, ...]:
    """Return the codes to ignore in the value of an annotation."""
    return tuple(code.strip() for code in annotation.split(",") if code.strip())


def _finding(rule: Rule, subject: RuleInput, evidence: Evidence) -> model.Finding:
    values = {name: evidence.values[name] for name in sorted(evidence.values)}
    severity = rule.severity if evidence.severity is None else evidence.severity
    return model.Finding(
        code=rule.code,
        name=rule.name,
        severity=severity,
        namespace=subject.namespace,
        object=projections.workload(subject.workload),
        path=str(subject.path),
        pods=list(evidence.pods),
        pod_count=len(evidence.pods),
        message=rule.message.format_map(values),
        values=values,
        fix=(evidence.fix or rule.fix).format_map({**values, "restart": _replacement(subject, evidence)})
        + _default_hint(subject),
        source=_source(subject),
        rows=_rows_of(subject, evidence) or UNSET,
    )


def _rows_of(subject: RuleInput, evidence: Evidence) -> list[int]:
    """Return the indices of the rows in the report that have any of the pods, in order."""
    if len(subject.indices) == 1:
        return list(subject.indices)
    pods = frozenset(evidence.pods)
    indexed = zip(subject.indices, subject.rows, strict=False)
    return sorted(index for index, row in indexed if not pods.isdisjoint(pod.name for pod in row.pods))


def _source(subject: RuleInput) -> model.Source | UnsetType:
    """Return the position of the subject's manifest."""
    if subject.manifest is None:
        return UNSET
    position = subject.manifest.position
    return model.Source(file=position.source, line=position.line or 1)


def _default_hint(subject: RuleInput) -> str:
    """Return a further fix for a default constraint of the scheduler, which is in no pod template."""
    default = any(row.term.default for row in subject.rows)
    return (
        "; this is the scheduler's default, which topologySpreadConstraints in the pod template replace"
        if default
        else ""
    )


def _replacement(subject: RuleInput, evidence: Evidence) -> str:
    """Return how to replace the pods of a finding, and how many other pods that restarts."""
    of_rows = (pod for row in subject.rows for pod in row.pods)
    terminating = {
        pod.name: pod.terminating for pod in (*of_rows, *(pod for group in subject.groups for pod in group.pods))
    }
    staying = [name for name in evidence.pods if not terminating.get(name)]
    if evidence.pods and not staying:
        return "wait until they are gone: they are terminating"
    others = sum(not gone for gone in terminating.values()) - len(staying)
    all_of_them = restart(subject.workload, len(staying) + others)
    if subject.workload.kind == "Pod" or not (others and 0 < len(staying) <= _FEW):
        return all_of_them
    delete = f"kubectl delete pod -n {subject.namespace} {' '.join(staying)}"
    whose = "its owner replaces it" if len(staying) == 1 else "their owner replaces them"
    return f"{delete} ({whose}); or {all_of_them}" if subject.workload.kind in _RESTARTABLE else f"{delete} ({whose})"


def restart(workload: ObjectRef, pods: int) -> str:
    """Return the safe way to replace pods: by their workload, by eviction, or by hand for a bare pod."""
    if workload.kind in _RESTARTABLE:
        resource = f"{_RESTARTABLE[workload.kind]}/{workload.name}"
        number = f" all {pods} pods of the workload" if pods > 1 else " the pod"
        return f"restart{number}: kubectl rollout restart {resource} -n {workload.namespace}"
    if workload.kind == "Pod":
        return "save the manifest, run it through kubectl spread unmerge, delete the pod and create it again"
    return "evict them; their owner replaces them and disruption budgets hold"


def _finding_order(finding: model.Finding) -> tuple[object, ...]:
    place = (finding.namespace, finding.object.kind, finding.object.name)
    return (*place, FieldPath.parse(finding.path).order, finding.code, finding.pods, finding.message)
