"""Default constraints: the pod classes of a cluster with what its Services and owners decide."""

from __future__ import annotations

from collections.abc import Container, Mapping

from kubectl_spread.audit.snapshot.default_constraints import may_have_defaults, with_defaults
from kubectl_spread.audit.snapshot.default_selectors import DefaultSelectors
from kubectl_spread.audit.snapshot.records import PodClass
from kubectl_spread.kube.api import labels as labelselectors
from kubectl_spread.kube.api.types import LabelSelector
from kubectl_spread.kube.scheduler.configuration import Profile


class ClusterDefaults:
    """The classes of pods with the default constraints of their schedulers.

    Attributes:
        selectors: The selectors of Services and owners, from which those of default constraints are deduced.
    """

    def __init__(self, schedulers: Mapping[str, Profile]) -> None:
        """Start without objects; ``schedulers`` has the spread configuration of each scheduler, by name."""
        self.selectors = DefaultSelectors(schedulers)
        self._derived: dict[PodClass, tuple[LabelSelector, PodClass]] = {}

    @property
    def enabled(self) -> bool:
        """Whether any scheduler has default constraints."""
        return self.selectors.enabled

    def of(self, pod_class: PodClass) -> PodClass:
        """Return a class with its scheduler's default constraints, if it gets any."""
        if not may_have_defaults(pod_class):
            return pod_class
        selector = self.selectors.of(pod_class)
        if labelselectors.is_empty(selector):
            return pod_class
        derived = self._derived.get(pod_class)
        if derived is None or derived[0] != selector:
            derived = self._derived[pod_class] = (selector, with_defaults(pod_class, selector))
        return derived[1]

    def keep_only(self, pod_classes: Container[PodClass]) -> None:
        """Forget what was made of all classes but some."""
        self._derived = {each: derived for each, derived in self._derived.items() if each in pod_classes}
