"""The pod templates in an object of any kind, found by their shape, with the parts of them that can be evaluated.

Placeholders cannot be evaluated, nor values of another type where the kind is not known.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from typing import Any, Final, NamedTuple

import msgspec

from kubectl_spread.kube.api import labels as labelselectors
from kubectl_spread.kube.api.field import FieldPath, MapKey
from kubectl_spread.kube.api.types import PodSpec, TopologySpreadConstraint, WhenUnsatisfiable, affinity_terms
from kubectl_spread.kube.api.workloads import PodTemplateSpec
from kubectl_spread.kube.custom import (
    ANY,
    HeldTemplate,
    Unevaluated,
    group_of,
    is_custom,
    is_known,
    replicas_of,
    runs_virtual_machines,
)
from kubectl_spread.sources.decode import json_objects
from kubectl_spread.sources.decode.json_objects import MalformedFieldError, Path

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
_NODE_AFFINITY: Final = "nodeAffinity"
_REQUIRED_TERMS: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED_TERMS: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_TERMS: Final = (_REQUIRED_TERMS, _PREFERRED_TERMS)
_LABELS: Final = ("metadata", "labels")
_EVALUATED: Final = frozenset({_CONSTRAINTS, _AFFINITY, "nodeName", "restartPolicy", "schedulerName"})
"""The fields of a pod spec that are evaluated in a template."""
_OF_VIRTUAL_MACHINE: Final = _EVALUATED | {"nodeSelector", "tolerations"}
"""The fields that the spec of a virtual machine has in common with a pod spec."""
_PLACEHOLDERS: Final = ("{{", "${", "$(")
"""Beginnings of text that something replaces before pods are made."""
_HAS_PLACEHOLDERS: Final = "it has placeholders"
_MOST_FAULTS: Final = 100
"""The most values of another type that are left out of one template."""
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

    A template is any object inside it, of any depth, whose ``spec`` has containers or describes a virtual machine. The
    object itself is not one: its metadata are not those of pods, except for those of a virtual machine instance.

    Args:
        manifest: The object as JSON values.
        group: Its API group.
        kind: Its kind.

    Raises:
        MalformedFieldError: A template of a known kind has a value of another type, or another one has very many.
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
    if _is_virtual_machine(node):
        return True
    if not node.path or (node.is_object and (node.group, node.kind) != ("", "Pod")):
        return False
    spec = node.value.get("spec")
    containers = spec.get("containers") if isinstance(spec, dict) else None
    return isinstance(containers, list) and bool(containers) and all(map(_is_container, containers))


def _is_virtual_machine(node: _Node) -> bool:
    """Tell whether a value describes a virtual machine of KubeVirt, alone or in a template of any kind."""
    spec = node.value.get("spec")
    if not isinstance(spec, dict):
        return False
    if runs_virtual_machines(node.group, node.kind):
        return node.is_object if node.kind == "VirtualMachineInstance" else node.path[-1:] == ("template",)
    domain = spec.get("domain")
    return bool(node.path) and isinstance(domain, dict) and isinstance(domain.get("devices"), dict)


def _is_container(value: Any) -> bool:
    return isinstance(value, dict) and any(isinstance(value.get(name), str) for name in _NAMES)


def _has_constraints(value: Mapping[str, Any]) -> bool:
    """Tell whether a value has a list of which one member is a spread constraint, or a placeholder for all of them."""
    constraints = value.get(_CONSTRAINTS)
    if isinstance(constraints, list):
        return any(isinstance(entry, dict) and any(name in entry for name in _REQUIRED) for entry in constraints)
    return _has_placeholder(constraints)


def _template(node: _Node) -> HeldTemplate:
    strict = is_known(node.group, node.kind)
    spec, metadata = node.value["spec"], node.value.get("metadata")
    if _is_virtual_machine(node):
        evaluated = {name: value for name, value in spec.items() if name in _OF_VIRTUAL_MACHINE}
    else:
        evaluated = spec if strict else _evaluated_fields(spec)
    parts = {
        "metadata": {"labels": metadata.get("labels")} if isinstance(metadata, dict) else metadata,
        "spec": evaluated,
    }
    try:
        template, left_out = _decoded(parts, strict=strict)
    except MalformedFieldError as error:
        raise MalformedFieldError((*node.path, *error.path), error.problem) from error
    unevaluated = [
        Unevaluated(FieldPath((*node.path, *path)), reason)
        for path, reason in left_out.items()
        if path[0] == "spec" and path[1] in _EVALUATED and path[2:3] != (_NODE_AFFINITY,)
    ]
    names = {path[-1]: reason for path, reason in left_out.items() if path[:2] == _LABELS and len(path) > len(_LABELS)}
    unknown = {str(name): reason for name, reason in names.items() if not _has_placeholder(name)}
    has_more = len(unknown) < sum(path[0] == "metadata" for path in left_out)
    # Selectors of the template name labels whose values or presence may be unknown.
    selected, labels = frozenset(_selected_keys(template.spec)), FieldPath((*node.path, *_LABELS))
    unevaluated += [
        Unevaluated(labels / MapKey(key), f"{unknown[key]}, and a selector names it")
        for key in sorted(selected & unknown.keys())
    ]
    missing = sorted(selected - unknown.keys() - template.metadata.labels.keys())
    if has_more and missing:
        unevaluated.append(Unevaluated(labels, f"they may have {missing[0]}, which a selector names"))
    path = node.path / "spec"
    return HeldTemplate(
        node.group,
        node.kind,
        path,
        template,
        replicas_of(node.group, node.kind, path, node.around),
        (*(ANY if has_more else ()), *_more_labels(node)),
        _revision_anti_affinity(node),
        unknown_labels=tuple(unknown),
        unevaluated=tuple(unevaluated),
    )


def _evaluated_fields(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a pod spec that are evaluated, for a kind whose other fields may have other types."""
    fields = {name: value for name, value in spec.items() if name in _EVALUATED}
    if isinstance(affinity := fields.get(_AFFINITY), dict):
        fields[_AFFINITY] = {side: terms for side, terms in affinity.items() if side != _NODE_AFFINITY}
    return fields


