"""Resources: the kinds of objects that are read, their paths in the API, and pages of their lists."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, Generic, TypeVar
from urllib.parse import quote

import msgspec

from kubectl_spread.kube.api.objects import ALL_NAMESPACES
from kubectl_spread.kube.api.sparse import DetailedPod, SparsePod
from kubectl_spread.kube.api.storage import CSIDriver, PersistentVolume, PersistentVolumeClaim, StorageClass
from kubectl_spread.kube.api.types import Event, ListMeta, Message, Namespace, Node, Object, TypeMeta
from kubectl_spread.kube.api.workloads import KINDS, PodTemplate, WorkloadObject
from kubectl_spread.kube.autoscaling import HorizontalPodAutoscaler, PriorityClass
from kubectl_spread.kube.disruption import PodDisruptionBudget
from kubectl_spread.kube.nodeautoscaling import ConfigMap, EC2NodeClass, NodeClaim, NodePool
from kubectl_spread.kube.scheduler.podtopologyspread.constraints import Service

T = TypeVar("T", bound=Message)
U = TypeVar("U", bound=Message)
T_co = TypeVar("T_co", bound=Message, covariant=True)


class Page(msgspec.Struct, Generic[T], eq=False):
    """A page of a list; an object is decoded when it is reached, and again in a second iteration.

    Attributes:
        metadata: The revision of the list, and how to continue; see ``ListMeta``.
        records: The objects as they came.
        decode: Decodes a record.
    """

    metadata: ListMeta
    records: Sequence[Any]
    decode: Callable[[Any], T]

    def __len__(self) -> int:
        return len(self.records)

    def __iter__(self) -> Iterator[T]:
        """Decode one object after the other, in the order of the API server."""
        return map(self.decode, self.records)

    def map(self, convert: Callable[[T], U]) -> Page[U]:
        """Return a page of this page's objects, each converted by ``convert``."""
        decode = self.decode
        return Page(self.metadata, self.records, lambda record: convert(decode(record)))

    @property
    def resource_version(self) -> str:
        """The revision of the whole list; the pages of one list share it."""
        return self.metadata.resource_version

    @property
    def remaining(self) -> int | None:
        """How many objects follow this page; None: unknown, as with a field selector."""
        if self.metadata.continue_ and not self.metadata.remaining_item_count:
            return None
        return self.metadata.remaining_item_count


class Resource(msgspec.Struct, Generic[T_co], frozen=True):
    """A resource of the API.

    Attributes:
        group: Its API group; "" is the core group.
        version: The version of the group that is read.
        kind: The kind of its objects, such as ``Pod``.
        type: The type of its decoded objects.
        namespaced: Whether its objects are in namespaces.
    """

    group: str
    version: str
    kind: str
    type: type[T_co]
    namespaced: bool = True

    @property
    def plural(self) -> str:
        """Its name in paths, such as ``pods``."""
        return f"{self.kind.lower()}{'es' if self.kind.endswith('s') else 's'}"

    @property
    def full_name(self) -> str:
        """Its name and group as kubectl writes them, such as ``deployments.apps``."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def api_version(self) -> str:
        """Its group and version, such as ``apps/v1``."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def list_type(self) -> TypeMeta:
        """The type of a list of its objects."""
        return TypeMeta(api_version=self.api_version, kind=f"{self.kind}List")

    def path(self, namespace: str = ALL_NAMESPACES, name: str | None = None) -> str:
        """Return the path of one object, or of all objects in ``namespace``."""
        parts = ["", "apis", self.group, self.version] if self.group else ["", "api", self.version]
        if self.namespaced and namespace != ALL_NAMESPACES:
            parts += ["namespaces", namespace]
        parts.append(self.plural)
        if name is not None:
            parts.append(name)
        return "/".join(quote(part, safe="") for part in parts)


PODS: Final = Resource("", "v1", "Pod", DetailedPod)
SPARSE_PODS: Final = Resource("", "v1", "Pod", SparsePod)
NODES: Final = Resource("", "v1", "Node", Node, namespaced=False)
SERVICES: Final = Resource("", "v1", "Service", Service)
NAMESPACES: Final = Resource("", "v1", "Namespace", Namespace, namespaced=False)
CLAIMS: Final = Resource("", "v1", "PersistentVolumeClaim", PersistentVolumeClaim)
VOLUMES: Final = Resource("", "v1", "PersistentVolume", PersistentVolume, namespaced=False)
CLASSES: Final = Resource("storage.k8s.io", "v1", "StorageClass", StorageClass, namespaced=False)
DRIVERS: Final = Resource("storage.k8s.io", "v1", "CSIDriver", CSIDriver, namespaced=False)
EVENTS: Final = Resource("", "v1", "Event", Event)
PRIORITIES: Final = Resource("scheduling.k8s.io", "v1", "PriorityClass", PriorityClass, namespaced=False)
AUTOSCALERS: Final = Resource("autoscaling", "v2", "HorizontalPodAutoscaler", HorizontalPodAutoscaler)
BUDGETS: Final = Resource("policy", "v1", "PodDisruptionBudget", PodDisruptionBudget)
NODE_POOLS: Final = Resource("karpenter.sh", "v1", "NodePool", NodePool, namespaced=False)
NODE_CLAIMS: Final = Resource("karpenter.sh", "v1", "NodeClaim", NodeClaim, namespaced=False)
NODE_CLASSES: Final = Resource("karpenter.k8s.aws", "v1", "EC2NodeClass", EC2NodeClass, namespaced=False)
CONFIG_MAPS: Final = Resource("", "v1", "ConfigMap", ConfigMap)
WITH_TEMPLATES: Final[tuple[Resource[WorkloadObject], ...]] = tuple(
    Resource(group, "v1", kind, type_) for (group, kind), type_ in KINDS.items()
)
WORKLOADS: Final = tuple(resource for resource in WITH_TEMPLATES if resource.type is not PodTemplate)
"""The workloads that create pods."""
OBJECTS: Final[tuple[Resource[Object], ...]] = (
    *(PODS, NODES, NAMESPACES, EVENTS, SERVICES, AUTOSCALERS, BUDGETS, PRIORITIES),
    *(CLAIMS, VOLUMES, CLASSES, DRIVERS, *WITH_TEMPLATES),
)
"""The kinds of Kubernetes that are read, of any version."""
OF_NODE_AUTOSCALERS: Final[tuple[Resource[Object], ...]] = (
    NODE_POOLS,
    NODE_CLAIMS,
    NODE_CLASSES,
    CONFIG_MAPS,
)
"""The kinds of which only stored objects are read."""
CLUSTER_WIDE: Final = frozenset(
    resource.kind for resource in (*OBJECTS, *OF_NODE_AUTOSCALERS) if not resource.namespaced
)
"""The kinds of objects that are in no namespace."""
BY_KIND: Final[dict[str, Resource[Message]]] = {resource.kind: resource for resource in (PODS, *WORKLOADS)}
"""Maps a kind that may be a target to its resource."""
