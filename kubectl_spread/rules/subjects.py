"""Subjects: every workload in every clause, from its pods and from its template."""

from __future__ import annotations

from collections.abc import Iterator

from kubectl_spread.audit.evaluate import Audit, Group, Row
from kubectl_spread.audit.scope import Target
from kubectl_spread.audit.templates import Refusal, Template
from kubectl_spread.rules.model import Subject


def subjects(audit: Audit) -> Iterator[Subject]:
    """Yield every workload and clause of an audit: those with pods in the report's order, then those of templates."""
    rows: dict[Place, list[Row]] = {}
    groups: dict[tuple[str, Target], list[Group]] = {}
    for row in audit.rows:
        rows.setdefault((row.namespace, row.workload, row.path), []).append(row)
    for group in audit.groups:
        groups.setdefault((group.namespace, group.workload), []).append(group)
    refusals = _refusals_of_pods(audit)
    for place in dict.fromkeys((*rows, *refusals)):
        yield Subject(
            *place,
            audit,
            rows=tuple(rows.get(place, ())),
            groups=tuple(groups.get(place[:2], ())),
            refusals=tuple(refusals.get(place, ())),
        )
    for template in audit.templates:
        yield from _subjects_of(template, audit)


Place = tuple[str, Target, str]
"""Namespace, workload and field path."""


def _refusals_of_pods(audit: Audit) -> dict[Place, list[tuple[Refusal, tuple[str, ...]]]]:
    """Return what the API would refuse of the manifests of pods, by place, with the names of the pods."""
    found: dict[Place, dict[Refusal, list[str]]] = {}
    for pod in audit.pods:
        for refusal in pod.shape.refusals:
            workload = audit.snapshot.workload(pod)
            place = (pod.shape.namespace, workload, refusal.path)
            found.setdefault(place, {}).setdefault(refusal, []).append(pod.name)
    return {
        place: [(refusal, tuple(sorted(names))) for refusal, names in refusals.items()]
        for place, refusals in found.items()
    }


def _subjects_of(template: Template, audit: Audit) -> Iterator[Subject]:
    paths = (*(clause.path for clause in template.clauses), *(refusal.path for refusal in template.refusals))
    for path in dict.fromkeys(paths):
        refusals = tuple((refusal, ()) for refusal in template.refusals if refusal.path == path)
        yield Subject(template.namespace, template.workload, path, audit, template=template, refusals=refusals)
