"""Controllers of other projects: the labels that they add to the pods of the templates in their objects.

Sources, the main branches of August 2026:

- argoproj/argo-rollouts: rollout/sync.go createDesiredReplicaSet; utils/defaults/defaults.go DefaultReplicas;
  pkg/apis/rollouts/v1alpha1/types.go PodTemplateMetadata.
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
from typing import Final, NamedTuple

from kubectl_spread.kube.api.field import FieldPath

ANY: Final = ("",)
"""The prefixes of a controller that may set any label."""
_ROLLOUTS: Final = "argoproj.io"
_KRUISE: Final = "apps.kruise.io"
_LWS: Final = "leaderworkerset.x-k8s.io"
_JOBSET: Final = "jobset.x-k8s.io"
_RAY: Final = "ray.io"
_KNATIVE: Final = "serving.knative.dev"
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
