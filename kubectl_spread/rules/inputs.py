"""The inputs of the rules: every workload at every field path, from its pods and from its template.

Classes of pods of one workload, and its template, may have a term with other labels: its variants.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from functools import cached_property
from itertools import chain, groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec

from kubectl_spread.audit.evaluation.evaluate import Audit, EvaluatedConstraint, EvaluatedGroup, EvaluatedPod
from kubectl_spread.audit.evaluation.evaluators import ClassEvaluation
from kubectl_spread.audit.merge.admission import Refusals
from kubectl_spread.audit.merge.verdicts import Verdict
from kubectl_spread.audit.snapshot.records import Manifest, PodClass, PodRecord
from kubectl_spread.audit.snapshot.templates import PRESUMED, Refusal, Template
from kubectl_spread.audit.snapshot.terms import TopologyTerm
from kubectl_spread.diagnosis import exposure
from kubectl_spread.diagnosis.exposure import Replicas
from kubectl_spread.kube.api import labels as labelselectors
from kubectl_spread.kube.api.field import POD_SPEC, FieldPath
from kubectl_spread.kube.api.labels import Labels
from kubectl_spread.kube.api.objects import ObjectRef
from kubectl_spread.kube.api.types import LabelSelector, LabelSelectorRequirement, OwnerReference
from kubectl_spread.kube.api.unknownfields import UnknownField
from kubectl_spread.kube.api.workloads import template_path
from kubectl_spread.kube.custom import base_kind
from kubectl_spread.kube.features import Behaviour
from kubectl_spread.kube.scheduler.podtopologyspread.constraints import effective_selector
from kubectl_spread.kube.scheduler.podtopologyspread.spread import Spread
from kubectl_spread.memoization import memoized

if TYPE_CHECKING:
    # Rules ask the engine that they are given.
    from kubectl_spread.engine.engine import Engine


class TermVariant(msgspec.Struct, frozen=True):
    """A term as the pods of one class, or a template, have it.

    Attributes:
        term: The term.
        authored: Its selector without the merged part.
        effective: The selector that the scheduler works with.
        holder: The template, or the class of the pods.
        first: Whether it is the first term of the pods, default constraints aside.
        number: The number of pods; 0 for a template.
        row: The row of the pods; None for a template.
    """

    term: TopologyTerm
    authored: LabelSelector | None
    effective: LabelSelector | None
    holder: Template | PodClass
    first: bool = False
    number: int = 0
    row: EvaluatedConstraint | None = None

    @property
    def stored(self) -> bool:
        """Whether the pods are from an API server, and not from manifests."""
        return isinstance(self.holder, PodClass) and self.holder.stored

    @property
    def labels(self) -> Labels:
        """The labels of the pods."""
        return self.holder.labels

    @property
    def pods(self) -> tuple[PodRecord, ...]:
        """The pods, by name; none for a template."""
        pods = () if self.row is None else self.row.pods
        return tuple(pod for pod in pods if pod.pod_class is self.holder)

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
            if not (self.labels.get(requirement.key) == PRESUMED or self.may_get(requirement.key))
        )

    def may_get(self, key: str) -> bool:
        """Tell whether a controller may add a label to the pods of the template; never to pods."""
        return isinstance(self.holder, Template) and self.holder.may_get(key)

    @property
    def extended(self) -> bool:
        """Whether a controller reads further fields of a constraint, which may add to its selector.

        Source: prometheus-operator pkg/apis/monitoring/v1/types.go, AdditionalLabelSelectors.
        """
        return isinstance(self.holder, Template) and self.term.path in self.holder.extended


def variant_of_pods(row: EvaluatedConstraint, evaluation: ClassEvaluation, number: int) -> TermVariant:
    """Return the variant of the ``number`` pods in a row that are of one class."""
    pod_class = evaluation.pod_class
    return TermVariant(
        pod_class.terms[row.index],
        pod_class.splits[row.index].authored,
        evaluation.effective[row.index],
        pod_class,
        first=all(earlier.default for earlier in pod_class.terms[: row.index]),
        number=number,
        row=row,
    )


def variant_of_template(term: TopologyTerm, template: Template, behaviour: Behaviour) -> TermVariant:
    """Return the variant of a template, with the selector that the scheduler will work with for its pods."""
    keys = term.match_label_keys if behaviour.scheduler_adds_match_label_keys else ()
    effective = effective_selector(term.selector, keys, template.labels)
    return TermVariant(term, term.selector, effective, template, first=term is template.terms[0])


def variants_of(holder: Template | PodClass, behaviour: Behaviour) -> Iterator[TermVariant]:
    """Yield the variants of all terms of a template, or of the pods of a class; without rows."""
    if isinstance(holder, Template):
        yield from (variant_of_template(term, holder, behaviour) for term in holder.terms)
        return
    for term, split in zip(holder.terms, holder.splits, strict=True):
        yield TermVariant(term, split.authored, term.selector, holder)


_ENDING: Final = frozenset({"Pod", "Job", "CronJob"})
"""Kinds whose pods have no successors."""


class _Input(msgspec.Struct, frozen=True, eq=False, dict=True, kw_only=True):
    """One workload at one field path.

    Attributes:
        workload: The workload.
        path: The field path of a term, of an unknown field, or of the pod spec.
        audit: The audit.
        engine: The model of the cluster.
        manifest: The manifest of the template, or of a pod without owner.
    """

    workload: ObjectRef
    path: FieldPath
    audit: Audit
    engine: Engine
    manifest: Manifest | None = None

    @property
    def namespace(self) -> str:
        """The namespace of the workload."""
        return self.workload.namespace

    @property
    def pods(self) -> Iterable[PodRecord]:
        """The pods of the workload that were read, some of them twice; none for a template."""
        return ()

    @cached_property
    def pending(self) -> frozenset[str]:
        """The names of the pods of the workload that have no node."""
        return frozenset(pod.name for pod in self.pods if not pod.node)

    @property
    def stored_template(self) -> Template | None:
        """The pod template of the workload as it is now, where it was read."""
        return _templates_by_holder(self.audit).get(self.workload)

    @property
    def template_owner(self) -> OwnerReference | None:
        """The owner of the object that has the template; None for pods."""
        return None

    def about_new_nodes(self, pod: PodRecord) -> str:
        """Return whether a node can be made for a pending pod, after a space; "" where no node autoscaler was read."""
        answer = self.engine.new_nodes(pod) if self.audit.evaluator.lists_nodes else None
        return "" if answer is None else f" {answer.summary}"

    @property
    def behaviour(self) -> Behaviour:
        """The behaviour by which the pods were evaluated."""
        return self.audit.context.behaviour

    @property
    def pod_spec(self) -> FieldPath:
        """The path of the pod spec in the finding's object."""
        return POD_SPEC if self.workload.kind == "Pod" else template_path(self.workload.kind)


