"""The resources that are read from an API server."""

from __future__ import annotations

from typing import Final, Generic, TypeVar
from urllib.parse import quote

import msgspec

from kubectl_spread.kube.api.objects import ALL_NAMESPACES
from kubectl_spread.kube.api.sparse import DetailedPod, SparsePod
from kubectl_spread.kube.api.storage import CSIDriver, PersistentVolume, PersistentVolumeClaim, StorageClass
from kubectl_spread.kube.api.types import Event, Message, Namespace, Node, TypeMeta
from kubectl_spread.kube.api.workloads import (
    CronJob,
    DaemonSet,
    Deployment,
    Job,
    ReplicatedWorkload,
    ReplicationController,
    StatefulSet,
    WorkloadObject,
)
from kubectl_spread.kube.autoscaling import HorizontalPodAutoscaler, PriorityClass
from kubectl_spread.kube.disruption import PodDisruptionBudget
from kubectl_spread.kube.nodeautoscaling import ConfigMap, EC2NodeClass, NodeClaim, NodePool
from kubectl_spread.kube.scheduler.podtopologyspread.constraints import Service

T_co = TypeVar("T_co", bound=Message, covariant=True)


class Resource(msgspec.Struct, Generic[T_co], frozen=True):
    """A resource of the API.

    Attributes:
        group: Its API group; "" is the core group.
        version: The version of the group that is read.
        plural: Its name in paths, such as ``pods``.
        kind: The kind of its objects, such as ``Pod``.
        type: The type of its decoded objects.
        namespaced: Whether its objects are in namespaces.
    """

    group: str
    version: str
    plural: str
    kind: str
    type: type[T_co]
    namespaced: bool = True

    @property
    def full_name(self) -> str:
        """Its name and group as kubectl writes them, such as ``deployments.apps``."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def list_type(self) -> TypeMeta:
        """The type of a list of its objects."""
        version = f"{self.group}/{self.version}" if self.group else self.version
        return TypeMeta(api_version=version, kind=f"{self.kind}List")

    def path(self, namespace: str = ALL_NAMESPACES, name: str | None = None) -> str:
        """Return the path of one object, or of all objects in ``namespace``."""
        parts = ["", "apis", self.group, self.version] if self.group else ["", "api", self.version]
        if self.namespaced and namespace != ALL_NAMESPACES:
            parts += ["namespaces", namespace]
        parts.append(self.plural)
        if name is not None:
            parts.append(name)
        return "/".join(quote(part, safe="") for part in parts)


PODS: Final = Resource("", "v1", "pods", "Pod", DetailedPod)
SPARSE_PODS: Final = Resource("", "v1", "pods", "Pod", SparsePod)
NODES: Final = Resource("", "v1", "nodes", "Node", Node, namespaced=False)
SERVICES: Final = Resource("", "v1", "services", "Service", Service)
NAMESPACES: Final = Resource("", "v1", "namespaces", "Namespace", Namespace, namespaced=False)
CLAIMS: Final = Resource("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim", PersistentVolumeClaim)
VOLUMES: Final = Resource("", "v1", "persistentvolumes", "PersistentVolume", PersistentVolume, namespaced=False)
CLASSES: Final = Resource("storage.k8s.io", "v1", "storageclasses", "StorageClass", StorageClass, namespaced=False)
DRIVERS: Final = Resource("storage.k8s.io", "v1", "csidrivers", "CSIDriver", CSIDriver, namespaced=False)
EVENTS: Final = Resource("", "v1", "events", "Event", Event)
PRIORITIES: Final = Resource(
    "scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", PriorityClass, namespaced=False
)
AUTOSCALERS: Final = Resource(
    "autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler", HorizontalPodAutoscaler
)
BUDGETS: Final = Resource("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", PodDisruptionBudget)
NODE_POOLS: Final = Resource("karpenter.sh", "v1", "nodepools", "NodePool", NodePool, namespaced=False)
NODE_CLAIMS: Final = Resource("karpenter.sh", "v1", "nodeclaims", "NodeClaim", NodeClaim, namespaced=False)
NODE_CLASSES: Final = Resource(
    "karpenter.k8s.aws", "v1", "ec2nodeclasses", "EC2NodeClass", EC2NodeClass, namespaced=False
)
CONFIG_MAPS: Final = Resource("", "v1", "configmaps", "ConfigMap", ConfigMap)
WORKLOADS: Final[tuple[Resource[WorkloadObject], ...]] = (
    Resource("apps", "v1", "deployments", "Deployment", Deployment),
    Resource("apps", "v1", "replicasets", "ReplicaSet", ReplicatedWorkload),
    Resource("apps", "v1", "statefulsets", "StatefulSet", StatefulSet),
    Resource("apps", "v1", "daemonsets", "DaemonSet", DaemonSet),
    Resource("batch", "v1", "jobs", "Job", Job),
    Resource("batch", "v1", "cronjobs", "CronJob", CronJob),
    Resource("", "v1", "replicationcontrollers", "ReplicationController", ReplicationController),
)
BY_KIND: Final[dict[str, Resource[Message]]] = {resource.kind: resource for resource in (PODS, *WORKLOADS)}
"""Maps a kind that may be a target to its resource."""
