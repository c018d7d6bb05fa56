"""The form of a rule: texts for people and one check that yields evidence; and its form in JSON (docs/json.md)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import Flag, auto
from functools import cached_property
from typing import Final, Literal, TypeAlias

import msgspec

from kubectl_spread.audit.evaluation.counted import SharedAnswers
from kubectl_spread.audit.evaluation.evaluate import Audit, EvaluatedConstraint, EvaluatedGroup, EvaluatedPod
from kubectl_spread.audit.merge.admission import Refusals
from kubectl_spread.audit.merge.verdicts import Verdict
from kubectl_spread.audit.snapshot.records import Manifest, PodClass, PodRecord
from kubectl_spread.audit.snapshot.templates import Refusal, Template
from kubectl_spread.audit.snapshot.terms import TopologyTerm
from kubectl_spread.diagnosis.exposure import Exposures, Replicas
from kubectl_spread.diagnosis.trials import Trials
from kubectl_spread.kube.api.field import POD_SPEC, FieldPath
from kubectl_spread.kube.api.objects import ObjectRef
from kubectl_spread.kube.api.unknownfields import UnknownField
from kubectl_spread.kube.api.workloads import template_path
from kubectl_spread.kube.custom.objects import base_kind
from kubectl_spread.kube.features import Behaviour
from kubectl_spread.kube.scheduler.podtopologyspread.spread import Spread
from kubectl_spread.report.model import API_VERSION, ClosedDomains, Command, Operation, Part, Severity
from kubectl_spread.rules.variants import TermVariant, variant_of_pods, variant_of_template

_ENDING: Final = frozenset({"Pod", "Job", "CronJob"})
"""Kinds whose pods have no successors."""


class InputPart(Flag):
    """A part of the input that a rule may need.

    Attributes:
        TEMPLATE: A template.
        PODS: Pods.
        MEMBERS: Pods whose stored selector differs from the merged one.
        COUNTS: A count of domains.
        WORKLOAD: All pods and templates of a workload with replicas, whatever constraints these have.
    """

    TEMPLATE = auto()
    PODS = auto()
    MEMBERS = auto()
    COUNTS = auto()
    WORKLOAD = auto()


class RuleInput(msgspec.Struct, frozen=True, eq=False, dict=True):
    """One workload and one field path: the workload's pods, in all rows with that path, or its template, or everything.

    Attributes:
        workload: The workload.
        path: The field path of a term, or of an unknown field.
        audit: The audit.
        answers: Answers about the audit that its inputs share.
        rows: The rows, which differ in the stored selectors; last come rows without keys, which the report leaves out.
        indices: The indices of the rows in the report.
        groups: The groups of the workload's pods.
        template: The template; None for pods.
        refusals: The refusals of the API, each with the names of the pods.
        beside_pods: Whether the workload of the template has stored pods.
        unknown_fields: The fields that the API does not have, each with the names of the pods.
        manifest: The manifest of the template, or of a pod without owner.
        replicas: All pods and templates of the workload, where the rules are about all of them together.
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
    replicas: Replicas | None = None

    @property
    def namespace(self) -> str:
        """The namespace of the workload."""
        return self.workload.namespace

    @property
    def parts(self) -> InputPart:
        """The parts that this input has."""
        if self.replicas is not None:
            return InputPart.WORKLOAD
        if self.template is not None:
            return InputPart.TEMPLATE
        parts = InputPart.PODS
        if any(row.members for row in self.rows):
            parts |= InputPart.MEMBERS
        if any(row.term.spread and row.spread is not None for row in self.rows):
            parts |= InputPart.COUNTS
        return parts

    @property
    def pods(self) -> Iterator[PodRecord]:
        """The pods of the workload that were read, some of them twice."""
        for row in self.rows:
            yield from row.pods
        for group in self.groups:
            yield from group.pods
        if self.replicas is not None:
            yield from self.replicas.pods

    @cached_property
    def pending(self) -> frozenset[str]:
        """The names of the pods of the workload that have no node."""
        return frozenset(pod.name for pod in self.pods if not pod.node)

    @property
    def exposures(self) -> Exposures:
        """The exposure of all workloads of the audit to the loss of one domain."""
        return self.answers.remember(Exposures, lambda: Exposures(self.audit))

    @property
    def trials(self) -> Trials:
        """The trials of fixes for all workloads of the audit."""
        return self.answers.remember(Trials, lambda: Trials(self.audit))

    @property
    def stored_template(self) -> Template | None:
        """The pod template of the workload as it is now, where these are its pods and it was read; else None."""
        if self.template is not None:
            return None
        templates = self.answers.remember(
            Template, lambda: {template.holder: template for template in self.audit.snapshot.templates}
        )
        return templates.get(self.workload)

    @property
    def behaviour(self) -> Behaviour:
        """The behaviour by which the pods were evaluated."""
        return self.audit.context.behaviour

    @property
    def pod_path(self) -> FieldPath:
        """The path in a pod, for a template too."""
        return self.path if self.template is None else self.path.moved(self.template.path, POD_SPEC)

    @property
    def pod_spec(self) -> FieldPath:
        """The path of the pod spec in the finding's object."""
        if self.template is not None and self.template.custom:
            return self.template.path
        return POD_SPEC if self.workload.kind == "Pod" else template_path(self.workload.kind)

    @property
    def term_path(self) -> FieldPath:
        """The path of the term in the finding's object."""
        return self.pod_path.moved(POD_SPEC, self.pod_spec)

    @property
    def terms(self) -> tuple[TopologyTerm, ...]:
        """The terms at the path: one for each class of pods, or the template's."""
        if self.template is not None:
            return self.template.terms_by_path.get(self.path, ())
        return tuple(evaluation.pod_class.terms[row.index] for row in self.rows for evaluation, _ in row.evaluations)

    @cached_property
    def variants(self) -> tuple[TermVariant, ...]:
        """The variants of the term, except default constraints and terms that the API would refuse."""
        return tuple(self._variants())

    def _variants(self) -> Iterator[TermVariant]:
        if self.template is not None:
            for term in () if self.refusals else self.terms:
                yield variant_of_template(term, self.template, self.behaviour)
            return
        for row in self.rows:
            for evaluation, number in row.evaluations:
                default = evaluation.pod_class.terms[row.index].default
                if not (default or self.audit.admission.manifests(evaluation.pod_class)):
                    yield variant_of_pods(row, evaluation, number)

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
            if any(not pod.node for pod in row.pods) or self.followed(row.pods)
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


