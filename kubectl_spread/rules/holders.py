"""Holders: pods that are alike, or a template, with one clause as they have it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache

import msgspec

from kubectl_spread.audit.evaluation.evaluate import Audit, EvaluatedConstraint
from kubectl_spread.audit.evaluation.evaluators import ClassEvaluation
from kubectl_spread.audit.snapshot.records import PodRecord
from kubectl_spread.audit.snapshot.templates import PRESUMED, Template
from kubectl_spread.audit.snapshot.terms import TopologyTerm
from kubectl_spread.kube.api import labels as labelselectors
from kubectl_spread.kube.api.labels import Labels
from kubectl_spread.kube.api.types import LabelSelector, LabelSelectorRequirement
from kubectl_spread.kube.scheduler.podtopologyspread import effective_selector
from kubectl_spread.rules.model import Evidence, Severity, Subject

Values = dict[str, str | int]


class Holder(msgspec.Struct, frozen=True):
    """Pods that are alike, or a template, and one clause as they have it.

    ``authored`` is the selector without its merged part, ``effective`` the one that the scheduler works with. ``kind``
    is that of the controller, "" for a pod without one. ``stored`` pods are the apiserver's, others are manifests;
    ``number`` of them are alike, 0 for a template. ``first`` tells whether no clause stands before this one.
    """

    clause: TopologyTerm
    authored: LabelSelector | None
    effective: LabelSelector | None
    labels: Labels
    kind: str
    scheduler_name: str
    stored: bool
    number: int
    first: bool
    row: EvaluatedConstraint | None = None
    view: ClassEvaluation | None = None

    @property
    def pods(self) -> tuple[PodRecord, ...]:
        """The pods, by name; none for a template."""
        if self.row is None or self.view is None:
            return ()
        return tuple(pod for pod in self.row.pods if pod.shape is self.view.shape)

    @property
    def unmet(self) -> tuple[LabelSelectorRequirement, ...]:
        """What the authored selector asks for and the labels do not meet; of a label that is only presumed, nothing.

        A selector that cannot be parsed asks for nothing.
        """
        if self.authored is None or self.clause.parse_error:
            return ()
        return tuple(
            asked
            for asked in labelselectors.requirements(self.authored)
            if not labelselectors.satisfies(asked, self.labels) and not self._presumed(asked.key)
        )

    def _presumed(self, key: str) -> bool:
        return self.row is None and self.labels.get(key) == PRESUMED


@lru_cache(maxsize=1)
def holders(subject: Subject) -> tuple[Holder, ...]:
    """Return what has the clause of a subject; not what the API would refuse, nor the scheduler's own constraints."""
    return tuple(_holders(subject))


def _holders(subject: Subject) -> Iterator[Holder]:
    if subject.template is not None:
        yield from () if subject.refusals else _of_template(subject, subject.template)
        return
    for row in subject.rows:
        for view, number in row.views:
            clause = view.shape.clauses[row.index]
            if not (clause.default or subject.audit.acceptance.manifests(view.shape)):
                yield _of_pods(row, view, number, clause)


def together(evidence: Iterable[tuple[Holder, Values]], severity: Severity | None = None) -> Iterator[Evidence]:
    """Yield one piece of evidence, if there is any: the pods of all holders, with the values of the first."""
    pairs = list(evidence)
    if pairs:
        names = sorted({pod.name for holder, _ in pairs for pod in holder.pods})
        yield Evidence(tuple(names), pairs[0][1], severity)


def _of_template(subject: Subject, template: Template) -> Iterator[Holder]:
    for clause in subject.clauses:
        yield Holder(
            clause=clause,
            authored=clause.selector,
            effective=_effective(clause, template.labels, subject.audit),
            labels=template.labels,
            kind=template.kind,
            scheduler_name=template.spec.scheduler_name,
            stored=False,
            number=0,
            first=clause is template.clauses[0],
        )


def _effective(clause: TopologyTerm, labels: Labels, audit: Audit) -> LabelSelector | None:
    """Return the selector that the scheduler will work with for the pods of a template."""
    keys = clause.match_label_keys if audit.context.behaviour.scheduler_adds_match_label_keys else ()
    return effective_selector(clause.selector, keys, labels)


def _of_pods(row: EvaluatedConstraint, view: ClassEvaluation, number: int, clause: TopologyTerm) -> Holder:
    shape = view.shape
    return Holder(
        clause=clause,
        authored=shape.splits[row.index].authored,
        effective=view.effective[row.index],
        labels=shape.labels,
        kind="" if shape.owner is None else shape.owner.kind,
        scheduler_name=shape.scheduler_name,
        stored=shape.stored,
        number=number,
        first=all(earlier.default for earlier in shape.clauses[: row.index]),
        row=row,
        view=view,
    )
