"""Taints and tolerations: does a pod tolerate a node?

Source: kubernetes v1.37.1 staging/src/k8s.io/component-helpers/scheduling/corev1/helpers.go,
FindMatchingUntoleratedTaint, and staging/src/k8s.io/api/core/v1/toleration.go, ToleratesTaint.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from kubectl_spread.kube.api.types import Node, Taint, Toleration
from kubectl_spread.kube.scheduler.nodeaffinity import parse_int

FILTERING_EFFECTS: Final = frozenset({"NoSchedule", "NoExecute"})


def find_untolerated(
    taints: Iterable[Taint], tolerations: Sequence[Toleration], *, comparison_operators: bool
) -> Taint | None:
    """Return the first NoSchedule or NoExecute taint that no toleration covers, or None.

    Args:
        taints: A node's taints.
        tolerations: A pod's tolerations.
        comparison_operators: Whether the operators Lt and Gt are enabled.
    """
    for taint in taints:
        if taint.effect in FILTERING_EFFECTS and not any(
            tolerates(toleration, taint, comparison_operators=comparison_operators) for toleration in tolerations
        ):
            return taint
    return None


def keep_pods_away(node: Node) -> bool:
    """Tell whether a node is cordoned, or has a NoSchedule or NoExecute taint, which pods tolerate only on purpose."""
    return node.spec.unschedulable or any(taint.effect in FILTERING_EFFECTS for taint in node.spec.taints)


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
    limit, value = _canonical_int(toleration.value), _canonical_int(taint.value)
    if limit is None or value is None:
        return False
    return value < limit if toleration.operator == "Lt" else value > limit


def _canonical_int(text: str) -> int | None:
    """Read a number without a plus sign or leading zeros; validation refuses these, so the scheduler does too."""
    number = parse_int(text)
    return number if str(number) == text else None
