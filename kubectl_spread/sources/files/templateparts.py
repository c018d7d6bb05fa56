"""The parts of a pod template that are evaluated, without those that cannot be: placeholders, and wrong types."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from kubectl_spread.kube.api import labels as labelselectors
from kubectl_spread.kube.api.affinity import affinity_terms
from kubectl_spread.kube.api.field import FieldPath, MapKey
from kubectl_spread.kube.api.types import (
    Message,
    ObjectMeta,
    PodAffinityTerm,
    PodSpec,
    TopologySpreadConstraint,
    WeightedPodAffinityTerm,
    WhenUnsatisfiable,
)
from kubectl_spread.kube.api.workloads import PodTemplateSpec
from kubectl_spread.kube.custom.objects import Unevaluated
from kubectl_spread.sources.decode import json_objects
from kubectl_spread.sources.decode.json_objects import MalformedFieldError, T

CONSTRAINTS: Final = "topologySpreadConstraints"
REQUIRED: Final = ("maxSkew", "topologyKey", "whenUnsatisfiable")
"""The fields that every spread constraint has."""
_AFFINITY: Final = "affinity"
_SIDES: Final = ("podAffinity", "podAntiAffinity")
_REQUIRED_TERMS: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED_TERMS: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_TYPES: Final[Mapping[str, type[Message]]] = {
    CONSTRAINTS: TopologySpreadConstraint,
    _REQUIRED_TERMS: PodAffinityTerm,
    _PREFERRED_TERMS: WeightedPodAffinityTerm,
}
_EVALUATED: Final = frozenset({CONSTRAINTS, _AFFINITY, "nodeName", "restartPolicy", "schedulerName"})
"""The fields of a pod spec that are evaluated in a template."""
_PLACEHOLDERS: Final = ("{{", "${", "$(")
"""Beginnings of text that something replaces before pods are made."""
_HAS_PLACEHOLDERS: Final = "it has placeholders"
_STAND_IN: Final = "unevaluated"
"""The topology key of what is in the place of a part that cannot be evaluated; nothing is wrong with it."""


class TemplateParts(msgspec.Struct, frozen=True):
    """The parts of a template that can be evaluated, and the others.

    Attributes:
        template: The template with the former.
        unknown_labels: The labels whose values are unknown.
        has_more_labels: Whether it may have labels that are not known at all.
        unevaluated: The parts that cannot be evaluated.
    """

    template: PodTemplateSpec
    unknown_labels: tuple[str, ...] = ()
    has_more_labels: bool = False
    unevaluated: tuple[Unevaluated, ...] = ()


def has_placeholder(value: Any) -> bool:
    """Tell whether a value has text that something replaces before pods are made."""
    text = json.dumps(value)
    return any(placeholder in text for placeholder in _PLACEHOLDERS)


def of_template(labels: Any, spec: Mapping[str, Any], path: FieldPath, *, strict: bool) -> TemplateParts:
    """Return the parts of a pod template.

    Args:
        labels: Its labels, of any JSON type.
        spec: Its pod spec.
        path: The path of the pod spec.
        strict: Whether a value of another type is an error, as where the kind is known to have templates of the API.

    Raises:
        MalformedFieldError: A value has another type, where that is an error; its path begins in the template.
    """
    reader = _Reader(strict=strict)
    known_labels, unknown = reader.labels(labels)
    parts = {"metadata": {"labels": known_labels}, "spec": dict(reader.fields(spec, path))}
    template = _decoded(parts, PodTemplateSpec)
    selected = frozenset(_selected_keys(template.spec))
    labels_path = FieldPath((*path[:-1], "metadata", "labels"))
    for key in sorted(selected & unknown.keys()):
        reader.leave_out(labels_path / MapKey(key), f"{unknown[key]}, and a selector names it")
    missing = sorted(selected - unknown.keys() - template.metadata.labels.keys())
    if reader.has_more_labels and missing:
        reader.leave_out(labels_path, f"they may have {missing[0]}, which a selector names")
    return TemplateParts(template, tuple(unknown), reader.has_more_labels, tuple(reader.unevaluated))


def of_constraints(constraints: Any, path: FieldPath) -> TemplateParts:
    """Return the parts of spread constraints that an object states without a template.

    Args:
        constraints: The constraints, or a placeholder for all of them. A controller may set fields that they leave out.
        path: The path of the field around them.
    """
    reader = _Reader(strict=False, required=REQUIRED)
    parts = {"spec": dict(reader.fields({CONSTRAINTS: constraints}, path))}
    template = _decoded(parts, PodTemplateSpec)
    return TemplateParts(template, unevaluated=tuple(reader.unevaluated))


class _Reader:
    """Reads the parts of one template, and collects those that cannot be evaluated.

    Attributes:
        unevaluated: The parts that cannot be evaluated.
        has_more_labels: Whether the template may have labels that are not known at all.
    """

    def __init__(self, *, strict: bool, required: tuple[str, ...] = ()) -> None:
        self.unevaluated: list[Unevaluated] = []
        self.has_more_labels = False
        self._strict = strict
        self._required = required

    def leave_out(self, path: FieldPath, reason: str) -> None:
        self.unevaluated.append(Unevaluated(path, reason))

    def labels(self, labels: Any) -> tuple[Any, dict[str, str]]:
        """Return the labels with known values, and the others with the reason why their values are unknown."""
        if not isinstance(labels, dict):
            self.has_more_labels = bool(self._fault({"labels": labels}, ObjectMeta, 1))
            return None if self.has_more_labels else labels, {}
        self.has_more_labels = has_placeholder(list(labels))
        values = {key: value for key, value in labels.items() if not has_placeholder(key)}
        faults = {key: self._fault({"labels": {key: value}}, ObjectMeta, 2) for key, value in values.items()}
        unknown = {key: fault for key, fault in faults.items() if fault}
        return {key: value for key, value in values.items() if key not in unknown}, unknown

    def fields(self, spec: Mapping[str, Any], path: FieldPath) -> Iterator[tuple[str, Any]]:
        """Yield the fields of a pod spec; where types may differ, only those that are evaluated."""
        for name, value in spec.items():
            if name in _EVALUATED:
                part = self._without_faulty_terms(name, value, path / name)
                fault = self._fault({name: part}, PodSpec, 1)
                if not fault:
                    yield name, part
                    continue
                self.leave_out(path / name, fault)
                if name in _STAND_INS:
                    yield name, _STAND_INS[name]
            elif self._strict and not has_placeholder(value):
                yield name, value

    def _without_faulty_terms(self, name: str, value: Any, path: FieldPath) -> Any:
        """Return a value of a pod spec in which terms that cannot be evaluated are replaced."""
        if name in _TYPES and isinstance(value, list):
            return [self._term(name, index, term, path / index) for index, term in enumerate(value)]
        if name in (_AFFINITY, *_SIDES) and isinstance(value, dict):
            return {
                field: self._without_faulty_terms(field, part, path / field)
                for field, part in value.items()
                if field in (*_SIDES, *_TYPES) or (self._strict and not has_placeholder(part))
            }
        return value

    def _term(self, name: str, index: int, term: Any, path: FieldPath) -> Any:
        missing = [field for field in self._required if isinstance(term, dict) and field not in term]
        if missing:
            fault = f"it leaves out {' and '.join(missing)}, which a controller may set"
        else:
            fault = self._fault(term, _TYPES[name])
        if not fault:
            return term
        self.leave_out(path, fault)
        return _stand_in(name, index)

    def _fault(self, value: Any, type_: type[Message], level: int = 0) -> str:
        """Return why a value cannot be evaluated, or ""; fields are named as they are from a level in it on."""
        if has_placeholder(value):
            return _HAS_PLACEHOLDERS
        if self._strict:
            return ""
        try:
            _decoded(value, type_)
        except MalformedFieldError as error:
            path = error.path[level:]
            return f"{json_objects.format_path(path)}: {error.problem}" if path else error.problem
        return ""


def _stand_in(name: str, index: int) -> Mapping[str, Any]:
    """Return a term of a list with which nothing is wrong, and which is like no other."""
    key = f"{_STAND_IN}-{index}"
    if name == CONSTRAINTS:
        return {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": WhenUnsatisfiable.SCHEDULE_ANYWAY}
    term = {"topologyKey": key}
    return {"weight": 1, "podAffinityTerm": term} if name == _PREFERRED_TERMS else term


_STAND_INS: Final[Mapping[str, Any]] = {
    CONSTRAINTS: [_stand_in(CONSTRAINTS, 0)],
    _AFFINITY: {"podAntiAffinity": {_REQUIRED_TERMS: [_stand_in(_REQUIRED_TERMS, 0)]}},
}
"""What is in the place of a whole field, so that nobody concludes that nothing spreads the pods."""


def _selected_keys(spec: PodSpec) -> Iterator[str]:
    """Yield the labels that the selectors of a pod spec name."""
    selectors = [constraint.label_selector for constraint in spec.topology_spread_constraints]
    selectors += [term.label_selector for _, term, _ in affinity_terms(spec)]
    for selector in selectors:
        if selector is not None:
            yield from labelselectors.keys(selector)


def _decoded(value: Any, type_: type[T]) -> T:
    try:
        return json_objects.decode(json.dumps(value).encode(), type_)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise MalformedFieldError((), str(error)) from error
