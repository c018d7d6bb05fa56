"""Workloads: the objects with pod templates, and the path of the template in each kind."""

from __future__ import annotations

from collections.abc import Collection
from typing import Annotated, ClassVar, Final, Self

import msgspec

from kubectl_spread.kube.api.field import FieldPath
from kubectl_spread.kube.api.labels import Labels
from kubectl_spread.kube.api.quantity import comparable, scaled, whole_number
from kubectl_spread.kube.api.sparse import DetailedContainer, DetailedPodSpec, shared_claims
from kubectl_spread.kube.api.storage import Claims, PersistentVolumeClaim
from kubectl_spread.kube.api.types import (
    Int32,
    LabelSelector,
    Message,
    Object,
    ObjectMeta,
    ResourceRequirements,
)

_DEFAULT_REPLICAS: Final = 1
_DEFAULT_BACKOFF_LIMIT: Final = 6
_LARGEST_INT32: Final = 2**31 - 1
_QUARTER: Final = "25%"
_INDEXED: Final = "Indexed"
RECREATE: Final = "Recreate"
"""The strategy of a rollout that deletes all pods before it creates new ones."""
_TEMPLATE_GENERATION: Final = "deprecated.daemonset.template.generation"
_POD_GENERATION: Final = "pod-template-generation"
_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
_RESTARTED: Final = "kubectl.kubernetes.io/restartedAt"
"""The annotation of ``kubectl rollout restart``, which ``kubectl apply`` keeps."""


class TemplateContainer(DetailedContainer, frozen=True):
    """A container of a pod template, of which the image is read, because a new one starts a rollout."""

    image: Annotated[str, 2] = ""


class TemplatePodSpec(DetailedPodSpec, frozen=True):
    """The pod spec of a template."""

    containers: Annotated[tuple[TemplateContainer, ...], 2] = ()
    init_containers: Annotated[tuple[TemplateContainer, ...], 20] = ()


class PodTemplateSpec(Message, frozen=True):
    """A pod template, inside a workload."""

    metadata: Annotated[ObjectMeta, 1] = ObjectMeta()
    spec: Annotated[TemplatePodSpec, 2] = TemplatePodSpec()

    def equals(self, other: PodTemplateSpec) -> bool:
        """Tell whether another template has the same values in what is read, with the API server's defaults."""
        return _with_defaults(self) == _with_defaults(other)


def _with_defaults(template: PodTemplateSpec) -> object:
    """Return the fields of a template as values to compare: an API server also rewrites quantities."""
    spec, metadata = template.spec, template.metadata
    annotations = {key: value for key, value in metadata.annotations.items() if key != _RESTARTED}
    containers = [
        (container.name, container.image, container.restart_policy, container.ports, _amounts(container.resources))
        for container in (*spec.init_containers, *spec.containers)
    ]
    rest = msgspec.structs.replace(
        spec, containers=(), init_containers=(), resources=None, restart_policy=spec.restart_policy or "Always"
    )
    return metadata.labels, annotations, len(spec.containers), containers, _amounts(spec.resources), rest


def _amounts(resources: ResourceRequirements | None) -> object:
    lists = () if resources is None else (resources.limits, resources.requests)
    return [{name: comparable(quantity) for name, quantity in quantities.items()} for quantities in lists]


EMPTY: Final = PodTemplateSpec()


class Pace(msgspec.Struct, frozen=True):
    """How fast a rollout replaces pods.

    Attributes:
        surge: The pods that there may be above the desired number.
        unavailable: The pods that may be missing from the desired number.
    """

    surge: int
    unavailable: int


ONE_BY_ONE: Final = Pace(surge=0, unavailable=1)


class _RollingUpdate(Message, frozen=True):
    max_unavailable: Annotated[Int32 | str | None, 1] = None
    max_surge: Annotated[Int32 | str | None, 2] = None


class _Strategy(Message, frozen=True):
    type: Annotated[str, 1] = "RollingUpdate"
    rolling_update: Annotated[_RollingUpdate, 2] = _RollingUpdate()


