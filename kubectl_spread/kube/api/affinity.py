"""Affinity terms: every term of a pod's affinity and anti-affinity, with its field path."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from kubectl_spread.kube.api.field import POD_SPEC, FieldPath
from kubectl_spread.kube.api.types import PodAffinityTerm, PodSpec


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