def _constraints(node: _Node) -> HeldTemplate:
    """Return the constraints of a value that is not a pod template; a controller may set fields that they leave out."""
    constraints = node.value[_CONSTRAINTS]
    template, left_out = _decoded({"spec": {_CONSTRAINTS: constraints}}, required=_REQUIRED)
    extended = tuple(
        index
        for index, entry in enumerate(constraints)
        if isinstance(entry, dict) and not _OF_CONSTRAINT.issuperset(entry)
    )
    unevaluated = tuple(Unevaluated(FieldPath((*node.path, *path[1:])), reason) for path, reason in left_out.items())
    return HeldTemplate(
        node.group,
        node.kind,
        node.path,
        template,
        None,
        complete=False,
        extended=extended,
        unevaluated=unevaluated,
    )


def _more_labels(node: _Node) -> tuple[str, ...]:
    """Return the labels that a Rollout sets on the pods of one of its revisions.

    Source: argoproj/argo-rollouts pkg/apis/rollouts/v1alpha1/types.go, PodTemplateMetadata.
    """
    labels: set[str] = set()
    for steps in _strategies(node).values():
        for field, value in steps.items():
            more = value.get("labels") if field.endswith("Metadata") and isinstance(value, dict) else None
            labels.update(more if isinstance(more, dict) else ())
    return tuple(sorted(labels))


def _revision_anti_affinity(node: _Node) -> FieldPath:
    """Return the path of the field of a Rollout that keeps pods of a new revision from nodes with stable pods.

    Source: argoproj/argo-rollouts utils/replicaset/replicaset.go, GetRolloutAffinity.
    """
    for name, steps in _strategies(node).items():
        terms = steps.get("antiAffinity")
        if isinstance(terms, dict) and any(isinstance(terms.get(term), dict) for term in _TERMS):
            return FieldPath((*node.path[:-1], "strategy", name, "antiAffinity"))
    return FieldPath()


