"""Objects that change others: PriorityClasses give pods their priority, HorizontalPodAutoscalers set replicas."""

from __future__ import annotations

from typing import Annotated, Final

from kubectl_spread.kube.api.types import Int32, Message, Object

_SYSTEM: Final = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
"""The PriorityClasses that every cluster has, with their values."""


class PriorityClass(Object, frozen=True):
    """A priority that pods name; that with ``global_default`` is for pods that name none."""

    value: Annotated[Int32, 2] = 0
    global_default: Annotated[bool, 3] = False
    preemption_policy: Annotated[str, 5] = ""


class PriorityClasses:
    """The PriorityClasses of a cluster."""

    def __init__(self) -> None:
        self._by_name: dict[str, PriorityClass] = {name: PriorityClass(value=_SYSTEM[name]) for name in _SYSTEM}

    def put(self, priority_class: PriorityClass) -> None:
        """Store a PriorityClass."""
        self._by_name[priority_class.metadata.name] = priority_class

    def of(self, name: str) -> PriorityClass | None:
        """Return the PriorityClass with a name, or the one for pods that name none; None where it was not read.

        Source: kubernetes v1.37.1 plugin/pkg/admission/priority/admission.go, admitPod and getDefaultPriority.
        """
        if name:
            return self._by_name.get(name)
        defaults = [each for each in self._by_name.values() if each.global_default]
        return min(defaults, key=lambda each: each.value, default=PriorityClass())


class _ScaleTarget(Message, frozen=True):
    kind: Annotated[str, 1] = ""
    name: Annotated[str, 2] = ""
    api_version: Annotated[str, 3] = ""


class _AutoscalerSpec(Message, frozen=True):
    scale_target_ref: Annotated[_ScaleTarget, 1] = _ScaleTarget()
    min_replicas: Annotated[Int32 | None, 2] = None
    max_replicas: Annotated[Int32, 3] = 0


class HorizontalPodAutoscaler(Object, frozen=True):
    """An object that sets the replicas of a workload."""

    spec: Annotated[_AutoscalerSpec, 2] = _AutoscalerSpec()

    @property
    def least(self) -> int:
        """The fewest replicas that it sets."""
        return 1 if self.spec.min_replicas is None else self.spec.min_replicas

    @property
    def text(self) -> str:
        """Its name and the replicas that it may set."""
        return f"HorizontalPodAutoscaler {self.metadata.name} ({self.least} to {self.spec.max_replicas} replicas)"

    def bounded(self, replicas: int) -> int:
        """Return the number that it sets where a workload has a number of replicas, without a look at metrics.

        A workload with none is not scaled.

        Source: kubernetes v1.37.1 pkg/controller/podautoscaler/horizontal.go, reconcileAutoscaler.
        """
        return replicas and min(max(replicas, self.least), max(self.spec.max_replicas, self.least))