class _OfTerm(_Input, frozen=True, eq=False, dict=True, kw_only=True):
    """The pods of a workload, or a template, at the path of one of their terms.

    Attributes:
        refusals: The refusals of the API, each with the names of the pods.
        unknown_fields: The fields that the API does not have, each with the names of the pods.
    """

    refusals: tuple[tuple[Refusal, tuple[str, ...]], ...] = ()
    unknown_fields: tuple[tuple[UnknownField, tuple[str, ...]], ...] = ()

    @property
    def pod_path(self) -> FieldPath:
        """The path in a pod, for a template too."""
        return self.path

    @property
    def term_path(self) -> FieldPath:
        """The path of the term in the finding's object."""
        return self.pod_path.moved(POD_SPEC, self.pod_spec)

    @property
    def pod_template(self) -> Template | None:
        """The template, or the only one that was read of the workload of the pods."""
        return self.audit.template_of(self.workload)


class TemplateInput(_OfTerm, frozen=True, eq=False, dict=True, kw_only=True):
    """A template at the path of one of its terms.

    Attributes:
        template: The template.
        beside_pods: Whether its workload has stored pods.
    """

    template: Template
    beside_pods: bool

    @property
    def template_owner(self) -> OwnerReference | None:
        """The owner of the object that has the template."""
        return self.template.owner

    @property
    def pod_path(self) -> FieldPath:
        """The path in a pod of the template."""
        return self.path.moved(self.template.path, POD_SPEC)

    @property
    def pod_spec(self) -> FieldPath:
        """The path of the pod spec in the finding's object."""
        return self.template.path if self.template.custom else super().pod_spec

    @property
    def pod_template(self) -> Template:
        """The template."""
        return self.template

    @property
    def terms(self) -> tuple[TopologyTerm, ...]:
        """The terms of the template at the path."""
        return self.template.terms_by_path.get(self.path, ())

    @cached_property
    def variants(self) -> tuple[TermVariant, ...]:
        """The variants of the term, except terms that the API would refuse."""
        terms = () if self.refusals else self.terms
        return tuple(variant_of_template(term, self.template, self.behaviour) for term in terms)


