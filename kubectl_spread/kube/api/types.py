"""The fields of Kubernetes objects that we read, declared once for every wire format.

The annotation of a field has its protobuf number; its JSON name is the camelCase of its Python name. ``SHARED`` marks
fields that the pods of one template have in common, so that a decoder decodes each distinct byte string once.

Source: kubernetes v1.37.1, generated.proto of k8s.io/api/core/v1, apps/v1, batch/v1 and
k8s.io/apimachinery/pkg/apis/meta/v1.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from enum import StrEnum
from typing import Annotated, ClassVar, Final, NamedTuple, TypeAlias

import msgspec

from kubectl_spread.kube.api.field import POD_SPEC, FieldPath
from kubectl_spread.kube.api.quantity import Quantity

SHARED: Final = "shared"

Time: TypeAlias = Annotated[datetime, msgspec.Meta(tz=True)]
"""A time with its zone, as RFC 3339 requires."""


Int32: TypeAlias = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
Int64: TypeAlias = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
"""Integers of the API's width; the API server cannot decode larger ones."""


class IntOrString:
    """Stands for the type of a field with a number or a text, such as a percentage: ``int | str``."""


class Message(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A message of the Kubernetes API; a field that is absent has its default."""


class TypeMeta(Message, frozen=True):
    """The kind of an object, and the group and version of its API."""

    api_version: Annotated[str, 1] = ""
    kind: Annotated[str, 2] = ""


class LabelSelectorRequirement(Message, frozen=True):
    """One item of matchExpressions."""

    key: Annotated[str, 1] = ""
    operator: Annotated[str, 2] = ""
    values: Annotated[tuple[str, ...], 3] = ()


class LabelSelector(Message, frozen=True):
    """A label selector; None selects nothing, and an empty selector selects everything."""

    match_labels: Annotated[dict[str, str], 1] = {}
    match_expressions: Annotated[tuple[LabelSelectorRequirement, ...], 2] = ()


class WhenUnsatisfiable(StrEnum):
    """The scheduler's treatment of a node that a constraint does not allow: refuse it, or prefer others."""

    DO_NOT_SCHEDULE = "DoNotSchedule"
    SCHEDULE_ANYWAY = "ScheduleAnyway"


class NodeInclusionPolicy(StrEnum):
    """Whether nodes that the pod cannot use are left out of a constraint (Honor) or count (Ignore)."""

    HONOR = "Honor"
    IGNORE = "Ignore"


class TopologySpreadConstraint(Message, frozen=True):
    """An item of ``spec.topologySpreadConstraints``, with the default policies filled in."""

    max_skew: Annotated[Int32, 1] = 0
    topology_key: Annotated[str, 2] = ""
    when_unsatisfiable: Annotated[str, 3] = ""
    label_selector: Annotated[LabelSelector | None, 4] = None
    min_domains: Annotated[Int32 | None, 5] = None
    node_affinity_policy: Annotated[str, 6] = "Honor"
    node_taints_policy: Annotated[str, 7] = "Ignore"
    match_label_keys: Annotated[tuple[str, ...], 8] = ()


class PodAffinityTerm(Message, frozen=True):
    """A term of pod affinity or anti-affinity."""

    label_selector: Annotated[LabelSelector | None, 1] = None
    namespaces: Annotated[tuple[str, ...], 2] = ()
    topology_key: Annotated[str, 3] = ""
    namespace_selector: Annotated[LabelSelector | None, 4] = None
    match_label_keys: Annotated[tuple[str, ...], 5] = ()
    mismatch_label_keys: Annotated[tuple[str, ...], 6] = ()


class WeightedPodAffinityTerm(Message, frozen=True):
    """A preferred term with its weight."""

    weight: Annotated[Int32, 1] = 0
    pod_affinity_term: Annotated[PodAffinityTerm, 2] = PodAffinityTerm()


class PodAffinity(Message, frozen=True):
    """The terms of pod affinity, or of pod anti-affinity."""

    required_during_scheduling_ignored_during_execution: Annotated[tuple[PodAffinityTerm, ...], 1] = ()
    preferred_during_scheduling_ignored_during_execution: Annotated[tuple[WeightedPodAffinityTerm, ...], 2] = ()


class NodeSelectorRequirement(Message, frozen=True):
    """One requirement on a node's labels or fields."""

    key: Annotated[str, 1] = ""
    operator: Annotated[str, 2] = ""
    values: Annotated[tuple[str, ...], 3] = ()


class NodeSelectorTerm(Message, frozen=True):
    """Requirements that must hold together."""

    match_expressions: Annotated[tuple[NodeSelectorRequirement, ...], 1] = ()
    match_fields: Annotated[tuple[NodeSelectorRequirement, ...], 2] = ()


class NodeSelector(Message, frozen=True):
    """Terms of which at least one must hold."""

    node_selector_terms: Annotated[tuple[NodeSelectorTerm, ...], 1] = ()


class PreferredSchedulingTerm(Message, frozen=True):
    """Nodes that a pod prefers, with a weight from 1 to 100."""

    weight: Annotated[Int32, 1] = 0
    preference: Annotated[NodeSelectorTerm, 2] = NodeSelectorTerm()


class NodeAffinity(Message, frozen=True):
    """Node affinity: the nodes that a pod requires, and those that it prefers."""

    required_during_scheduling_ignored_during_execution: Annotated[NodeSelector | None, 1] = None
    preferred_during_scheduling_ignored_during_execution: Annotated[tuple[PreferredSchedulingTerm, ...], 2] = ()


class Affinity(Message, frozen=True):
    """A pod's affinities."""

    node_affinity: Annotated[NodeAffinity | None, 1] = None
    pod_affinity: Annotated[PodAffinity | None, 2] = None
    pod_anti_affinity: Annotated[PodAffinity | None, 3] = None


class Toleration(Message, frozen=True):
    """A toleration of taints."""

    key: Annotated[str, 1] = ""
    operator: Annotated[str, 2] = ""
    value: Annotated[str, 3] = ""
    effect: Annotated[str, 4] = ""
    toleration_seconds: Annotated[Int64 | None, 5] = None


class Taint(Message, frozen=True):
    """A taint of a node."""

    key: Annotated[str, 1] = ""
    value: Annotated[str, 2] = ""
    effect: Annotated[str, 3] = ""


class OwnerReference(Message, frozen=True):
    """A reference to an owner in the same namespace."""

    kind: Annotated[str, 1] = ""
    name: Annotated[str, 3] = ""
    uid: Annotated[str, 4] = ""
    api_version: Annotated[str, 5] = ""
    controller: Annotated[bool, 6] = False


class ManagedFieldsEntry(Message, frozen=True):
    """The fields that one manager owns, as undecoded JSON in ``fields_v1``."""

    manager: Annotated[str, 1] = ""
    time: Annotated[Time | None, 4] = None
    fields_v1: Annotated[msgspec.Raw, 7] = msgspec.Raw(b"{}")
    subresource: Annotated[str, 8] = ""


class ObjectMeta(Message, frozen=True):
    """Metadata of an object; ``generation`` is 0 where it is absent."""

    name: Annotated[str, 1] = ""
    namespace: Annotated[str, 3] = ""
    uid: Annotated[str, 5] = ""
    generation: Annotated[Int64, 7] = 0
    creation_timestamp: Annotated[Time | None, 8] = None
    deletion_timestamp: Annotated[Time | None, 9] = None
    labels: Annotated[dict[str, str], 11, SHARED] = {}
    annotations: Annotated[dict[str, str], 12, SHARED] = {}
    owner_references: Annotated[tuple[OwnerReference, ...], 13, SHARED] = ()
    finalizers: Annotated[tuple[str, ...], 14] = ()
    managed_fields: Annotated[tuple[ManagedFieldsEntry, ...], 17] = ()


class Object(Message, frozen=True):
    """The fields that all objects have.

    Attributes:
        required: The JSON name of the field without which an object says nothing about pods, or "".
    """

    required: ClassVar[str] = ""
    metadata: Annotated[ObjectMeta, 1] = ObjectMeta()

    @property
    def key(self) -> str:
        """The namespace and name, by which an API server sorts lists."""
        return f"{self.metadata.namespace}/{self.metadata.name}"


class ResourceRequirements(Message, frozen=True):
    """The limits and requests of a container or a pod."""

    limits: Annotated[dict[str, Quantity], 1] = {}
    requests: Annotated[dict[str, Quantity], 2] = {}


class ContainerPort(Message, frozen=True):
    """A port of a container; ``host_port`` is 0 where it takes no port of its node."""

    host_port: Annotated[Int32, 2] = 0
    container_port: Annotated[Int32, 3] = 0
    protocol: Annotated[str, 4] = "TCP"
    host_ip: Annotated[str, 5] = msgspec.field(default="", name="hostIP")


class Container(Message, frozen=True):
    """The fields of a container that decide its requests, and for how long they last, its image and its ports."""

    image: Annotated[str, 2] = ""
    ports: Annotated[tuple[ContainerPort, ...], 6, SHARED] = ()
    resources: Annotated[ResourceRequirements, 8, SHARED] = ResourceRequirements()
    restart_policy: Annotated[str, 24] = ""


class PodSchedulingGate(Message, frozen=True):
    """A scheduling gate; the scheduler ignores a pod with gates."""

    name: Annotated[str, 1] = ""


class Present(Message, frozen=True):
    """A message of which only the presence matters."""


class ClaimSource(Message, frozen=True):
    """A volume that is a PersistentVolumeClaim in the namespace of the pod."""

    claim_name: Annotated[str, 1] = ""


class VolumeSource(Message, frozen=True):
    """The source of a volume, on the protobuf wire."""

    empty_dir: Annotated[Present | None, 2] = None
    persistent_volume_claim: Annotated[ClaimSource | None, 10] = None
    ephemeral: Annotated[Present | None, 29] = None


class Volume(Message, frozen=True):
    """A volume of a pod; in JSON the fields of its source are in the volume itself."""

    name: Annotated[str, 1] = ""
    volume_source: Annotated[VolumeSource, 2] = VolumeSource()
    empty_dir: Present | None = None
    persistent_volume_claim: ClaimSource | None = None
    ephemeral: Present | None = None

    @property
    def claim(self) -> str:
        """The name of its PersistentVolumeClaim; "" for a volume of another kind."""
        source = self.persistent_volume_claim or self.volume_source.persistent_volume_claim
        return "" if source is None else source.claim_name

    @property
    def is_local(self) -> bool:
        """Whether its data is lost with its pod."""
        return self.empty_dir is not None or self.volume_source.empty_dir is not None

    @property
    def is_ephemeral(self) -> bool:
        """Whether its claim is created, and deleted, with each pod."""
        return self.ephemeral is not None or self.volume_source.ephemeral is not None


class PodSpec(Message, frozen=True):
    """The fields of a pod's spec that decide its placement."""

    volumes: Annotated[tuple[Volume, ...], 1] = ()
    containers: Annotated[tuple[Container, ...], 2] = ()
    restart_policy: Annotated[str, 3] = ""
    node_selector: Annotated[dict[str, str], 7, SHARED] = {}
    service_account_name: Annotated[str, 8] = ""
    node_name: Annotated[str, 10] = ""
    host_network: Annotated[bool, 11] = False
    affinity: Annotated[Affinity | None, 18, SHARED] = None
    scheduler_name: Annotated[str, 19] = "default-scheduler"
    init_containers: Annotated[tuple[Container, ...], 20] = ()
    tolerations: Annotated[tuple[Toleration, ...], 22, SHARED] = ()
    overhead: Annotated[dict[str, Quantity], 32, SHARED] = {}
    topology_spread_constraints: Annotated[tuple[TopologySpreadConstraint, ...], 33, SHARED] = ()
    scheduling_gates: Annotated[tuple[PodSchedulingGate, ...], 38] = ()
    resources: Annotated[ResourceRequirements | None, 40, SHARED] = None


class PodStatus(Message, frozen=True):
    """The fields of a pod's status that are read."""

    phase: Annotated[str, 1] = ""
    pod_ip: Annotated[str, 6] = msgspec.field(default="", name="podIP")
    nominated_node_name: Annotated[str, 11] = ""


class Pod(Object, frozen=True):
    """A pod."""

    required: ClassVar[str] = "spec"
    spec: Annotated[PodSpec, 2] = PodSpec()
    status: Annotated[PodStatus, 3] = PodStatus()


class NodeSpec(Message, frozen=True):
    """The fields of a node's spec that are read."""

    unschedulable: Annotated[bool, 4] = False
    taints: Annotated[tuple[Taint, ...], 5] = ()


READY: Final = "Ready"
"""The condition of a node that says whether it runs pods."""


class NodeCondition(Message, frozen=True):
    """A condition of a node, such as ``Ready``."""

    type: Annotated[str, 1] = ""
    status: Annotated[str, 2] = ""


class NodeStatus(Message, frozen=True):
    """The resources of a node by name, and its conditions."""

    capacity: Annotated[dict[str, Quantity], 1] = {}
    allocatable: Annotated[dict[str, Quantity], 2] = {}
    conditions: Annotated[tuple[NodeCondition, ...], 4] = ()


class Node(Object, frozen=True):
    """A node."""

    spec: Annotated[NodeSpec, 2] = NodeSpec()
    status: Annotated[NodeStatus, 3] = NodeStatus()


IDENTIFYING_NAMESPACE: Final = "kube-system"
"""The namespace whose UID identifies a cluster: it is created with the cluster and is never deleted."""


class Namespace(Object, frozen=True):
    """A namespace, which is read for its labels."""


class ObjectReference(Message, frozen=True):
    """The object that an event is about."""

    kind: Annotated[str, 1] = ""
    namespace: Annotated[str, 2] = ""
    name: Annotated[str, 3] = ""


class EventSeries(Message, frozen=True):
    """The number and the last time of an event in the newer format."""

    count: Annotated[Int32, 1] = 0
    last_observed_time: Annotated[Time | None, 2] = None


class Event(Object, frozen=True):
    """A message of a controller or the scheduler about an object."""

    involved_object: Annotated[ObjectReference, 2] = ObjectReference()
    reason: Annotated[str, 3] = ""
    message: Annotated[str, 4] = ""
    last_timestamp: Annotated[Time | None, 7] = None
    count: Annotated[Int32, 8] = 0
    event_time: Annotated[Time | None, 10] = None
    series: Annotated[EventSeries, 11] = EventSeries()


class ListMeta(Message, frozen=True):
    """Metadata of a page of a list."""

    resource_version: Annotated[str, 2] = ""
    continue_: Annotated[str, 3] = msgspec.field(default="", name="continue")
    remaining_item_count: Annotated[Int64, 4] = 0


class PathTerm(NamedTuple):
    """A term of pod affinity or anti-affinity; ``weight`` is that of a preferred term, None for a required one."""

    path: FieldPath
    term: PodAffinityTerm
    weight: int | None


def affinity_terms(spec: PodSpec, path: FieldPath = POD_SPEC) -> Iterator[PathTerm]:
    """Yield the terms of a pod, or of a template whose pod spec is at ``path``, in the API's order."""
    if spec.affinity is None:
        return
    affinities = {"podAffinity": spec.affinity.pod_affinity, "podAntiAffinity": spec.affinity.pod_anti_affinity}
    for name, affinity in affinities.items():
        if affinity is not None:
            lists = path / "affinity" / name
            for index, term in enumerate(affinity.required_during_scheduling_ignored_during_execution):
                yield PathTerm(lists / "requiredDuringSchedulingIgnoredDuringExecution" / index, term, None)
            for index, weighted in enumerate(affinity.preferred_during_scheduling_ignored_during_execution):
                place = lists / "preferredDuringSchedulingIgnoredDuringExecution" / index / "podAffinityTerm"
                yield PathTerm(place, weighted.pod_affinity_term, weighted.weight)
