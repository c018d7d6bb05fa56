"""Sparse pods: a pod described by a similar pod and the fields that differ, and the fields of explain."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Annotated

from kubectl_spread.kube.api.types import Container, Int32, Message, Pod, PodSpec, PodStatus, Volume


def shared_claims(volumes: Iterable[Volume], templates: Iterable[str] = ()) -> tuple[str, ...]:
    """Return the claims that volumes name; a claim template replaces the volume of its name.

    The claim of an ephemeral volume is created with each pod, so it is bound to no node before.

    Source: kubernetes v1.37.1 pkg/controller/statefulset/stateful_set_utils.go, updateStorage.
    """
    replaced = frozenset(templates)
    return tuple(dict.fromkeys(volume.claim for volume in volumes if volume.claim and volume.name not in replaced))


def claims_of(pod: str, node: str, volumes: Sequence[Volume]) -> tuple[str, ...]:
    """Return the names of the claims of the pod with a name, which may be on a node.

    The claim of an ephemeral volume counts while the pod is pending: a pod that replaces it gets another claim.

    Source: kubernetes v1.37.1 staging/src/k8s.io/component-helpers/storage/ephemeral/ephemeral.go, VolumeClaimName.
    """
    ephemeral = () if node else (volume.name for volume in volumes if volume.is_ephemeral)
    return (*shared_claims(volumes), *(f"{pod}-{name}" for name in ephemeral))


class DetailedContainer(Container, frozen=True):
    """A container with its name."""

    name: Annotated[str, 1] = ""


class PodResourceClaim(Message, frozen=True):
    """A claim of a pod to devices."""

    name: Annotated[str, 1] = ""


class DetailedPodSpec(PodSpec, frozen=True):
    """A pod's spec with its devices and priority, which is None where the API server has not resolved it.

    ``preemption_policy`` is ``Never`` or ``PreemptLowerPriority``.
    """

    containers: Annotated[tuple[DetailedContainer, ...], 2] = ()
    init_containers: Annotated[tuple[DetailedContainer, ...], 20] = ()
    priority_class_name: Annotated[str, 24] = ""
    priority: Annotated[Int32 | None, 25] = None
    preemption_policy: Annotated[str, 31] = ""
    resource_claims: Annotated[tuple[PodResourceClaim, ...], 39] = ()


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


class SparsePod(Message, frozen=True, gc=False, kw_only=False):
    """A pod of which only the fields that differ between pods of one template are decoded.

    Attributes:
        like: A pod that was decoded in full; in the fields that a check reads, it differs only in those below.
        name: The name.
        node_name: The node that the pod is bound to, or "".
        generation: See ``ObjectMeta``.
        created: The time of creation.
        terminating: Whether the pod has a deletion timestamp.
        has_managed_fields: Whether the pod has any managed fields.
        claims: The names of its PersistentVolumeClaims.
        decode: Decodes the whole pod, for the few pods whose managed fields are read.
    """

    like: Pod
    name: str
    node_name: str
    generation: int
    created: datetime | None
    terminating: bool
    has_managed_fields: bool
    claims: tuple[str, ...]
    decode: Callable[[], Pod]

    @property
    def key(self) -> str:
        """The namespace and name, by which an API server sorts lists."""
        return f"{self.like.metadata.namespace}/{self.name}"


def alone(pod: Pod) -> SparsePod:
    """Return a pod that shares no fields with another one."""
    metadata = pod.metadata
    return SparsePod(
        pod,
        metadata.name,
        pod.spec.node_name,
        metadata.generation,
        metadata.creation_timestamp,
        metadata.deletion_timestamp is not None,
        bool(metadata.managed_fields),
        claims_of(metadata.name, pod.spec.node_name, pod.spec.volumes),
        lambda: pod,
    )
