"""The search for pod templates in an object of any kind, by their shape."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from kubectl_spread.kube.api.field import FieldPath, MapKey
from kubectl_spread.kube.api.types import TopologySpreadConstraint
from kubectl_spread.kube.custom.controllers import ANY, is_known, replicas_of
from kubectl_spread.kube.custom.objects import HeldTemplate, group_of, is_custom
from kubectl_spread.sources.decode.json_objects import MalformedFieldError
from kubectl_spread.sources.files import templateparts
from kubectl_spread.sources.files.templateparts import CONSTRAINTS, REQUIRED, has_placeholder

MOST_LEVELS: Final = 100
"""The most fields and list entries, one inside the other, that are searched."""
_OF_CONSTRAINT: Final = frozenset(field.encode_name for field in msgspec.structs.fields(TopologySpreadConstraint))
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


class _Node:
    """A value in an object, and the objects around it.

    Attributes:
        value: The value.
        above: The node around it; None for the object itself.
        step: The field or index of it in the value above.
        level: How many values are around it.
        group: The API group of the innermost object around it that has an apiVersion and a kind.
        kind: The kind of that object.
        is_object: Whether it is such an object itself.
    """

    __slots__ = ("above", "group", "is_object", "kind", "level", "step", "value")

    def __init__(self, value: Any, above: _Node | None, step: str | int, group: str, kind: str) -> None:
        self.value = value
        self.above = above
        self.step = step
        self.level: int = 0 if above is None else above.level + 1
        self.group, self.kind = group, kind
        self.is_object = above is None
        if above is not None and isinstance(value, dict):
            api_version, own_kind = value.get("apiVersion"), value.get("kind")
            if isinstance(api_version, str) and isinstance(own_kind, str):
                self.group, self.kind, self.is_object = group_of(api_version), own_kind, True

    @property
    def path(self) -> FieldPath:
        """The path of the value in the object."""
        steps: list[str | int] = []
        node = self
        while node.above is not None:
            steps.append(_step(node.step))
            node = node.above
        return FieldPath(reversed(steps))

    @property
    def around(self) -> list[Mapping[str, object]]:
        """The JSON objects around the value, the innermost first, up to the object with a kind."""
        objects: list[Mapping[str, object]] = []
        node = self.above
        while node is not None:
            if isinstance(node.value, dict):
                objects.append(node.value)
            if node.is_object:
                break
            node = node.above
        return objects


def held_templates(manifest: Mapping[str, Any], group: str, kind: str) -> Iterator[HeldTemplate]:
    """Yield the pod templates of an object, and the spread constraints that it states without a template.

    A template is any object inside it, of any depth, whose ``spec`` has containers. The object itself is not one: its
    metadata are not those of pods.

    Args:
        manifest: The object as JSON values.
        group: Its API group.
        kind: Its kind.

    Raises:
        MalformedFieldError: The object is nested too deeply, or a template of a known kind has a value of another type.
    """
    stack = [_Node(manifest, None, "", group, kind)]
    while stack:
        node = stack.pop()
        if node.level > MOST_LEVELS:
            raise MalformedFieldError((), "nested too deeply")
        value = node.value
        if isinstance(value, list):
            below: Iterator[tuple[str | int, Any]] = iter(enumerate(value))
        elif isinstance(value, dict):
            if _is_template(node):
                yield _template(node)
                continue
            if node.is_object and node.above is not None and not _may_hold(node):
                continue
            if _has_constraints(value):
                yield _constraints(node)
            below = _fields(node)
        else:
            continue
        stack += [
            _Node(member, node, step, node.group, node.kind)
            for step, member in reversed(list(below))
            if isinstance(member, dict | list)
        ]


def _may_hold(node: _Node) -> bool:
    """Tell whether an object inside the object may hold templates: a workload, or an object of a custom kind."""
    return node.group in _WORKLOADS or is_custom(f"{node.group}/") or (node.group == "" and node.kind in _CORE)


def _step(step: str | int) -> str | int:
    """Return a step as the API writes it: the key of a map in brackets."""
    plain = isinstance(step, int) or (step.isidentifier() and len(step) <= _LONGEST_NAME)
    return step if plain else MapKey(step)


def _fields(node: _Node) -> Iterator[tuple[str | int, Any]]:
    left_out = _NOT_SEARCHED if node.is_object else frozenset[str]()
    return ((name, value) for name, value in node.value.items() if name not in left_out and name != _SCHEMA)


def _is_template(node: _Node) -> bool:
    """Tell whether a value is a pod template, or a pod inside another object."""
    if node.above is None or (node.is_object and (node.group, node.kind) != ("", "Pod")):
        return False
    spec = node.value.get("spec")
    containers = spec.get("containers") if isinstance(spec, dict) else None
    return isinstance(containers, list) and bool(containers) and all(map(_is_container, containers))


def _is_container(value: Any) -> bool:
    return isinstance(value, dict) and any(isinstance(value.get(name), str) for name in _NAMES)


def _has_constraints(value: Mapping[str, Any]) -> bool:
    """Tell whether a value has a list of which one member is a spread constraint, or a placeholder for all of them."""
    constraints = value.get(CONSTRAINTS)
    if isinstance(constraints, list):
        return any(isinstance(entry, dict) and any(name in entry for name in REQUIRED) for entry in constraints)
    return isinstance(constraints, str) and has_placeholder(constraints)


def _template(node: _Node) -> HeldTemplate:
    spec, path = node.value["spec"], FieldPath((*node.path, "spec"))
    metadata = node.value.get("metadata")
    labels = metadata.get("labels") if isinstance(metadata, dict) else metadata
    try:
        parts = templateparts.of_template(labels, spec, path, strict=is_known(node.group, node.kind))
    except MalformedFieldError as error:
        raise MalformedFieldError((*path[:-1], *error.path), error.problem) from error
    return HeldTemplate(
        node.group,
        node.kind,
        path,
        parts.template,
        replicas_of(node.group, node.kind, path, node.around),
        (*ANY, *_more_labels(node)) if parts.has_more_labels else _more_labels(node),
        unknown_labels=parts.unknown_labels,
        unevaluated=parts.unevaluated,
    )


def _constraints(node: _Node) -> HeldTemplate:
    """Return the constraints of a value that is not a pod template."""
    constraints, path = node.value[CONSTRAINTS], node.path
    parts = templateparts.of_constraints(constraints, path)
    extended = tuple(
        index
        for index, entry in enumerate(constraints)
        if isinstance(entry, dict) and not _OF_CONSTRAINT.issuperset(entry)
    )
    return HeldTemplate(
        node.group,
        node.kind,
        path,
        parts.template,
        None,
        complete=False,
        extended=extended,
        unevaluated=parts.unevaluated,
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
