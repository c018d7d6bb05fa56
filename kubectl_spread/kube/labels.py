"""Label selectors: which labels does a selector select?

Source: kubernetes v1.37.1 staging/src/k8s.io/apimachinery/pkg/apis/meta/v1/helpers.go, LabelSelectorAsSelector, and
pkg/labels/selector.go, Requirement.Matches.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Final

from kubectl_spread.kube.model import LabelSelector, LabelSelectorRequirement

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
    if selector is None or not valid(selector):
        return False
    return all(labels.get(key) == value for key, value in selector.match_labels.items()) and all(
        satisfies(requirement, labels) for requirement in selector.match_expressions
    )


def satisfies(requirement: LabelSelectorRequirement, labels: Labels) -> bool:
    """Tell whether ``labels`` meet one requirement; NotIn and DoesNotExist are met by an absent key."""
    match requirement.operator:
        case Operator.IN:
            return requirement.key in labels and labels[requirement.key] in requirement.values
        case Operator.NOT_IN:
            return requirement.key not in labels or labels[requirement.key] not in requirement.values
        case Operator.EXISTS:
            return requirement.key in labels
        case Operator.DOES_NOT_EXIST:
            return requirement.key not in labels
    return False


def valid(selector: LabelSelector) -> bool:
    """Tell whether the selector can be parsed at all; one that cannot selects nothing."""
    for requirement in selector.match_expressions:
        wants_values = requirement.operator in (Operator.IN, Operator.NOT_IN)
        if requirement.operator not in _OPERATORS or wants_values != bool(requirement.values):
            return False
    return True


def is_empty(selector: LabelSelector) -> bool:
    """Tell whether the selector has no requirement at all."""
    return not selector.match_labels and not selector.match_expressions


def requirements(selector: LabelSelector) -> Iterator[LabelSelectorRequirement]:
    """Yield every requirement, matchLabels as ``In`` with one value, in key order, before the expressions."""
    for key in sorted(selector.match_labels):
        yield LabelSelectorRequirement(key=key, operator=Operator.IN, values=(selector.match_labels[key],))
    yield from selector.match_expressions


def keys(selector: LabelSelector) -> frozenset[str]:
    """Return the label keys that the selector mentions anywhere."""
    return frozenset(requirement.key for requirement in requirements(selector))


def describe_requirement(requirement: LabelSelectorRequirement) -> str:
    """Return a requirement as people write it: ``rev In [r1]``, ``x Exists``."""
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
