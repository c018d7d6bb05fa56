"""Taints and tolerations: does a pod tolerate a node?

Source: kubernetes v1.37.1 staging/src/k8s.io/component-helpers/scheduling/corev1/helpers.go,
FindMatchingUntoleratedTaint, and staging/src/k8s.io/api/core/v1/toleration.go, ToleratesTaint.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from kubectl_spread.kube.api.types import Taint, Toleration

FILTERING_EFFECTS: Final = frozenset({"NoSchedule", "NoExecute"})
_CANONICAL_INTEGER: Final = re.compile(r"0|-?[1-9][0-9]{0,18}")
_INT64: Final = range(-(2**63), 2**63)


def find_untolerated(
    taints: Iterable[Taint], tolerations: Iterable[Toleration], *, comparison_operators: bool
) -> Taint | None:
    """Return the first NoSchedule or NoExecute taint that no toleration covers, or None.

    Args:
        taints: A node's taints.
        tolerations: A pod's tolerations.
        comparison_operators: Whether the operators Lt and Gt are enabled.
    """
    held = tuple(tolerations)
    for taint in taints:
        if taint.effect in FILTERING_EFFECTS and not any(
            tolerates(toleration, taint, comparison_operators=comparison_operators) for toleration in held
        ):
            return taint
    return None


def tolerates(toleration: Toleration, taint: Taint, *, comparison_operators: bool) -> bool:
    """Tell whether one toleration covers one taint; an empty effect or key covers every one."""
    if toleration.effect not in ("", taint.effect) or toleration.key not in ("", taint.key):
        return False
    match toleration.operator:
        case "" | "Equal":
            return toleration.value == taint.value
        case "Exists":
            return True
        case "Lt" | "Gt" if comparison_operators:
            return _compares(toleration, taint)
    return False


def _compares(toleration: Toleration, taint: Taint) -> bool:
    limit, value = _integer(toleration.value), _integer(taint.value)
    if limit is None or value is None:
        return False
    return value < limit if toleration.operator == "Lt" else value > limit


def _integer(text: str) -> int | None:
    if not _CANONICAL_INTEGER.fullmatch(text) or int(text) not in _INT64:
        return None
    return int(text)
