"""The variants of a term: classes of pods of one workload, and its template, may have it with other labels."""

from __future__ import annotations

import msgspec

from kubectl_spread.audit.evaluation.evaluate import EvaluatedConstraint
from kubectl_spread.audit.evaluation.evaluators import ClassEvaluation
from kubectl_spread.audit.snapshot.records import PodClass, PodRecord
from kubectl_spread.audit.snapshot.templates import PRESUMED, Template
from kubectl_spread.audit.snapshot.terms import TopologyTerm
from kubectl_spread.kube.api import labels as labelselectors
from kubectl_spread.kube.api.labels import Labels
from kubectl_spread.kube.api.types import LabelSelector, LabelSelectorRequirement
from kubectl_spread.kube.features import Behaviour
from kubectl_spread.kube.scheduler.podtopologyspread.constraints import effective_selector


class TermVariant(msgspec.Struct, frozen=True):
    """A term as the pods of one class, or a template, have it.

    Attributes:
        term: The term.
        authored: Its selector without the merged part.
        effective: The selector that the scheduler works with.
        labels: The labels of the pods.
        kind: The kind of the pods' controller; "" for a pod without one.
        scheduler_name: The name of the pods' scheduler.
        first: Whether it is the first term of the pods, default constraints aside.
        number: The number of pods; 0 for a template.
        row: The row of the pods; None for a template.
        pod_class: Their class; None for a template.
        template: The template; None for pods.
    """

    term: TopologyTerm
    authored: LabelSelector | None
    effective: LabelSelector | None
    labels: Labels
    kind: str
    scheduler_name: str
    first: bool
    number: int = 0
    row: EvaluatedConstraint | None = None
    pod_class: PodClass | None = None
    template: Template | None = None

    @property
    def stored(self) -> bool:
        """Whether the pods are from an API server, and not from manifests."""
        return self.pod_class is not None and self.pod_class.stored

    @property
    def pods(self) -> tuple[PodRecord, ...]:
        """The pods, by name; none for a template."""
        pods = () if self.row is None else self.row.pods
        return tuple(pod for pod in pods if pod.pod_class is self.pod_class)

    @property
    def unmet(self) -> tuple[LabelSelectorRequirement, ...]:
        """The requirements of the authored selector that the labels do not meet.

        Requirements on labels that a controller sets, or may set, are left out, and all of a selector that cannot be
        parsed.
        """
        if self.authored is None or self.term.parse_error:
            return ()
        return tuple(
            requirement
            for requirement in labelselectors.requirements(self.authored)
            if not labelselectors.satisfies(requirement, self.labels)
            if self.row is not None or not self._may_be_set(requirement.key)
        )

    def _may_be_set(self, key: str) -> bool:
        """Tell whether a controller sets a label of the template's pods, or may set it."""
        return self.labels.get(key) == PRESUMED or (self.template is not None and self.template.may_get(key))


def variant_of_pods(row: EvaluatedConstraint, evaluation: ClassEvaluation, number: int) -> TermVariant:
    """Return the variant of the ``number`` pods in a row that are of one class."""
    pod_class = evaluation.pod_class
    return TermVariant(
        term=pod_class.terms[row.index],
        authored=pod_class.splits[row.index].authored,
        effective=evaluation.effective[row.index],
        labels=pod_class.labels,
        kind="" if pod_class.owner is None else pod_class.owner.kind,
        scheduler_name=pod_class.scheduler_name,
        first=all(earlier.default for earlier in pod_class.terms[: row.index]),
        number=number,
        row=row,
        pod_class=pod_class,
    )


def variant_of_template(term: TopologyTerm, template: Template, behaviour: Behaviour) -> TermVariant:
    """Return the variant of a template, with the selector that the scheduler will work with for its pods."""
    keys = term.match_label_keys if behaviour.scheduler_adds_match_label_keys else ()
    return TermVariant(
        term=term,
        authored=term.selector,
        effective=effective_selector(term.selector, keys, template.labels),
        labels=template.labels,
        kind=template.kind,
        scheduler_name=template.spec.scheduler_name,
        first=term is template.terms[0],
        template=template,
    )
