"""Subjects: every workload in every clause, from its pods and from its template."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

from kubectl_spread.audit.evaluation.evaluate import Audit, EvaluatedConstraint, EvaluatedGroup
from kubectl_spread.audit.snapshot.records import PodRecord
from kubectl_spread.audit.snapshot.templates import Refusal, Template
from kubectl_spread.kube.api.fieldpath import FieldPath
from kubectl_spread.kube.api.objects import ObjectRef
from kubectl_spread.kube.api.unknownfields import UnknownField
from kubectl_spread.rules.model import Subject


def subjects(audit: Audit) -> Iterator[Subject]:
    """Yield every workload and clause of an audit: those with pods in the report's order, then those of templates.

    Last of the pods' come affinity terms without keys, which have no row in the report.
    """
    rows: dict[Place, list[EvaluatedConstraint]] = {}
    groups: dict[ObjectRef, list[EvaluatedGroup]] = {}
    for row in audit.rows:
        rows.setdefault((row.workload, row.path), []).append(row)
    for group in audit.groups:
        groups.setdefault(group.workload, []).append(group)
    without_keys = _rows_without_keys(audit)
    refusals = _refusals_of_pods(audit)
    unknown = _unknown_fields_of_pods(audit)
    manifests = audit.snapshot.manifests
    for place in dict.fromkeys((*rows, *without_keys, *refusals, *unknown)):
        workload, path = place
        yield Subject(
            workload,
            path,
            audit,
            rows=(*rows.get(place, ()), *without_keys.get(place, ())),
            groups=tuple(groups.get(workload, ())) if place in rows else (),
            refusals=tuple(refusals.get(place, ())),
            unknown_fields=tuple(unknown.get(place, ())),
            manifest=manifests.get(workload) if workload.kind == "Pod" else None,
        )
    stored = _owners_of_stored_pods(audit)
    for template in audit.templates:
        yield from _subjects_of(template, audit, beside_pods=template.workload in stored)


Place = tuple[ObjectRef, FieldPath]
"""Workload and field path."""


def _rows_without_keys(audit: Audit) -> dict[Place, list[EvaluatedConstraint]]:
    """Return the pods of each affinity term without keys: what is stored, but neither judged nor counted."""
    found: dict[tuple[Place, int], EvaluatedConstraint] = {}
    for _, alike in groupby(audit.pods, key=lambda pod: pod.shape):
        pods = list(alike)
        shape = pods[0].shape
        terms = [index for index, clause in enumerate(shape.clauses) if not (clause.spread or clause.keyed)]
        for workload, owned in _by_workload(pods, audit) if terms else ():
            for index in terms:
                clause = shape.clauses[index]
                place = (workload, clause.path)
                row = found.setdefault((place, index), EvaluatedConstraint(workload, clause, index, b""))
                row.pods += owned
                row.views.append((audit.views.of(shape), len(owned)))
    rows: dict[Place, list[EvaluatedConstraint]] = {}
    for (place, _), row in found.items():
        row.pods.sort(key=lambda pod: pod.name)
        rows.setdefault(place, []).append(row)
    return rows


def _by_workload(pods: list[PodRecord], audit: Audit) -> Iterable[tuple[ObjectRef, list[PodRecord]]]:
    """Return the workloads of pods of one shape: the owner of all of them, or each its own."""
    if pods[0].shape.owner is not None:
        return [(audit.snapshot.workload(pods[0]), pods)]
    return [(pod.ref, [pod]) for pod in pods]


def _refusals_of_pods(audit: Audit) -> dict[Place, list[tuple[Refusal, tuple[str, ...]]]]:
    """Return what the API would refuse of the manifests of pods, by place, with the names of the pods."""
    found: dict[Place, dict[Refusal, list[str]]] = {}
    for pod in audit.pods:
        for refusal in audit.acceptance.manifests(pod.shape):
            place = (audit.snapshot.workload(pod), refusal.path)
            found.setdefault(place, {}).setdefault(refusal, []).append(pod.name)
    return {
        place: [(refusal, tuple(sorted(names))) for refusal, names in refusals.items()]
        for place, refusals in found.items()
    }


def _unknown_fields_of_pods(audit: Audit) -> dict[Place, list[tuple[UnknownField, tuple[str, ...]]]]:
    """Return the fields of manifests of pods that the API does not have, by place, with the name of the pod."""
    found: dict[Place, list[tuple[UnknownField, tuple[str, ...]]]] = {}
    for pod in audit.pods if audit.snapshot.manifests else ():
        manifest = audit.snapshot.manifests.get(pod.ref)
        for field in manifest.unknown_fields if manifest else ():
            place = (audit.snapshot.workload(pod), field.path)
            found.setdefault(place, []).append((field, (pod.name,)))
    return found


def _owners_of_stored_pods(audit: Audit) -> frozenset[ObjectRef]:
    pods = {pod.shape: pod for pod in audit.pods if pod.shape.stored}
    return frozenset(audit.snapshot.workload(pod) for pod in pods.values())


def _subjects_of(template: Template, audit: Audit, *, beside_pods: bool) -> Iterator[Subject]:
    refused = audit.acceptance.template(template)
    manifest = audit.snapshot.manifests.get(template.holder)
    unknown = manifest.unknown_fields if manifest else ()
    paths = (
        *(clause.path for clause in template.clauses),
        *(refusal.path for refusal in refused),
        *(field.path for field in unknown),
    )
    for path in dict.fromkeys(paths):
        yield Subject(
            template.workload,
            path,
            audit,
            template=template,
            refusals=tuple((refusal, ()) for refusal in refused if refusal.path == path),
            beside_pods=beside_pods,
            unknown_fields=tuple((field, ()) for field in unknown if field.path == path),
            manifest=manifest,
        )