class _ReplicatedSpec(Message, frozen=True):
    replicas: Annotated[Int32 | None, 1] = None
    template: Annotated[PodTemplateSpec, 3] = EMPTY


class _SelectingSpec(_ReplicatedSpec, frozen=True):
    selector: Annotated[LabelSelector | None, 2] = None


class _DeploymentSpec(_SelectingSpec, frozen=True):
    strategy: Annotated[_Strategy, 4] = _Strategy()
    paused: Annotated[bool | None, 7] = None


class _Ordinals(Message, frozen=True):
    start: Annotated[Int32, 1] = 0


class _PartitionedUpdate(Message, frozen=True):
    partition: Annotated[Int32 | None, 1] = None
    max_unavailable: Annotated[Int32 | str | None, 2] = None


class _StatefulSetStrategy(Message, frozen=True):
    type: Annotated[str, 1] = "RollingUpdate"
    rolling_update: Annotated[_PartitionedUpdate, 2] = _PartitionedUpdate()


class _StatefulSetSpec(_SelectingSpec, frozen=True):
    volume_claim_templates: Annotated[tuple[PersistentVolumeClaim, ...], 4] = ()
    pod_management_policy: Annotated[str, 6] = "OrderedReady"
    update_strategy: Annotated[_StatefulSetStrategy, 7] = _StatefulSetStrategy()
    ordinals: Annotated[_Ordinals, 11] = _Ordinals()


class _StatefulSetStatus(Message, frozen=True):
    current_revision: Annotated[str, 6] = ""
    update_revision: Annotated[str, 7] = ""


class _ReplicationControllerSpec(_ReplicatedSpec, frozen=True):
    selector: Annotated[dict[str, str], 2] = msgspec.field(default_factory=dict)


class _DaemonSetSpec(Message, frozen=True):
    selector: Annotated[LabelSelector | None, 1] = None
    template: Annotated[PodTemplateSpec, 2] = EMPTY
    update_strategy: Annotated[_Strategy, 3] = _Strategy()


class _FailurePolicyCondition(Message, frozen=True):
    type: Annotated[str, 1] = ""


class _FailurePolicyRule(Message, frozen=True):
    action: Annotated[str, 1] = ""
    on_pod_conditions: Annotated[tuple[_FailurePolicyCondition, ...], 3] = ()


class _FailurePolicy(Message, frozen=True):
    rules: Annotated[tuple[_FailurePolicyRule, ...], 1] = ()


class _JobSpec(Message, frozen=True):
    manual_selector: Annotated[bool, 5] = False
    template: Annotated[PodTemplateSpec, 6] = EMPTY
    backoff_limit: Annotated[Int32 | None, 7] = None
    completion_mode: Annotated[str, 9] = ""
    pod_failure_policy: Annotated[_FailurePolicy, 11] = _FailurePolicy()
    backoff_limit_per_index: Annotated[Int32 | None, 12] = None
    max_failed_indexes: Annotated[Int32 | None, 13] = None
    pod_replacement_policy: Annotated[str, 14] = ""


class _JobTemplateSpec(Message, frozen=True):
    spec: Annotated[_JobSpec, 2] = _JobSpec()


class _CronJobSpec(Message, frozen=True):
    job_template: Annotated[_JobTemplateSpec, 5] = _JobTemplateSpec()


