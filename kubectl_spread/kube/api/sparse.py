"""Sparse pods: a pod described by a similar pod and the fields that differ."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from kubectl_spread.kube.api.detail import claims_of
from kubectl_spread.kube.api.types import Message, Pod


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
