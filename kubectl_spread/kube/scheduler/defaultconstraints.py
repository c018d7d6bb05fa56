"""Default constraints: what does the scheduler ask of a pod that has no spread constraints?

Source: kubernetes v1.37.1 pkg/scheduler/framework/plugins/podtopologyspread/common.go, buildDefaultConstraints, and
pkg/scheduler/framework/plugins/helper/spread.go, DefaultSelector.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, Final, TypeVar

import msgspec

from kubectl_spread.kube.api import labels as labelselectors
from kubectl_spread.kube.api.labels import Labels
from kubectl_spread.kube.api.types import LabelSelector, Message, Object, Pod, TopologySpreadConstraint
from kubectl_spread.kube.features import Behaviour
from kubectl_spread.kube.scheduler import podtopologyspread
from kubectl_spread.kube.scheduler.podtopologyspread import Constraint

SYSTEM: Final = (
    TopologySpreadConstraint(max_skew=3, topology_key="kubernetes.io/hostname", when_unsatisfiable="ScheduleAnyway"),
    TopologySpreadConstraint(
        max_skew=5, topology_key="topology.kubernetes.io/zone", when_unsatisfiable="ScheduleAnyway"
    ),
)
"""What a scheduler that is not configured differently has."""


class _MapSelectorSpec(Message, frozen=True):
    selector: Annotated[dict[str, str], 2] = msgspec.field(default_factory=dict)


class _SelectorSpec(Message, frozen=True):
    selector: Annotated[LabelSelector | None, 2] = None


class MapSelecting(Object, frozen=True):
    """A Service or ReplicationController."""

    spec: Annotated[_MapSelectorSpec, 2] = _MapSelectorSpec()


class Selecting(Object, frozen=True):
    """A ReplicaSet or StatefulSet."""

    spec: Annotated[_SelectorSpec, 2] = _SelectorSpec()


T = TypeVar("T", MapSelecting, Selecting)
_NO_LABELS: Final[Labels] = {}


class SelectorSources(msgspec.Struct, frozen=True):
    """The objects whose selectors stand for the one that a default constraint lacks."""

    services: Sequence[MapSelecting] = ()
    replication_controllers: Sequence[MapSelecting] = ()
    replica_sets: Sequence[Selecting] = ()
    stateful_sets: Sequence[Selecting] = ()


def constraints(
    defaults: Sequence[TopologySpreadConstraint], pod: Pod, selectors: SelectorSources, behaviour: Behaviour
) -> tuple[Constraint, ...]:
    """Return the default constraints for a pod without own ones; none where no selector can be deduced.

    What a default says of matchLabelKeys has no effect.
    """
    selector = default_selector(pod, selectors)
    if labelselectors.is_empty(selector):
        return ()
    return tuple(podtopologyspread.working_constraint(default, selector, behaviour) for default in defaults)


def default_selector(pod: Pod, selectors: SelectorSources) -> LabelSelector:
    """Return the selector of a pod's default constraints, as ``deduce`` does, from the objects of all namespaces."""
    metadata = pod.metadata
    services = [one.spec.selector for one in selectors.services if one.metadata.namespace == metadata.namespace]
    owner = next((one for one in metadata.owner_references if one.controller), None)
    if owner is None:
        return deduce(metadata.labels, services)
    wanted = (metadata.namespace, owner.name)
    match (owner.api_version, owner.kind):
        case ("v1", "ReplicationController"):
            controller = _named(selectors.replication_controllers, wanted)
            return deduce(metadata.labels, services, by_labels=controller.spec.selector if controller else {})
        case ("apps/v1", "ReplicaSet"):
            replicated = _named(selectors.replica_sets, wanted)
        case ("apps/v1", "StatefulSet"):
            replicated = _named(selectors.stateful_sets, wanted)
        case _:
            replicated = None
    return deduce(metadata.labels, services, by_selector=replicated.spec.selector if replicated else None)


def deduce(
    labels: Labels,
    services: Iterable[Labels],
    *,
    by_labels: Labels = _NO_LABELS,
    by_selector: LabelSelector | None = None,
) -> LabelSelector:
    """Return the requirements of all Services that select a pod and of the controller that owns it.

    A Service without a selector selects nothing.

    Args:
        labels: The pod's labels.
        services: The selectors of the Services of its namespace, as labels.
        by_labels: The selector of a ReplicationController that owns it; its labels replace those of Services.
        by_selector: The selector of a ReplicaSet or StatefulSet that owns it; a label may stand in both parts.
    """
    found: dict[str, str] = {}
    for service in services:
        if _selects(service, labels):
            found |= service
    found |= by_labels
    if by_selector is None or not labelselectors.valid(by_selector):
        return LabelSelector(match_labels=found)
    return LabelSelector(match_labels=found, match_expressions=tuple(labelselectors.requirements(by_selector)))


def _selects(selector: Labels, labels: Labels) -> bool:
    return all(labels.get(key) == value for key, value in selector.items())


def _named(objects: Sequence[T], wanted: tuple[str, str]) -> T | None:
    return next((one for one in objects if (one.metadata.namespace, one.metadata.name) == wanted), None)