class WorkloadObject(Object, frozen=True):
    """An object with a pod template."""

    required: ClassVar[str] = "spec"

    @property
    def template(self) -> PodTemplateSpec:
        """The pod template."""
        raise NotImplementedError

    @property
    def replicas(self) -> int | None:
        """The desired number of pods; None where the object has no such number."""
        return None

    @property
    def claims(self) -> Claims:
        """The PersistentVolumeClaims of its pods."""
        return Claims(shared=shared_claims(self.template.spec.volumes))

    @property
    def has_ephemeral_volumes(self) -> bool:
        """Whether its pods have volumes whose claims are created, and deleted, with them."""
        return any(volume.is_ephemeral for volume in self.template.spec.volumes)

    @property
    def selector(self) -> LabelSelector | None:
        """The selector of its pods; None where it has none."""
        return None

    @property
    def rolls(self) -> bool:
        """Whether a change of the template replaces pods gradually, so that old and new pods run together."""
        return False

    @property
    def pace(self) -> Pace:
        """How fast a rollout replaces its pods."""
        return ONE_BY_ONE

    @property
    def indexed(self) -> bool:
        """Whether each of its pods has an index among the completions of a Job."""
        return False


class _Replicated(WorkloadObject, frozen=True):
    """An object with a number of equal pods."""

    spec: Annotated[_ReplicatedSpec, 2] = _ReplicatedSpec()

    @property
    def template(self) -> PodTemplateSpec:
        """The pod template."""
        return self.spec.template

    @property
    def replicas(self) -> int:
        """The desired number of pods."""
        return _DEFAULT_REPLICAS if self.spec.replicas is None else self.spec.replicas


class ReplicatedWorkload(_Replicated, frozen=True):
    """A ReplicaSet, or a workload with its fields."""

    spec: Annotated[_SelectingSpec, 2] = _SelectingSpec()

    @property
    def selector(self) -> LabelSelector | None:
        """The selector of its pods."""
        return self.spec.selector

    def applied_to(self, stored: ReplicatedWorkload) -> Self:
        """Return what ``kubectl apply`` of this manifest stores: fields that it does not have stay as they are.

        A field that the manifest had at the last ``kubectl apply``, and no longer has, gets its default.

        Source: kubernetes v1.37.1 staging/src/k8s.io/apimachinery/pkg/util/strategicpatch/patch.go,
        CreateThreeWayMergePatch.
        """
        last = _last_applied(stored)
        left = {
            name: getattr(stored.spec, name)
            for name in ("replicas", "paused")
            if hasattr(self.spec, name) and getattr(self.spec, name) is None and name not in last
        }
        return msgspec.structs.replace(self, spec=msgspec.structs.replace(self.spec, **left))


def _last_applied(stored: WorkloadObject) -> Collection[str]:
    """Return the names of the fields of the spec that the last ``kubectl apply`` had."""
    try:
        applied = msgspec.json.decode(stored.metadata.annotations.get(_LAST_APPLIED, "{}"))
        return dict(applied["spec"])
    except (ValueError, KeyError, TypeError):
        return ()


class StatefulSet(ReplicatedWorkload, frozen=True):
    """A StatefulSet."""

    spec: Annotated[_StatefulSetSpec, 2] = _StatefulSetSpec()
    status: Annotated[_StatefulSetStatus, 3] = _StatefulSetStatus()

    @property
    def claims(self) -> Claims:
        """The PersistentVolumeClaims of its pods."""
        templates = self.spec.volume_claim_templates
        replaced = [claim.metadata.name for claim in templates]
        return Claims(templates, shared_claims(self.template.spec.volumes, replaced), self.spec.ordinals.start)

    @property
    def ordered(self) -> bool:
        """Whether a pod is created only when all pods before it are ready."""
        return self.spec.pod_management_policy != "Parallel"

    @property
    def partition(self) -> int | None:
        """The least ordinal that a rollout replaces; None where it replaces no pod (OnDelete)."""
        if self.spec.update_strategy.type == "OnDelete":
            return None
        partition = 0 if self.recreates else self.spec.update_strategy.rolling_update.partition or 0
        return self.spec.ordinals.start + partition

    def keeps(self, ordinal: int) -> bool:
        """Tell whether a rollout leaves the pod with an ordinal at the revision before."""
        return self.partition is not None and ordinal < self.partition

    @property
    def recreates(self) -> bool:
        """Whether a rollout deletes all pods before it creates new ones."""
        return self.spec.update_strategy.type == RECREATE

    @property
    def unavailable(self) -> int:
        """The number of pods that a rollout replaces at once.

        Source: kubernetes v1.37.1 pkg/controller/statefulset/stateful_set_utils.go, getStatefulSetMaxUnavailable.
        """
        amount = self.spec.update_strategy.rolling_update.max_unavailable
        return 1 if amount is None else max(1, _pods(amount, self.replicas, up=False))


