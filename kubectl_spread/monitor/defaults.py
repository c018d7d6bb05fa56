"""Default constraints: the Services and owners of a cluster, and the pod classes with what is deduced from them."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping

from kubectl_spread.audit.snapshot.default_constraints import may_have_defaults, with_defaults
from kubectl_spread.audit.snapshot.default_selectors import DefaultSelectors
from kubectl_spread.audit.snapshot.records import PodClass
from kubectl_spread.kube.api import labels as labelselectors
from kubectl_spread.kube.api.labels import Labels
from kubectl_spread.kube.api.objects import ObjectRef
from kubectl_spread.kube.api.types import LabelSelector
from kubectl_spread.kube.api.workloads import WorkloadObject
from kubectl_spread.kube.scheduler.configuration import Profile
from kubectl_spread.kube.scheduler.defaultconstraints import Service
from kubectl_spread.monitor.mirror import ObjectName


class ClusterDefaults:
    """The Services and owners from whose selectors default constraints are deduced, and the classes that have them.

    Attributes:
        enabled: Whether any scheduler has default constraints; without them nothing is stored.
    """

    def __init__(self, schedulers: Mapping[str, Profile]) -> None:
        """Start without objects; ``schedulers`` has the spread configuration of each scheduler, by name."""
        self.enabled = any(profile.defaults for profile in schedulers.values())
        self._selectors = DefaultSelectors(enabled=self.enabled)
        self._services: dict[str, dict[str, Labels]] = {}
        self._derived: dict[PodClass, tuple[LabelSelector, PodClass]] = {}

    def put_service(self, service: Service) -> bool:
        """Store a Service in its present state; tell whether its selector is another one now."""
        metadata, selector = service.metadata, service.spec.selector
        of_namespace = self._services.setdefault(metadata.namespace, {})
        if of_namespace.get(metadata.name) == selector:
            return False
        of_namespace[metadata.name] = selector
        self._select(metadata.namespace)
        return True

    def remove_service(self, namespace: str, name: str) -> bool:
        """Remove a Service that no longer exists; tell whether it was there."""
        if self._services.get(namespace, {}).pop(name, None) is None:
            return False
        self._select(namespace)
        return True

    def service_names(self) -> Iterable[ObjectName]:
        """Return the names of the stored Services."""
        return (ObjectName(namespace, name) for namespace, names in self._services.items() for name in names)

    def _select(self, namespace: str) -> None:
        """Give the Services of a namespace to the selectors, in the order in which an API server lists them."""
        selectors = [selector for _, selector in sorted(self._services[namespace].items())]
        self._selectors.set_services(namespace, selectors)
        if not selectors:
            del self._services[namespace]

    def put_owner(self, kind: str, workload: WorkloadObject) -> bool:
        """Store the selector of a workload in its present state; tell whether it is another one now."""
        return self._selectors.add_owner(kind, workload)

    def remove_owner(self, ref: ObjectRef) -> None:
        """Remove the selector of a workload that no longer exists."""
        self._selectors.remove_owner(ref)

    def of(self, pod_class: PodClass) -> PodClass:
        """Return a class with its scheduler's default constraints, if it gets any."""
        if not may_have_defaults(pod_class):
            return pod_class
        selector = self._selectors.of(pod_class)
        if labelselectors.is_empty(selector):
            return pod_class
        before = self._derived.get(pod_class)
        if before is None or before[0] != selector:
            before = self._derived[pod_class] = (selector, with_defaults(pod_class, selector))
        return before[1]

    def keep_only(self, pod_classes: Container[PodClass]) -> None:
        """Forget what was made of all classes but some."""
        self._derived = {each: derived for each, derived in self._derived.items() if each in pod_classes}