KUBERNETES: Final = "https://github.com/kubernetes/kubernetes/blob/v1.37.1"
FILTERING: Final = f"{KUBERNETES}/pkg/scheduler/framework/plugins/podtopologyspread/filtering.go"
VALIDATION: Final = f"{KUBERNETES}/pkg/apis/core/validation/validation.go"
Values: TypeAlias = dict[str, str | int]
"""The values of a message, by the names in its template."""


class Remedy(msgspec.Struct, frozen=True):
    """A template of a sentence, with what to type.

    Attributes:
        text: A template of the evidence's values, of ``these`` (its pods in words) and of ``restart`` (see ``Rule``).
        commands: Lines for a shell, to run in this order, without kubectl's flags for the cluster.
        patch: A JSON patch of the finding's object that ends the finding.
        after: The pending pods of a StatefulSet to delete once the patch is applied.
    """

    text: str
    commands: tuple[Command, ...] = ()
    patch: tuple[Operation, ...] = ()
    after: tuple[str, ...] = ()


class Evidence(msgspec.Struct, frozen=True):
    """The names of pods and the values for the message; ``severity`` and ``fix`` are None if they are the rule's.

    A ``fix`` that is a text has nothing to type. ``covers`` are the codes of rules that would repeat this finding.
    ``closed`` are domains that the pods wait for; ``fix`` is then for the case that they stay closed.
    ``exposes`` is the topology key of the domain with which it says that the workload is lost; "" where it does not.
    """

    pods: tuple[str, ...]
    values: Mapping[str, str | int] = msgspec.field(default_factory=dict)
    severity: Severity | None = None
    fix: Remedy | str | None = None
    covers: tuple[str, ...] = ()
    closed: ClosedDomains | None = None
    exposes: str = ""


