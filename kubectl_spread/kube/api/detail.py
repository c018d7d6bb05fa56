"""Pods in detail: fields that `explain` reads of pods, and `check` of pod templates alone.

Source: kubernetes v1.37.1, generated.proto of k8s.io/api/core/v1.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Annotated

import msgspec

from kubectl_spread.kube.api.types import Int32, Message, Pod, PodSpec, PodStatus


class Present(Message, frozen=True):
    """A message of which only the presence matters."""


class ClaimSource(Message, frozen=True):
    """A volume that is a PersistentVolumeClaim in the namespace of the pod."""

    claim_name: Annotated[str, 1] = ""


class VolumeSource(Message, frozen=True):
    """The source of a volume, on the protobuf wire."""

    host_path: Annotated[Present | None, 1] = None
    empty_dir: Annotated[Present | None, 2] = None
    persistent_volume_claim: Annotated[ClaimSource | None, 10] = None
    ephemeral: Annotated[Present | None, 29] = None


class Volume(Message, frozen=True):
    """A volume of a pod; in JSON the fields of its source are in the volume itself."""

    name: Annotated[str, 1] = ""
    volume_source: Annotated[VolumeSource, 2] = VolumeSource()
    host_path: Present | None = None
    empty_dir: Present | None = None
    persistent_volume_claim: ClaimSource | None = None
    ephemeral: Present | None = None

    @property
    def kind(self) -> str:
        """``hostPath`` or ``emptyDir``; "" for a volume that stores nothing on the node."""
        for source in (self, self.volume_source):
            if source.host_path is not None:
                return "hostPath"
            if source.empty_dir is not None:
                return "emptyDir"
        return ""

    @property
    def claim(self) -> str:
        """The name of its PersistentVolumeClaim; "" for a volume of another kind."""
        source = self.persistent_volume_claim or self.volume_source.persistent_volume_claim
        return "" if source is None else source.claim_name

    @property
    def is_ephemeral(self) -> bool:
        """Whether its claim is created, and deleted, with each pod."""
        return self.ephemeral is not None or self.volume_source.ephemeral is not None


class PodSpecWithVolumes(PodSpec, frozen=True):
    """A pod's spec with its volumes."""

    volumes: Annotated[tuple[Volume, ...], 1] = ()


class ClaimNames(msgspec.Struct, frozen=True):
    """The names of the claims that the pods of a template use.

    Attributes:
        templates: The names of a StatefulSet's claim templates: each pod has claims of its own, created before it.
        shared: The claims that all pods use.
        start: The ordinal of a StatefulSet's first pod.
    """

    templates: tuple[str, ...] = ()
    shared: tuple[str, ...] = ()
    start: int = 0

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self.templates or self.shared)

    def of(self, pod: str) -> tuple[str, ...]:
        """Return the names of the claims of the pod with a name.

        Source: kubernetes v1.37.1 pkg/controller/statefulset/stateful_set_utils.go, getPersistentVolumeClaimName.
        """
        return (*(f"{template}-{pod}" for template in self.templates), *self.shared)


def shared_claims(volumes: Iterable[Volume], templates: Iterable[str] = ()) -> tuple[str, ...]:
    """Return the claims that volumes name; a claim template replaces the volume of its name.

    The claim of an ephemeral volume is created with each pod, so it is bound to no node before.

    Source: kubernetes v1.37.1 pkg/controller/statefulset/stateful_set_utils.go, updateStorage.
    """
    replaced = frozenset(templates)
    return tuple(dict.fromkeys(volume.claim for volume in volumes if volume.claim and volume.name not in replaced))


class DetailedPodSpec(PodSpecWithVolumes, frozen=True):
    """A pod's spec with its volumes and its priority, which is None where the API server has not resolved it."""

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


class PodWithVolumes(Pod, frozen=True):
    """A pod with its volumes, as it is read from files."""

    spec: Annotated[PodSpecWithVolumes, 2] = PodSpecWithVolumes()


class DetailedPod(PodWithVolumes, frozen=True):
    """A pod in detail."""

    spec: Annotated[DetailedPodSpec, 2] = DetailedPodSpec()
    status: Annotated[DetailedPodStatus, 3] = DetailedPodStatus()

    @property
    def unscheduled(self) -> PodCondition | None:
        """The condition with the reason why the pod has no node, if the scheduler wrote one."""
        conditions = self.status.conditions
        return next((c for c in conditions if (c.type, c.status) == ("PodScheduled", "False")), None)
