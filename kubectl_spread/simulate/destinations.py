"""Destinations: to which domains may the scheduler put a pod, other than the one to which it did in this run?"""

from __future__ import annotations

from kubectl_spread.kube.api.labels import ascending
from kubectl_spread.simulate.cluster import SimulatedCluster, SimulatedPod


def destinations(cluster: SimulatedCluster, pod: SimulatedPod, key: str, *, scored: bool) -> set[str]:
    """Return the domains of a topology key to which a new pod that is on a node now may go.

    Args:
        cluster: The run.
        pod: The pod.
        key: The topology key; nodes without it are left out.
        scored: Whether only the nodes with the best score count, and not all that filters allow.
    """
    state, number = cluster.state, cluster.table.numbers[pod.node]
    state.add(pod.kind, number, -1)
    feasible = state.feasible(pod) | 1 << number
    values = cluster.table.values(key)
    candidates = [*ascending(feasible)]
    if scored:
        candidates = [*state.best(pod.kind, candidates), number]
    state.add(pod.kind, number)
    return {value for each in candidates if (value := values[each]) is not None}
