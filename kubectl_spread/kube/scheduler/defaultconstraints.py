"""Default constraints: what does the scheduler ask of a pod that has no spread constraints?

Source: kubernetes v1.37.1 pkg/scheduler/framework/plugins/podtopologyspread/common.go, buildDefaultConstraints, and
pkg/scheduler/framework/plugins/helper/spread.go, DefaultSelector.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Final

import msgspec

from kubectl_spread.kube.api import labels as labelselectors
from kubectl_spread.kube.api.labels import Labels
from kubectl_spread.kube.api.types import LabelSelector, Message, Object, TopologySpreadConstraint

SYSTEM: Final = (
    TopologySpreadConstraint(max_skew=3, topology_key="kubernetes.io/hostname", when_unsatisfiable="ScheduleAnyway"),
    TopologySpreadConstraint(
        max_skew=5, topology_key="topology.kubernetes.io/zone", when_unsatisfiable="ScheduleAnyway"
    ),
)
"""What a scheduler that is not configured differently has."""


class _MapSelectorSpec(Message, frozen=True):
    selector: Annotated[dict[str, str], 2] = msgspec.field(default_factory=dict)


class MapSelecting(Object, frozen=True):
    """A Service or ReplicationController."""

    spec: Annotated[_MapSelectorSpec, 2] = _MapSelectorSpec()


_NO_LABELS: Final[Labels] = {}


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
    match_labels: dict[str, str] = {}
    for service in services:
        if _selects(service, labels):
            match_labels |= service
    match_labels |= by_labels
    if by_selector is None or not labelselectors.valid(by_selector):
        return LabelSelector(match_labels=match_labels)
    return LabelSelector(match_labels=match_labels, match_expressions=tuple(labelselectors.requirements(by_selector)))


def _selects(selector: Labels, labels: Labels) -> bool:
    return all(labels.get(key) == value for key, value in selector.items())
