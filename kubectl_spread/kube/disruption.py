"""Disruption budgets: how many of its pods does a PodDisruptionBudget want to be healthy, and may one be evicted?

Source: kubernetes v1.37.1 pkg/controller/disruption/disruption.go, getExpectedPodCount and getExpectedScale.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Final

from kubectl_spread.kube.api import labels as labelselectors
from kubectl_spread.kube.api.labels import Labels
from kubectl_spread.kube.api.quantity import scaled
from kubectl_spread.kube.api.types import Int32, Int64, LabelSelector, Message, Object, OwnerReference

_GROUPS: Final = {
    "Deployment": ("apps", "extensions"),
    "ReplicaSet": ("apps", "extensions"),
    "ReplicationController": ("",),
    "StatefulSet": ("apps",),
}
"""Maps the kinds of controllers whose replicas the disruption controller reads to their API groups."""


class _BudgetSpec(Message, frozen=True):
    min_available: Annotated[Int32 | str | None, 1] = None
    selector: Annotated[LabelSelector | None, 2] = None
    max_unavailable: Annotated[Int32 | str | None, 3] = None
    unhealthy_pod_eviction_policy: Annotated[str, 4] = "IfHealthyBudget"


class BudgetStatus(Message, frozen=True):
    """The numbers of a budget as the disruption controller last wrote them."""

    observed_generation: Annotated[Int64, 1] = 0
    disruptions_allowed: Annotated[Int32, 3] = 0
    current_healthy: Annotated[Int32, 4] = 0
    desired_healthy: Annotated[Int32, 5] = 0
    expected_pods: Annotated[Int32, 6] = 0


class PodDisruptionBudget(Object, frozen=True):
    """A limit to the pods of its selector that may be evicted at one time."""

    spec: Annotated[_BudgetSpec, 2] = _BudgetSpec()
    status: Annotated[BudgetStatus | None, 3] = None

    @property
    def current(self) -> BudgetStatus | None:
        """The status; None where the controller has not written one for the present spec."""
        status = self.status
        if status is None or status.observed_generation < max(1, self.metadata.generation):
            return None
        return status

    @property
    def needs_scale(self) -> bool:
        """Whether its minimum depends on the replicas of its pods' controllers."""
        return self.spec.max_unavailable is not None or isinstance(self.spec.min_available, str)

    @property
    def is_limited(self) -> bool:
        """Whether it has minAvailable or maxUnavailable; without them the controller expects no pods."""
        return self.spec.min_available is not None or self.spec.max_unavailable is not None

    def desired_healthy(self, scale: int | None) -> int | None:
        """Return the least number of healthy pods, which the controller writes to ``status.desiredHealthy``.

        Args:
            scale: The sum of the replicas of its pods' controllers; None where it is unknown.

        Returns:
            The number; None where it is unknown, or where the controller cannot compute it.

        Source: kubernetes v1.37.1 pkg/controller/disruption/disruption.go, getExpectedPodCount.
        """
        if self.spec.max_unavailable is not None:
            unavailable = scaled(self.spec.max_unavailable, scale)
            return None if scale is None or unavailable is None else max(scale - unavailable, 0)
        if self.spec.min_available is None:
            return 0
        return scaled(self.spec.min_available, scale)


class Budgets:
    """The PodDisruptionBudgets of a cluster.

    Attributes:
        read: Whether they were read.
    """

    def __init__(self) -> None:
        self.read = False
        self._of_namespace: dict[str, dict[str, PodDisruptionBudget]] = {}
        self._by_label: dict[str, dict[tuple[str, str] | None, list[PodDisruptionBudget]]] = {}

    def put(self, budget: PodDisruptionBudget) -> None:
        """Store a budget."""
        self._of_namespace.setdefault(budget.metadata.namespace, {})[budget.metadata.name] = budget
        self._by_label.pop(budget.metadata.namespace, None)

    def with_budget(self, budget: PodDisruptionBudget) -> Budgets:
        """Return these budgets with another one, which replaces the one of its name."""
        others = Budgets()
        others.read = self.read
        for each in (*self, budget):
            others.put(each)
        return others

    def __iter__(self) -> Iterator[PodDisruptionBudget]:
        """Yield all budgets."""
        return (budget for of_namespace in self._of_namespace.values() for budget in of_namespace.values())

    def of(self, namespace: str, labels: Labels) -> tuple[PodDisruptionBudget, ...]:
        """Return the budgets that select a pod, by name."""
        by_label = self._filed(namespace)
        filed = (budget for label in (*labels.items(), None) for budget in by_label.get(label, ()))
        selecting = (budget for budget in filed if labelselectors.matches(budget.spec.selector, labels))
        return tuple(sorted(selecting, key=lambda budget: budget.metadata.name))

    def _filed(self, namespace: str) -> dict[tuple[str, str] | None, list[PodDisruptionBudget]]:
        """Return the budgets of a namespace by a label that their selectors require; None for those without one."""
        by_label = self._by_label.get(namespace)
        if by_label is None:
            by_label = self._by_label[namespace] = {}
            for budget in self._of_namespace.get(namespace, {}).values():
                required = budget.spec.selector.match_labels.items() if budget.spec.selector else ()
                by_label.setdefault(next(iter(sorted(required)), None), []).append(budget)
        return by_label


def is_of(controller: OwnerReference, kind: str) -> bool:
    """Tell whether a reference is to a controller of a kind whose replicas the disruption controller reads.

    Other kinds may have the name of such a kind in another API group.

    Source: kubernetes v1.37.1 pkg/controller/disruption/disruption.go, verifyGroupKind.
    """
    group = controller.api_version.rpartition("/")[0]
    return controller.kind == kind and group in _GROUPS[kind]
