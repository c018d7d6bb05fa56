"""Admission: manifests of pods as an API server of one behaviour would store them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from kubectl_spread.audit.snapshot.podclasses import SharedTerms
from kubectl_spread.audit.snapshot.records import PodClass, PodRecord
from kubectl_spread.audit.snapshot.tails import split_manifest
from kubectl_spread.kube.apiserver import strategy, validation
from kubectl_spread.kube.features import Behaviour


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
