"""The input of every rule: one workload and one field path, with all that was evaluated there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import Enum, auto
from functools import cached_property
from typing import Final

import msgspec

from kubectl_spread.audit.evaluation.evaluate import Audit, EvaluatedConstraint, EvaluatedGroup, EvaluatedPod
from kubectl_spread.audit.evaluation.evaluators import ClassEvaluation
from kubectl_spread.audit.merge.verdicts import Verdict
from kubectl_spread.audit.snapshot.labelled import Labelled
from kubectl_spread.audit.snapshot.records import Manifest, PodRecord
from kubectl_spread.audit.snapshot.templates import PRESUMED, Refusal, Template
from kubectl_spread.audit.snapshot.terms import TopologyTerm
from kubectl_spread.kube.api import labels as labelselectors
from kubectl_spread.kube.api.fieldpath import POD_SPEC, FieldPath
from kubectl_spread.kube.api.labels import Labels
from kubectl_spread.kube.api.objects import ObjectRef
from kubectl_spread.kube.api.types import LabelSelector, LabelSelectorRequirement
from kubectl_spread.kube.api.unknownfields import UnknownField
from kubectl_spread.kube.scheduler.podtopologyspread.constraints import effective_selector
from kubectl_spread.kube.scheduler.podtopologyspread.spread import Spread
from kubectl_spread.rules.placement.blockage import Blockage, blockage

_ENDING: Final = frozenset({"Pod", "Job", "CronJob"})
"""Kinds whose pods are never followed by others."""


class InputPart(Enum):
    """A part of the input that a rule may need.

    Attributes:
        TEMPLATE: A template.
        PODS: Pods, whatever they are.
        MEMBERS: Pods whose stored selector differs from the merged one.
        COUNTS: A count of domains.
    """

    TEMPLATE = auto()
    PODS = auto()
    MEMBERS = auto()
    COUNTS = auto()


_OF_TEMPLATE: Final = frozenset((InputPart.TEMPLATE,))
_OF_PODS: Final = {
    (members, counts): frozenset(
        (InputPart.PODS, *((InputPart.MEMBERS,) if members else ()), *((InputPart.COUNTS,) if counts else ()))
    )
    for members in (False, True)
    for counts in (False, True)
}
"""Maps whether there are members and counts to the parts of an input with pods."""


class SharedAnswers:
    """Answers about one audit that several inputs need; each is computed once."""

    def __init__(self, audit: Audit) -> None:
        self._audit = audit
        self._blockages: dict[EvaluatedGroup, Blockage | None] = {}
        self._workloads: dict[object, Sequence[ObjectRef]] = {}

    def blockage(self, group: EvaluatedGroup) -> Blockage | None:
        """Return how the hard constraints of a group keep it from every usable node; None where they do not."""
        if group not in self._blockages:
            self._blockages[group] = blockage(group, self._audit)
        return self._blockages[group]

    @cached_property
    def templates(self) -> dict[str, Labelled[Template]]:
        """The templates of each namespace, by their labels, except labels whose value a controller sets."""
        templates: dict[str, Labelled[Template]] = {}
        for template in self._audit.templates:
            fixed = {key: text for key, text in template.labels.items() if text != PRESUMED}
            templates.setdefault(template.namespace, Labelled()).add(fixed, template)
        return templates

    def workloads_of_templates(self, namespace: str, selector: LabelSelector) -> Sequence[ObjectRef]:
        """Return the workloads with pods whose templates a selector selects, in order."""
        templates = self.templates.get(namespace, Labelled[Template]())
        selection = templates.selection(selector)
        question = (namespace, selection)
        if question not in self._workloads:
            selected = (template for _, template in templates.selected(selector) if template.replicas != 0)
            self._workloads[question] = sorted({template.workload.first_copy for template in selected})
        return self._workloads[question]


class TermVariant(msgspec.Struct, frozen=True):
    """A term as the pods of one class, or a template, have it.

    Attributes:
        term: The term.
        authored: Its selector without the merged part.
        effective: The selector that the scheduler works with.
        labels: The labels of the pods.
        kind: The kind of the pods' controller; "" for a pod without one.
        scheduler_name: The name of the pods' scheduler.
        stored: Whether the pods are from an API server, and not from manifests.
        number: The number of pods; 0 for a template.
        first: Whether no other term of the pods comes before it.
        row: The row of the pods; None for a template.
        evaluation: The evaluation of their class; None for a template.
    """

    term: TopologyTerm
    authored: LabelSelector | None
    effective: LabelSelector | None
    labels: Labels
    kind: str
    scheduler_name: str
    stored: bool
    number: int
    first: bool
    row: EvaluatedConstraint | None = None
    evaluation: ClassEvaluation | None = None

    @property
    def pods(self) -> tuple[PodRecord, ...]:
        """The pods, by name; none for a template."""
        if self.row is None or self.evaluation is None:
            return ()
        return tuple(pod for pod in self.row.pods if pod.pod_class is self.evaluation.pod_class)

    @property
    def unmet(self) -> tuple[LabelSelectorRequirement, ...]:
        """The requirements of the authored selector that the labels do not meet.

        Requirements on labels whose value a controller sets are left out, and all of a selector that cannot be parsed.
        """
        if self.authored is None or self.term.parse_error:
            return ()
        return tuple(
            requirement
            for requirement in labelselectors.requirements(self.authored)
            if not labelselectors.satisfies(requirement, self.labels) and not self._presumed(requirement.key)
        )

    def _presumed(self, key: str) -> bool:
        return self.row is None and self.labels.get(key) == PRESUMED


class RuleInput(msgspec.Struct, frozen=True, eq=False, dict=True):
    """One workload and one field path: its pods, in all rows with that path, or its template.

    Attributes:
        workload: The workload.
        path: The field path of a term, or of an unknown field.
        audit: The audit.
        answers: Answers that the inputs of the audit share.
        rows: The rows, which differ in the stored selectors; last come rows without keys, which the report leaves out.
        indices: The indices of the rows in the report.
        groups: The groups of the workload's pods.
        template: The template; None for pods.
        refusals: The refusals of the API, each with the names of the pods.
        beside_pods: Whether there are stored pods of the workload of a template.
        unknown_fields: The fields that the API does not have, each with the names of the pods.
        manifest: The manifest of the template, or of a pod without owner.
    """

    workload: ObjectRef
    path: FieldPath
    audit: Audit
    answers: SharedAnswers
    rows: tuple[EvaluatedConstraint, ...] = ()
    indices: tuple[int, ...] = ()
    groups: tuple[EvaluatedGroup, ...] = ()
    template: Template | None = None
    refusals: tuple[tuple[Refusal, tuple[str, ...]], ...] = ()
    beside_pods: bool = False
    unknown_fields: tuple[tuple[UnknownField, tuple[str, ...]], ...] = ()
    manifest: Manifest | None = None

    @property
    def namespace(self) -> str:
        """The namespace of the workload."""
        return self.workload.namespace

    @property
    def parts(self) -> frozenset[InputPart]:
        """The parts that this input has."""
        if self.template is not None:
            return _OF_TEMPLATE
        members = any(row.members for row in self.rows)
        counts = any(row.term.spread and row.spread is not None for row in self.rows)
        return _OF_PODS[members, counts]

    @property
    def pod_path(self) -> FieldPath:
        """The path in a pod, for a template too."""
        return self.path if self.template is None else self.path.moved(self.template.path, POD_SPEC)

    @property
    def terms(self) -> tuple[TopologyTerm, ...]:
        """The terms at the path: one for each class of pods, or the template's."""
        if self.template is not None:
            return self.template.terms_by_path.get(self.path, ())
        return tuple(evaluation.pod_class.terms[row.index] for row in self.rows for evaluation, _ in row.evaluations)

    @cached_property
    def variants(self) -> tuple[TermVariant, ...]:
        """The variants of the term, without default constraints and without those that the API would refuse."""
        return tuple(self._variants())

    def _variants(self) -> Iterator[TermVariant]:
        if self.template is not None:
            yield from () if self.refusals else self._variants_of(self.template)
            return
        for row in self.rows:
            for evaluation, number in row.evaluations:
                term = evaluation.pod_class.terms[row.index]
                if not (term.default or self.audit.admission.manifests(evaluation.pod_class)):
                    yield _variant_of_pods(row, evaluation, number, term)

    def _variants_of(self, template: Template) -> Iterator[TermVariant]:
        adds_keys = self.audit.context.behaviour.scheduler_adds_match_label_keys
        for term in self.terms:
            keys = term.match_label_keys if adds_keys else ()
            yield TermVariant(
                term=term,
                authored=term.selector,
                effective=effective_selector(term.selector, keys, template.labels),
                labels=template.labels,
                kind=template.kind,
                scheduler_name=template.spec.scheduler_name,
                stored=False,
                number=0,
                first=term is template.terms[0],
            )

    @property
    def spreads(self) -> Iterator[tuple[EvaluatedConstraint, Spread]]:
        """The rows that have a count, each with its count."""
        return ((row, spread) for row in self.rows if (spread := row.spread) is not None)

    @cached_property
    def counted(self) -> tuple[tuple[EvaluatedConstraint, Spread], ...]:
        """The rows whose domains come from nodes, each with its count."""
        return tuple((row, spread) for row, spread in self.spreads if not row.lower_bound)

    @cached_property
    def awaiting(self) -> tuple[tuple[EvaluatedConstraint, Spread], ...]:
        """The counted rows with pending pods, or with pods that others like them will follow."""
        return tuple(
            (row, spread)
            for row, spread in self.counted
            if any(not pod.node for pod in row.pods) or self.followed(row.pods)
        )

    def followed(self, pods: Iterable[PodRecord]) -> bool:
        """Tell whether more such pods will come: not for a bare pod, a Job with all its pods, or an older revision."""
        if self.workload.kind in _ENDING:
            return False
        return not self.audit.revisions.superseded(self.workload, pods)

    @property
    def taken(self) -> Iterator[EvaluatedPod]:
        """The members of all rows, without manifests that the API would refuse, because these are never stored."""
        refusals = self.audit.admission.manifests
        return (member for row in self.rows for member in row.members if not refusals(member.pod.pod_class))

    def members(self, verdict: Verdict) -> list[EvaluatedPod]:
        """Return the pods with a verdict, by name, without manifests that the API would refuse."""
        if not any(verdict in row.verdicts for row in self.rows):
            return []
        members = [member for member in self.taken if member.verdict is verdict]
        return sorted(members, key=lambda member: member.pod.name)


def _variant_of_pods(
    row: EvaluatedConstraint, evaluation: ClassEvaluation, number: int, term: TopologyTerm
) -> TermVariant:
    pod_class = evaluation.pod_class
    return TermVariant(
        term=term,
        authored=pod_class.splits[row.index].authored,
        effective=evaluation.effective[row.index],
        labels=pod_class.labels,
        kind="" if pod_class.owner is None else pod_class.owner.kind,
        scheduler_name=pod_class.scheduler_name,
        stored=pod_class.stored,
        number=number,
        first=all(earlier.default for earlier in pod_class.terms[: row.index]),
        row=row,
        evaluation=evaluation,
    )
