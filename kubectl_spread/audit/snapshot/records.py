"""Records: the fields of pods, owners and events that are stored after an object has been read.

Pods that differ only in name and node share one PodClass, so memory grows by one small record a pod.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import datetime
from hashlib import blake2b
from typing import Final

import msgspec

from kubectl_spread.audit.snapshot.terms import SelectorParts, TopologyTerm
from kubectl_spread.errors import Position
from kubectl_spread.kube.api.labels import Labelled, Labels
from kubectl_spread.kube.api.managedfields import FieldOwner, LabelOwner
from kubectl_spread.kube.api.objects import ObjectRef
from kubectl_spread.kube.api.sparse import PodCondition
from kubectl_spread.kube.api.storage import Claims
from kubectl_spread.kube.api.types import OwnerReference, PodSpec
from kubectl_spread.kube.api.unknownfields import UnknownField
from kubectl_spread.kube.scheduler.configuration import Profile
from kubectl_spread.kube.scheduler.podtopologyspread.domains import Placement
from kubectl_spread.kube.scheduler.resources import Amounts

ENCODER: Final = msgspec.json.Encoder(order="deterministic")
"""Encodes equal values to equal bytes."""


def digest(value: object) -> bytes:
    """Return the same bytes for equal values; values with the same JSON are equal."""
    return blake2b(ENCODER.encode(value), digest_size=16).digest()


REFUSED: Final = "Unschedulable"
"""The reason of the condition that kube-scheduler writes when no node takes a pod."""
DEFAULT_SCHEDULER: Final = "default-scheduler"


class PodClass(msgspec.Struct, frozen=True, eq=False, weakref=True):
    """The common fields of pods of one template; compared by identity.

    ``terms`` hold the selectors of ``spec``, and ``splits`` their parts. ``unsettled_keys`` are the keys whose
    current value is missing in a term. ``pinned`` pods may run on one node only. ``written`` is the spec as it was
    read. In a snapshot ``spec`` is the same; ``admission`` replaces it and the terms of manifests.
    ``requests`` are the resources that the spec requests, None if unknown. ``profile`` is the spread configuration of
    the pods' scheduler, None if unknown. ``priority`` is None where pods were not read in detail, and
    ``preempts`` tells whether they may preempt others.
    """

    namespace: str
    owner: OwnerReference | None
    labels: Labels
    spec: PodSpec
    written: PodSpec
    requests: Amounts | None
    terms: tuple[TopologyTerm, ...]
    splits: tuple[SelectorParts, ...]
    placement: Placement
    scheduler_name: str
    profile: Profile | None
    unsettled_keys: frozenset[str]
    bound: bool
    stored: bool
    pinned: bool
    ignored: str
    priority: int | None = None
    preempts: bool = True

    @property
    def kind(self) -> str:
        """The kind of the pods' controller; "" for a pod without one."""
        return "" if self.owner is None else self.owner.kind

    @property
    def known_scheduler(self) -> bool:
        """Whether the spread configuration of the pods' scheduler is known, and spreads them."""
        return self.profile is not None and self.profile.spreads


class Manifest(msgspec.Struct, frozen=True):
    """The position of an object that is not stored, and its fields that the API does not have.

    ``position_of`` returns the position of a field in it, or of the innermost field around a missing one. ``copy``
    counts the manifests of the same kind, namespace and name that were read before it.
    """

    position: Position
    position_of: Callable[[tuple[str | int, ...]], Position]
    unknown_fields: tuple[UnknownField, ...] = ()
    copy: int = 0


class PodState(msgspec.Struct, frozen=True, gc=False):
    """The state by which controllers choose the pods to delete, and the scheduler the node of a pinned pod.

    Attributes:
        uid: The UID.
        running: Whether its phase is Running.
        ready_since: When it became ready; None while it is not ready, or where that is unknown.
        ready: Whether it is ready.
        deletion_cost: The value of its annotation ``controller.kubernetes.io/pod-deletion-cost``.
        only_node: The name of the node to which its node affinity pins it; "" for none.
        has_local_data: Whether it has an emptyDir volume, whose data is lost with it.
    """

    uid: str = ""
    running: bool = True
    ready: bool = True
    ready_since: datetime | None = None
    deletion_cost: int = 0
    only_node: str = ""
    has_local_data: bool = False


class PodRecord(msgspec.Struct, frozen=True, gc=False):
    """The record of one evaluated pod; ``node`` is "" while it is pending.

    ``owners`` are the managers of unsettled labels. ``claims`` are the names of its PersistentVolumeClaims. ``held``
    tells whether it has finalizers, which delay its deletion; ``gates`` are the names of its scheduling gates.
    ``unscheduled`` is the condition that says why it has no node, and ``state`` what controllers read; both are known
    where it was read in detail. ``copy`` distinguishes manifests of one name.
    """

    name: str
    node: str
    pod_class: PodClass
    generation: int
    created: datetime | None
    owners: tuple[LabelOwner, ...]
    terminating: bool
    claims: tuple[str, ...] = ()
    held: bool = False
    gates: tuple[str, ...] = ()
    unscheduled: PodCondition | None = None
    copy: int = 0
    state: PodState | None = None

    @property
    def refused(self) -> bool:
        """Whether the scheduler has found no node for it, as its condition says."""
        return self.unscheduled is not None and self.unscheduled.reason == REFUSED

    @property
    def waits(self) -> bool:
        """Whether the scheduler is still to choose a node for the pod, which it does not do while it is deleted."""
        return not self.node and not self.terminating

    @property
    def ref(self) -> ObjectRef:
        """The reference to the pod."""
        return ObjectRef(self.namespace, "Pod", self.name, self.copy)

    @property
    def namespace(self) -> str:
        """The namespace of the pod."""
        return self.pod_class.namespace


class OwnerRecord(msgspec.Struct, frozen=True):
    """The record of a workload: its owner, its template's labels, and the rules that its annotation ignores.

    ``created`` is None where the workload was not read; ``revision`` is the number that a Deployment gave its
    ReplicaSet, or 0. ``replicas`` is the desired number of pods, None where the workload has no such number or was not
    read. ``scaled`` is the last owner of ``spec.replicas``, where managedFields name one. ``claims`` are the claims of
    its pods, None where they are not known. ``authored_keys`` are the keys of matchLabelKeys that its template's
    selectors name as well.
    """

    ref: ObjectRef
    owner: OwnerReference | None
    template_labels: Labels
    ignored: str
    created: datetime | None = None
    revision: int = 0
    replicas: int | None = None
    scaled: FieldOwner | None = None
    claims: Claims | None = None
    authored_keys: frozenset[str] = frozenset()

    @property
    def template_keys(self) -> frozenset[str]:
        """The keys of the template's labels."""
        return frozenset(self.template_labels)


class EventRecord(msgspec.Struct, frozen=True):
    """An event about an object: its reason, message, number and last time."""

    reason: str
    message: str
    count: int
    last: datetime | None


class Population(Labelled[Counter[str]]):
    """The counted pods of one namespace: for each label set, the number of pods on each node."""

    def __init__(self) -> None:
        super().__init__()
        self._per_node: dict[bytes, Counter[str]] = {}

    def counter(self, labels: Labels) -> Counter[str]:
        """Return the mutable counter of the pods with a label set on each node."""
        key = digest(labels)
        if key not in self._per_node:
            self._per_node[key] = Counter()
            self.add(labels, self._per_node[key])
        return self._per_node[key]
