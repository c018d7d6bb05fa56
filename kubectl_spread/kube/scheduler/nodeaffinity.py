"""Required node affinity: may a pod's nodeSelector and node affinity be met by a node?

Source: kubernetes v1.37.1 staging/src/k8s.io/component-helpers/scheduling/corev1/nodeaffinity/nodeaffinity.go,
GetRequiredNodeAffinity and RequiredNodeAffinity.Match.
"""

from __future__ import annotations

import re
from typing import Final

from kubectl_spread.kube.api.labels import Labels
from kubectl_spread.kube.api.types import Affinity, Node, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm

_GO_DECIMAL: Final = re.compile(r"([+-]?)0*([0-9]{1,19})")
_INT64: Final = range(-(2**63), 2**63)
_LABEL_VALUE: Final = re.compile(r"(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
_NAME_FIELD: Final = "metadata.name"


def required(affinity: Affinity | None) -> NodeSelector | None:
    """Return the required part of node affinity, if any."""
    if affinity is None or affinity.node_affinity is None:
        return None
    return affinity.node_affinity.required_during_scheduling_ignored_during_execution


def matches(node: Node, node_selector: Labels, affinity: Affinity | None) -> bool:
    """Tell whether ``node`` meets a pod's nodeSelector and its required node affinity, both."""
    labels = node.metadata.labels
    if any(labels.get(key) != value for key, value in node_selector.items()):
        return False
    selector = required(affinity)
    return selector is None or any(_term_matches(term, node) for term in selector.node_selector_terms)


def pinned_node(affinity: Affinity | None) -> str | None:
    """Return the only node that required node affinity leaves, as the DaemonSet controller writes it, or None."""
    selector = required(affinity)
    if selector is None or not selector.node_selector_terms:
        return None
    names = {_named_node(term) for term in selector.node_selector_terms}
    return names.pop() if len(names) == 1 else None


def _named_node(term: NodeSelectorTerm) -> str | None:
    for requirement in term.match_fields:
        if (requirement.key, requirement.operator, len(requirement.values)) == (_NAME_FIELD, "In", 1):
            return requirement.values[0]
    return None


def _term_matches(term: NodeSelectorTerm, node: Node) -> bool:
    """An empty term matches nothing; a term with a requirement that cannot be parsed does not match either."""
    if not term.match_expressions and not term.match_fields:
        return False
    labels = node.metadata.labels
    return all(_satisfies(requirement, labels) for requirement in term.match_expressions) and all(
        _field_satisfies(requirement, node.metadata.name) for requirement in term.match_fields
    )


def _satisfies(requirement: NodeSelectorRequirement, labels: Labels) -> bool:
    """Values that no label can have, a sign before a number too, keep a requirement from being parsed."""
    if not all(_LABEL_VALUE.fullmatch(value) for value in requirement.values):
        return False
    value = labels.get(requirement.key)
    match requirement.operator:
        case "In":
            return value is not None and value in requirement.values
        case "NotIn":
            return bool(requirement.values) and (value is None or value not in requirement.values)
        case "Exists":
            return not requirement.values and value is not None
        case "DoesNotExist":
            return not requirement.values and value is None
        case "Gt" | "Lt":
            return value is not None and len(requirement.values) == 1 and _compares(requirement, value)
    return False


def _compares(requirement: NodeSelectorRequirement, label: str) -> bool:
    value, limit = _parse_int(label), _parse_int(requirement.values[0])
    if value is None or limit is None:
        return False
    return value > limit if requirement.operator == "Gt" else value < limit


def _field_satisfies(requirement: NodeSelectorRequirement, name: str) -> bool:
    if requirement.key != _NAME_FIELD or len(requirement.values) != 1:
        return False
    match requirement.operator:
        case "In":
            return name == requirement.values[0]
        case "NotIn":
            return name != requirement.values[0]
    return False


def _parse_int(text: str) -> int | None:
    """Read a number as Go's strconv.ParseInt(text, 10, 64) does, where ``007`` is 7 and ``1_0`` is none."""
    match = _GO_DECIMAL.fullmatch(text)
    if match is None:
        return None
    number = int(match[1] + match[2])
    return number if number in _INT64 else None
