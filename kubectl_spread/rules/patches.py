"""Operations of JSON patches that correct a term in the pod template of a workload.

Each patch starts with ``test`` operations, so that the API server refuses it if the object has changed since.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from kubectl_spread.audit.snapshot.terms import TopologyTerm
from kubectl_spread.kube.api.fieldpath import POD_SPEC, FieldPath
from kubectl_spread.kube.api.workloads import template_path
from kubectl_spread.report.model import Operation
from kubectl_spread.rules.rule_input import RuleInput

KEY_LISTS: Final[Mapping[str, Callable[[TopologyTerm], tuple[str, ...]]]] = {
    "matchLabelKeys": lambda term: term.match_label_keys,
    "mismatchLabelKeys": lambda term: term.mismatch_label_keys,
}
"""Maps the name of each list of label keys to its entries in a term."""


def pod_spec(rule_input: RuleInput) -> FieldPath:
    """Return the path of the pod spec in the finding's object."""
    kind, template = rule_input.workload.kind, rule_input.template
    if template is not None and template.custom:
        return template.path
    return POD_SPEC if kind == "Pod" else template_path(kind)


def term_path(rule_input: RuleInput) -> FieldPath:
    """Return the path of the term in the finding's object."""
    return rule_input.pod_path.moved(POD_SPEC, pod_spec(rule_input))


def test(path: FieldPath, value: Any) -> Operation:
    """Return the operation that fails unless a field has a value."""
    return Operation(op="test", path=path.pointer, value=value)


def replaced(path: FieldPath, old: Any, new: Any) -> tuple[Operation, ...]:
    """Return operations that replace the value of a field."""
    return test(path, old), Operation(op="replace", path=path.pointer, value=new)


def removed(path: FieldPath, old: Any) -> tuple[Operation, ...]:
    """Return operations that remove a field or an entry."""
    return test(path, old), Operation(op="remove", path=path.pointer)


def same_topology(term: TopologyTerm, rule_input: RuleInput) -> Operation:
    """Return the test that the term at the path still has its topology key."""
    return test(term_path(rule_input) / "topologyKey", term.topology_key)


def without_entries(field: str, indices: set[int], term: TopologyTerm, rule_input: RuleInput) -> tuple[Operation, ...]:
    """Return operations that remove entries of a list of label keys; the list as well if it would be empty."""
    path, keys = term_path(rule_input) / field, KEY_LISTS[field](term)
    if len(indices) == len(keys):
        return removed(path, list(keys))
    return tuple(
        operation for index in sorted(indices, reverse=True) for operation in removed(path / index, keys[index])
    )


def without_keys(keys: set[str], term: TopologyTerm, rule_input: RuleInput) -> tuple[Operation, ...]:
    """Return operations that remove label keys from matchLabelKeys and mismatchLabelKeys; none if no list has them."""
    operations: list[Operation] = []
    for field, entries in KEY_LISTS.items():
        if indices := {index for index, key in enumerate(entries(term)) if key in keys}:
            operations += without_entries(field, indices, term, rule_input)
    return (same_topology(term, rule_input), *operations) if operations else ()
