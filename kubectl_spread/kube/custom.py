"""Objects of kinds that Kubernetes does not define: their pod templates, and the labels that their controllers add.

Sources, the main branches of August 2026:

- argoproj/argo-rollouts: rollout/sync.go createDesiredReplicaSet; utils/defaults/defaults.go DefaultReplicas;
  pkg/apis/rollouts/v1alpha1/types.go PodTemplateMetadata; utils/replicaset/replicaset.go GenerateReplicaSetAffinity.
- kubevirt/kubevirt: pkg/virt-controller/services/template.go podLabels and renderLaunchManifest;
  staging/src/kubevirt.io/api/core/v1/types.go VirtualMachineInstanceSpec.
- openkruise/kruise: pkg/controller/cloneset/utils/cloneset_utils.go WriteRevisionHash;
  apis/apps/v1alpha1/cloneset_types.go CloneSetInstanceID.
- kubernetes-sigs/lws: api/leaderworkerset/v1/leaderworkerset_types.go. Leaders and workers are pods of StatefulSets.
- kubernetes-sigs/jobset: api/jobset/v1alpha2/jobset_types.go; the pods are those of Jobs.
- ray-project/kuberay: ray-operator/controllers/ray/utils/constant.go and common/pod.go.
- knative/serving: pkg/apis/serving/register.go; pkg/reconciler/revision/resources/meta.go makeLabels. The pods are
  those of a Deployment.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

import msgspec

from kubectl_spread.kube.api.field import FieldPath
from kubectl_spread.kube.api.types import ObjectMeta
from kubectl_spread.kube.api.workloads import KINDS, PodTemplateSpec

KUBERNETES_GROUPS: Final = frozenset(
    f"{name}.k8s.io"
    for name in (
        "admissionregistration",
        "apiextensions",
        "apiregistration",
        "authentication",
        "authorization",
        "certificates",
        "coordination",
        "discovery",
        "events",
        "flowcontrol.apiserver",
        "internal.apiserver",
        "networking",
        "node",
        "rbac.authorization",
        "resource",
        "scheduling",
        "storage",
        "storagemigration",
    )
)
"""The groups of Kubernetes itself that have a dot.

