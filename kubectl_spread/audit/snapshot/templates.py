"""Templates: pod templates, and the API's errors on them and on the pods made from them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from functools import cached_property
from typing import Final

import msgspec

from kubectl_spread.audit.snapshot.terms import TopologyTerm, topology_terms
from kubectl_spread.kube import apiserver, custom
from kubectl_spread.kube.api.field import POD_SPEC, FieldError, FieldPath
from kubectl_spread.kube.api.labels import Labels
from kubectl_spread.kube.api.objects import ObjectRef
from kubectl_spread.kube.api.types import LabelSelector, OwnerReference, PodSpec
from kubectl_spread.kube.api.workloads import ONE_BY_ONE, Job, Pace, WorkloadObject, template_path
from kubectl_spread.kube.custom import AddedLabels, HeldTemplate, Unevaluated, is_custom
from kubectl_spread.kube.features import Behaviour
from kubectl_spread.kube.scheduler.podtopologyspread.domains import Placement

PRESUMED: Final = "presumed"
"""The value of a label that a controller will set, which is unknown before."""
_JOB_LABELS: Final = (
    "batch.kubernetes.io/controller-uid",
    "batch.kubernetes.io/job-name",
    "controller-uid",
    "job-name",
)
COMPLETION_INDEX: Final = "batch.kubernetes.io/job-completion-index"
_NAMES_OF_JOBS: Final = ("batch.kubernetes.io/job-name", "job-name")
_CONTROLLER_LABELS: Final[Mapping[str, tuple[str, ...]]] = {
    "Deployment": ("pod-template-hash",),
    "StatefulSet": (
        "apps.kubernetes.io/pod-index",
        "controller-revision-hash",
        "statefulset.kubernetes.io/pod-name",
    ),
    "DaemonSet": ("controller-revision-hash", "pod-template-generation"),
    "Job": _JOB_LABELS,
    "CronJob": _JOB_LABELS,
}
_LISTS_OF_TERMS: Final = frozenset(
    {
        "topologySpreadConstraints",
        "requiredDuringSchedulingIgnoredDuringExecution",
        "preferredDuringSchedulingIgnoredDuringExecution",
    }
)


class Refused(StrEnum):
    """The objects or requests that the API server would refuse."""

    TEMPLATE = "the workload"
    PODS = "every pod of this template"
    POD = "this pod"
    EDIT = "every edit of the pods"


class Refusal(msgspec.Struct, frozen=True):
    """The API's errors on one term that it would refuse."""

    path: FieldPath
    refused: Refused
    messages: tuple[str, ...]


class Template(msgspec.Struct, frozen=True, dict=True, eq=False):
    """A workload's pod template; compared by identity.

    ``holder`` is the object that holds it, which ``workload`` may own. ``terms`` have the template's paths and
    ``path`` is the path of its pod spec; ``labels`` are the labels that its pods will have, and ``selector`` is the
    holder's selector of its pods. ``replicas`` is None where the object has no such number; ``rolls`` tells
    whether old and new pods run together during a rollout, and ``pace`` how fast that goes.

    A template in an object of a kind that Kubernetes does not define is ``custom``. Its pods may have further labels
    that begin with one of ``label_prefixes``; "" stands for every label. ``complete`` is False for spread constraints
    that such an object states without a template. ``sets_selectors`` tells whether its controller may fill in a
    labelSelector that is not set. ``revision_anti_affinity`` is the path of the field that makes it keep pods of a new
    revision from nodes with pods of the stable one, or empty. ``extended`` has the paths of constraints with fields
    that the API does not have. ``unevaluated`` is the reason why it cannot be evaluated, and then it has no terms.
    """

    holder: ObjectRef
    workload: ObjectRef
    owner: OwnerReference | None
    spec: PodSpec
    path: FieldPath
    labels: Labels
    selector: LabelSelector | None
    terms: tuple[TopologyTerm, ...]
    replicas: int | None
    rolls: bool
    ignored: str
    pace: Pace = ONE_BY_ONE
    custom: bool = False
    label_prefixes: tuple[str, ...] = ()
    complete: bool = True
    sets_selectors: bool = False
    revision_anti_affinity: FieldPath = FieldPath()
    extended: frozenset[FieldPath] = frozenset()
    unevaluated: Unevaluated | None = None

    def may_get(self, key: str) -> bool:
        """Tell whether a controller may add a label to the pods that the template lacks."""
        return key not in self.labels and key.startswith(self.label_prefixes)

    @cached_property
    def terms_by_path(self) -> Mapping[FieldPath, tuple[TopologyTerm, ...]]:
        """The terms at each path."""
        terms: dict[FieldPath, tuple[TopologyTerm, ...]] = {}
        for term in self.terms:
            terms[term.path] = (*terms.get(term.path, ()), term)
        return terms

    @property
    def namespace(self) -> str:
        """The namespace of the workload."""
        return self.holder.namespace

    @property
    def kind(self) -> str:
        """The kind of the object that holds the template."""
        return self.holder.kind

    @property
    def scheduler_name(self) -> str:
        """The name of the pods' scheduler; "" for the default."""
        return self.spec.scheduler_name

    @property
    def placement(self) -> Placement:
        """The parts of the spec that decide which nodes the pods may use."""
        return Placement(self.spec.node_selector, self.spec.affinity, self.spec.tolerations)


def labels_of_controller(kind: str) -> tuple[str, ...]:
    """Return the labels that the controller of a kind adds to all pods; none where they are unknown."""
    return _CONTROLLER_LABELS.get(kind, ())


