"""Ownership: the owners of a pod up to the root, and the events about the pod and its owners."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from kubectl_spread.audit.snapshot.records import EventRecord, OwnerRecord
from kubectl_spread.kube.api.objects import ObjectRef
from kubectl_spread.kube.api.types import Event, ObjectMeta, OwnerReference
from kubectl_spread.kube.custom.groups import kind_name

_LONGEST_CHAIN: Final = 64
"""The most owners that are followed; a CronJob's pods have two."""
REASONS: Final = frozenset({"FailedCreate", "FailedScheduling", "ScalingReplicaSet", "SuccessfulDelete"})
"""The reasons of the events that are stored; pods have many others."""


class Ownership:
    """The workloads that were read, by namespace and name, and the events about them."""

    def __init__(self) -> None:
        self._owners: dict[ObjectRef, OwnerRecord] = {}
        self._chains: dict[ObjectRef, tuple[OwnerRecord, ...]] = {}
        self._events: dict[ObjectRef, list[EventRecord]] = {}

    def add(self, record: OwnerRecord) -> None:
        """Store a workload."""
        self._owners[record.ref] = record
        self._chains.clear()

    def add_event(self, event: Event) -> None:
        """Store an event if its reason is one of ``REASONS``."""
        if event.reason not in REASONS:
            return
        subject = event.involved_object
        record = EventRecord(
            reason=event.reason,
            message=event.message,
            count=max(event.count, event.series.count, 1),
            last=event.last_timestamp
            or event.series.last_observed_time
            or event.event_time
            or event.metadata.creation_timestamp,
        )
        self._events.setdefault(ObjectRef(subject.namespace, subject.kind, subject.name), []).append(record)

    def chain(self, namespace: str, reference: OwnerReference | None) -> tuple[OwnerRecord, ...]:
        """Return the owners from the referenced owner to the root; an owner that was not read ends the chain.

        A chain with a cycle is cut, and so is one that is longer than any controller makes.
        """
        if reference is None:
            return ()
        first = ObjectRef(namespace, reference.kind, reference.name)
        if first not in self._chains:
            self._chains[first] = tuple(self._walk(first))
        return self._chains[first]

    def ignored(self, chain: Iterable[OwnerRecord]) -> Iterator[str]:
        """Yield the annotations of owners that name rules to ignore.

        The controller of a Deployment copies its annotations to its ReplicaSets, and never removes one there. So the
        annotation of a ReplicaSet is left out where its owner was read.

        Source: kubernetes v1.37.1 pkg/controller/deployment/util/deployment_util.go,
        copyDeploymentAnnotationsToReplicaSet.
        """
        for record in chain:
            owner = record.owner
            above = owner and ObjectRef(record.ref.namespace, owner.kind, owner.name)
            if record.ref.kind != "ReplicaSet" or above not in self._owners:
                yield record.ignored

    def _walk(self, ref: ObjectRef) -> Iterator[OwnerRecord]:
        walked: set[ObjectRef] = set()
        while ref not in walked and len(walked) < _LONGEST_CHAIN:
            walked.add(ref)
            record = self._owners.get(ref) or OwnerRecord(ref, None, {}, "")
            yield record
            if record.owner is None:
                return
            ref = ObjectRef(ref.namespace, record.owner.kind, record.owner.name)

    def below(self, owner: ObjectRef) -> list[OwnerRecord]:
        """Return the workloads that ``owner`` owns directly, with or without pods, by name."""
        records = [
            record
            for ref, record in self._owners.items()
            if record.owner is not None and ObjectRef(ref.namespace, record.owner.kind, record.owner.name) == owner
        ]
        return sorted(records, key=lambda record: record.ref.name)

    @property
    def objects(self) -> set[ObjectRef]:
        """The workloads that were read, and their owners."""
        return {owner for ref in self._owners for owner in self.owners(ref)}

    def owners(self, ref: ObjectRef) -> list[ObjectRef]:
        """Return a workload and its known owners up to the root."""
        return [record.ref for record in self._walk(ref)]

    def record(self, ref: ObjectRef) -> OwnerRecord | None:
        """Return the record of a workload; None if it was not read."""
        return self._owners.get(ref)

    def events(self, ref: ObjectRef, reason: str) -> list[EventRecord]:
        """Return the events of one reason about an object and the workloads below it, the newest first."""
        records = [
            record
            for subject, events in self._events.items()
            if self._is_or_has_owner(subject, ref)
            for record in events
            if record.reason == reason
        ]
        return sorted(records, key=_newest_first)

    def events_about(self, ref: ObjectRef, reason: str) -> list[EventRecord]:
        """Return the events of one reason about an object itself, the newest first."""
        records = self._events.get(ref, ())
        return sorted((record for record in records if record.reason == reason), key=_newest_first)

    def _is_or_has_owner(self, subject: ObjectRef, owner: ObjectRef) -> bool:
        """Tell whether an object is ``owner`` or has it among its owners."""
        if subject == owner or subject.namespace != owner.namespace:
            return subject == owner
        record = self._owners.get(subject)
        chain = () if record is None else self.chain(subject.namespace, record.owner)
        return any(above.ref == owner for above in chain)


def _newest_first(record: EventRecord) -> tuple[float, str]:
    return (-record.last.timestamp() if record.last else 0.0, record.message)


def controller(metadata: ObjectMeta) -> OwnerReference | None:
    """Return the owner reference of the controller, if any, with the name of its kind."""
    owner = next((owner for owner in metadata.owner_references if owner.controller), None)
    if owner is None or (kind := kind_name(owner.api_version, owner.kind)) == owner.kind:
        return owner
    return msgspec.structs.replace(owner, kind=kind)
