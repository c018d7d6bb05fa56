"""Unknown fields: fields about spread and affinity in a manifest that the API does not have.

kube-apiserver refuses such a manifest, or drops the field where validation is not strict. Only constraints and terms
are searched, and fields with their names in other places.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import cache, lru_cache
from typing import Any, Final, NamedTuple

import msgspec

from kubectl_spread.kube.api.field import FieldPath
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
"""Maps a field to the type of its value, if all fields of the type are declared."""
_OF_POD_SPEC: Final[Mapping[str, FieldPath]] = {
    "topologySpreadConstraints": FieldPath(("topologySpreadConstraints",)),
    "affinity": FieldPath(("affinity",)),
    "podAffinity": FieldPath(("affinity", "podAffinity")),
    "podAntiAffinity": FieldPath(("affinity", "podAntiAffinity")),
    "nodeAffinity": FieldPath(("affinity", "nodeAffinity")),
}
"""Maps the fields of spread and affinity to their place in a pod spec."""
_CONTAINERS: Final = ("containers", "initContainers", "ephemeralContainers")
_MISSPELT: Final = 0.85
"""The least similarity, as difflib computes it, of a misspelt name to the right one."""
_SIMILAR: Final = 0.7
"""The least similarity where only the fields of one type are candidates."""


class UnknownField(NamedTuple):
    """A field that the API does not have; ``intended`` is the path of the right field, or empty if it is unclear.

    It is the path of the object around the field if that object is to have the fields inside it.
    """

    path: FieldPath
    intended: FieldPath


class _Above(NamedTuple):
    """An object around an unknown field: its path, and the fields that its type has."""

    path: FieldPath
    names: Sequence[str]


def unknown_fields(manifest: Mapping[str, Any], pod_spec: FieldPath) -> tuple[UnknownField, ...]:
    """Return the fields about spread and affinity that the API does not have, in their order.

    Args:
        manifest: The object as JSON values; the types of fields that the API has are right.
        pod_spec: The path of its pod spec, such as ``spec.template.spec``.
    """
    spec: Any = manifest
    for step in pod_spec:
        spec = spec.get(step) if isinstance(spec, dict) else None
    return (*_misplaced(manifest, FieldPath(), pod_spec), *_inside_pod_spec(spec or {}, pod_spec))


def unknown_in_pod_spec(spec: Mapping[str, Any], path: FieldPath) -> tuple[UnknownField, ...]:
    """Return the fields of a pod spec about spread and affinity that pods do not have, if the right one is clear.

    Args:
        spec: The pod spec as JSON values; the types of fields that pods have are right.
        path: Its path in an object whose other fields are unknown.
    """
    own = {name: value for name, value in spec.items() if name in _CONTAINERS or _spelt_alike(name)}
    fields = (*_misplaced(own, path, path), *_inside_pod_spec(spec, path))
    return tuple(field for field in fields if field.intended)


def _misplaced(value: Any, path: FieldPath, pod_spec: FieldPath) -> Iterator[UnknownField]:
    """Yield the fields with the name of a field of the pod spec, or a similar one, in other places.

    Labels and annotations of these names are strings. The search has a stack of its own because a manifest may be deep.
    """
    stack: list[tuple[FieldPath, Any]] = [(path, value)]
    while stack:
        path, value = stack.pop()
        inner = []
        for step, member in value.items() if isinstance(value, dict) else enumerate(value):
            if not isinstance(member, dict | list):
                continue
            near = _spelt_alike(step) if isinstance(step, str) else ""
            if not near:
                inner.append((path / step, member))
            elif (intended := FieldPath((*pod_spec, *_OF_POD_SPEC[near]))) != path / step:
                yield UnknownField(path / step, intended)
        stack += inner[::-1]


def _inside_pod_spec(spec: Mapping[str, Any], path: FieldPath) -> Iterator[UnknownField]:
    names = ("topologySpreadConstraints", "affinity")
    for name in names:
        yield from _inside(spec.get(name), name, path / name, (_Above(path, names),))


@lru_cache(maxsize=1024)
def _spelt_alike(key: str) -> str:
    return next(iter(get_close_matches(key, _OF_POD_SPEC, 1, _MISSPELT)), "")


def _inside(value: Any, name: str, path: FieldPath, above: tuple[_Above, ...]) -> Iterator[UnknownField]:
    if isinstance(value, list):
        for index, element in enumerate(value):
            yield from _inside(element, name, path / index, above)
    elif isinstance(value, dict):
        type_ = _TYPE_OF[name]
        names = _names(type_)
        for key, member in value.items():
            if key not in names:
                yield UnknownField(path / key, _intended(key, type_, path, above))
            elif key in _TYPE_OF:
                yield from _inside(member, key, path / key, (*above, _Above(path, names)))


def _intended(key: str, type_: type[Message], path: FieldPath, above: Sequence[_Above]) -> FieldPath:
    """Return the right field: inside a neighbouring field, in an object around this one, or spelt similarly."""
    names = _names(type_)
    if _TYPE_OF.get(key) is type_:
        return path
    neighbours = [name for name in names if name in _TYPE_OF and name != "matchExpressions"]
    for name in neighbours:
        if key in _names(_TYPE_OF[name]):
            return path / name / key
    for outer in reversed(above):
        if key in outer.names:
            return outer.path / key
    if any(key in _names(other_type) for other_type in _TYPE_OF.values()):
        # A field of another type is misplaced, not misspelt.
        return FieldPath()
    near = get_close_matches(key, names, 1, _SIMILAR) or [name for name in names if name.startswith(key)]
    return path / near[0] if near else FieldPath()


@cache
def _names(type_: type[Message]) -> tuple[str, ...]:
    return tuple(field.encode_name for field in msgspec.structs.fields(type_))
