"""The selector of default constraints: which pods count for a pod that has no spread constraints?

Source: kubernetes v1.37.1 pkg/scheduler/framework/plugins/podtopologyspread/common.go, buildDefaultConstraints, and
pkg/scheduler/framework/plugins/helper/spread.go, DefaultSelector.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

import msgspec

from kubectl_spread.kube.api import labels as labelselectors
from kubectl_spread.kube.api.labels import Labels
from kubectl_spread.kube.api.types import LabelSelector, Message, Object


class _ServiceSpec(Message, frozen=True):
    selector: Annotated[dict[str, str], 2] = msgspec.field(default_factory=dict)


class Service(Object, frozen=True):
    """A Service, which is read for its selector."""

    spec: Annotated[_ServiceSpec, 2] = _ServiceSpec()


def default_selector(
    labels: Labels, services: Iterable[Labels], *, controller: Labels | None = None, owner: LabelSelector | None = None
) -> LabelSelector:
    """Return the selector of default constraints: that of all Services that select a pod and of the pod's controller.

    A Service without a selector selects nothing.

    Args:
        labels: The pod's labels.
        services: The selectors of the Services of its namespace, as labels.
        controller: The selector of the pod's ReplicationController; its labels replace those of Services.
        owner: The selector of the pod's ReplicaSet or StatefulSet; a label of a Service may appear in it again.
    """
    match_labels: dict[str, str] = {}
    for service in services:
        if all(labels.get(key) == value for key, value in service.items()):
            match_labels |= service
    match_labels |= controller or {}
    if owner is None or not labelselectors.valid(owner):
        return LabelSelector(match_labels=match_labels)
    return LabelSelector(match_labels=match_labels, match_expressions=tuple(labelselectors.requirements(owner)))
