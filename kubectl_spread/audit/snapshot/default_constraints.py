"""Default constraints: those that the scheduler adds to pods that have none, with a selector of Services and owners.

Pod classes are made while pods are read. Services and owners are read later, so constraints are added before the
evaluation.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import Final

import msgspec

from kubectl_spread.audit.snapshot.records import PodClass, PodRecord
from kubectl_spread.audit.snapshot.scope import Target
from kubectl_spread.audit.snapshot.terms import SelectorParts, TopologyTerm
from kubectl_spread.kube.api import labels as labelselectors
from kubectl_spread.kube.api.field import FieldPath
from kubectl_spread.kube.api.labels import Labels, Selecting
from kubectl_spread.kube.api.objects import ObjectRef
from kubectl_spread.kube.api.types import LabelSelector, OwnerReference, TopologySpreadConstraint, WhenUnsatisfiable
from kubectl_spread.kube.api.workloads import WorkloadObject
from kubectl_spread.kube.scheduler.configuration import Profile
from kubectl_spread.kube.scheduler.podtopologyspread import constraints
from kubectl_spread.kube.scheduler.podtopologyspread.constraints import Service, effective_selector

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

    def applied_to(
        self, pods: Sequence[PodRecord], unread: Container[str] = ()
    ) -> tuple[list[PodRecord], list[Target]]:
        """Return pods with the default constraints of their schedulers, once everything is read.

        The owners come with them whose selectors are missing; their pods get no default constraints.

        Args:
            pods: The pods.
            unread: The kinds of owners that could not be read.
        """
        derived: dict[PodClass, PodClass] = {}
        missing: set[Target] = set()
        classes = dict.fromkeys(pod.pod_class for pod in pods) if self.enabled else ()
        for pod_class in (each for each in classes if _lacks_defaults(each)):
            owner = pod_class.owner
            if owner is not None and owner.kind in unread and _counts(owner) and self._of_owner(pod_class) is None:
                missing.add(Target(owner.kind, owner.name))
            elif not labelselectors.is_empty(selector := self.of(pod_class)):
                derived[pod_class] = with_defaults(pod_class, selector)
        with_constraints = [
            msgspec.structs.replace(pod, pod_class=derived[pod.pod_class]) if pod.pod_class in derived else pod
            for pod in pods
        ]
        return with_constraints, sorted(missing, key=lambda target: (target.kind, target.name))

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


def may_have_defaults(pod_class: PodClass) -> bool:
    """Tell whether the scheduler may add default constraints: only to pods without constraints of their own."""
    own = pod_class.spec.topology_spread_constraints
    return not own and pod_class.profile is not None and bool(pod_class.profile.defaults)


def _lacks_defaults(pod_class: PodClass) -> bool:
    return may_have_defaults(pod_class) and not any(term.default for term in pod_class.terms)


def with_defaults(pod_class: PodClass, deduced_selector: LabelSelector) -> PodClass:
    """Return a class with its scheduler's default constraints before its affinity terms.

    Default constraints that the scheduler ignores, because its plugin is off, are left out.
    """
    defaults = () if pod_class.profile is None else pod_class.profile.defaults
    # Every effective selector has each requirement once.
    selector = effective_selector(deduced_selector, (), {}) or deduced_selector
    terms = tuple(
        _term(index, default, selector)
        for index, default in enumerate(defaults)
        if pod_class.profile is not None and pod_class.profile.respects(hard=_is_hard(default))
    )
    splits = tuple(SelectorParts(selector, {}, frozenset()) for _ in terms)
    return msgspec.structs.replace(pod_class, terms=(*terms, *pod_class.terms), splits=(*splits, *pod_class.splits))


def _is_hard(constraint: TopologySpreadConstraint) -> bool:
    return constraint.when_unsatisfiable == WhenUnsatisfiable.DO_NOT_SCHEDULE


def _term(index: int, default: TopologySpreadConstraint, selector: LabelSelector) -> TopologyTerm:
    """Return a default constraint as a term; its matchLabelKeys have no effect."""
    constraint = msgspec.structs.replace(default, label_selector=selector, match_label_keys=())
    return TopologyTerm(
        path=FieldPath(("defaultConstraints", index)),
        topology_key=constraint.topology_key,
        selector=selector,
        match_label_keys=(),
        mismatch_label_keys=(),
        required=_is_hard(default),
        constraint=constraint,
        default=True,
    )