Check: TypeAlias = Callable[[RuleInput], Iterator[Evidence]]


class Rule(msgspec.Struct, frozen=True):
    """A rule, with all texts that output, catalogue and documentation print about it.

    Attributes:
        message: A template of the evidence's values.
        fix: A template of these values and of ``restart``, the safe way to replace the pods of the workload.
        cases: The severities of a rule that has several, each with the case that has it; the worst first.
        remedies: The kinds of remedies that findings of this rule may have.
        no_remedy: Why some findings, or all, have no command and no patch; "" where each has one.
        needs_nodes: Whether the check reads the nodes of the pods, or the nodes that they may use.
        compares: Whether the rule is about what another Kubernetes does differently (``--to``).
        removes_pods: Whether a fix may delete or evict pods, which depends on disruption budgets.
        explains_exposure: Whether a finding says why the pods are in one domain of the topology key.
        parts: The engine runs the check on inputs with at least one of these parts.
    """

    code: str
    name: str
    severity: Severity
    summary: str
    message: str
    why: str
    fix: str
    source: str
    check: Check
    cases: tuple[tuple[Severity, str], ...] = ()
    remedies: tuple[Literal["command", "patch"], ...] = ()
    no_remedy: str = ""
    needs_nodes: bool = False
    compares: bool = False
    removes_pods: bool = False
    explains_exposure: bool = False
    parts: InputPart = InputPart.TEMPLATE | InputPart.PODS

    @property
    def needs_workloads(self) -> bool:
        """Whether the check has an answer about pod templates or whole workloads, and not only about pods.

        Rules on stored selectors and on placement read templates as well, but what they are about is pods.
        """
        of_workloads, of_pods = InputPart.TEMPLATE | InputPart.WORKLOAD, InputPart.MEMBERS | InputPart.COUNTS
        return bool(self.parts & of_workloads) and not self.parts & of_pods

    @property
    def general_fix(self) -> str:
        """The fix for any workload."""
        return self.fix.replace("{restart}", "restart the workload")


def names(pods: Iterable[PodRecord]) -> tuple[str, ...]:
    """Return the names of pods, in order."""
    return tuple(sorted(pod.name for pod in pods))


def together(
    pairs: Iterable[tuple[TermVariant, Values]], severity: Severity | None = None, fix: Remedy | str | None = None
) -> Iterator[Evidence]:
    """Yield one piece of evidence about the pods of all variants, with the values of the first; none for no variant."""
    pairs = list(pairs)
    if pairs:
        pod_names = {pod.name for variant, _ in pairs for pod in variant.pods}
        yield Evidence(tuple(sorted(pod_names)), pairs[0][1], severity, fix)


class RuleEntry(Part, frozen=True, kw_only=True):
    """A rule; ``message`` is a template of a finding's values."""

    code: str
    name: str
    severity: Severity
    summary: str
    message: str
    why: str
    fix: str
    source: str
    needs_nodes: bool


class RuleList(Part, frozen=True, kw_only=True):
    """Rules, in the order of the catalogue."""

    api_version: str = API_VERSION
    kind: str = "RuleList"
    rules: list[RuleEntry]


def listing(rules: Iterable[Rule]) -> RuleList:
    """Return rules as a document."""
    return RuleList(rules=[_entry(rule) for rule in rules])


def _entry(rule: Rule) -> RuleEntry:
    entry = msgspec.convert(rule, RuleEntry, from_attributes=True)
    return msgspec.structs.replace(entry, fix=rule.general_fix)
