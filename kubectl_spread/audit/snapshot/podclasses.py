"""Pod classes: equal pods share one class, which is made for the first pod; the pods by class, and their owners."""

from __future__ import annotations

import sys
import threading
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final
from weakref import WeakValueDictionary

import msgspec

from kubectl_spread.audit.snapshot.capacity import requests_of
from kubectl_spread.audit.snapshot.records import (
    EventRecord,
    OwnerRecord,
    PodClass,
    PodRecord,
    PodState,
    digest,
)
from kubectl_spread.audit.snapshot.scope import Scope
from kubectl_spread.audit.snapshot.terms import SelectorParts, TopologyTerm, split, split_manifest, topology_terms
from kubectl_spread.kube.api import managedfields, sparse
from kubectl_spread.kube.api.labels import Labels, Operator
from kubectl_spread.kube.api.objects import ObjectRef
from kubectl_spread.kube.api.sparse import DetailedPod, DetailedPodSpec, SparsePod
from kubectl_spread.kube.api.types import READY, Affinity, Event, ObjectMeta, OwnerReference, Pod, PodSpec
from kubectl_spread.kube.custom import kind_name
from kubectl_spread.kube.scheduler import nodeaffinity, nodeports
from kubectl_spread.kube.scheduler.configuration import Profile
from kubectl_spread.kube.scheduler.podtopologyspread.domains import Placement
from kubectl_spread.kube.scheduler.resources import Amounts

_LONGEST_CHAIN: Final = 64
"""The most owners that are followed; a CronJob's pods have two."""
REASONS: Final = frozenset(
    {
        "FailedCreate",
        "FailedScheduling",
        "NoCompatibleInstanceTypes",
        "NotTriggerScaleUp",
        "ScalingReplicaSet",
        "SuccessfulDelete",
    }
)
"""The reasons of the events that are stored, also those of Karpenter and cluster-autoscaler; pods have others."""


class Ownership:
    """The workloads that were read, by namespace and name, and the events about them."""

    def __init__(self) -> None:
        self._owners: dict[ObjectRef, OwnerRecord] = {}
        self._chains: dict[ObjectRef, tuple[OwnerRecord, ...]] = {}
        self._events: dict[ObjectRef, list[EventRecord]] = {}

    def add(self, record: OwnerRecord) -> None:
        """Store a workload."""
        self._owners[record.ref] = record
        self._chains.clear()

    def add_event(self, event: Event) -> None:
        """Store an event if its reason is one of ``REASONS``."""
        if event.reason not in REASONS:
            return
        subject = event.involved_object
        record = EventRecord(
            reason=event.reason,
            message=event.message,
            count=max(event.count, event.series.count, 1),
            last=event.last_timestamp
            or event.series.last_observed_time
            or event.event_time
            or event.metadata.creation_timestamp,
        )
        self._events.setdefault(ObjectRef(subject.namespace, subject.kind, subject.name), []).append(record)

    def chain(self, namespace: str, reference: OwnerReference | None) -> tuple[OwnerRecord, ...]:
        """Return the owners from the referenced owner to the root; an owner that was not read ends the chain.

        A chain with a cycle is cut, and so is one that is longer than any controller makes.
        """
        if reference is None:
            return ()
        first = ObjectRef(namespace, reference.kind, reference.name)
        if first not in self._chains:
            self._chains[first] = tuple(self._walk(first))
        return self._chains[first]

    def ignored(self, chain: Iterable[OwnerRecord]) -> Iterator[str]:
        """Yield the annotations of owners that name rules to ignore.

        The controller of a Deployment copies its annotations to its ReplicaSets, and never removes one there. So the
        annotation of a ReplicaSet is left out where its owner was read.

        Source: kubernetes v1.37.1 pkg/controller/deployment/util/deployment_util.go,
        copyDeploymentAnnotationsToReplicaSet.
        """
        for record in chain:
            owner = record.owner
            above = owner and ObjectRef(record.ref.namespace, owner.kind, owner.name)
            if record.ref.kind != "ReplicaSet" or above not in self._owners:
                yield record.ignored

    def _walk(self, ref: ObjectRef) -> Iterator[OwnerRecord]:
        walked: set[ObjectRef] = set()
        while ref not in walked and len(walked) < _LONGEST_CHAIN:
            walked.add(ref)
            record = self._owners.get(ref) or OwnerRecord(ref, None, {}, "")
            yield record
            if record.owner is None:
                return
            ref = ObjectRef(ref.namespace, record.owner.kind, record.owner.name)

    def below(self, owner: ObjectRef) -> list[OwnerRecord]:
        """Return the workloads that ``owner`` owns directly, with or without pods, by name."""
        records = [
            record
            for ref, record in self._owners.items()
            if record.owner is not None and ObjectRef(ref.namespace, record.owner.kind, record.owner.name) == owner
        ]
        return sorted(records, key=lambda record: record.ref.name)

    @property
    def records(self) -> Collection[OwnerRecord]:
        """The records of the workloads that were read."""
        return self._owners.values()

    @property
    def objects(self) -> set[ObjectRef]:
        """The workloads that were read, and their owners."""
        return {owner for ref in self._owners for owner in self.owners(ref)}

    def owners(self, ref: ObjectRef) -> list[ObjectRef]:
        """Return a workload and its known owners up to the root."""
        return [record.ref for record in self._walk(ref)]

    def record(self, ref: ObjectRef) -> OwnerRecord | None:
        """Return the record of a workload; None if it was not read."""
        return self._owners.get(ref)

    def events(self, ref: ObjectRef, reason: str) -> list[EventRecord]:
        """Return the events of one reason about an object and the workloads below it, the newest first."""
        records = [
            record
            for subject, events in self._events.items()
            if self._is_or_has_owner(subject, ref)
            for record in events
            if record.reason == reason
        ]
        return sorted(records, key=_newest_first)

    def events_about(self, ref: ObjectRef, reason: str) -> list[EventRecord]:
        """Return the events of one reason about an object itself, the newest first."""
        records = self._events.get(ref, ())
        return sorted((record for record in records if record.reason == reason), key=_newest_first)

    def _is_or_has_owner(self, subject: ObjectRef, owner: ObjectRef) -> bool:
        if subject == owner or subject.namespace != owner.namespace:
            return subject == owner
        record = self._owners.get(subject)
        chain = () if record is None else self.chain(subject.namespace, record.owner)
        return any(above.ref == owner for above in chain)


