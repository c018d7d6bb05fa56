"""Admission: pods that are created, from manifests or by controllers, as an API server would store them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from kubectl_spread.audit.merge.merging import Change, without
from kubectl_spread.audit.snapshot.capacity import requests_of
from kubectl_spread.audit.snapshot.podclasses import SharedTerms
from kubectl_spread.audit.snapshot.records import PodClass, PodRecord
from kubectl_spread.audit.snapshot.tails import split, split_manifest
from kubectl_spread.audit.snapshot.terms import topology_terms
from kubectl_spread.kube.api.labels import Labels
from kubectl_spread.kube.api.types import PodSpec
from kubectl_spread.kube.apiserver import strategy, validation
from kubectl_spread.kube.features import Behaviour
from kubectl_spread.kube.scheduler.podtopologyspread.domains import Placement


def admitted(pods: Sequence[PodRecord], behaviour: Behaviour) -> Sequence[PodRecord]:
    """Return pods with manifests as they would be stored; pods that are stored already stay as they are."""
    pod_classes = _admitted_classes((pod.pod_class for pod in pods if not pod.pod_class.stored), behaviour)
    if not pod_classes:
        return pods
    return [
        msgspec.structs.replace(pod, pod_class=pod_classes[pod.pod_class]) if pod.pod_class in pod_classes else pod
        for pod in pods
    ]


def _admitted_classes(pod_classes: Iterable[PodClass], behaviour: Behaviour) -> dict[PodClass, PodClass]:
    """Map the class of each manifest to the class that its pods would be stored with."""
    shared = SharedTerms()
    return {pod_class: _admitted(pod_class, shared, behaviour) for pod_class in dict.fromkeys(pod_classes)}


def _admitted(pod_class: PodClass, shared: SharedTerms, behaviour: Behaviour) -> PodClass:
    """Return the class as it would be stored, or as it is written where the API server would refuse it."""
    stored = strategy.prepare_for_create(pod_class.written, pod_class.labels, behaviour)
    if validation.pod_errors(stored, behaviour):
        return pod_class
    terms, _ = shared.of(stored)
    # The API server stores no default constraints of the scheduler.
    own = sum(term.default for term in pod_class.terms)
    splits = split_manifest(pod_class.terms[own:], terms)
    return msgspec.structs.replace(
        pod_class,
        spec=stored,
        terms=(*pod_class.terms[:own], *terms),
        splits=(*pod_class.splits[:own], *splits),
    )


def created_again(pod_class: PodClass, labels: Labels, behaviour: Behaviour) -> PodClass:
    """Return the class of pods that replace those of ``pod_class``, with the labels that they are created with."""
    changes: list[Change] = []
    for term, part in zip(pod_class.terms, pod_class.splits, strict=True):
        if part.tail and part.authored is not None and term.selector is not None and not term.default:
            merged = range(len(part.authored.match_expressions), len(term.selector.match_expressions))
            changes.append(Change(term.path, removed=tuple(merged)))
    return _created(pod_class, without(pod_class.spec, changes), labels, behaviour)


def created_from(pod_class: PodClass, template: PodSpec, labels: Labels, behaviour: Behaviour) -> PodClass:
    """Return the class of pods of a template, whose owner and scheduler are those of ``pod_class``."""
    placement = Placement(template.node_selector, template.affinity, template.tolerations)
    like = msgspec.structs.replace(pod_class, requests=requests_of(template), placement=placement)
    return _created(like, template, labels, behaviour)


def _created(like: PodClass, spec: PodSpec, labels: Labels, behaviour: Behaviour) -> PodClass:
    stored = strategy.prepare_for_create(spec, labels, behaviour)
    terms = topology_terms(stored)
    # The scheduler has defaults for pods without constraints of their own.
    own = 0 if stored.topology_spread_constraints else sum(term.default for term in like.terms)
    return msgspec.structs.replace(
        like,
        labels=labels,
        spec=stored,
        written=stored,
        terms=(*like.terms[:own], *terms),
        splits=(*like.splits[:own], *split(terms)),
        unsettled_keys=frozenset[str](),
        bound=False,
    )