def ordinal_of(pod: str) -> int:
    """Return the ordinal in the name of a pod of a StatefulSet; -1 where there is none."""
    number = whole_number(pod.rpartition("-")[2])
    return -1 if number is None else number


class Deployment(ReplicatedWorkload, frozen=True):
    """A Deployment."""

    spec: Annotated[_DeploymentSpec, 2] = _DeploymentSpec()

    @property
    def rolls(self) -> bool:
        """Whether it replaces pods gradually, and not all at once."""
        return self.spec.strategy.type != RECREATE

    @property
    def pace(self) -> Pace:
        """How fast a rollout replaces its pods."""
        return self.pace_of(self.replicas)

    def pace_of(self, replicas: int) -> Pace:
        """Return how fast a rollout replaces a number of pods.

        Source: kubernetes v1.37.1 pkg/controller/deployment/util/deployment_util.go, ResolveFenceposts.
        """
        if not self.rolls:
            return Pace(surge=0, unavailable=replicas)
        limits = self.spec.strategy.rolling_update
        surge = _pods(limits.max_surge, replicas, up=True)
        unavailable = min(_pods(limits.max_unavailable, replicas, up=False), replicas)
        return Pace(surge, unavailable) if surge or unavailable else ONE_BY_ONE


def _pods(amount: int | str | None, replicas: int, *, up: bool) -> int:
    """Return a number of pods, or a percentage of the replicas, rounded up or down; the default is a quarter."""
    return max(0, scaled(_QUARTER if amount is None else amount, replicas, up=up) or 0)


class ReplicationController(_Replicated, frozen=True):
    """A ReplicationController."""

    spec: Annotated[_ReplicationControllerSpec, 2] = _ReplicationControllerSpec()

    @property
    def selector(self) -> LabelSelector | None:
        """The selector of its pods."""
        return LabelSelector(match_labels=self.spec.selector)


class DaemonSet(WorkloadObject, frozen=True):
    """A DaemonSet."""

    spec: Annotated[_DaemonSetSpec, 2] = _DaemonSetSpec()

    @property
    def template(self) -> PodTemplateSpec:
        """The pod template."""
        return self.spec.template

    @property
    def selector(self) -> LabelSelector | None:
        """The selector of its pods."""
        return self.spec.selector

    @property
    def replaces(self) -> bool:
        """Whether a rollout replaces pods, and does not wait until somebody deletes them (OnDelete)."""
        return self.spec.update_strategy.type != "OnDelete"

    def is_of_template(self, labels: Labels) -> bool:
        """Tell whether a pod with these labels was made from the present pod template."""
        generation = self.metadata.annotations.get(_TEMPLATE_GENERATION)
        return generation is not None and labels.get(_POD_GENERATION) == generation

    def pace_on(self, nodes: int) -> Pace:
        """Return how fast a rollout replaces the pods of a number of nodes.

        Source: kubernetes v1.37.1 pkg/controller/daemon/update.go, updatedDesiredNodeCounts, and
        pkg/apis/apps/v1/defaults.go, SetDefaults_DaemonSet.
        """
        limits = self.spec.update_strategy.rolling_update
        surge = scaled(limits.max_surge or 0, nodes) or 0
        unavailable = scaled(1 if limits.max_unavailable is None else limits.max_unavailable, nodes) or 0
        return Pace(surge, unavailable) if surge or unavailable else ONE_BY_ONE


