"""Drains: which pods does ``kubectl drain`` evict, which ones does a budget keep, and what would let it continue?

Source: kubernetes v1.37.1 pkg/registry/core/pod/storage/eviction.go, Create, and
staging/src/k8s.io/kubectl/pkg/drain/drain.go, evictPods.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from kubectl_spread.engine.cluster import SimulatedCluster
from kubectl_spread.engine.pods import SimulatedPod
from kubectl_spread.kube.disruption import PodDisruptionBudget

FORCE: Final = "--force"
DELETE_LOCAL_DATA: Final = "--delete-emptydir-data"
_ALWAYS: Final = "AlwaysAllow"


class BudgetHealth(msgspec.Struct, frozen=True):
    """The pods that a budget counts.

    Attributes:
        healthy: The number of its pods that are ready.
        least: The number that has to be.
        expected: The number of pods that there are to be; 0 where it expects none, because none has a controller, or
            where that is unknown.
        not_ready: The names of the pods with a node that are not ready.
        waiting: The names of those without a node.
    """

    healthy: int
    least: int
    expected: int
    not_ready: tuple[str, ...]
    waiting: tuple[str, ...]


class RefusedPod(msgspec.Struct, frozen=True, order=True):
    """A pod that a drain leaves on its node, because its budgets refuse the eviction.

    Attributes:
        node: The node.
        namespace: The namespace of the pod.
        pod: The name of the pod.
        budgets: The names of the budgets.
    """

    node: str
    namespace: str
    pod: str
    budgets: tuple[str, ...]


class Drain:
    """The drain of nodes, one after another: pods are evicted as far as their budgets allow it now.

    A refused eviction is tried again after other pods have become ready. Where none can, the next node follows, as
    after the ``--timeout`` of kubectl. Pods of DaemonSets and mirror pods stay, and so do pods that come to a node
    after its turn because they tolerate its cordon. How many pods are gone before the first of them is replaced is not
    determined: a run evicts one at a time, some, or all, also those of the next nodes. kubectl waits until the pods of
    a node are gone, and not until others run in their place.

    Attributes:
        refused: The pods that it leaves.
        health: The budgets of these pods when it left their node, by namespace and name.
        terminating: The number of pods for whose end kubectl waits, by their nodes, which do not answer.
        needs: The pods that kubectl evicts only with a flag, by the flag.
    """

    def __init__(self, cluster: SimulatedCluster, nodes: Sequence[str]) -> None:
        """Drain nodes in this order; they are cordoned already."""
        self.refused: list[RefusedPod] = []
        self.health: dict[tuple[str, str], BudgetHealth] = {}
        self.terminating: dict[str, int] = {}
        self.needs: dict[str, list[SimulatedPod]] = {}
        self._nodes = [*nodes]
        self._pods: list[SimulatedPod] | None = None
        self._together = cluster.random.choice([1.0, 0.5, 0.0])

    def step(self, cluster: SimulatedCluster) -> bool:
        """Evict pods of the first node; continue with the next node when no pod is left that waits for its budget."""
        any_evicted = False
        while self._nodes:
            left, refused = self._left(cluster), list[SimulatedPod]()
            evicted = waits = False
            while left:
                pod = left.pop()
                if not cluster.has(pod):
                    continue
                if budgets := refusing_budgets(cluster, pod):
                    # With several budgets each eviction is an error, after which kubectl continues with other pods.
                    waits = waits or len(budgets) == 1
                    refused.append(pod)
                    continue
                cluster.remove(pod, lost=True)
                evicted = True
                if cluster.random.random() >= self._together:
                    break
            cluster.random.shuffle(refused)
            left[:0] = refused
            any_evicted |= evicted
            if waits or (evicted and (left or self._together < 1)):
                return any_evicted
            self._leave(cluster)
        return any_evicted

    def go_on(self, cluster: SimulatedCluster) -> bool:
        """Leave the node whose evictions are refused; tell whether there is one."""
        if self._nodes:
            self._leave(cluster)
            return True
        return False

    def _left(self, cluster: SimulatedCluster) -> list[SimulatedPod]:
        """Return the pods that are still to be evicted from the first node."""
        if self._pods is None:
            self._pods = [pod for pod in cluster.on(self._nodes[:1]) if not pod.is_daemon]
            cluster.random.shuffle(self._pods)
            for pod in self._pods:
                for flag in _flags(pod):
                    self.needs.setdefault(flag, []).append(pod)
        return self._pods

    def _leave(self, cluster: SimulatedCluster) -> None:
        """Note the pods that are left on the first node, and continue with the next one."""
        node, pods = self._nodes.pop(0), self._pods or ()
        self._pods = None
        for pod in pods:
            budgets = refusing_budgets(cluster, pod)
            names = tuple(budget.metadata.name for budget in budgets)
            self.refused.append(RefusedPod(node, pod.namespace, pod.name, names))
            for budget in budgets:
                self.health[pod.namespace, budget.metadata.name] = _named(cluster, budget)
        terminating = sum(pod.node == node and not pod.is_daemon for pod in cluster.terminating_pods())
        if terminating:
            self.terminating[node] = terminating


def _flags(pod: SimulatedPod) -> Iterator[str]:
    """Yield the flags without which kubectl evicts no pod of the node of a pod.

    Source: kubernetes v1.37.1 staging/src/k8s.io/kubectl/pkg/drain/filters.go, unreplicatedFilter and
    localStorageFilter.
    """
    if pod.owner is None:
        yield FORCE
    if pod.state.has_local_data:
        yield DELETE_LOCAL_DATA


def budgets_of(cluster: SimulatedCluster, pod: SimulatedPod) -> Sequence[PodDisruptionBudget]:
    """Return the budgets that protect a pod: none protects one that has not started."""
    if not pod.state.running:
        return ()
    return cluster.world.snapshot.budgets.of(pod.namespace, pod.kind.labels)


def refusing_budgets(cluster: SimulatedCluster, pod: SimulatedPod) -> Sequence[PodDisruptionBudget]:
    """Return the budgets that refuse the eviction of a pod.

    Several budgets of one pod refuse each eviction. A pod that is not ready may be evicted by the policy of its budget.
    """
    budgets = budgets_of(cluster, pod)
    if len(budgets) > 1:
        return budgets
    for budget in budgets:
        healthy, least, _ = _counts(cluster, budget)
        protected = budget.spec.unhealthy_pod_eviction_policy != _ALWAYS and not healthy >= least > 0
        if healthy <= least and (pod.ready or protected):
            return budgets
    return ()


def _counts(cluster: SimulatedCluster, budget: PodDisruptionBudget) -> tuple[int, int, int]:
    """Return how many pods of a budget are ready, how many have to be, and how many it expects."""
    selected = cluster.selected_by(budget)
    healthy = sum(each.ready for each in selected)
    scale = cluster.scale_of(selected) if budget.needs_scale else len(selected) if budget.is_limited else 0
    least = budget.desired_healthy(scale)
    if least is None and scale is None and budget.current is not None and budget.current.disruptions_allowed:
        # The disruption controller has read the controllers of the pods, which were not read here.
        least = budget.current.desired_healthy
    if least is None or scale == 0:
        # The disruption controller allows none where it cannot compute the number, or expects no pods: without a limit,
        # or where it only counts those with a controller.
        return healthy, max(least or 0, healthy), 0
    return healthy, least, scale or 0


def _named(cluster: SimulatedCluster, budget: PodDisruptionBudget) -> BudgetHealth:
    selected = sorted(cluster.selected_by(budget), key=lambda pod: pod.name)
    not_ready = tuple(pod.name for pod in selected if pod.node and not pod.ready)
    waiting = tuple(pod.name for pod in selected if not pod.node)
    return BudgetHealth(*_counts(cluster, budget), not_ready, waiting)
