"""The inputs of the rules: every workload at every field path, from its pods and from its template."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import attrgetter
from typing import TypeAlias

from kubectl_spread.audit.evaluation.counted import SharedAnswers
from kubectl_spread.audit.evaluation.evaluate import Audit, EvaluatedConstraint, EvaluatedGroup
from kubectl_spread.audit.snapshot.records import Manifest, PodRecord
from kubectl_spread.audit.snapshot.templates import Refusal, Template
from kubectl_spread.diagnosis import exposure
from kubectl_spread.diagnosis.exposure import Replicas
from kubectl_spread.kube.api.field import POD_SPEC, FieldPath
from kubectl_spread.kube.api.objects import ObjectRef
from kubectl_spread.kube.api.unknownfields import UnknownField
from kubectl_spread.rules.model import RuleInput

_WorkloadPath: TypeAlias = tuple[ObjectRef, FieldPath]
"""A workload and a field path."""


def rule_inputs(audit: Audit) -> Iterator[RuleInput]:
    """Yield the inputs with pods in the report's order, then the inputs with templates, then those with replicas.

    Affinity terms without keys have no row in the report, so they are last among the inputs with pods.
    """
    answers = SharedAnswers()
    rows: dict[_WorkloadPath, dict[int, EvaluatedConstraint]] = {}
    groups: dict[ObjectRef, list[EvaluatedGroup]] = {}
    for index, row in enumerate(audit.rows):
        rows.setdefault((row.workload, row.path), {})[index] = row
    for group in audit.groups:
        groups.setdefault(group.workload, []).append(group)
    without_keys = _rows_without_keys(audit)
    refusals = _refusals_of_pods(audit)
    unknown_fields = _unknown_fields_of_pods(audit)
    manifests = audit.snapshot.manifests
    for workload_path in dict.fromkeys((*rows, *without_keys, *refusals, *unknown_fields)):
        workload, path = workload_path
        yield RuleInput(
            workload,
            path,
            audit,
            answers,
            rows=(*rows.get(workload_path, {}).values(), *without_keys.get(workload_path, ())),
            indices=tuple(rows.get(workload_path, ())),
            groups=tuple(groups.get(workload, ())) if workload_path in rows else (),
            refusals=tuple(refusals.get(workload_path, ())),
            unknown_fields=tuple(unknown_fields.get(workload_path, ())),
            manifest=manifests.get(workload) if workload.kind == "Pod" else None,
        )
    stored = _owners_of_stored_pods(audit)
    for template in audit.templates:
        yield from _of_template(template, audit, answers, beside_pods=template.workload in stored)
    for replicas in exposure.replicas(audit):
        yield _of_replicas(replicas, audit, answers)


def _rows_without_keys(audit: Audit) -> dict[_WorkloadPath, list[EvaluatedConstraint]]:
    """Return rows for affinity terms without keys, which the report leaves out."""
    by_index: dict[tuple[_WorkloadPath, int], EvaluatedConstraint] = {}
    for pod_class, pods_of_class in groupby(audit.pods, key=attrgetter("pod_class")):
        pods = list(pods_of_class)
        terms = [index for index, term in enumerate(pod_class.terms) if not (term.spread or term.keyed)]
        for workload, owned in _by_workload(pods, audit) if terms else ():
            for index in terms:
                term = pod_class.terms[index]
                workload_path = (workload, term.path)
                row = by_index.setdefault((workload_path, index), EvaluatedConstraint(workload, term, index, b""))
                row.pods += owned
                row.evaluations.append((audit.evaluator.of(pod_class), len(owned)))
    rows: dict[_WorkloadPath, list[EvaluatedConstraint]] = {}
    for (workload_path, _), row in by_index.items():
        row.pods.sort(key=lambda pod: pod.name)
        rows.setdefault(workload_path, []).append(row)
    return rows


def _by_workload(pods: list[PodRecord], audit: Audit) -> Iterable[tuple[ObjectRef, list[PodRecord]]]:
    """Return the workloads of pods of one class: their common root owner, or each bare pod itself."""
    if pods[0].pod_class.owner is not None:
        return [(audit.snapshot.workload(pods[0]), pods)]
    return [(pod.ref, [pod]) for pod in pods]


def _refusals_of_pods(audit: Audit) -> dict[_WorkloadPath, list[tuple[Refusal, tuple[str, ...]]]]:
    names: dict[_WorkloadPath, dict[Refusal, list[str]]] = {}
    for pod in audit.pods:
        for refusal in () if pod.pod_class.stored else audit.admission.creations(pod.pod_class):
            workload_path = (audit.snapshot.workload(pod), refusal.path)
            names.setdefault(workload_path, {}).setdefault(refusal, []).append(pod.name)
    return {
        workload_path: [(refusal, tuple(sorted(pods))) for refusal, pods in refusals.items()]
        for workload_path, refusals in names.items()
    }


def _unknown_fields_of_pods(audit: Audit) -> dict[_WorkloadPath, list[tuple[UnknownField, tuple[str, ...]]]]:
    fields: dict[_WorkloadPath, list[tuple[UnknownField, tuple[str, ...]]]] = {}
    for pod in audit.pods if audit.snapshot.manifests else ():
        manifest = audit.snapshot.manifests.get(pod.ref)
        for field in manifest.unknown_fields if manifest else ():
            workload_path = (audit.snapshot.workload(pod), field.path)
            fields.setdefault(workload_path, []).append((field, (pod.name,)))
    return fields


def _owners_of_stored_pods(audit: Audit) -> frozenset[ObjectRef]:
    pods = {pod.pod_class: pod for pod in audit.pods if pod.pod_class.stored}
    return frozenset(audit.snapshot.workload(pod) for pod in pods.values())


def _of_template(template: Template, audit: Audit, answers: SharedAnswers, *, beside_pods: bool) -> Iterator[RuleInput]:
    refusals = audit.admission.template(template)
    manifest = audit.snapshot.manifests.get(template.holder)
    unknown_fields = _unknown_fields_of(template, manifest)
    paths = (
        *(term.path for term in template.terms),
        *(refusal.path for refusal in refusals),
        *(field.path for field in unknown_fields),
    )
    for path in dict.fromkeys(paths):
        yield RuleInput(
            template.workload,
            path,
            audit,
            answers,
            template=template,
            refusals=tuple((refusal, ()) for refusal in refusals if refusal.path == path),
            beside_pods=beside_pods,
            unknown_fields=tuple((field, ()) for field in unknown_fields if field.path == path),
            manifest=manifest,
        )


def _of_replicas(replicas: Replicas, audit: Audit, answers: SharedAnswers) -> RuleInput:
    template = next(iter(replicas.templates), None)
    path = POD_SPEC if replicas.pods or template is None else template.path
    return RuleInput(
        replicas.workload,
        path / "topologySpreadConstraints",
        audit,
        answers,
        manifest=None if template is None else audit.snapshot.manifests.get(template.holder),
        replicas=replicas,
    )


def _unknown_fields_of(template: Template, manifest: Manifest | None) -> tuple[UnknownField, ...]:
    """Return the unknown fields in the manifest of a template; a custom object may have several templates."""
    fields = manifest.unknown_fields if manifest else ()
    return tuple(field for field in fields if field.path.is_inside(template.path)) if template.custom else fields
