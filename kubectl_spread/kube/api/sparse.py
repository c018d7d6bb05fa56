"""Sparse pods: a pod described by a similar pod and the fields that differ."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from kubectl_spread.kube.api.types import Message, Pod


class SparsePod(Message, frozen=True, gc=False, kw_only=False):
    """A pod of which only the fields are decoded that differ between pods of one template.

    Attributes:
        like: A pod that was decoded in full, and has the same in all fields that a check reads but for those below.
        name: Its name.
        node_name: The node that it is bound to, or "".
        generation: See ``ObjectMeta``.
        created: When it was created.
        terminating: Whether it has a deletion timestamp.
        has_managed_fields: Whether it has any managed fields.
        content: The same number for two pods that have the same in all these fields.
        decode: Decodes all of it, for the few pods whose managed fields are read.
    """

    like: Pod
    name: str
    node_name: str
    generation: int
    created: datetime | None
    terminating: bool
    has_managed_fields: bool
    content: int
    decode: Callable[[], Pod]

    @property
    def key(self) -> str:
        """Its namespace and name, as lists are sorted."""
        return f"{self.like.metadata.namespace}/{self.name}"


def alone(pod: Pod) -> SparsePod:
    """Return a pod that is like no other one."""
    metadata = pod.metadata
    return SparsePod(
        pod,
        metadata.name,
        pod.spec.node_name,
        metadata.generation,
        metadata.creation_timestamp,
        metadata.deletion_timestamp is not None,
        bool(metadata.managed_fields),
        0,
        lambda: pod,
    )
