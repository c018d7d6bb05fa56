"""Required node affinity: the part of a pod that decides, and its numbers.

Source: kubernetes v1.37.1 staging/src/k8s.io/component-helpers/scheduling/corev1/nodeaffinity/nodeaffinity.go,
GetRequiredNodeAffinity and RequiredNodeAffinity.Match.
"""

from __future__ import annotations

import re
from typing import Final

from kubectl_spread.kube.api.types import Affinity, NodeSelector, NodeSelectorTerm

_GO_DECIMAL: Final = re.compile(r"([+-]?)0*([0-9]{1,19})")
_INT64: Final = range(-(2**63), 2**63)
NAME_FIELD: Final = "metadata.name"


def required(affinity: Affinity | None) -> NodeSelector | None:
    """Return the required part of node affinity, if any."""
    if affinity is None or affinity.node_affinity is None:
        return None
    return affinity.node_affinity.required_during_scheduling_ignored_during_execution


def pinned_node(affinity: Affinity | None) -> str | None:
    """Return the one node that required node affinity allows, as the DaemonSet controller writes it, or None."""
    selector = required(affinity)
    if selector is None or not selector.node_selector_terms:
        return None
    names = {_named_node(term) for term in selector.node_selector_terms}
    return names.pop() if len(names) == 1 else None


def _named_node(term: NodeSelectorTerm) -> str | None:
    for requirement in term.match_fields:
        if (requirement.key, requirement.operator, len(requirement.values)) == (NAME_FIELD, "In", 1):
            return requirement.values[0]
    return None


def parse_int(text: str) -> int | None:
    """Read a number as Go's strconv.ParseInt(text, 10, 64) does, where ``007`` is 7 and ``1_0`` is none."""
    match = _GO_DECIMAL.fullmatch(text)
    if match is None:
        return None
    number = int(match[1] + match[2])
    return number if number in _INT64 else None
