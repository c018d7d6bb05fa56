"""Default selectors: the scheduler deduces the selector of default constraints from Services and owners."""

from __future__ import annotations

from typing import Final

from kubectl_spread.audit.snapshot.records import PodClass
from kubectl_spread.kube.api.labels import Labels
from kubectl_spread.kube.api.objects import ObjectRef
from kubectl_spread.kube.api.types import LabelSelector, OwnerReference
from kubectl_spread.kube.api.workloads import WorkloadObject
from kubectl_spread.kube.scheduler import defaultconstraints
from kubectl_spread.kube.scheduler.defaultconstraints import Service

_CONTROLLER: Final = "ReplicationController"
API_VERSIONS: Final = {_CONTROLLER: "v1", "ReplicaSet": "apps/v1", "StatefulSet": "apps/v1"}
"""The kinds of owners whose selectors count, and the API version by which the scheduler knows each."""


class DefaultSelectors:
    """The selectors of Services and owners, stored only if default constraints need them."""

    def __init__(self, *, enabled: bool) -> None:
        """Start empty; ``enabled`` tells whether selectors are deduced."""
        self.enabled = enabled
        self.services = 0
        self._services: dict[str, list[Labels]] = {}
        self._owners: dict[ObjectRef, LabelSelector] = {}

    def add_service(self, service: Service) -> None:
        """Store the selector of a Service; without one it selects nothing."""
        self.services += 1
        if self.enabled and service.spec.selector:
            self._services.setdefault(service.metadata.namespace, []).append(service.spec.selector)

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
        services = self._services.get(pod_class.namespace, ())
        own = self._of_owner(pod_class)
        if own is not None and pod_class.owner is not None and pod_class.owner.kind == _CONTROLLER:
            return defaultconstraints.default_selector(pod_class.labels, services, controller=own.match_labels)
        return defaultconstraints.default_selector(pod_class.labels, services, owner=own)

    def _of_owner(self, pod_class: PodClass) -> LabelSelector | None:
        owner = pod_class.owner
        if owner is None or not _counts(owner):
            return None
        return self._owners.get(ObjectRef(pod_class.namespace, owner.kind, owner.name))


def _counts(owner: OwnerReference | None) -> bool:
    return owner is not None and API_VERSIONS.get(owner.kind) == owner.api_version
