"""The pod templates in an object of any kind, found by their shape.

A template with a placeholder in what is evaluated is not evaluated, nor one with a value of another type where the kind
is not known. Its labels are read all the same, if they have neither.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from kubectl_spread.kube.api.field import FieldPath, MapKey
from kubectl_spread.kube.api.types import Message, TopologySpreadConstraint
from kubectl_spread.kube.api.workloads import PodTemplateSpec, TemplatePodSpec
from kubectl_spread.kube.custom import (
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

T = TypeVar("T", bound=Message)
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
_TERMS: Final = ("requiredDuringSchedulingIgnoredDuringExecution", "preferredDuringSchedulingIgnoredDuringExecution")
_EVALUATED: Final = frozenset({_CONSTRAINTS, "affinity", "nodeName", "restartPolicy", "schedulerName"})
"""The fields of a pod spec that are evaluated in a template."""
_OF_VIRTUAL_MACHINE: Final = _EVALUATED | {"nodeSelector", "tolerations"}
"""The fields that the spec of a virtual machine has in common with a pod spec."""
_PLACEHOLDERS: Final = ("{{", "${", "$(")
"""Beginnings of text that something replaces before pods are made."""
_HAS_PLACEHOLDERS: Final = "it has placeholders"


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
        MalformedFieldError: A template of a known kind has a value of another type.
        RecursionError: The object is nested too deeply.
    """
    return _search(_Node(manifest, FieldPath(), (), group, kind, is_object=True))


def confirm_rendered(manifest: Mapping[str, Any], pod_spec: FieldPath) -> None:
    """Raise for a placeholder in what is evaluated of a pod or of the pod template of a workload.

    Args:
        manifest: A pod or a workload of Kubernetes as JSON values, whose types are right.
        pod_spec: The path of the pod spec in it.

    Raises:
        MalformedFieldError: A label, or a field that decides where pods go, has a placeholder.
    """
    pod: Any = manifest
    for step in pod_spec[:-1]:
        pod = pod.get(step) or {}
    labels, spec = (pod.get("metadata") or {}).get("labels"), pod.get("spec") or {}
    fields = {name: spec[name] for name in sorted(_OF_VIRTUAL_MACHINE & spec.keys())}
    path = _placeholder({"metadata": {"labels": labels}, "spec": fields})
    if path is not None:
        raise MalformedFieldError((*pod_spec[:-1], *path), _HAS_PLACEHOLDERS)


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
    metadata = node.value.get("metadata")
    labels = metadata.get("labels") if isinstance(metadata, dict) else metadata
    parts = {"metadata": {"labels": labels}, "spec": _fields(node, strict=strict)}
    template, fault = _decoded(parts, PodTemplateSpec, node.path, strict=strict)
    if fault:
        template, _ = _decoded({"metadata": parts["metadata"]}, PodTemplateSpec, node.path)
    path = node.path / "spec"
    return HeldTemplate(
        node.group,
        node.kind,
        path,
        template,
        replicas_of(node.group, node.kind, path, node.around),
        _more_labels(node),
        _revision_anti_affinity(node),
        unevaluated=fault,
    )


def _fields(node: _Node, *, strict: bool) -> Mapping[str, Any]:
    """Return the fields of a pod spec that are read: those that are evaluated, and more of a known kind.

    A field that is not evaluated is left out if it has a placeholder.
    """
    spec = node.value["spec"]
    more = _OF_VIRTUAL_MACHINE if _is_virtual_machine(node) else spec.keys() if strict else ()
    return {
        name: value
        for name, value in spec.items()
        if name in _EVALUATED or (name in more and _placeholder(value) is None)
    }


def _constraints(node: _Node) -> HeldTemplate:
    """Return the constraints of a value that is not a pod template; a controller may set fields that they leave out."""
    constraints, path = node.value[_CONSTRAINTS], node.path / _CONSTRAINTS
    spec, fault = _decoded({_CONSTRAINTS: constraints}, TemplatePodSpec, node.path)
    fault = fault or _incomplete(constraints, path)
    indexed = () if fault else enumerate(constraints)
    return HeldTemplate(
        node.group,
        node.kind,
        node.path,
        PodTemplateSpec() if fault else PodTemplateSpec(spec=spec),
        None,
        complete=False,
        extended=tuple(index for index, entry in indexed if not _OF_CONSTRAINT.issuperset(entry)),
        unevaluated=fault,
    )


def _incomplete(constraints: Sequence[Any], path: FieldPath) -> Unevaluated | None:
    """Return the reason why constraints cannot be evaluated of which one leaves out a required field; None for none."""
    for index, entry in enumerate(constraints):
        if missing := [field for field in _REQUIRED if field not in (entry or ())]:
            problem = f"it leaves out {' and '.join(missing)}, which a controller may set"
            return Unevaluated(path / index, problem)
    return None


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
    value: Mapping[str, Any], type_: type[T], at: FieldPath, *, strict: bool = False
) -> tuple[T, Unevaluated | None]:
    """Decode what is at a path of an object; return an empty value and the reason where it cannot be evaluated.

    Raises:
        MalformedFieldError: A value has another type, in a kind that is known.
    """
    path, problem = _placeholder(value), _HAS_PLACEHOLDERS
    if path is None:
        try:
            return json_objects.decode(json.dumps(value).encode(), type_), None
        except MalformedFieldError as error:
            path, problem = error.path, error.problem
            if strict:
                raise MalformedFieldError((*at, *path), problem) from error
    return type_(), Unevaluated(json_objects.field_path((*at, *path)), problem)


def _placeholder(value: Any, path: Path = ()) -> Path | None:
    """Return the path of the first text or key in a value that has a placeholder."""
    if _has_placeholder(value):
        return path
    members = value.items() if isinstance(value, dict) else enumerate(value if isinstance(value, list) else ())
    for step, member in members:
        below = (*path, step)
        inner = below if _has_placeholder(step) else _placeholder(member, below)
        if inner is not None:
            return inner
    return None
