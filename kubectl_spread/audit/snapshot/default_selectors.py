"""Default selectors: the scheduler deduces the selector of default constraints from Services and owners."""

from __future__ import annotations

from collections.abc import Sequence
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
        self._services: dict[str, Sequence[Labels]] = {}
        self._owners: dict[ObjectRef, LabelSelector] = {}

    def add_service(self, service: Service) -> None:
        """Store the selector of a Service; without one it selects nothing."""
        self.services += 1
        if self.enabled and service.spec.selector:
            namespace = service.metadata.namespace
            self._services[namespace] = (*self._services.get(namespace, ()), service.spec.selector)

    def set_services(self, namespace: str, selectors: Sequence[Labels]) -> None:
        """Store the selectors of all Services of a namespace instead of those before."""
        self._services[namespace] = [selector for selector in selectors if selector]

    def add_owner(self, kind: str, workload: WorkloadObject) -> bool:
        """Store the selector of a workload, if its kind counts; tell whether it is another one than before."""
        if not self.enabled or kind not in API_VERSIONS:
            return False
        ref = ObjectRef(workload.metadata.namespace, kind, workload.metadata.name)
        before, selector = self._owners.get(ref), workload.selector or LabelSelector()
        self._owners[ref] = selector
        return selector != before

    def remove_owner(self, ref: ObjectRef) -> None:
        """Remove the selector of a workload, if it is stored."""
        self._owners.pop(ref, None)

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
