"""The pod templates in an object of any kind, found by their shape, with the parts of them that can be evaluated.

Placeholders cannot be evaluated, nor values of another type where the kind is not known.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from kubectl_spread.kube.api import labels as labelselectors
from kubectl_spread.kube.api.field import FieldPath, MapKey
from kubectl_spread.kube.api.types import (
    Message,
    ObjectMeta,
    PodAffinityTerm,
    PodSpec,
    TopologySpreadConstraint,
    WeightedPodAffinityTerm,
    WhenUnsatisfiable,
    affinity_terms,
)
from kubectl_spread.kube.api.workloads import PodTemplateSpec
from kubectl_spread.kube.custom import (
    ANY,
    HeldTemplate,
    Unevaluated,
    group_of,
    is_custom,
    is_known,
    replicas_of,
)
from kubectl_spread.sources.decode import json_objects
from kubectl_spread.sources.decode.json_objects import MalformedFieldError, T

_NAMES: Final = ("name", "image")
"""Fields that each container has, at least one of them: Knative needs no names."""
_SCHEMA: Final = "openAPIV3Schema"
_NOT_SEARCHED: Final = frozenset({"metadata", "status"})
"""Fields of an object that describe no pods of it."""
_WORKLOADS: Final = frozenset({"apps", "batch"})
"""The groups of Kubernetes that have only workloads, and few other kinds."""
_CORE: Final = ("List", "PodTemplate", "ReplicationController")
"""The kinds of the group without a name, besides pods, that may hold templates."""
_LONGEST_NAME: Final = 63
_STRATEGIES: Final = ("canary", "blueGreen")
_CONSTRAINTS: Final = "topologySpreadConstraints"
_OF_CONSTRAINT: Final = frozenset(field.encode_name for field in msgspec.structs.fields(TopologySpreadConstraint))
_REQUIRED: Final = ("maxSkew", "topologyKey", "whenUnsatisfiable")
"""The fields that every spread constraint has."""
_AFFINITY: Final = "affinity"
_SIDES: Final = ("podAffinity", "podAntiAffinity")
_REQUIRED_TERMS: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED_TERMS: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_TYPES: Final[Mapping[str, type[Message]]] = {
    _CONSTRAINTS: TopologySpreadConstraint,
    _REQUIRED_TERMS: PodAffinityTerm,
    _PREFERRED_TERMS: WeightedPodAffinityTerm,
}
_EVALUATED: Final = frozenset({_CONSTRAINTS, _AFFINITY, "nodeName", "restartPolicy", "schedulerName"})
"""The fields of a pod spec that are evaluated in a template."""
_PLACEHOLDERS: Final = ("{{", "${", "$(")
"""Beginnings of text that something replaces before pods are made."""
_HAS_PLACEHOLDERS: Final = "it has placeholders"
_STAND_IN: Final = "unevaluated"
"""The topology key of what is in the place of a part that cannot be evaluated; nothing is wrong with it."""


class _Node(NamedTuple):
    """A value in an object.

    Attributes:
        value: The value.
        path: Its path in the object.
        around: The JSON objects around it, the innermost first, up to the object with a kind.
        group: The API group of the innermost object around it, or of itself, that has an apiVersion and a kind.
        kind: The kind of that object.
        is_object: Whether it is such an object itself.
    """

    value: Any
    path: FieldPath
    around: tuple[Mapping[str, Any], ...]
    group: str
    kind: str
    is_object: bool

    def below(self, step: str | int, value: Any) -> _Node:
        """Return a value in this value."""
        around = () if self.is_object else self.around
        around = (self.value, *around) if isinstance(self.value, dict) else around
        # The API writes the key of a map in brackets.
        is_name = isinstance(step, int) or (step.isidentifier() and len(step) <= _LONGEST_NAME)
        path = self.path / (step if is_name else MapKey(step))
        if isinstance(value, dict):
            api_version, kind = value.get("apiVersion"), value.get("kind")
            if isinstance(api_version, str) and isinstance(kind, str):
                return _Node(value, path, around, group_of(api_version), kind, is_object=True)
        return _Node(value, path, around, self.group, self.kind, is_object=False)


def held_templates(manifest: Mapping[str, Any], group: str, kind: str) -> Iterator[HeldTemplate]:
    """Yield the pod templates of an object, and the spread constraints that it states without a template.

    A template is any object inside it, of any depth, whose ``spec`` has containers. The object itself is not one: its
    metadata are not those of pods.

    Args:
        manifest: The object as JSON values.
        group: Its API group.
        kind: Its kind.

    Raises:
        MalformedFieldError: A template of a known kind has a value of another type.
        RecursionError: The object is nested too deeply.
    """
    return _search(_Node(manifest, FieldPath(), (), group, kind, is_object=True))


def _search(node: _Node) -> Iterator[HeldTemplate]:
    value = node.value
    members: Iterator[tuple[str | int, Any]] = iter(enumerate(value))
    if isinstance(value, dict):
        if _is_template(node):
            yield _template(node)
            return
        if node.is_object and node.path and not _may_hold(node):
            return
        if _has_constraints(value):
            yield _constraints(node)
        left_out = {_SCHEMA, *(_NOT_SEARCHED if node.is_object else ())}
        members = ((name, field) for name, field in value.items() if name not in left_out)
    for step, member in members:
        if isinstance(member, dict | list):
            yield from _search(node.below(step, member))


def _may_hold(node: _Node) -> bool:
    """Tell whether an object inside the object may hold templates: a workload, or an object of a custom kind."""
    return node.group in _WORKLOADS or is_custom(f"{node.group}/") or (node.group == "" and node.kind in _CORE)


def _is_template(node: _Node) -> bool:
    if not node.path or (node.is_object and (node.group, node.kind) != ("", "Pod")):
        return False
    spec = node.value.get("spec")
    containers = spec.get("containers") if isinstance(spec, dict) else None
    return isinstance(containers, list) and bool(containers) and all(map(_is_container, containers))


def _is_container(value: Any) -> bool:
    return isinstance(value, dict) and any(isinstance(value.get(name), str) for name in _NAMES)


def _has_constraints(value: Mapping[str, Any]) -> bool:
    """Tell whether a value has a list of which one member is a spread constraint, or a placeholder for all of them."""
    constraints = value.get(_CONSTRAINTS)
    if isinstance(constraints, list):
        return any(isinstance(entry, dict) and any(name in entry for name in _REQUIRED) for entry in constraints)
    return isinstance(constraints, str) and _has_placeholder(constraints)


def _template(node: _Node) -> HeldTemplate:
    spec, path = node.value["spec"], node.path / "spec"
    metadata = node.value.get("metadata")
    reader = _Reader(strict=is_known(node.group, node.kind))
    try:
        labels, unknown = reader.labels(metadata.get("labels") if isinstance(metadata, dict) else metadata)
        parts = {"metadata": {"labels": labels}, "spec": dict(reader.fields(spec, path))}
        template = _decoded(parts, PodTemplateSpec)
    except MalformedFieldError as error:
        raise MalformedFieldError((*node.path, *error.path), error.problem) from error
    reader.leave_out_labels(template, unknown, node.path / "metadata" / "labels")
    more = (*(ANY if reader.has_more_labels else ()), *_more_labels(node))
    replicas = replicas_of(node.group, node.kind, path, node.around)
    unevaluated = tuple(reader.unevaluated)
    return HeldTemplate(
        node.group, node.kind, path, template, replicas, more, unknown_labels=tuple(unknown), unevaluated=unevaluated
    )


def _constraints(node: _Node) -> HeldTemplate:
    """Return the constraints of a value that is not a pod template; a controller may set fields that they leave out."""
    constraints = node.value[_CONSTRAINTS]
    reader = _Reader(required=_REQUIRED)
    template = _decoded({"spec": dict(reader.fields({_CONSTRAINTS: constraints}, node.path))}, PodTemplateSpec)
    extended = tuple(
        index
        for index, entry in enumerate(constraints)
        if isinstance(entry, dict) and not _OF_CONSTRAINT.issuperset(entry)
    )
    return HeldTemplate(
        node.group,
        node.kind,
        node.path,
        template,
        None,
        complete=False,
        extended=extended,
        unevaluated=tuple(reader.unevaluated),
    )


def _more_labels(node: _Node) -> tuple[str, ...]:
    """Return the labels that a Rollout sets on the pods of one of its revisions.

    Source: argoproj/argo-rollouts pkg/apis/rollouts/v1alpha1/types.go, PodTemplateMetadata.
    """
    strategy: Any = node.around[0].get("strategy") if node.kind == "Rollout" and node.around else None
    labels: set[str] = set()
    for name in _STRATEGIES if isinstance(strategy, dict) else ():
        steps = strategy.get(name)
        for field, value in steps.items() if isinstance(steps, dict) else ():
            more = value.get("labels") if field.endswith("Metadata") and isinstance(value, dict) else None
            labels.update(more if isinstance(more, dict) else ())
    return tuple(sorted(labels))


def _has_placeholder(value: Any) -> bool:
    """Tell whether a value has text that something replaces before pods are made."""
    text = json.dumps(value)
    return any(placeholder in text for placeholder in _PLACEHOLDERS)


class _Reader:
    """Reads the parts of one template, and collects those that cannot be evaluated.

    Attributes:
        unevaluated: The parts that cannot be evaluated.
        has_more_labels: Whether the template may have labels that are not known at all.
    """

    def __init__(self, *, strict: bool = False, required: tuple[str, ...] = ()) -> None:
        self.unevaluated: list[Unevaluated] = []
        self.has_more_labels = False
        self._strict = strict
        self._required = required

    def leave_out(self, path: FieldPath, reason: str) -> None:
        self.unevaluated.append(Unevaluated(path, reason))

    def leave_out_labels(self, template: PodTemplateSpec, unknown: Mapping[str, str], path: FieldPath) -> None:
        """Leave out the labels that selectors of the template name, and whose values or presence are unknown."""
        selected = frozenset(_selected_keys(template.spec))
        for key in sorted(selected & unknown.keys()):
            self.leave_out(path / MapKey(key), f"{unknown[key]}, and a selector names it")
        missing = sorted(selected - unknown.keys() - template.metadata.labels.keys())
        if self.has_more_labels and missing:
            self.leave_out(path, f"they may have {missing[0]}, which a selector names")

    def labels(self, labels: Any) -> tuple[Any, dict[str, str]]:
        """Return the labels with known values, and the others with the reason why their values are unknown."""
        if not isinstance(labels, dict):
            self.has_more_labels = bool(self._fault({"labels": labels}, ObjectMeta, 1))
            return None if self.has_more_labels else labels, {}
        self.has_more_labels = _has_placeholder(list(labels))
        values = {key: value for key, value in labels.items() if not _has_placeholder(key)}
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
            elif self._strict and not _has_placeholder(value):
                yield name, value

    def _without_faulty_terms(self, name: str, value: Any, path: FieldPath) -> Any:
        """Return a value of a pod spec in which terms that cannot be evaluated are replaced."""
        if name in _TYPES and isinstance(value, list):
            return [self._term(name, index, term, path / index) for index, term in enumerate(value)]
        if name in (_AFFINITY, *_SIDES) and isinstance(value, dict):
            return {
                field: self._without_faulty_terms(field, part, path / field)
                for field, part in value.items()
                if field in (*_SIDES, *_TYPES) or (self._strict and not _has_placeholder(part))
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
        if _has_placeholder(value):
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
    if name == _CONSTRAINTS:
        return {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": WhenUnsatisfiable.SCHEDULE_ANYWAY}
    term = {"topologyKey": key}
    return {"weight": 1, "podAffinityTerm": term} if name == _PREFERRED_TERMS else term


_STAND_INS: Final[Mapping[str, Any]] = {
    _CONSTRAINTS: [_stand_in(_CONSTRAINTS, 0)],
    _AFFINITY: {"podAntiAffinity": {_REQUIRED_TERMS: [_stand_in(_REQUIRED_TERMS, 0)]}},
}
"""What is in the place of a whole field, so that nobody concludes that nothing spreads the pods."""


def _selected_keys(spec: PodSpec) -> Iterator[str]:
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
