"""Default constraints: what does the scheduler ask of a pod that has no spread constraints?

Source: kubernetes v1.37.1 pkg/scheduler/framework/plugins/podtopologyspread/common.go, buildDefaultConstraints, and
pkg/scheduler/framework/plugins/helper/spread.go, DefaultSelector.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Final, TypeVar

import msgspec

from kubectl_spread.kube import labels as labelselectors
from kubectl_spread.kube import podtopologyspread
from kubectl_spread.kube.features import Behaviour
from kubectl_spread.kube.labels import Labels
from kubectl_spread.kube.model import LabelSelector, Message, ObjectMeta, Pod, TopologySpreadConstraint
from kubectl_spread.kube.podtopologyspread import Constraint

SYSTEM: Final = (
    TopologySpreadConstraint(max_skew=3, topology_key="kubernetes.io/hostname", when_unsatisfiable="ScheduleAnyway"),
    TopologySpreadConstraint(
        max_skew=5, topology_key="topology.kubernetes.io/zone", when_unsatisfiable="ScheduleAnyway"
    ),
)
"""What a scheduler that is not configured otherwise has."""


class _MapSelectorSpec(Message, frozen=True):
    selector: Annotated[dict[str, str], 2] = msgspec.field(default_factory=dict)


class _SelectorSpec(Message, frozen=True):
    selector: Annotated[LabelSelector | None, 2] = None


class MapSelecting(Message, frozen=True):
    """A Service or ReplicationController."""

    metadata: Annotated[ObjectMeta, 1] = ObjectMeta()
    spec: Annotated[_MapSelectorSpec, 2] = _MapSelectorSpec()


class Selecting(Message, frozen=True):
    """A ReplicaSet or StatefulSet."""

    metadata: Annotated[ObjectMeta, 1] = ObjectMeta()
    spec: Annotated[_SelectorSpec, 2] = _SelectorSpec()


T = TypeVar("T", MapSelecting, Selecting)


@dataclass(frozen=True, slots=True)
class Selectors:
    """The objects whose selectors stand for the one that a default constraint lacks."""

    services: Sequence[MapSelecting] = ()
    replication_controllers: Sequence[MapSelecting] = ()
    replica_sets: Sequence[Selecting] = ()
    stateful_sets: Sequence[Selecting] = ()


def constraints(
    defaults: Sequence[TopologySpreadConstraint], pod: Pod, selectors: Selectors, behaviour: Behaviour
) -> tuple[Constraint, ...]:
    """Return the default constraints for a pod without own ones; none where no selector can be deduced.

    What a default says of matchLabelKeys has no effect.
    """
    selector = default_selector(pod, selectors)
    if labelselectors.is_empty(selector):
        return ()
    return tuple(podtopologyspread.working_constraint(default, selector, behaviour) for default in defaults)


def default_selector(pod: Pod, selectors: Selectors) -> LabelSelector:
    """Return the requirements of all Services that select the pod and of the controller that owns it.

    A Service without a selector selects nothing. Owners other than ReplicationControllers, ReplicaSets and
    StatefulSets add nothing.
    """
    metadata = pod.metadata
    found: dict[str, str] = {}
    for service in selectors.services:
        if service.metadata.namespace == metadata.namespace and _selects(service.spec.selector, metadata.labels):
            found |= service.spec.selector
    owner = next((one for one in metadata.owner_references if one.controller), None)
    if owner is None:
        return LabelSelector(match_labels=found)
    wanted = (metadata.namespace, owner.name)
    match (owner.api_version, owner.kind):
        case ("v1", "ReplicationController"):
            for controller in _named(selectors.replication_controllers, wanted):
                found |= controller.spec.selector
        case ("apps/v1", "ReplicaSet"):
            return _with_all(found, _named(selectors.replica_sets, wanted))
        case ("apps/v1", "StatefulSet"):
            return _with_all(found, _named(selectors.stateful_sets, wanted))
    return LabelSelector(match_labels=found)


def _selects(selector: Labels, labels: Labels) -> bool:
    return all(labels.get(key) == value for key, value in selector.items())


def _named(objects: Sequence[T], wanted: tuple[str, str]) -> list[T]:
    return [one for one in objects if (one.metadata.namespace, one.metadata.name) == wanted]


def _with_all(found: dict[str, str], owners: Sequence[Selecting]) -> LabelSelector:
    """Add an owner's requirements to ``found``; a label may stand in both."""
    expressions = [
        requirement
        for owner in owners
        if owner.spec.selector is not None and labelselectors.valid(owner.spec.selector)
        for requirement in labelselectors.requirements(owner.spec.selector)
    ]
    return LabelSelector(match_labels=found, match_expressions=tuple(expressions))
