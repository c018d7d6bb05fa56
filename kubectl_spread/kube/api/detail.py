"""Pods in detail: fields that `explain` reads and `check` does not need.

Source: kubernetes v1.37.1, generated.proto of k8s.io/api/core/v1.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from kubectl_spread.kube.api.types import Int32, Message, Pod, PodSpec, PodStatus


class Present(Message, frozen=True):
    """A message of which only the presence matters."""


class VolumeSource(Message, frozen=True):
    """The source of a volume, on the protobuf wire."""

    host_path: Annotated[Present | None, 1] = None
    empty_dir: Annotated[Present | None, 2] = None


class Volume(Message, frozen=True):
    """A volume of a pod; in JSON the fields of its source are in the volume itself."""

    volume_source: Annotated[VolumeSource, 2] = VolumeSource()
    host_path: Present | None = None
    empty_dir: Present | None = None

    @property
    def kind(self) -> str:
        """``hostPath`` or ``emptyDir``; "" for a volume that stores nothing on the node."""
        for source in (self, self.volume_source):
            if source.host_path is not None:
                return "hostPath"
            if source.empty_dir is not None:
                return "emptyDir"
        return ""


class DetailedPodSpec(PodSpec, frozen=True):
    """A pod's spec with its volumes and its priority, which is None where the API server has not resolved it."""

    volumes: Annotated[tuple[Volume, ...], 1] = ()
    priority: Annotated[Int32 | None, 25] = None


class PodCondition(Message, frozen=True):
    """A condition of a pod; ``status`` is ``True``, ``False`` or ``Unknown``."""

    type: Annotated[str, 1] = ""
    status: Annotated[str, 2] = ""
    last_transition_time: Annotated[datetime | None, 4] = None
    reason: Annotated[str, 5] = ""
    message: Annotated[str, 6] = ""


class DetailedPodStatus(PodStatus, frozen=True):
    """A pod's status with its conditions."""

    conditions: Annotated[tuple[PodCondition, ...], 2] = ()


class DetailedPod(Pod, frozen=True):
    """A pod in detail."""

    spec: Annotated[DetailedPodSpec, 2] = DetailedPodSpec()
    status: Annotated[DetailedPodStatus, 3] = DetailedPodStatus()

    @property
    def unscheduled(self) -> PodCondition | None:
        """The condition with the reason why the pod has no node, if the scheduler wrote one."""
        conditions = self.status.conditions
        return next((c for c in conditions if (c.type, c.status) == ("PodScheduled", "False")), None)