def _newest_first(record: EventRecord) -> tuple[float, str]:
    return (-record.last.timestamp() if record.last else 0.0, record.message)


def controller(metadata: ObjectMeta) -> OwnerReference | None:
    """Return the owner reference of the controller, if any, with the name of its kind."""
    owner = next((owner for owner in metadata.owner_references if owner.controller), None)
    if owner is None or (kind := kind_name(owner.api_version, owner.kind)) == owner.kind:
        return owner
    return msgspec.structs.replace(owner, kind=kind)


IGNORE_ANNOTATION: Final = "kubectl-spread/ignore"
FINISHED: Final = "finished"
"""The reason why a finished pod is not evaluated; such a pod is not counted either."""
_FINISHED: Final = frozenset({"Succeeded", "Failed"})
_MIRROR_ANNOTATION: Final = "kubernetes.io/config.mirror"
_MOST_SIMILAR: Final = 2_000
"""The number of distinct pods whose shared facts are remembered while pods are read."""
_MOST_TERMS: Final = 4_000
"""The number of distinct terms that are remembered: a follower of a cluster sees new ones with each rollout."""
_DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"
_INT32: Final = range(-(2**31), 2**31)
_NO_KEYS: Final = frozenset[str]()
"""Used wherever there are none: each new set takes 216 bytes."""


class SharedTerms:
    """The terms of specs and their selector parts; pods of one template share them even if their labels differ."""

    def __init__(self) -> None:
        self._terms: dict[bytes, tuple[tuple[TopologyTerm, ...], tuple[SelectorParts, ...]]] = {}

    def of(self, spec: PodSpec) -> tuple[tuple[TopologyTerm, ...], tuple[SelectorParts, ...]]:
        """Return the terms of a spec and the selector parts of each."""
        key = digest((spec.topology_spread_constraints, _without_node_affinity(spec.affinity)))
        if key not in self._terms:
            if len(self._terms) >= _MOST_TERMS:
                self._terms.clear()
            terms = topology_terms(spec)
            self._terms[key] = (terms, split(terms))
        return self._terms[key]