The group of a CustomResourceDefinition always has a dot, so a group without a dot is Kubernetes' own.
Source: kubernetes v1.37.1 staging/src/k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation/validation.go.
"""
_KINDS: Final = frozenset({"Pod", "Node", "Namespace", "Event", "Service", *(kind for _, kind in KINDS)})
"""The kinds of Kubernetes that are read."""


def group_of(api_version: str) -> str:
    """Return the API group in an apiVersion; "" for the core group."""
    return api_version.rpartition("/")[0]


@lru_cache(maxsize=1024)
def is_custom(api_version: str) -> bool:
    """Tell whether an apiVersion has a group that is not one of Kubernetes itself."""
    group = group_of(api_version)
    return "." in group and group not in KUBERNETES_GROUPS


def kind_name(api_version: str, kind: str) -> str:
    """Return the name of a kind: with its group, as kubectl takes it, if Kubernetes has a kind of the same name.

    A ``StatefulSet.apps.kruise.io`` is not a StatefulSet.
    """
    return f"{kind}.{group_of(api_version)}" if kind in _KINDS and is_custom(api_version) else kind


NOT_REPLACED: Final = frozenset({"DaemonSet", "Node"})
"""The kinds of owners that create no pod on another node."""


def base_kind(kind: str) -> str:
    """Return the kind without the group in the name of a kind; pods of any Job end, and any DaemonSet pins its pods."""
    return kind.partition(".")[0]


class Unevaluated(msgspec.Struct, frozen=True):
    """Why a pod template cannot be evaluated: the field, and what is wrong with it."""

    path: FieldPath
    problem: str

    def __str__(self) -> str:
        return f"{self.path}: {self.problem}"


class HeldTemplate(msgspec.Struct, frozen=True):
    """A pod template inside an object, or spread constraints that the object states without one.

    Attributes:
        group: The API group of the innermost object around it, which is the object itself or one inside it.
        kind: The kind of that object.
        path: The path of its pod spec, or of the field around the constraints.
        template: The template; for constraints without one, only those; if it is not evaluated, only its labels, and
            none where these cannot be read either.
        replicas: The desired number of pods; None where it is not stated.
        more_labels: Labels that the object adds to some pods, besides those of the template and of the controller.
        revision_anti_affinity: The path of the field of a Rollout that makes its controller add anti-affinity to the
            pods of a new revision, which keeps them from nodes with pods of the stable one; empty for none.
        complete: Whether it is a pod template, with containers.
        extended: The indices of spread constraints with fields that the API does not have, which a controller reads.
        unevaluated: The reason why it cannot be evaluated; None if it can.
    """

    group: str
    kind: str
    path: FieldPath
    template: PodTemplateSpec
    replicas: int | None
    more_labels: tuple[str, ...] = ()
    revision_anti_affinity: FieldPath = FieldPath()
    complete: bool = True
    extended: tuple[int, ...] = ()
    unevaluated: Unevaluated | None = None


class CustomObject(msgspec.Struct, frozen=True):
    """An object of a kind that Kubernetes does not define.

    Attributes:
        group: Its API group.
        metadata: Its metadata.
        templates: Its pod templates, and constraints without one, in the order in which they are written.
    """

    group: str
    metadata: ObjectMeta
    templates: tuple[HeldTemplate, ...]


ANY: Final = ("",)
"""The prefixes of a controller that may set any label."""
_ROLLOUTS: Final = "argoproj.io"
_KRUISE: Final = "apps.kruise.io"
_LWS: Final = "leaderworkerset.x-k8s.io"
_JOBSET: Final = "jobset.x-k8s.io"
_RAY: Final = "ray.io"
_KNATIVE: Final = "serving.knative.dev"
_KUBEVIRT: Final = "kubevirt.io"
_POOLS: Final = "pool.kubevirt.io"
_RAY_GROUPS: Final = ("headGroupSpec", "workerGroupSpecs")
_UNCOUNTED: Final = ("DaemonSet",)
"""Kinds of the group ``apps`` without a number of pods."""


class AddedLabels(NamedTuple):
    """The labels that a controller adds to pods.

    Attributes:
        keys: The labels that all pods get.
        prefixes: The beginnings of labels that pods may get as well; the beginning "" stands for every label.
    """

    keys: tuple[str, ...] = ()
    prefixes: tuple[str, ...] = ()


UNKNOWN: Final = AddedLabels(prefixes=ANY)
_OF_LWS: Final = AddedLabels(
    (
        "apps.kubernetes.io/pod-index",
        "controller-revision-hash",
        "leaderworkerset.sigs.k8s.io/group-index",
        "leaderworkerset.sigs.k8s.io/group-key",
        "leaderworkerset.sigs.k8s.io/name",
        "leaderworkerset.sigs.k8s.io/template-revision-hash",
        "leaderworkerset.sigs.k8s.io/worker-index",
        "statefulset.kubernetes.io/pod-name",
    ),
    ("leaderworkerset.sigs.k8s.io/", "disaggregatedset.x-k8s.io/"),
)
_OF_RAY: Final = AddedLabels(
    ("app.kubernetes.io/created-by", "app.kubernetes.io/name", "ray.io/cluster", "ray.io/group", "ray.io/node-type"),
    ("ray.io/",),
)
_OF_KNATIVE: Final = AddedLabels(
    ("app", "pod-template-hash", "serving.knative.dev/revision", "serving.knative.dev/revisionUID"),
    ("serving.knative.dev/",),
)
_OF_KUBEVIRT: Final = AddedLabels(
    ("kubevirt.io", "kubevirt.io/created-by", "vm.kubevirt.io/name"),
    ("kubevirt.io/", "vm.kubevirt.io/", "vmi.kubevirt.io/"),
)
_ADDED: Final[Mapping[tuple[str, str], AddedLabels]] = {
    (_ROLLOUTS, "Rollout"): AddedLabels(("rollouts-pod-template-hash",)),
    (_KRUISE, "CloneSet"): AddedLabels(
        ("apps.kruise.io/cloneset-instance-id", "controller-revision-hash", "pod-template-hash"),
        ("apps.kruise.io/", "lifecycle.apps.kruise.io/"),
    ),
    (_LWS, "LeaderWorkerSet"): _OF_LWS,
    (_JOBSET, "JobSet"): AddedLabels(
        (
            "batch.kubernetes.io/controller-uid",
            "batch.kubernetes.io/job-name",
            "controller-uid",
            "job-name",
            "jobset.sigs.k8s.io/jobset-name",
            "jobset.sigs.k8s.io/replicatedjob-name",
        ),
        ("batch.kubernetes.io/", "jobset.sigs.k8s.io/"),
    ),
    (_RAY, "RayCluster"): _OF_RAY,
    (_RAY, "RayJob"): _OF_RAY,
    (_RAY, "RayService"): _OF_RAY,
    (_KNATIVE, "Service"): _OF_KNATIVE,
    (_KNATIVE, "Configuration"): _OF_KNATIVE,
    (_KUBEVIRT, "VirtualMachine"): _OF_KUBEVIRT,
    (_KUBEVIRT, "VirtualMachineInstance"): _OF_KUBEVIRT,
    (_KUBEVIRT, "VirtualMachineInstanceReplicaSet"): _OF_KUBEVIRT,
    (_POOLS, "VirtualMachinePool"): _OF_KUBEVIRT,
}
"""Maps (API group, kind) to the labels that its controller adds."""


def added_labels(group: str, kind: str, path: FieldPath) -> AddedLabels:
    """Return the labels that pods of a template get besides its own.

    Args:
        group: The API group of the object.
        kind: The kind of the object.
        path: The path of the template's pod spec in the object.
    """
    if group == _RAY and not any(step in path for step in _RAY_GROUPS):
        # The submitter of a RayJob is a Job.
        return UNKNOWN
    return _ADDED.get((group, kind), UNKNOWN)


def is_known(group: str, kind: str) -> bool:
    """Tell whether it is known what the controller of a kind adds to pods."""
    return (group, kind) in _ADDED


def runs_virtual_machines(group: str, kind: str) -> bool:
    """Tell whether a kind describes virtual machines, whose templates have no containers."""
    return _ADDED.get((group, kind)) is _OF_KUBEVIRT


def replaces_gradually(group: str, kind: str) -> bool:
    """Tell whether a controller runs pods of the old and of the new template together during a rollout."""
    return (group, kind) == (_ROLLOUTS, "Rollout")


def replicas_of(group: str, kind: str, path: FieldPath, around: Sequence[Mapping[str, object]]) -> int | None:
    """Return the number of pods of a template; None where it is unknown.

    Args:
        group: The API group of the object.
        kind: The kind of the object.
        path: The path of the template's pod spec in the object.
        around: The JSON objects around the template, the innermost first.
    """
    beside = _number("replicas", around[:1])
    match group, kind:
        case ("argoproj.io", "Rollout") | ("apps.kruise.io", "CloneSet") | ("apps", _):
            return beside if kind in _UNCOUNTED else _or_one(beside)
        case _ if runs_virtual_machines(group, kind):
            return _or_one(_number("replicas", around))
        case ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"):
            return _of_groups(path, around)
        case ("jobset.x-k8s.io", "JobSet"):
            return _or_one(_number("replicas", around)) * _or_one(_number("parallelism", around))
        case ("ray.io", _) if "headGroupSpec" in path:
            return 1
        case ("ray.io", _):
            return None if beside is None else beside * _or_one(_number("numOfHosts", around[:1]))
    return beside


def _of_groups(path: FieldPath, around: Sequence[Mapping[str, object]]) -> int:
    """Return the number of leaders, or of workers, in the groups of a LeaderWorkerSet."""
    groups, size = _or_one(_number("replicas", around)), _or_one(_number("size", around))
    if "leaderTemplate" in path:
        return groups
    leads = any("leaderTemplate" in fields for fields in around)
    return groups * (size - 1 if leads else size)


def _number(field: str, around: Sequence[Mapping[str, object]]) -> int | None:
    """Return the innermost number in a field; None if there is none."""
    for fields in around:
        number = fields.get(field)
        if isinstance(number, int) and not isinstance(number, bool):
            return number
    return None


def _or_one(number: int | None) -> int:
    return 1 if number is None else number
