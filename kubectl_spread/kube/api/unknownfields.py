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
    near = list(_near_pod_spec(manifest, pod_spec))
    reported = {field.path for field in near}
    return (*near, *(field for field in _elsewhere(manifest, pod_spec) if field.path not in reported))


def unknown_in_pod_spec(spec: Mapping[str, Any], path: FieldPath) -> tuple[UnknownField, ...]:
    """Return the fields of a pod spec about spread and affinity that pods do not have, if the right one is clear.

    Args:
        spec: The pod spec as JSON values; the types of fields that pods have are right.
        path: Its path in an object whose other fields are unknown.
    """
    return tuple(field for field in _of_pod_spec(spec, path) if field.intended)


def _near_pod_spec(manifest: Mapping[str, Any], pod_spec: FieldPath) -> Iterator[UnknownField]:
    """Yield the unknown fields of the pod spec and of the objects around it."""
    outer: Any = manifest
    path = FieldPath()
    for step in pod_spec:
        yield from _misplaced(outer, path, pod_spec)
        yield from _misplaced(outer.get("metadata"), path / "metadata", pod_spec)
        outer, path = outer.get(step), path / step
        if not isinstance(outer, dict):
            return
    yield from _of_pod_spec(outer, pod_spec)


def _elsewhere(manifest: Mapping[str, Any], pod_spec: FieldPath) -> Iterator[UnknownField]:
    """Yield the fields of a pod spec in other places, as below a misspelt template, if their values have objects.

    Labels and annotations of these names are strings. The search has a stack of its own because a manifest may be deep.
    """
    stack: list[tuple[FieldPath, Any]] = [(FieldPath(), manifest)]
    while stack:
        path, value = stack.pop()
        if isinstance(value, list):
            stack += [(path / index, element) for index, element in enumerate(value)][::-1]
        elif isinstance(value, dict):
            for key in value if path != pod_spec else ():
                if key in _OF_POD_SPEC and _holds_objects(value[key]):
                    yield UnknownField(path / key, FieldPath((*pod_spec, *_OF_POD_SPEC[key])))
            stack += [(path / key, member) for key, member in value.items() if key not in _OF_POD_SPEC][::-1]


def _holds_objects(value: Any) -> bool:
    elements = value if isinstance(value, list) else [value]
    return any(isinstance(element, dict) and element for element in elements)


def _of_pod_spec(spec: Mapping[str, Any], path: FieldPath) -> Iterator[UnknownField]:
    names = ("topologySpreadConstraints", "affinity")
    yield from (field for field in _misplaced(spec, path, path) if field.intended != field.path)
    for name in _CONTAINERS:
        containers = spec.get(name)
        for index, container in enumerate(containers if isinstance(containers, list) else ()):
            yield from _misplaced(container, path / name / index, path)
    for name in names:
        yield from _inside(spec.get(name), name, path / name, (_Above(path, names),))


def _misplaced(value: Any, path: FieldPath, pod_spec: FieldPath) -> Iterator[UnknownField]:
    for key in value if isinstance(value, dict) else ():
        if near := _spelt_alike(key):
            yield UnknownField(path / key, FieldPath((*pod_spec, *_OF_POD_SPEC[near])))


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
