"""Pod classes: equal pods share one class, which is made for the first pod; and the pods that are stored by class."""

from __future__ import annotations

import sys
import threading
from collections.abc import Mapping
from typing import Final
from weakref import WeakValueDictionary

import msgspec

from kubectl_spread.audit.snapshot.capacity import requests_of
from kubectl_spread.audit.snapshot.digests import Digests, digest
from kubectl_spread.audit.snapshot.ownership import controller
from kubectl_spread.audit.snapshot.records import PodClass, PodRecord
from kubectl_spread.audit.snapshot.scope import Scope
from kubectl_spread.audit.snapshot.tails import SelectorParts, split, split_manifest
from kubectl_spread.audit.snapshot.terms import TopologyTerm, topology_terms
from kubectl_spread.kube.api import managedfields
from kubectl_spread.kube.api.labels import Labels, Operator
from kubectl_spread.kube.api.sparse import DetailedPod, SparsePod
from kubectl_spread.kube.api.types import Affinity, Pod, PodSpec
from kubectl_spread.kube.scheduler import nodeaffinity
from kubectl_spread.kube.scheduler.configuration import Profile
from kubectl_spread.kube.scheduler.podtopologyspread.domains import Placement
from kubectl_spread.kube.scheduler.resources import Amounts

IGNORE_ANNOTATION: Final = "kubectl-spread/ignore"
FINISHED: Final = "finished"
"""The reason why a finished pod is not evaluated; such a pod is not counted either."""
_FINISHED: Final = frozenset({"Succeeded", "Failed"})
_MIRROR_ANNOTATION: Final = "kubernetes.io/config.mirror"
_MOST_SIMILAR: Final = 2_000
"""The number of distinct pods whose shared facts are remembered while pods are read."""
_MOST_TERMS: Final = 4_000
"""The number of distinct terms that are remembered: a follower of a cluster sees new ones with each rollout."""
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

    def __init__(self, schedulers: Mapping[str, Profile]) -> None:
        """Start empty; ``schedulers`` has the spread configuration of each scheduler."""
        self._schedulers = schedulers
        self._digests = Digests()
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
        )
        key = self._digests.of(identity)
        pod_class = self._classes.get(key)
        if pod_class is None:
            pod_class = self._classes[key] = self._new_class(pod, affinity, requests, pinned=pinned)
        return pod_class

    def _new_class(self, pod: Pod, affinity: Affinity | None, requests: Amounts | None, *, pinned: bool) -> PodClass:
        spec = pod.spec
        terms, splits = self._terms.of(spec)
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
        )


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
        like: One of the pods.
        pod_class: Their class.
        reason: Why they are not evaluated; "" if they are.
        in_scope: Whether the scope selects them.
    """

    like: Pod
    pod_class: PodClass
    reason: str
    in_scope: bool


class StoredPod(msgspec.Struct, frozen=True, gc=False):
    """The facts about one pod that are kept while a cluster is followed; equal ones give equal snapshots."""

    record: PodRecord
    kind: PodKind
    has_managed_fields: bool


class PodReader:
    """Makes stored pods, in any thread. Similar pods have one kind for as long as there is such a pod."""

    def __init__(self, scope: Scope, schedulers: Mapping[str, Profile]) -> None:
        """Read pods in ``scope``; ``schedulers`` has the spread configuration of each scheduler."""
        self._scope = scope
        self._classes = PodClasses(schedulers)
        self._kinds: WeakValueDictionary[tuple[PodClass, str, bool], PodKind] = WeakValueDictionary()
        self._similar: dict[int, tuple[Pod, PodKind]] = {}
        self._lock = threading.Lock()

    def read(self, pod: SparsePod) -> StoredPod:
        """Return a pod of a page."""
        with self._lock:
            similar = self._similar.get(id(pod.like))
            if similar is None:
                if len(self._similar) >= _MOST_SIMILAR:
                    self._similar.clear()
                # The pod is stored too, so that no other object gets its identity.
                similar = self._similar[id(pod.like)] = (pod.like, self._kind(pod.like))
        return _stored(pod, similar[1])

    def read_alone(self, pod: SparsePod) -> StoredPod:
        """Return a pod of an event, which shares its decoded fields with no other one."""
        with self._lock:
            self._similar.clear()
            return _stored(pod, self._kind(pod.like))

    def _kind(self, like: Pod) -> PodKind:
        reason, in_scope = why_unevaluated(like), self._scope.selects(like)
        pod_class = self._classes.of(like, None if reason == FINISHED else requests_of(like.spec))
        key = (pod_class, reason, in_scope)
        kind = self._kinds.get(key)
        if kind is None:
            # Undecoded managedFields would keep the bytes of a page in memory.
            alone = msgspec.structs.replace(like, metadata=msgspec.structs.replace(like.metadata, managed_fields=()))
            kind = self._kinds[key] = PodKind(alone, pod_class, reason, in_scope)
        return kind


def _stored(pod: SparsePod, kind: PodKind) -> StoredPod:
    return StoredPod(pod_record(pod, kind.pod_class), kind, pod.has_managed_fields)


def pod_record(pod: SparsePod, pod_class: PodClass, copy: int = 0) -> PodRecord:
    """Return the record of a pod of a class."""
    like, keys = pod.like, pod_class.unsettled_keys
    return PodRecord(
        pod.name,
        # A node has many pods, each of which was decoded with a name of its own.
        sys.intern(pod.node_name),
        pod_class,
        pod.generation,
        pod.created,
        managedfields.label_owners(pod.decode().metadata, keys) if keys else (),
        pod.terminating,
        pod.claims,
        bool(like.metadata.finalizers),
        tuple(gate.name for gate in like.spec.scheduling_gates),
        like.unscheduled if isinstance(like, DetailedPod) else None,
        copy,
    )


def why_unevaluated(pod: Pod) -> str:
    """Return why a pod is not evaluated: ``finished`` or ``mirror``; "" if it is."""
    if pod.status.phase in _FINISHED:
        return FINISHED
    return "mirror" if _MIRROR_ANNOTATION in pod.metadata.annotations else ""
