"""Ownership: who owns a pod, up to the root, and what was said about it and its owners."""

from __future__ import annotations

from typing import Final

from kubectl_spread.audit.snapshot.records import EventRecord, OwnerRecord
from kubectl_spread.audit.snapshot.scope import Target
from kubectl_spread.kube.api.types import Event, ObjectMeta, OwnerReference

REASONS: Final = frozenset({"FailedCreate", "FailedScheduling", "ScalingReplicaSet", "SuccessfulDelete"})
"""The reasons of the events that are kept; pods have many others."""


class Ownership:
    """The workloads that were read, by namespace and name, and the events about them."""

    def __init__(self) -> None:
        """Start without any."""
        self._owners: dict[tuple[str, Target], OwnerRecord] = {}
        self._events: dict[tuple[str, Target], list[EventRecord]] = {}

    def add(self, namespace: str, record: OwnerRecord) -> None:
        """Keep a workload."""
        self._owners[namespace, record.target] = record

    def add_event(self, event: Event) -> None:
        """Keep what was said about an object, if it is one of what is asked for later."""
        if event.reason not in REASONS:
            return
        about = event.involved_object
        record = EventRecord(
            reason=event.reason,
            message=event.message,
            count=max(event.count, event.series.count, 1),
            last=event.last_timestamp
            or event.series.last_observed_time
            or event.event_time
            or event.metadata.creation_timestamp,
        )
        self._events.setdefault((about.namespace, Target(about.kind, about.name)), []).append(record)

    def chain(self, namespace: str, reference: OwnerReference | None) -> tuple[OwnerRecord, ...]:
        """Return the owners from the one that is referred to up to the root; one that was not read ends the chain."""
        chain: list[OwnerRecord] = []
        while reference is not None:
            target = Target(reference.kind, reference.name)
            record = self._owners.get((namespace, target))
            if record is None:
                record = OwnerRecord(target, None, {}, "")
            if any(record.target == known.target for known in chain):
                break
            chain.append(record)
            reference = record.owner
        return tuple(chain)

    def below(self, namespace: str, target: Target) -> list[OwnerRecord]:
        """Return the workloads that were read and that ``target`` owns itself, with or without pods, by name."""
        found = [
            record
            for (place, _), record in self._owners.items()
            if place == namespace and record.owner is not None
            if Target(record.owner.kind, record.owner.name) == target
        ]
        return sorted(found, key=lambda record: record.target.name)

    @property
    def owner_kinds(self) -> frozenset[str]:
        """The kinds of what owns a workload that was read."""
        return frozenset(record.owner.kind for record in self._owners.values() if record.owner is not None)

    def record(self, namespace: str, target: Target) -> OwnerRecord | None:
        """Return what is known about a workload that was read."""
        return self._owners.get((namespace, target))

    def events(self, namespace: str, target: Target, reason: str) -> list[EventRecord]:
        """Return what was said for one reason about an object and the workloads below it, the newest first."""
        found = [
            record
            for (place, about), records in self._events.items()
            if place == namespace and self._belongs(namespace, about, target)
            for record in records
            if record.reason == reason
        ]
        return sorted(found, key=_newest_first)

    def events_about(self, namespace: str, target: Target, reason: str) -> list[EventRecord]:
        """Return what was said for one reason about an object itself, the newest first."""
        found = self._events.get((namespace, target), ())
        return sorted((record for record in found if record.reason == reason), key=_newest_first)

    def _belongs(self, namespace: str, about: Target, target: Target) -> bool:
        """Tell whether an object is ``target`` or has it among its owners."""
        if about == target:
            return True
        record = self._owners.get((namespace, about))
        chain = () if record is None else self.chain(namespace, record.owner)
        return any(owner.target == target for owner in chain)


def _newest_first(record: EventRecord) -> tuple[float, str]:
    return (-record.last.timestamp() if record.last else 0.0, record.message)


def controller(metadata: ObjectMeta) -> OwnerReference | None:
    """Return the owner reference that says it controls the object, if any."""
    return next((owner for owner in metadata.owner_references if owner.controller), None)