def _strategies(node: _Node) -> Mapping[str, Mapping[str, Any]]:
    """Return the strategies of a Rollout by name; none of other kinds."""
    strategy: Any = node.around[0].get("strategy") if node.kind == "Rollout" and node.around else None
    names = _STRATEGIES if isinstance(strategy, dict) else ()
    return {name: strategy[name] for name in names if isinstance(strategy.get(name), dict)}


def _has_placeholder(value: object) -> bool:
    """Tell whether a value is a text of which something replaces a part before pods are made."""
    return isinstance(value, str) and any(placeholder in value for placeholder in _PLACEHOLDERS)


def _decoded(
    value: Mapping[str, Any], *, strict: bool = False, required: Sequence[str] = ()
) -> tuple[PodTemplateSpec, dict[Path, str]]:
    """Decode a template, without the parts that cannot be evaluated.

    Args:
        value: The template as JSON values.
        strict: Whether a value of another type is an error; otherwise the part with it is left out, if there are few.
        required: The fields without which a spread constraint cannot be evaluated.

    Returns:
        The template, and the paths of what was left out or replaced in it, with the reasons.

    Raises:
        MalformedFieldError: A value has another type, and is not left out.
    """
    value = deepcopy(value)
    left_out: dict[Path, str] = {}
    constraints = value["spec"].get(_CONSTRAINTS)
    for index, constraint in enumerate(constraints if required and isinstance(constraints, list) else ()):
        missing = [field for field in required if isinstance(constraint, dict) and field not in constraint]
        if missing:
            reason = f"it leaves out {' and '.join(missing)}, which a controller may set"
            left_out["spec", _CONSTRAINTS, index] = reason
    for path in _placeholders(value):
        left_out.setdefault(_part(path), _HAS_PLACEHOLDERS)
    for path in sorted(left_out, key=len, reverse=True):
        _leave_out(value, path)
    faults = 0
    while True:
        try:
            template = json_objects.decode(json.dumps(value).encode(), PodTemplateSpec)
            return template, dict(sorted(left_out.items()))
        except MalformedFieldError as error:
            faults += 1
            if strict or faults > _MOST_FAULTS:
                raise
            path = _part(error.path)
            inner = error.path[len(path) :]
            left_out[path] = f"{json_objects.format_path(inner)}: {error.problem}" if inner else error.problem
            _leave_out(value, path)


def _placeholders(value: Any, path: Path = ()) -> Iterator[Path]:
    """Yield the paths of all texts and keys in a value that have placeholders."""
    if _has_placeholder(value):
        yield path
    members = value.items() if isinstance(value, dict) else enumerate(value if isinstance(value, list) else ())
    for step, member in members:
        if _has_placeholder(step):
            yield (*path, step)
        yield from _placeholders(member, (*path, step))


def _part(path: Path) -> Path:
    """Return the path of what is left out of a template for a fault at ``path``: a label, a term, or a field."""
    match path:
        case ("metadata", "labels", _, *_) | ("spec", "topologySpreadConstraints", int(), *_):
            return path[:3]
        case ("spec", "affinity", "podAffinity" | "podAntiAffinity", terms, int(), *_) if terms in _TERMS:
            return path[:5]
        case ("spec", "affinity", "nodeAffinity", *_):
            return path[:3]
    return path[:2]


def _leave_out(value: Any, path: Path) -> None:
    """Remove a part of a template, or replace it with one that nothing is wrong with."""
    *before, name = path
    for step in before:
        value = value[step]
    if isinstance(name, int):
        value[name] = _stand_in(str(before[-1]), name)
    elif name in _STAND_INS:
        value[name] = _STAND_INS[name]
    else:
        del value[name]


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
