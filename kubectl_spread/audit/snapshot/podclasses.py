"""Pod classes: equal pods share one class, which is made for the first pod."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Final

import msgspec

from kubectl_spread.audit.snapshot.digests import Digests, digest
from kubectl_spread.audit.snapshot.ownership import controller
from kubectl_spread.audit.snapshot.records import PodClass
from kubectl_spread.audit.snapshot.tails import SelectorParts, split, split_manifest
from kubectl_spread.audit.snapshot.terms import TopologyTerm, topology_terms
from kubectl_spread.kube.api.labels import Labels, Operator
from kubectl_spread.kube.api.types import Affinity, Pod, PodSpec
from kubectl_spread.kube.scheduler import nodeaffinity
from kubectl_spread.kube.scheduler.configuration import Profile
from kubectl_spread.kube.scheduler.podtopologyspread.domains import Placement
from kubectl_spread.kube.scheduler.resources import Amounts

IGNORE_ANNOTATION: Final = "kubectl-spread/ignore"
_NO_KEYS: Final = frozenset[str]()
"""Used wherever there are none: each new set takes 216 bytes."""


class SharedTerms:
    """The terms of specs and their selector parts; pods of one template share them even if their labels differ."""

    def __init__(self) -> None:
        """Start empty."""
        self._terms: dict[bytes, tuple[tuple[TopologyTerm, ...], tuple[SelectorParts, ...]]] = {}

    def of(self, spec: PodSpec) -> tuple[tuple[TopologyTerm, ...], tuple[SelectorParts, ...]]:
        """Return the terms of a spec and the selector parts of each."""
        key = digest((spec.topology_spread_constraints, _without_node_affinity(spec.affinity)))
        if key not in self._terms:
            terms = topology_terms(spec)
            self._terms[key] = (terms, split(terms))
        return self._terms[key]


class PodClasses:
    """The classes of the pods that were read."""

    def __init__(self, schedulers: Mapping[str, Profile]) -> None:
        """Start empty; ``schedulers`` has the spread configuration of each scheduler."""
        self._schedulers = schedulers
        self._digests = Digests()
        self._classes: dict[bytes, PodClass] = {}
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
        if key not in self._classes:
            self._classes[key] = self._new_class(pod, affinity, requests, pinned=pinned)
        return self._classes[key]

    def keep_only(self, pod_classes: Container[PodClass]) -> None:
        """Forget all classes but some, and the terms that no class has any more."""
        self._classes = {key: pod_class for key, pod_class in self._classes.items() if pod_class in pod_classes}
        self._terms = SharedTerms()

    def __len__(self) -> int:
        """Return the number of classes."""
        return len(self._classes)

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