class PodsInput(_OfTerm, frozen=True, eq=False, dict=True, kw_only=True):
    """The pods of a workload in all rows with the path.

    Attributes:
        rows: The rows, which differ in the stored selectors; last come rows without keys, which the report leaves out.
        indices: The indices of the rows in the report.
        groups: The groups of the workload's pods.
    """

    rows: tuple[EvaluatedConstraint, ...]
    indices: tuple[int, ...]
    groups: tuple[EvaluatedGroup, ...]

    @cached_property
    def has_members(self) -> bool:
        """Whether the stored selector of any pod differs from the merged one."""
        return any(row.members for row in self.rows)

    @cached_property
    def has_counts(self) -> bool:
        """Whether domains were counted for any row."""
        return any(row.term.spread and row.spread is not None for row in self.rows)

    @property
    def has_defaults(self) -> bool:
        """Whether any row is of a default constraint of the scheduler."""
        return any(row.term.default for row in self.rows)

    @property
    def pods(self) -> Iterable[PodRecord]:
        """The pods of the workload that were read, some of them twice."""
        return chain(*(row.pods for row in self.rows), *(group.pods for group in self.groups))

    @property
    def terms(self) -> tuple[TopologyTerm, ...]:
        """The terms at the path, one for each class of pods."""
        return tuple(evaluation.pod_class.terms[row.index] for row in self.rows for evaluation, _ in row.evaluations)

    @cached_property
    def variants(self) -> tuple[TermVariant, ...]:
        """The variants of the term, except default constraints and terms that the API would refuse."""
        return tuple(
            variant_of_pods(row, evaluation, number)
            for row in self.rows
            for evaluation, number in row.evaluations
            if not evaluation.pod_class.terms[row.index].default
            if not self.audit.admission.manifests(evaluation.pod_class)
        )

    def refused_pods(
        self, refusals_of: Callable[[PodClass], Refusals], *, stored: bool = True
    ) -> tuple[list[PodRecord], list[str]]:
        """Return the pods that API servers refuse for the term at the path, by name, and the errors.

        Args:
            refusals_of: Returns the refusals for the pods of a class.
            stored: Whether to look at stored pods, or else at manifests.
        """
        errors = {
            evaluation.pod_class: messages
            for row in self.rows
            for evaluation, _ in row.evaluations
            if evaluation.pod_class.stored is stored and (messages := self._messages(refusals_of(evaluation.pod_class)))
        }
        if not errors:
            return [], []
        pods = [pod for row in self.rows for pod in row.pods if pod.pod_class in errors]
        distinct = dict.fromkeys(message for pod in pods for message in errors[pod.pod_class])
        return sorted(pods, key=lambda pod: pod.name), list(distinct)

    def _messages(self, refusals: Refusals) -> list[str]:
        return [message for refusal in refusals if refusal.path == self.path for message in refusal.messages]

    @property
    def spreads(self) -> Iterator[tuple[EvaluatedConstraint, Spread]]:
        """The rows with a count, each with its count."""
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
            if any(pod.waits for pod in row.pods) or self.followed(row.pods)
        )

    def followed(self, pods: Iterable[PodRecord]) -> bool:
        """Tell whether more such pods will come: not for a bare pod, a Job with all its pods, or an older revision."""
        if base_kind(self.workload.kind) in _ENDING:
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


class WorkloadInput(_Input, frozen=True, eq=False, dict=True, kw_only=True):
    """A workload with several replicas, whatever constraints it has.

    Attributes:
        replicas: All its pods and templates.
    """

    replicas: Replicas

    @property
    def pods(self) -> Iterable[PodRecord]:
        """The pods of the workload."""
        return self.replicas.pods


class WaitingInput(_Input, frozen=True, eq=False, dict=True, kw_only=True):
    """The pods of a workload without a node that no other finding calls an error.

    Attributes:
        waiting: The pods, by name.
    """

    waiting: tuple[PodRecord, ...]

    @property
    def pods(self) -> Iterable[PodRecord]:
        """The pods."""
        return self.waiting


TermInput: TypeAlias = PodsInput | TemplateInput
"""What a rule about a term of pods checks."""
RuleInput: TypeAlias = TermInput | WorkloadInput | WaitingInput
"""What rules check."""


