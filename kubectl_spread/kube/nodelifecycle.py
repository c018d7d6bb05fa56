"""Node lifecycle: which nodes answer, and how fast are pods evicted from those of a zone that do not?

Source: kubernetes v1.37.1 pkg/controller/nodelifecycle/node_lifecycle_controller.go, with the default flags of
kube-controller-manager (pkg/controller/nodelifecycle/config and cmd/kube-controller-manager/app/options).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from kubectl_spread.kube.api.types import READY, Node, Taint, Toleration
from kubectl_spread.kube.scheduler import taints

UNREACHABLE: Final = "node.kubernetes.io/unreachable"
_NOT_READY: Final = "node.kubernetes.io/not-ready"
_EXCLUDED: Final = "node.kubernetes.io/exclude-disruption"
NO_SCHEDULE: Final = Taint(key=UNREACHABLE, effect="NoSchedule")
NO_EXECUTE: Final = Taint(key=UNREACHABLE, effect="NoExecute")
GRACE: Final = 50.0
"""The seconds after which a node without a lease is NotReady (--node-monitor-grace-period)."""
_INTERVAL: Final = 10.0
"""The seconds between two nodes of a zone from which pods are evicted (--node-eviction-rate)."""
_SLOW_INTERVAL: Final = 100.0
"""The same in a large zone of which most nodes are NotReady (--secondary-node-eviction-rate)."""
LARGE: Final = 50
"""The nodes up to which a zone is small (--large-cluster-size-threshold)."""
UNHEALTHY: Final = 0.55
"""The part of a zone from which on most of it is NotReady (--unhealthy-zone-threshold)."""
_FEWEST: Final = 3
"""The NotReady nodes that a zone has at least before their part matters."""
_DEFAULT_SECONDS: Final = 300
"""The toleration that admission adds (--default-unreachable-toleration-seconds of kube-apiserver)."""


def counts(node: Node) -> bool:
    """Tell whether a node counts for the state of its zone."""
    return _EXCLUDED not in node.metadata.labels


def is_ready(node: Node) -> bool:
    """Tell whether a node is Ready, by its condition, or by its taints where its conditions were not read."""
    for condition in node.status.conditions:
        if condition.type == READY:
            return condition.status == "True"
    return not any(taint.key in (UNREACHABLE, _NOT_READY) for taint in node.spec.taints)


def answers(node: Node) -> bool:
    """Tell whether the kubelet of a node answers."""
    return not any(taint.key == UNREACHABLE for taint in node.spec.taints)


class ZoneState(NamedTuple):
    """The nodes of a zone that count for its state, and how many of them are NotReady."""

    nodes: int
    not_ready: int

    @property
    def down(self) -> bool:
        """Whether all nodes are NotReady."""
        return 0 < self.nodes == self.not_ready

    @property
    def partial(self) -> bool:
        """Whether most nodes are NotReady, but not all."""
        return _FEWEST <= self.not_ready < self.nodes and self.not_ready / self.nodes >= UNHEALTHY

    @property
    def interval(self) -> float | None:
        """The seconds between two nodes from which pods are evicted; None where none are.

        Whether all zones of the cluster are NotReady, so that no pods are evicted at all, is for the caller to tell.
        """
        if not self.partial:
            return _INTERVAL
        return _SLOW_INTERVAL if self.nodes > LARGE else None


def tolerated_seconds(tolerations: Sequence[Toleration], *, comparison_operators: bool) -> float | None:
    """Return the seconds for which a pod stays on a node that does not answer; None without end.

    Source: kubernetes v1.37.1 pkg/controller/tainteviction/taint_eviction.go, getMinTolerationTime, and
    plugin/pkg/admission/defaulttolerationseconds/admission.go.
    """
    for toleration in tolerations:
        if taints.tolerates(toleration, NO_EXECUTE, comparison_operators=comparison_operators):
            seconds = toleration.toleration_seconds
            return None if seconds is None else max(0.0, float(seconds))
    return float(_DEFAULT_SECONDS)
