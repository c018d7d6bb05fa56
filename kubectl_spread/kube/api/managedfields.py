"""managedFields: which manager owns a field, and what is the latest time at which it can have written it?

Source: kubernetes v1.37.1 staging/src/k8s.io/apimachinery/pkg/util/managedfields.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec

from kubectl_spread.kube.api.types import ManagedFieldsEntry, ObjectMeta

_CREATION_TOLERANCE: Final = timedelta(seconds=1)
# A pod's constraints and affinity never change, so their owner wrote them when it created the pod.
_IMMUTABLE: Final = ("f:topologySpreadConstraints", "f:affinity")


class LabelOwner(msgspec.Struct, frozen=True):
    """The owner of a label, according to one entry of managedFields.

    Attributes:
        key: The key of the label.
        manager: The name of the manager.
        time: The last change of any field by the manager, so the label was written then or before.
        at_creation: Whether the entry created the pod and has not changed since, to the second.
    """

    key: str
    manager: str
    time: datetime | None
    at_creation: bool


def label_owners(metadata: ObjectMeta, keys: Iterable[str]) -> tuple[LabelOwner, ...]:
    """Return the owners of the labels ``keys``, in the order of managedFields; a label may have no owner."""
    label_keys = frozenset(keys)
    if not label_keys:
        return ()
    owners = []
    for entry in metadata.managed_fields:
        fields = _fields(entry)
        owned = label_keys & {name.removeprefix("f:") for name in _children(fields, "f:metadata", "f:labels")}
        creation = bool(owned) and _unchanged_since_creation(entry, fields, metadata.creation_timestamp)
        owners += [LabelOwner(key, entry.manager, entry.time, creation) for key in sorted(owned)]
    return tuple(owners)


class FieldOwner(msgspec.Struct, frozen=True):
    """The owner of a field; ``time`` is the last change by its manager, so the field was written then or before."""

    manager: str
    time: datetime


def field_owner(metadata: ObjectMeta, *path: str) -> FieldOwner | None:
    """Return the last owner of a field such as ``f:spec``, ``f:replicas``; None if it has no owner."""
    *above, name = path
    owners = [
        FieldOwner(entry.manager, entry.time)
        for entry in metadata.managed_fields
        if entry.time is not None and name in _children(_fields(entry), *above)
    ]
    return max(owners, key=lambda owner: owner.time, default=None)


def _fields(entry: ManagedFieldsEntry) -> dict[str, Any]:
    try:
        fields = msgspec.json.decode(entry.fields_v1)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return {}
    return fields if isinstance(fields, dict) else {}


def _children(fields: dict[str, Any], *path: str) -> dict[str, Any]:
    for name in path:
        below = fields.get(name)
        if not isinstance(below, dict):
            return {}
        fields = below
    return fields


def _unchanged_since_creation(entry: ManagedFieldsEntry, fields: dict[str, Any], created: datetime | None) -> bool:
    if entry.time is None or created is None or entry.subresource:
        return False
    created_the_pod = any(name in _children(fields, "f:spec") for name in _IMMUTABLE)
    return created_the_pod and entry.time <= created + _CREATION_TOLERANCE