@memoized
def _templates_by_holder(audit: Audit) -> Mapping[ObjectRef, Template]:
    return {template.holder: template for template in audit.snapshot.templates}


_WorkloadPath: TypeAlias = tuple[ObjectRef, FieldPath]
"""A workload and a field path."""


def rule_inputs(audit: Audit, engine: Engine, reported: Container[ObjectRef]) -> Iterator[RuleInput]:
    """Yield the inputs with pods in the report's order, then those with templates, with replicas, with waiting pods.

    Affinity terms without keys have no row in the report, so they are last among the inputs with pods.

    Args:
        audit: The audit.
        engine: The model of its cluster.
        reported: The pods of errors, to which those of earlier inputs are added while the inputs are read.
    """
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
        yield PodsInput(
            workload=workload,
            path=path,
            audit=audit,
            engine=engine,
            rows=(*rows.get(workload_path, {}).values(), *without_keys.get(workload_path, ())),
            indices=tuple(rows.get(workload_path, ())),
            groups=tuple(groups.get(workload, ())) if workload_path in rows else (),
            refusals=tuple(refusals.get(workload_path, ())),
            unknown_fields=tuple(unknown_fields.get(workload_path, ())),
            manifest=manifests.get(workload) if workload.kind == "Pod" else None,
        )
    stored = _owners_of_stored_pods(audit)
    for template in audit.templates:
        yield from _of_template(template, audit, engine, beside_pods=template.workload in stored)
    for replicas in exposure.replicas(audit):
        yield _of_replicas(replicas, audit, engine)
    for workload, pods in _waiting(audit, reported).items():
        waiting = tuple(sorted(pods, key=attrgetter("name")))
        yield WaitingInput(workload=workload, path=POD_SPEC, audit=audit, engine=engine, waiting=waiting)


def is_modelled(pod: PodRecord, audit: Audit) -> bool:
    """Tell whether it is known what a pending pod waits for, whatever its scheduler says."""
    return audit.evaluator.lists_nodes and (pod.pod_class.profile is not None or bool(pod.gates))


def _waiting(audit: Audit, reported: Container[ObjectRef]) -> dict[ObjectRef, list[PodRecord]]:
    """Map each workload to its stored pods without a node that are not reported.

    Where nodes were not read, or the scheduler is not known, only its word or its silence tells which pods wait.
    """
    waiting: dict[ObjectRef, list[PodRecord]] = {}
    for pod in audit.pods:
        waits = pod.waits and pod.pod_class.stored
        is_told = pod.refused or audit.snapshot.is_overdue(pod)
        if waits and pod.ref not in reported and (is_told or is_modelled(pod, audit)):
            waiting.setdefault(audit.snapshot.workload(pod), []).append(pod)
    return waiting


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


def _of_template(template: Template, audit: Audit, engine: Engine, *, beside_pods: bool) -> Iterator[TemplateInput]:
    refusals = audit.admission.template(template)
    manifest = audit.snapshot.manifests.get(template.holder)
    unknown_fields = _unknown_fields_of(template, manifest)
    paths = (
        *(term.path for term in template.terms),
        *(refusal.path for refusal in refusals),
        *(field.path for field in unknown_fields),
    )
    for path in dict.fromkeys(paths):
        yield TemplateInput(
            workload=template.workload,
            path=path,
            audit=audit,
            engine=engine,
            template=template,
            refusals=tuple((refusal, ()) for refusal in refusals if refusal.path == path),
            beside_pods=beside_pods,
            unknown_fields=tuple((field, ()) for field in unknown_fields if field.path == path),
            manifest=manifest,
        )


def _of_replicas(replicas: Replicas, audit: Audit, engine: Engine) -> WorkloadInput:
    template = next(iter(replicas.templates), None)
    path = POD_SPEC if replicas.pods or template is None else template.path
    return WorkloadInput(
        workload=replicas.workload,
        path=path / "topologySpreadConstraints",
        audit=audit,
        engine=engine,
        manifest=None if template is None else audit.snapshot.manifests.get(template.holder),
        replicas=replicas,
    )


def _unknown_fields_of(template: Template, manifest: Manifest | None) -> tuple[UnknownField, ...]:
    """Return the unknown fields in the manifest of a template; a custom object may have several templates."""
    fields = manifest.unknown_fields if manifest else ()
    return tuple(field for field in fields if field.path.is_inside(template.path)) if template.custom else fields
