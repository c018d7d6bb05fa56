"""Records: what is kept of pods, owners and events once an object has been read.

Pods that are alike in everything but name and node share one Shape, so memory grows by one small record a pod.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from typing import Final

import msgspec

from kubectl_spread.audit.snapshot.digests import Digests
from kubectl_spread.audit.snapshot.labelled import Labelled, SelectedNumbers
from kubectl_spread.audit.snapshot.tails import SelectorParts
from kubectl_spread.audit.snapshot.terms import TopologyTerm
from kubectl_spread.errors import Position
from kubectl_spread.kube.api.detail import PodCondition
from kubectl_spread.kube.api.labels import Labels
from kubectl_spread.kube.api.managedfields import FieldOwner, LabelOwner
from kubectl_spread.kube.api.objects import ObjectRef
from kubectl_spread.kube.api.types import LabelSelector, OwnerReference, PodSpec
from kubectl_spread.kube.api.unknownfields import UnknownField
from kubectl_spread.kube.scheduler.configuration import Profile
from kubectl_spread.kube.scheduler.podtopologyspread import Placement
from kubectl_spread.kube.scheduler.resources import Amounts

DEFAULT_SCHEDULER: Final = "default-scheduler"


class PodClass(msgspec.Struct, frozen=True, eq=False):
    """What pods of one template have in common; compared by identity.

    ``clauses`` hold the selectors of ``spec``; ``splits`` go with them. ``unsettled_keys`` are the keys of which some
    clause does not hold the current value. ``pinned`` pods may run on one node only. ``written`` is the spec as it was
    read. In a snapshot ``spec`` is the same; ``admission`` replaces it, and the clauses, where the pod is a manifest.
    ``requests`` are what the spec asks of a node, None where that is not known. ``profile`` is what the pods' scheduler
    makes of spread constraints, None where that is not known.
    """

    namespace: str
    owner: OwnerReference | None
    labels: Labels
    spec: PodSpec
    written: PodSpec
    requests: Amounts | None
    clauses: tuple[TopologyTerm, ...]
    splits: tuple[SelectorParts, ...]
    placement: Placement
    scheduler_name: str
    profile: Profile | None
    unsettled_keys: frozenset[str]
    bound: bool
    stored: bool
    pinned: bool
    ignored: str

    @property
    def known_scheduler(self) -> bool:
        """Whether a scheduler places these pods that spreads, and of which it is known how."""
        return self.profile is not None and self.profile.spreads


class Manifest(msgspec.Struct, frozen=True):
    """Where an object was read that is not stored, and what it says in fields that the API does not have.

    ``copy`` counts the manifests of the same kind, namespace and name that were read before it.
    """

    position: Position
    unknown_fields: tuple[UnknownField, ...] = ()
    copy: int = 0


class PodRecord(msgspec.Struct, frozen=True, gc=False):
    """What is kept of one evaluated pod; ``node`` is "" while it is pending, ``owners`` are those of unsettled labels.

    ``held`` tells whether it has finalizers, so that it goes only once these are removed; ``gates`` are the names of
    its scheduling gates. ``unscheduled`` is what its status says of why it has no node, where it was read in detail.
    ``copy`` tells manifests of one name apart.
    """

    name: str
    node: str
    shape: PodClass
    generation: int
    created: datetime | None
    owners: tuple[LabelOwner, ...]
    terminating: bool
    held: bool = False
    gates: tuple[str, ...] = ()
    unscheduled: PodCondition | None = None
    copy: int = 0

    @property
    def ref(self) -> ObjectRef:
        """The reference to the pod."""
        return ObjectRef(self.namespace, "Pod", self.name, self.copy)

    @property
    def namespace(self) -> str:
        """The namespace of the pod."""
        return self.shape.namespace


class OwnerRecord(msgspec.Struct, frozen=True):
    """What is kept of a workload: who owns it, its template's labels, and the rules it asks to ignore.

    ``created`` is None where the workload was not read; ``revision`` is the number that a Deployment gave its
    ReplicaSet, or 0. ``scaled`` is who wrote ``spec.replicas`` last, where managedFields tell.
    """

    ref: ObjectRef
    owner: OwnerReference | None
    template_labels: Labels
    ignored: str
    created: datetime | None = None
    revision: int = 0
    scaled: FieldOwner | None = None

    @property
    def template_keys(self) -> frozenset[str]:
        """The keys of the template's labels."""
        return frozenset(self.template_labels)


class EventRecord(msgspec.Struct, frozen=True):
    """What was said about an object, how often, and when last."""

    reason: str
    message: str
    count: int
    last: datetime | None


class Population:
    """The pods of one namespace that count: for each label set, the number of pods on each node."""

    def __init__(self) -> None:
        """Start without pods."""
        self._digests = Digests()
        self._per_node: dict[bytes, Counter[str]] = {}
        self._labelled = Labelled[Counter[str]]()

    def add(self, labels: Labels, node: str) -> None:
        """Count one pod."""
        key = self._digests.of(labels)
        if key not in self._per_node:
            self._per_node[key] = Counter()
            self._labelled.add(labels, self._per_node[key])
        self._per_node[key][node] += 1

    def __iter__(self) -> Iterator[tuple[Labels, Counter[str]]]:
        """Yield each label set with its number of pods on each node."""
        return iter(self._labelled)

    def selected(self, selector: LabelSelector) -> Iterator[tuple[Labels, Counter[str]]]:
        """Yield the label sets that a selector selects, each with its number of pods on each node."""
        return self._labelled.selected(selector)

    def selection(self, selector: LabelSelector) -> SelectedNumbers:
        """Return the numbers of the label sets that a selector selects."""
        return self._labelled.selection(selector)

    def __getitem__(self, number: int) -> Counter[str]:
        """Return the number of pods on each node of a label set."""
        return self._labelled[number]
