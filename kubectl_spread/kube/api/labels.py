"""Label selectors: which labels does a selector select, and why can it not be parsed?

Source: kubernetes v1.37.1 staging/src/k8s.io/apimachinery/pkg/apis/meta/v1/helpers.go, LabelSelectorAsSelector, and
pkg/labels/selector.go, Requirement.Matches.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from enum import StrEnum
from functools import lru_cache
from typing import Final

from kubectl_spread.kube.api import content, field
from kubectl_spread.kube.api.fieldpath import FieldPath, MapKey
from kubectl_spread.kube.api.types import LabelSelector, LabelSelectorRequirement

HOSTNAME: Final = "kubernetes.io/hostname"
ZONE: Final = "topology.kubernetes.io/zone"
Labels = Mapping[str, str]


class Operator(StrEnum):
    """The operators of a label selector's requirements."""

    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"


_OPERATORS: Final = frozenset(Operator)


def matches(selector: LabelSelector | None, labels: Labels) -> bool:
    """Tell whether ``selector`` selects ``labels``: None selects nothing, an empty selector everything."""
    if selector is None:
        return False
    return (
        all(labels.get(key) == value for key, value in selector.match_labels.items())
        and all(satisfies(requirement, labels) for requirement in selector.match_expressions)
        and valid(selector)
    )


def matcher(requirements: Iterable[LabelSelectorRequirement]) -> Callable[[Labels], bool]:
    """Return a test of labels against all ``requirements``, which is fast for many labels or values."""
    tests = [(requirement.key, requirement.operator, frozenset(requirement.values)) for requirement in requirements]
    return lambda labels: all(_satisfies(key, operator, values, labels) for key, operator, values in tests)


def satisfies(requirement: LabelSelectorRequirement, labels: Labels) -> bool:
    """Tell whether ``labels`` meet one requirement; NotIn and DoesNotExist are met by an absent key."""
    return _satisfies(requirement.key, requirement.operator, requirement.values, labels)


def _satisfies(key: str, operator: str, values: Container[str], labels: Labels) -> bool:
    match operator:
        case Operator.IN:
            return key in labels and labels[key] in values
        case Operator.NOT_IN:
            return key not in labels or labels[key] not in values
        case Operator.EXISTS:
            return key in labels
        case Operator.DOES_NOT_EXIST:
            return key not in labels
    return False


def valid(selector: LabelSelector) -> bool:
    """Tell whether the selector can be parsed; a selector that cannot be parsed selects nothing."""
    return not parse_error(selector)


def parse_error(selector: LabelSelector | None) -> str:
    """Return the scheduler's error for a selector that cannot be parsed; "" if it can be parsed.

    The error is that of the first such requirement: matchLabels in key order, then the expressions. The scheduler reads
    matchLabels in any order.

    Source: kubernetes v1.37.1 staging/src/k8s.io/apimachinery/pkg/labels/selector.go, NewRequirement.
    """
    if selector is None:
        return ""
    return next((error for requirement in requirements(selector) if (error := _requirement_error(requirement))), "")


@lru_cache(maxsize=4096)
def _requirement_error(requirement: LabelSelectorRequirement) -> str:
    if requirement.operator not in _OPERATORS:
        return f'"{requirement.operator}" is not a valid label selector operator'
    wants_values = requirement.operator in (Operator.IN, Operator.NOT_IN)
    errors = []
    if problems := content.label_key_problems(requirement.key):
        errors.append(field.invalid(FieldPath(("key",)), requirement.key, "; ".join(problems)).message)
    if wants_values and not requirement.values:
        errors.append("values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty")
    if not wants_values and requirement.values:
        values = ",".join(f'"{value}"' for value in requirement.values)
        errors.append(f"values: Invalid value: [{values}]: values set must be empty for exists and does not exist")
    errors += [
        field.invalid(FieldPath(("values", index, MapKey(requirement.key))), value, "; ".join(problems)).message
        for index, value in enumerate(requirement.values)
        if (problems := content.label_value_problems(value))
    ]
    return errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]" if errors else ""


def is_empty(selector: LabelSelector) -> bool:
    """Tell whether the selector has no requirements."""
    return not selector.match_labels and not selector.match_expressions


def requirements(selector: LabelSelector) -> Iterator[LabelSelectorRequirement]:
    """Yield every requirement, matchLabels as ``In`` with one value, in key order, before the expressions."""
    for key in sorted(selector.match_labels):
        yield LabelSelectorRequirement(key=key, operator=Operator.IN, values=(selector.match_labels[key],))
    yield from selector.match_expressions


def keys(selector: LabelSelector) -> frozenset[str]:
    """Return the label keys that the selector mentions anywhere."""
    return frozenset(requirement.key for requirement in requirements(selector))


def describe_requirements(selector: LabelSelector, part: Iterable[LabelSelectorRequirement]) -> list[str]:
    """Return a part of a selector's requirements as text; a requirement of its matchLabels is ``app=web``."""
    return [
        f"{requirement.key}={requirement.values[0]}"
        if requirement.key in selector.match_labels and requirement not in selector.match_expressions
        else describe_requirement(requirement)
        for requirement in part
    ]


def describe_requirement(requirement: LabelSelectorRequirement) -> str:
    """Return a requirement as text: ``rev In [r1]``, ``x Exists``."""
    if not requirement.values:
        return f"{requirement.key} {requirement.operator}"
    values = ", ".join(value or '""' for value in requirement.values)
    return f"{requirement.key} {requirement.operator} [{values}]"


def describe(selector: LabelSelector | None) -> str:
    """Return a selector on one line: ``app=web, rev In [r1]``; ``<none>`` for None, ``{}`` for an empty one."""
    if selector is None:
        return "<none>"
    parts = [f"{key}={value}" for key, value in sorted(selector.match_labels.items())]
    parts += [describe_requirement(requirement) for requirement in selector.match_expressions]
    return ", ".join(parts) or "{}"
