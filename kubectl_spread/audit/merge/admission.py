"""Admission: manifests of pods as an API server of one behaviour would store them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from kubectl_spread.audit.snapshot.podclasses import SharedClauses
from kubectl_spread.audit.snapshot.records import PodClass, PodRecord
from kubectl_spread.kube.apiserver import strategy, validation
from kubectl_spread.kube.features import Behaviour


def admitted(pods: Sequence[PodRecord], behaviour: Behaviour) -> Sequence[PodRecord]:
    """Return pods with manifests as they would be stored; pods that are stored already stay as they are."""
    shapes = _admitted_shapes((pod.shape for pod in pods if not pod.shape.stored), behaviour)
    if not shapes:
        return pods
    return [msgspec.structs.replace(pod, shape=shapes[pod.shape]) if pod.shape in shapes else pod for pod in pods]


def _admitted_shapes(shapes: Iterable[PodClass], behaviour: Behaviour) -> dict[PodClass, PodClass]:
    """Map the class of each manifest to the class that its pods would be stored with."""
    shared = SharedClauses()
    return {shape: _admitted(shape, shared, behaviour) for shape in dict.fromkeys(shapes)}


def _admitted(shape: PodClass, shared: SharedClauses, behaviour: Behaviour) -> PodClass:
    """Return the class as it would be stored, or as it is written where the API server would refuse it."""
    stored = strategy.prepare_for_create(shape.written, shape.labels, behaviour)
    if validation.pod_errors(stored, behaviour):
        return shape
    clauses, splits = shared.of(stored)
    # The API server stores no default constraints of the scheduler.
    own = sum(clause.default for clause in shape.clauses)
    return msgspec.structs.replace(
        shape,
        spec=stored,
        clauses=(*shape.clauses[:own], *clauses),
        splits=(*shape.splits[:own], *splits),
    )
