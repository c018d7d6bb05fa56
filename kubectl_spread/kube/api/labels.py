"""Label selectors: which labels does a selector select?

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
    """Return a test for labels that meet all ``requirements``, for many labels or values."""
    tests = [(item.key, item.operator, frozenset(item.values)) for item in requirements]
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
    """Tell whether the selector can be parsed; otherwise it selects nothing."""
    return not parse_error(selector)


def parse_error(selector: LabelSelector | None) -> str:
    """Return why a selector cannot be parsed, in the words of the scheduler; "" if it can.

    Of several requirements that cannot be parsed, the first one counts: matchLabels in key order, then the expressions.
    The scheduler takes matchLabels in any order.

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
    errors = [error for error in (_key_error(requirement.key),) if error]
    if wants_values and not requirement.values:
        errors.append("values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty")
    if not wants_values and requirement.values:
        values = ",".join(f'"{value}"' for value in requirement.values)
        errors.append(f"values: Invalid value: [{values}]: values set must be empty for exists and does not exist")
    problems = ((index, value, _value_problems(value)) for index, value in enumerate(requirement.values))
    errors += [
        field.invalid(FieldPath(("values", index, MapKey(requirement.key))), value, problem).message
        for index, value, problem in problems
        if problem
    ]
    return errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]" if errors else ""


@lru_cache(maxsize=4096)
def _key_error(key: str) -> str:
    problems = "; ".join(content.label_key_problems(key))
    return field.invalid(FieldPath(("key",)), key, problems).message if problems else ""


@lru_cache(maxsize=4096)
def _value_problems(value: str) -> str:
    return "; ".join(content.label_value_problems(value))


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


def describe_requirements(selector: LabelSelector, some: Iterable[LabelSelectorRequirement]) -> list[str]:
    """Return some requirements of a selector as text; a requirement of its matchLabels is ``app=web``."""
    return [
        f"{requirement.key}={requirement.values[0]}"
        if requirement.key in selector.match_labels and requirement not in selector.match_expressions
        else describe_requirement(requirement)
        for requirement in some
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