def controller_labels(kind: str, workload: WorkloadObject) -> tuple[str, ...]:
    """Return the labels that the controller of a workload adds to the pods of its template, in key order."""
    labels = labels_of_controller(kind)
    return tuple(sorted((*labels, COMPLETION_INDEX))) if workload.indexed else labels


def template_of(ref: ObjectRef, workload: WorkloadObject, owner: OwnerReference | None, ignored: str) -> Template:
    """Return the template of the workload ``ref``."""
    kind = ref.kind
    spec = workload.template.spec
    path = template_path(kind)
    return Template(
        holder=ref,
        workload=ref,
        owner=owner,
        spec=spec,
        path=path,
        labels=template_labels(kind, workload),
        selector=workload.selector,
        terms=topology_terms(spec, path),
        replicas=workload.replicas,
        rolls=workload.rolls,
        ignored=ignored,
        pace=workload.pace,
    )


def held_template(ref: ObjectRef, held: HeldTemplate, owner: OwnerReference | None, ignored: str) -> Template:
    """Return a template in the object ``ref``, whose kind Kubernetes does not define."""
    spec, path = held.template.spec, held.path
    added = _added_labels(held)
    presumed = dict.fromkeys(sorted(added.keys), PRESUMED)
    return Template(
        holder=ref,
        workload=ref,
        owner=owner,
        spec=spec,
        path=path,
        labels={**presumed, **held.template.metadata.labels},
        selector=None,
        terms=topology_terms(spec, path),
        replicas=held.replicas,
        rolls=custom.replaces_gradually(held.group, held.kind),
        ignored=ignored,
        custom=True,
        label_prefixes=(*added.prefixes, *held.more_labels),
        complete=held.complete,
        sets_selectors=not held.complete
        or (is_custom(f"{held.group}/") and not custom.is_known(held.group, held.kind)),
        revision_anti_affinity=held.revision_anti_affinity,
        extended=frozenset(path / "topologySpreadConstraints" / index for index in held.extended),
        unevaluated=held.unevaluated,
    )


def _added_labels(held: HeldTemplate) -> AddedLabels:
    """Return the labels that the controller of a template adds; it may be one of Kubernetes' own, as in a List."""
    if not held.complete:
        return custom.UNKNOWN
    if is_custom(f"{held.group}/"):
        return custom.added_labels(held.group, held.kind, held.path)
    return AddedLabels(labels_of_controller(held.kind), (COMPLETION_INDEX,))


def template_labels(kind: str, workload: WorkloadObject) -> Labels:
    """Return the labels that the pods of a workload will have; the controller's labels have a presumed value.

    The API server names a Job in the labels of its template, unless its author chose the selector.

    Source: kubernetes v1.37.1 pkg/registry/batch/job/strategy.go, generateSelector.
    """
    presumed = dict.fromkeys(controller_labels(kind, workload), PRESUMED)
    if isinstance(workload, Job) and workload.metadata.name and not workload.spec.manual_selector:
        presumed |= dict.fromkeys(_NAMES_OF_JOBS, workload.metadata.name)
    return {**presumed, **workload.template.metadata.labels}


def template_refusals(template: Template, behaviour: Behaviour) -> tuple[Refusal, ...]:
    """Return the errors of an API server of this behaviour on a template, or otherwise on the pods made from it.

    Whether the API server validates the template in an object of a custom kind is unknown. It validates the pods.
    """
    spec, path = template.spec, template.path
    if not template.custom and (errors := template_errors(template.kind, spec, behaviour)):
        return by_term(errors, Refused.TEMPLATE, path)
    errors = pod_refusals(spec, template.labels, behaviour)
    if template.sets_selectors:
        errors = tuple(error for error in errors if not error.message.endswith(apiserver.NO_SELECTOR))
    return by_term(errors, Refused.PODS, path)


def template_errors(kind: str, spec: PodSpec, behaviour: Behaviour) -> tuple[FieldError, ...]:
    """Return the API's errors on the pod spec in a workload; an old API server does not look at that of a StatefulSet.

    Source: kubernetes v1.33.13 and v1.34.4 pkg/apis/apps/validation/validation.go,
    ValidatePodTemplateSpecForStatefulSet.
    """
    if kind == "StatefulSet" and not behaviour.validates_stateful_sets:
        return ()
    return apiserver.pod_errors(apiserver.drop_disabled_fields(spec, behaviour), behaviour, template_path(kind))


def pod_refusals(spec: PodSpec, labels: Labels, behaviour: Behaviour) -> tuple[FieldError, ...]:
    """Return the API's errors on a pod that is created with this spec and these labels."""
    return apiserver.pod_errors(apiserver.prepare_for_create(spec, labels, behaviour), behaviour)


def by_term(errors: Iterable[FieldError], refused: Refused, path: FieldPath) -> tuple[Refusal, ...]:
    """Return errors by the term that has their field; ``path`` is the path of the pod spec."""
    by_path: dict[FieldPath, list[str]] = {}
    for error in errors:
        term = _term_of(error.path)
        by_path.setdefault(term.moved(POD_SPEC, path) if refused is Refused.PODS else term, []).append(error.message)
    return tuple(Refusal(term, refused, tuple(messages)) for term, messages in by_path.items())


def _term_of(path: FieldPath) -> FieldPath:
    """Return the path of the term that has a field; in a preferred term, the path of the weight or of the term."""
    depth = next((depth for depth, step in enumerate(path) if step in _LISTS_OF_TERMS), len(path)) + 2
    return FieldPath(path[: depth + (path[depth : depth + 1] == ("podAffinityTerm",))])