class PodClasses:
    """The classes of the pods that were read, each for as long as somebody has it."""

    def __init__(self, schedulers: Mapping[str, Profile], *, detailed: bool = False) -> None:
        """Start empty; ``schedulers`` has the spread configuration of each scheduler.

        Pending pods always have a priority, bound ones only if they are read ``detailed``. Then pods whose containers
        differ are of different classes as well, even if their requests are equal: the scores of resources assume
        requests for each container without any. So are pods with and without the network of their node.
        """
        self._schedulers = schedulers
        self._detailed = detailed
        self._classes: WeakValueDictionary[bytes, PodClass] = WeakValueDictionary()
        self._terms = SharedTerms()

    def of(self, pod: Pod, requests: Amounts | None) -> PodClass:
        """Return the class of a pod that requests ``requests``."""
        spec = pod.spec
        pinned = nodeaffinity.pinned_node(spec.affinity) is not None
        affinity = _without_node_affinity(spec.affinity) if pinned else spec.affinity
        identity = (
            pod.metadata.namespace,
            controller(pod.metadata),
            pod.metadata.labels,
            spec.topology_spread_constraints,
            affinity,
            spec.node_selector,
            spec.tolerations,
            spec.scheduler_name,
            spec.restart_policy,
            bool(spec.node_name),
            bool(pod.metadata.uid),
            pinned,
            pod.metadata.annotations.get(IGNORE_ANNOTATION, ""),
            requests,
            nodeports.host_ports(spec),
            *self._priority(spec),
            _details(spec) if self._detailed else (),
        )
        key = digest(identity)
        pod_class = self._classes.get(key)
        if pod_class is None:
            pod_class = self._classes[key] = self._new_class(pod, affinity, requests, pinned=pinned)
        return pod_class

    def _new_class(self, pod: Pod, affinity: Affinity | None, requests: Amounts | None, *, pinned: bool) -> PodClass:
        spec = pod.spec
        terms, splits = self._terms.of(spec)
        priority, preempts = self._priority(spec)
        if not (stored := bool(pod.metadata.uid)):
            splits = split_manifest(terms, terms)
        return PodClass(
            namespace=pod.metadata.namespace,
            owner=controller(pod.metadata),
            labels=pod.metadata.labels,
            spec=spec,
            written=spec,
            requests=requests,
            terms=terms,
            splits=splits,
            placement=Placement(spec.node_selector, affinity, spec.tolerations),
            scheduler_name=spec.scheduler_name,
            profile=self._schedulers.get(spec.scheduler_name),
            unsettled_keys=_unsettled_keys(terms, splits, pod.metadata.labels),
            bound=bool(spec.node_name),
            stored=stored,
            pinned=pinned,
            ignored=pod.metadata.annotations.get(IGNORE_ANNOTATION, ""),
            priority=priority,
            preempts=preempts,
        )

    def _priority(self, spec: PodSpec) -> tuple[int | None, bool]:
        """Return the priority of a pod, and whether it may preempt others, as far as these are read."""
        if isinstance(spec, DetailedPodSpec) and (self._detailed or not spec.node_name):
            return spec.priority, spec.preemption_policy != "Never"
        return None, True


def _details(spec: PodSpec) -> tuple[object, ...]:
    """Return the fields of a spec that only simulations read."""
    fields = (spec.containers, spec.init_containers, spec.resources, spec.host_network)
    return (*fields, spec.priority_class_name, spec.resource_claims) if isinstance(spec, DetailedPodSpec) else fields


def _unsettled_keys(
    terms: tuple[TopologyTerm, ...], splits: tuple[SelectorParts, ...], labels: Labels
) -> frozenset[str]:
    keys = frozenset(
        key
        for term, part in zip(terms, splits, strict=True)
        for key in (*term.match_label_keys, *term.mismatch_label_keys)
        if key not in labels
        or all(labels[key] != part.tail.get((operator, key)) for operator in (Operator.IN, Operator.NOT_IN))
    )
    return keys or _NO_KEYS


def _without_node_affinity(affinity: Affinity | None) -> Affinity | None:
    return None if affinity is None else msgspec.structs.replace(affinity, node_affinity=None)


class PodKind(msgspec.Struct, frozen=True, eq=False, weakref=True):
    """The facts that similar pods share.

    Attributes:
        pod_class: Their class.
        reason: Why they are not evaluated; "" if they are.
        in_scope: Whether the scope selects them.
    """

    pod_class: PodClass
    reason: str
    in_scope: bool


class StoredPod(msgspec.Struct, frozen=True, gc=False):
    """The facts about one pod that are kept of it; equal ones give equal snapshots."""

    record: PodRecord
    kind: PodKind
    has_managed_fields: bool


