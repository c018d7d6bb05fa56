"""Default selectors: the scheduler deduces the selector of default constraints from Services and owners."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kubectl_spread.audit.snapshot.records import PodClass
from kubectl_spread.kube.api.labels import Labels, Selecting
from kubectl_spread.kube.api.objects import ObjectRef
from kubectl_spread.kube.api.types import LabelSelector, OwnerReference
from kubectl_spread.kube.api.workloads import WorkloadObject
from kubectl_spread.kube.scheduler.configuration import Profile
from kubectl_spread.kube.scheduler.podtopologyspread import constraints
from kubectl_spread.kube.scheduler.podtopologyspread.constraints import Service

_CONTROLLER: Final = "ReplicationController"
API_VERSIONS: Final = {_CONTROLLER: "v1", "ReplicaSet": "apps/v1", "StatefulSet": "apps/v1"}
"""The kinds of owners whose selectors count, and the API version by which the scheduler knows each."""


class DefaultSelectors:
    """The selectors of Services and owners, stored only if default constraints need them.

    Attributes:
        enabled: Whether selectors are deduced; without that nothing is stored.
        services: The number of Services that were added.
    """

    def __init__(self, schedulers: Mapping[str, Profile]) -> None:
        """Start empty; selectors are deduced if any of the schedulers has default constraints."""
        self.enabled = any(profile.defaults for profile in schedulers.values())
        self.services = 0
        self._services = Selecting[Labels]()
        self._owners: dict[ObjectRef, LabelSelector] = {}

    def add_service(self, service: Service) -> None:
        """Store the selector of a Service, which selects nothing if it is empty."""
        self.services += 1
        if self.enabled and (labels := service.spec.selector):
            self._services.add(service.metadata.namespace, LabelSelector(match_labels=labels), labels)

    def add_owner(self, kind: str, workload: WorkloadObject) -> None:
        """Store the selector of a workload, if its kind counts."""
        if self.enabled and kind in API_VERSIONS:
            ref = ObjectRef(workload.metadata.namespace, kind, workload.metadata.name)
            self._owners[ref] = workload.selector or LabelSelector()

    def knows(self, pod_class: PodClass) -> bool:
        """Tell whether the selector of the pods' owner was read, or no owner counts."""
        return not _counts(pod_class.owner) or self._of_owner(pod_class) is not None

    def of(self, pod_class: PodClass) -> LabelSelector:
        """Return the selector that the scheduler deduces for a pod class; an owner that was not read adds nothing."""
        services = self._services.that_may_select(pod_class.namespace, pod_class.labels)
        own = self._of_owner(pod_class)
        if own is not None and pod_class.owner is not None and pod_class.owner.kind == _CONTROLLER:
            return constraints.default_selector(pod_class.labels, services, controller=own.match_labels)
        return constraints.default_selector(pod_class.labels, services, owner=own)

    def _of_owner(self, pod_class: PodClass) -> LabelSelector | None:
        owner = pod_class.owner
        if owner is None or not _counts(owner):
            return None
        return self._owners.get(ObjectRef(pod_class.namespace, owner.kind, owner.name))


def _counts(owner: OwnerReference | None) -> bool:
    return owner is not None and API_VERSIONS.get(owner.kind) == owner.api_version
