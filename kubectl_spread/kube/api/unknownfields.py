"""Unknown fields: fields about spread and affinity in a manifest that the API does not have.

kube-apiserver refuses such a manifest, or drops the field where validation is not strict. Only fields about spread and
affinity are searched: those inside constraints and terms, and fields with their names in other places.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import cache, lru_cache
from typing import Any, Final, NamedTuple

import msgspec

from kubectl_spread.kube.api.fieldpath import FieldPath
from kubectl_spread.kube.api.types import (
    Affinity,
    LabelSelector,
    LabelSelectorRequirement,
    Message,
    PodAffinity,
    PodAffinityTerm,
    TopologySpreadConstraint,
    WeightedPodAffinityTerm,
)

_TYPE_OF: Final[Mapping[str, type[Message]]] = {
    "topologySpreadConstraints": TopologySpreadConstraint,
    "affinity": Affinity,
    "podAffinity": PodAffinity,
    "podAntiAffinity": PodAffinity,
    "requiredDuringSchedulingIgnoredDuringExecution": PodAffinityTerm,
    "preferredDuringSchedulingIgnoredDuringExecution": WeightedPodAffinityTerm,
    "podAffinityTerm": PodAffinityTerm,
    "labelSelector": LabelSelector,
    "namespaceSelector": LabelSelector,
    "matchExpressions": LabelSelectorRequirement,
}
"""Maps a field to the type of its value, where all fields of that type are declared."""
_OF_POD_SPEC: Final[Mapping[str, FieldPath]] = {
    "topologySpreadConstraints": FieldPath(("topologySpreadConstraints",)),
    "affinity": FieldPath(("affinity",)),
    "podAffinity": FieldPath(("affinity", "podAffinity")),
    "podAntiAffinity": FieldPath(("affinity", "podAntiAffinity")),
}
"""Maps the fields of spread and affinity to their place in a pod spec."""
_CONTAINERS: Final = ("containers", "initContainers", "ephemeralContainers")
_MISSPELT: Final = 0.85
"""The similarity, as difflib computes it, from which a word counts as another one misspelt."""
_SIMILAR: Final = 0.7
"""The similarity that is enough where only a few words come into question."""


class UnknownField(NamedTuple):
    """A field that the API does not have; ``intended`` is the path of the right field, empty if that is unclear."""

    path: FieldPath
    intended: FieldPath


class _Above(NamedTuple):
    """An object around an unknown field: its path, and the fields that its type has."""

    path: FieldPath
    names: Sequence[str]


def unknown_fields(manifest: Mapping[str, Any], pod_spec: FieldPath) -> tuple[UnknownField, ...]:
    """Return the fields about spread and affinity that the API does not have, in the order in which they are written.

    Args:
        manifest: The object as JSON values; the types of fields that the API has are right.
        pod_spec: The path of its pod spec, such as ``spec.template.spec``.
    """
    near = list(_near_pod_spec(manifest, pod_spec))
    reported = {field.path for field in near}
    return (*near, *(field for field in _elsewhere(manifest, pod_spec) if field.path not in reported))


def _near_pod_spec(manifest: Mapping[str, Any], pod_spec: FieldPath) -> Iterator[UnknownField]:
    """Yield the unknown fields of the pod spec and of the objects around it."""
    here: Any = manifest
    path = FieldPath()
    for step in pod_spec:
        yield from _misplaced(here, path, pod_spec)
        yield from _misplaced(here.get("metadata"), path / "metadata", pod_spec)
        here, path = here.get(step), path / step
        if not isinstance(here, dict):
            return
    yield from _of_pod_spec(here, pod_spec)


def _elsewhere(manifest: Mapping[str, Any], pod_spec: FieldPath) -> Iterator[UnknownField]:
    """Yield the fields with the names of a pod spec's that hold objects anywhere else, as a misspelt template has them.

    Labels and annotations of these names are strings. The search keeps a stack, since a manifest may be deep.
    """
    stack: list[tuple[FieldPath, Any]] = [(FieldPath(), manifest)]
    while stack:
        path, value = stack.pop()
        if isinstance(value, list):
            stack += [(path / index, item) for index, item in enumerate(value)][::-1]
        elif isinstance(value, dict):
            for key in value if path != pod_spec else ():
                if key in _OF_POD_SPEC and _holds_objects(value[key]):
                    yield UnknownField(path / key, FieldPath((*pod_spec, *_OF_POD_SPEC[key])))
            stack += [(path / key, item) for key, item in value.items() if key not in _OF_POD_SPEC][::-1]


def _holds_objects(value: Any) -> bool:
    items = value if isinstance(value, list) else [value]
    return any(isinstance(item, dict) and item for item in items)


def _of_pod_spec(spec: Mapping[str, Any], path: FieldPath) -> Iterator[UnknownField]:
    names = ("topologySpreadConstraints", "affinity")
    yield from (field for field in _misplaced(spec, path, path) if field.intended != field.path)
    for name in _CONTAINERS:
        for index, container in enumerate(spec.get(name) or ()):
            yield from _misplaced(container, path / name / index, path)
    for name in names:
        yield from _inside(spec.get(name), name, path / name, (_Above(path, names),))


def _misplaced(value: Any, path: FieldPath, pod_spec: FieldPath) -> Iterator[UnknownField]:
    """Yield the fields whose names are those of a pod spec's fields, or nearly so."""
    for key in value if isinstance(value, dict) else ():
        if near := _spelt_alike(key):
            yield UnknownField(path / key, FieldPath((*pod_spec, *_OF_POD_SPEC[near])))


@lru_cache(maxsize=1024)
def _spelt_alike(key: str) -> str:
    return next(iter(get_close_matches(key, _OF_POD_SPEC, 1, _MISSPELT)), "")


def _inside(value: Any, name: str, path: FieldPath, above: tuple[_Above, ...]) -> Iterator[UnknownField]:
    """Yield the unknown fields inside the field ``name``, which may hold a list."""
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _inside(item, name, path / index, above)
    elif isinstance(value, dict):
        type_ = _TYPE_OF[name]
        names = _names(type_)
        for key, item in value.items():
            if key not in names:
                yield UnknownField(path / key, _intended(key, type_, path, above))
            elif key in _TYPE_OF:
                yield from _inside(item, key, path / key, (*above, _Above(path, names)))


def _intended(key: str, type_: type[Message], path: FieldPath, above: Sequence[_Above]) -> FieldPath:
    """Return the right field: inside a field next to this one, around it, or spelt like it."""
    names = _names(type_)
    beside = [name for name in names if name in _TYPE_OF and name != "matchExpressions"]
    for name in beside:
        if key in _names(_TYPE_OF[name]):
            return path / name / key
    for place in reversed(above):
        if key in place.names:
            return place.path / key
    if any(key in _names(other) for other in _TYPE_OF.values()):
        # The key is a field of another type; a similar name here would only be another mistake.
        return FieldPath()
    near = get_close_matches(key, names, 1, _SIMILAR) or [name for name in names if name.startswith(key)]
    return path / near[0] if near else FieldPath()


@cache
def _names(type_: type[Message]) -> tuple[str, ...]:
    return tuple(field.encode_name for field in msgspec.structs.fields(type_))
