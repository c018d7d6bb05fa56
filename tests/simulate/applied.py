"""Workloads, and changes of them that kube-apiserver refuses, each with the field and the reason that it names."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from tests.builders import ZONE, Json, constraint, selector


class Refused(NamedTuple):
    """A change of a workload: a value by the path of its field, whose reason names ``field``, or else this path."""

    workload: str
    path: str
    value: Any
    detail: str
    field: str = ""

    @property
    def expected(self) -> tuple[str, str]:
        """The field and the reason in kube-apiserver's words, between which it writes the value."""
        return f"{self.field or self.path}: ", self.detail

    def manifest(self) -> Json:
        """Return the changed workload."""
        manifest = copy.deepcopy(WORKLOADS[self.workload])
        *parents, last = (int(step) if step.isdecimal() else step for step in self.path.split("."))
        place: Any = manifest
        for step in parents:
            place = place.setdefault(step, {}) if isinstance(step, str) else place[step]
        place[last] = self.value
        return manifest


def _workload(kind: str, name: str, **spec: object) -> Json:
    labels = {"app": name}
    containers = [{"name": "app", "image": "app", "resources": {"limits": {"cpu": "1"}}}]
    constraints = [constraint(selects=selector(labels), topologyKey=ZONE)]
    nowhere = {"app": "none"}
    template = {"containers": containers, "nodeSelector": nowhere, "topologySpreadConstraints": constraints}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": {
            "selector": selector(labels),
            "template": {"metadata": {"labels": {**labels, "tier": "front"}}, "spec": template},
            **spec,
        },
    }


WORKLOADS: Final[Mapping[str, Json]] = {
    "web": _workload("Deployment", "web", replicas=0),
    "db": _workload("StatefulSet", "db", replicas=0, serviceName="db"),
    "agent": _workload("DaemonSet", "agent"),
}
"""Workloads without pods."""
_POD: Final = "spec.template.spec"
_ROLLING: Final = "spec.strategy.rollingUpdate"
_PARTITIONED: Final = "spec.updateStrategy.rollingUpdate"
_RESOURCES: Final = f"{_POD}.containers.0.resources"
_RESOURCES_FIELD: Final = f"{_POD}.containers[0].resources"
_SOFT: Final = {"topologyKey": ZONE, "maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway", "minDomains": 2}
_FRONT: Final = selector({"tier": "front"})
_NOT_NEGATIVE: Final = "must be greater than or equal to 0"
_NO_PERCENTAGE: Final = "a valid percent string must be a numeric string followed by an ending '%'"
_LABELS: Final = "spec.template.metadata.labels"
_NO_MATCH: Final = "`selector` does not match template `labels`"

REFUSED: Final = (
    Refused("web", "metadata.name", "", "name or generateName is required"),
    Refused("web", "metadata.name", "Web", "a lowercase RFC 1123 subdomain must consist of"),
    Refused("web", "spec.replicas", -1, _NOT_NEGATIVE),
    Refused("web", "spec.selector", None, "Required value"),
    Refused("web", "spec.selector", {}, "empty selector is invalid for deployment"),
    Refused("web", "spec.selector", _FRONT, "field is immutable"),
    Refused(
        "web",
        "spec.selector",
        {"matchExpressions": [{"key": "app", "operator": "Is"}]},
        "not a valid selector operator",
        "spec.selector.matchExpressions[0].operator",
    ),
    Refused("web", _LABELS, {"app": "api"}, _NO_MATCH),
    Refused("web", "spec.strategy.type", "Blue", 'supported values: "Recreate", "RollingUpdate"', "spec.strategy"),
    Refused(
        "web",
        "spec.strategy",
        {"type": "Recreate", "rollingUpdate": {"maxSurge": 1}},
        "may not be specified when strategy `type` is 'Recreate'",
        _ROLLING,
    ),
    Refused(
        "web",
        _ROLLING,
        {"maxSurge": 0, "maxUnavailable": "0%"},
        "may not be 0 when `maxSurge` is 0",
        f"{_ROLLING}.maxUnavailable",
    ),
    Refused("web", f"{_ROLLING}.maxUnavailable", "101%", "must not be greater than 100%"),
    Refused("web", f"{_ROLLING}.maxSurge", "5", _NO_PERCENTAGE),
    Refused("web", f"{_ROLLING}.maxSurge", -5, _NOT_NEGATIVE),
    Refused("web", f"{_POD}.containers", [], "Required value"),
    Refused("web", f"{_RESOURCES}.requests", {"cpu": "-1"}, _NOT_NEGATIVE, f"{_RESOURCES_FIELD}.requests[cpu]"),
    Refused(
        "web",
        f"{_RESOURCES}.requests",
        {"cpu": "1500m"},
        "must be less than or equal to cpu limit of 1",
        f"{_RESOURCES_FIELD}.requests",
    ),
    Refused(
        "web",
        f"{_POD}.topologySpreadConstraints",
        [_SOFT],
        "can only use minDomains if whenUnsatisfiable=DoNotSchedule, not ScheduleAnyway",
        f"{_POD}.topologySpreadConstraints[0].minDomains",
    ),
    Refused("db", "spec.selector", {}, "empty selector is invalid for statefulset"),
    Refused("db", "spec.podManagementPolicy", "Parallel", "field is immutable"),
    Refused("db", "spec.podManagementPolicy", "Fast", "must be 'OrderedReady' or 'Parallel'"),
    Refused("db", "spec.updateStrategy.type", "Blue", "'RollingUpdate'", "spec.updateStrategy"),
    Refused(
        "db",
        "spec.updateStrategy",
        {"type": "OnDelete", "rollingUpdate": {"partition": 1}},
        "only allowed for updateStrategy 'RollingUpdate'",
        _PARTITIONED,
    ),
    Refused("db", f"{_PARTITIONED}.partition", -1, _NOT_NEGATIVE),
    Refused("db", f"{_PARTITIONED}.maxUnavailable", "0%", "cannot be 0"),
    Refused("db", "spec.ordinals.start", -1, _NOT_NEGATIVE),
    Refused(
        "db",
        "spec.volumeClaimTemplates",
        [
            {
                "metadata": {"name": "data"},
                "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
            }
        ],
        "field is immutable",
    ),
    Refused("agent", "spec.selector", None, _NO_MATCH, _LABELS),
    Refused("agent", "spec.selector", {}, "empty selector is invalid for daemonset"),
    Refused("agent", "spec.selector", _FRONT, "field is immutable"),
)