class PodReader:
    """Makes stored pods, in any thread. Similar pods have one kind for as long as there is such a pod."""

    def __init__(self, scope: Scope, schedulers: Mapping[str, Profile], *, detailed: bool = False) -> None:
        """Read pods in ``scope``, bound ones ``detailed`` or without their state and priority.

        For the other arguments see ``PodClasses``.
        """
        self._scope = scope
        self._detailed = detailed
        self._classes = PodClasses(schedulers, detailed=detailed)
        self._kinds: WeakValueDictionary[tuple[PodClass, str, bool], PodKind] = WeakValueDictionary()
        self._similar: dict[int, tuple[Pod, PodKind]] = {}
        self._lock = threading.Lock()

    def read(self, pod: SparsePod) -> StoredPod:
        """Return a pod, whose common fields with similar pods are read once."""
        with self._lock:
            similar = self._similar.get(id(pod.like))
            if similar is None:
                if len(self._similar) >= _MOST_SIMILAR:
                    self._similar.clear()
                # The pod is stored too, so that no other object gets its identity.
                similar = self._similar[id(pod.like)] = (pod.like, self._kind(pod.like))
        return self._stored(pod, similar[1])

    def read_alone(self, pod: Pod, copy: int = 0) -> StoredPod:
        """Return a pod that shares its decoded fields with no other one; ``copy`` is that of its manifest."""
        with self._lock:
            self._similar.clear()
            return self._stored(sparse.alone(pod), self._kind(pod), copy)

    def _kind(self, like: Pod) -> PodKind:
        reason, in_scope = _why_unevaluated(like), self._scope.selects(like)
        pod_class = self._classes.of(like, None if reason == FINISHED else requests_of(like.spec))
        key = (pod_class, reason, in_scope)
        kind = self._kinds.get(key)
        if kind is None:
            kind = self._kinds[key] = PodKind(pod_class, reason, in_scope)
        return kind

    def _stored(self, pod: SparsePod, kind: PodKind, copy: int = 0) -> StoredPod:
        like, keys = pod.like, kind.pod_class.unsettled_keys
        detailed = like if isinstance(like, DetailedPod) and (self._detailed or not pod.node_name) else None
        record = PodRecord(
            pod.name,
            # A node has many pods, each of which was decoded with a name of its own.
            sys.intern(pod.node_name),
            kind.pod_class,
            pod.generation,
            pod.created,
            managedfields.label_owners(pod.decode().metadata, keys) if keys and kind.in_scope else (),
            pod.terminating,
            pod.claims,
            bool(like.metadata.finalizers),
            tuple(gate.name for gate in like.spec.scheduling_gates),
            None if detailed is None else detailed.unscheduled,
            copy,
            None if detailed is None else _state(detailed),
        )
        return StoredPod(record, kind, pod.has_managed_fields)


def _state(pod: DetailedPod) -> PodState:
    ready = next((each for each in pod.status.conditions if each.type == READY), None)
    # An API server sets a phase, and a kubelet writes conditions as soon as a pod runs: a file has left out what lacks.
    runs = pod.status.phase in ("Running", "")
    is_ready = ready.status == "True" if ready is not None else runs and not pod.status.conditions
    return PodState(
        uid=pod.metadata.uid,
        running=runs,
        ready=is_ready,
        ready_since=ready.last_transition_time if ready is not None and is_ready else None,
        deletion_cost=_cost(pod.metadata.annotations.get(_DELETION_COST, "")),
        only_node=nodeaffinity.pinned_node(pod.spec.affinity) or "",
        has_local_data=any(volume.is_local for volume in pod.spec.volumes),
    )


def _cost(text: str) -> int:
    """Return a deletion cost; the controller takes an invalid one for 0.

    Source: kubernetes v1.37.1 pkg/apis/core/helper/helpers.go, GetDeletionCostFromPodAnnotations.
    """
    number = nodeaffinity.parse_int(text)
    return number if number is not None and str(number) == text and number in _INT32 else 0


def _why_unevaluated(pod: Pod) -> str:
    """Return why a pod is not evaluated: ``finished`` or ``mirror``; "" if it is."""
    if pod.status.phase in _FINISHED:
        return FINISHED
    return "mirror" if _MIRROR_ANNOTATION in pod.metadata.annotations else ""
