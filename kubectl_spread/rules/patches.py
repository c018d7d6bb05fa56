"""Operations of JSON patches that correct a term in the pod template of a workload.

Each patch starts with ``test`` operations, so that the API server refuses it if the object has changed since.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from kubectl_spread.audit.snapshot.revisions import revision_key_of
from kubectl_spread.audit.snapshot.templates import Template
from kubectl_spread.audit.snapshot.terms import TopologyTerm
from kubectl_spread.kube.api.field import FieldPath, steps_of
from kubectl_spread.kube.api.types import LabelSelector, WhenUnsatisfiable
from kubectl_spread.kube.api.workloads import PodTemplateSpec
from kubectl_spread.report.model import Operation

KEY_LISTS: Final[Mapping[str, Callable[[TopologyTerm], tuple[str, ...]]]] = {
    "matchLabelKeys": lambda term: term.match_label_keys,
    "mismatchLabelKeys": lambda term: term.mismatch_label_keys,
}
"""Maps the name of each list of label keys to its entries in a term."""


def test(path: FieldPath, value: Any) -> Operation:
    """Return the operation that fails unless a field has a value."""
    return Operation(op="test", path=path.pointer, value=value)


def replaced(path: FieldPath, old: Any, new: Any) -> tuple[Operation, ...]:
    """Return operations that replace the value of a field."""
    return test(path, old), Operation(op="replace", path=path.pointer, value=new)


def removed(path: FieldPath, old: Any) -> tuple[Operation, ...]:
    """Return operations that remove a field or an entry."""
    return test(path, old), Operation(op="remove", path=path.pointer)


def soft_constraint(
    topology_key: str, selector: LabelSelector | None, kind: str, keys: Iterable[str] = ()
) -> dict[str, Any]:
    """Return a new spread constraint that keeps no pod pending, with the selector and label keys of another.

    A workload of ``kind`` whose pods have a label of their revision gets that label, so that the pods of a rollout are
    not placed around those that it replaces.
    """
    own_keys = [key for key in dict.fromkeys((*keys, revision_key_of(kind))) if key]
    return {
        "maxSkew": 1,
        "topologyKey": topology_key,
        "whenUnsatisfiable": str(WhenUnsatisfiable.SCHEDULE_ANYWAY),
        "labelSelector": msgspec.to_builtins(selector),
        **({"matchLabelKeys": own_keys} if own_keys else {}),
    }


def same_topology(term: TopologyTerm, path: FieldPath) -> Operation:
    """Return the test that the term at the path still has its topology key."""
    return test(path / "topologyKey", term.topology_key)


def without_entries(field: str, indices: set[int], term: TopologyTerm, path: FieldPath) -> tuple[Operation, ...]:
    """Return operations that remove entries of a list of label keys; the list as well if it would be empty."""
    keys = KEY_LISTS[field](term)
    if len(indices) == len(keys):
        return removed(path / field, list(keys))
    return tuple(
        operation for index in sorted(indices, reverse=True) for operation in removed(path / field / index, keys[index])
    )


def without_keys(keys: set[str], term: TopologyTerm, path: FieldPath) -> tuple[Operation, ...]:
    """Return operations that remove label keys from matchLabelKeys and mismatchLabelKeys; none if no list has them."""
    operations: list[Operation] = []
    for field, entries in KEY_LISTS.items():
        if indices := {index for index, key in enumerate(entries(term)) if key in keys}:
            operations += without_entries(field, indices, term, path)
    return (same_topology(term, path), *operations) if operations else ()


def is_done(operations: Sequence[Operation], template: Template) -> bool:
    """Tell whether a pod template has everything that a patch of it would change."""
    fields = _fields(template)
    tested = {operation.path: _as_json(operation.value) for operation in operations if operation.op == "test"}
    return all(_is_done(operation, tested, fields) for operation in operations if operation.op != "test")


def is_refused(operations: Sequence[Operation], template: Template) -> bool:
    """Tell whether the API server would refuse a patch, because the pod template has other values than it tests."""
    fields = _fields(template)
    tests = (operation for operation in operations if operation.op == "test")
    return any(_value(test.path, fields) != _as_json(test.value) for test in tests)


def _is_done(operation: Operation, tested: Mapping[str, Any], fields: Any) -> bool:
    value, (parent, _, last) = _value(operation.path, fields), operation.path.rpartition("/")
    if operation.op != "remove":
        return bool(value == _as_json(operation.value))
    return tested.get(operation.path) not in (_value(parent, fields) or ()) if last.isdecimal() else not value


def _fields(template: Template) -> Any:
    """Return the object that holds a pod template, with the fields of the template that are read."""
    spec = _as_json(template.spec)
    for read, each in zip(
        spec.get("topologySpreadConstraints", ()), template.spec.topology_spread_constraints, strict=True
    ):
        # A policy with its default is left out.
        read["nodeAffinityPolicy"] = each.node_affinity_policy
    fields: Any = {"metadata": {"labels": template.labels}, "spec": spec}
    for step in reversed(template.path[:-1]):
        fields = {step: fields}
    return fields


def _as_json(value: object) -> Any:
    """Return a value as JSON has it, with lists for tuples."""
    return msgspec.json.decode(msgspec.json.encode(value))


def _value(pointer: str, fields: Any) -> Any:
    """Return the value at a JSON pointer; None where a step of it is absent."""
    for step in steps_of(pointer):
        if isinstance(fields, dict):
            fields = fields.get(step)
        else:
            fields = fields[int(step)] if isinstance(fields, list) and int(step) < len(fields) else None
    return fields


def applied(operations: Sequence[Operation], depth: int, template: PodTemplateSpec) -> PodTemplateSpec:
    """Return a pod template, which is ``depth`` steps deep in its object, after a JSON patch of the object.

    Raises:
        LookupError: The template lacks what is patched.
    """
    changed: Any = msgspec.json.decode(msgspec.json.encode(template))
    change(changed, operations, depth)
    return msgspec.convert(changed, PodTemplateSpec)


def change(document: Any, operations: Sequence[Operation], depth: int = 0) -> None:
    """Change a JSON value, which is ``depth`` steps deep in its object, by a JSON patch of the object.

    Raises:
        LookupError: The value lacks what is patched.
    """
    for operation in operations:
        *parents, last = steps_of(operation.path)[depth:]
        parent = document
        for step in parents:
            parent = parent[int(step) if isinstance(parent, list) else step]
        key: Any = int(last) if isinstance(parent, list) else last
        match operation.op:
            case "remove":
                del parent[key]
            case "add" if isinstance(parent, list):
                parent.insert(key, operation.value)
            case "add" | "replace":
                parent[key] = operation.value