class Job(WorkloadObject, frozen=True):
    """A Job."""

    spec: Annotated[_JobSpec, 2] = _JobSpec()

    @property
    def template(self) -> PodTemplateSpec:
        """The pod template."""
        return self.spec.template

    @property
    def indexed(self) -> bool:
        """Whether its pods have completion indices."""
        return self.spec.completion_mode == _INDEXED

    @property
    def replaces_terminating(self) -> bool:
        """Whether it replaces a pod, and counts it as failed, as soon as it is being deleted.

        Source: kubernetes v1.37.1 pkg/apis/batch/v1/defaults.go, SetDefaults_Job, and
        pkg/controller/job/job_controller.go, onlyReplaceFailedPods.
        """
        policy = self.spec.pod_replacement_policy
        return policy != "Failed" if policy else not self.spec.pod_failure_policy.rules

    @property
    def failures(self) -> int | None:
        """The number of lost pods that it replaces; None where a lost pod is not a failure, by its podFailurePolicy.

        Source: kubernetes v1.37.1 pkg/apis/batch/v1/defaults.go, SetDefaults_Job, and
        pkg/controller/job/pod_failure_policy.go, matchPodFailurePolicy.
        """
        for rule in self.spec.pod_failure_policy.rules:
            if any(condition.type == "DisruptionTarget" for condition in rule.on_pod_conditions):
                return None if rule.action == "Ignore" else 0 if rule.action == "FailJob" else self._backoff_limit
        return self._backoff_limit

    @property
    def failures_per_index(self) -> int | None:
        """The number of lost pods of each index that it replaces; None where indexes have no limit of their own."""
        if self.failures is None:
            return None
        for rule in self.spec.pod_failure_policy.rules:
            if any(condition.type == "DisruptionTarget" for condition in rule.on_pod_conditions):
                return 0 if rule.action == "FailIndex" else self.spec.backoff_limit_per_index
        return self.spec.backoff_limit_per_index

    @property
    def _backoff_limit(self) -> int:
        if self.spec.backoff_limit is not None:
            return self.spec.backoff_limit
        return _DEFAULT_BACKOFF_LIMIT if self.spec.backoff_limit_per_index is None else _LARGEST_INT32


class CronJob(WorkloadObject, frozen=True):
    """A CronJob; its pod template is that of its Jobs."""

    spec: Annotated[_CronJobSpec, 2] = _CronJobSpec()

    @property
    def template(self) -> PodTemplateSpec:
        """The pod template."""
        return self.spec.job_template.spec.template

    @property
    def indexed(self) -> bool:
        """Whether the pods of its Jobs have completion indices."""
        return self.spec.job_template.spec.completion_mode == _INDEXED


class PodTemplate(WorkloadObject, frozen=True):
    """A PodTemplate object."""

    required: ClassVar[str] = "template"
    pod_template: Annotated[PodTemplateSpec, 2] = msgspec.field(default=EMPTY, name="template")

    @property
    def template(self) -> PodTemplateSpec:
        """The pod template."""
        return self.pod_template


KINDS: Final[dict[tuple[str, str], type[WorkloadObject]]] = {
    ("apps", "Deployment"): Deployment,
    ("apps", "ReplicaSet"): ReplicatedWorkload,
    ("apps", "StatefulSet"): StatefulSet,
    ("apps", "DaemonSet"): DaemonSet,
    ("batch", "Job"): Job,
    ("batch", "CronJob"): CronJob,
    ("", "ReplicationController"): ReplicationController,
    ("", "PodTemplate"): PodTemplate,
}
"""Maps (API group, kind) to the type that decodes it."""
SCALABLE: Final = ("Deployment", "StatefulSet", "ReplicaSet", "ReplicationController")
"""The kinds with a number of replicas that a user chooses."""


def template_path(kind: str) -> FieldPath:
    """Return the path of the pod spec in objects of a kind."""
    match kind:
        case "CronJob":
            return FieldPath(("spec", "jobTemplate", "spec", "template", "spec"))
        case "PodTemplate":
            return FieldPath(("template", "spec"))
    return FieldPath(("spec", "template", "spec"))
