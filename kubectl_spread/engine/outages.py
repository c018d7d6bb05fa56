"""Outages: which pods are evicted from nodes that do not answer, and why others are not replaced?

Source: kubernetes v1.37.1 pkg/controller/nodelifecycle/node_lifecycle_controller.go and
pkg/controller/tainteviction/taint_eviction.go.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from kubectl_spread.engine.cluster import Outage, SimulatedCluster
from kubectl_spread.engine.pods import SimulatedPod
from kubectl_spread.kube import nodelifecycle
from kubectl_spread.kube.api.labels import zone_of
from kubectl_spread.kube.api.types import Node
from kubectl_spread.kube.api.workloads import Job, StatefulSet, ordinal_of
from kubectl_spread.kube.custom import base_kind
from kubectl_spread.kube.nodelifecycle import ZoneState
from kubectl_spread.phrases import plural

_SEEN_BEFORE: Final = 2
"""The nodes of a zone that may be tainted while others are still taken as ready: one at once, and one 10 s later."""


_ATTACHED: Final = "their new pods cannot start, because a volume is attached to a node that does not answer"


def _states(nodes: Iterable[Node], silent: Collection[str]) -> Mapping[tuple[str, str], ZoneState]:
    """Return the states of all zones."""
    states: dict[tuple[str, str], ZoneState] = {}
    for node in nodes:
        if nodelifecycle.counts(node):
            zone = zone_of(node)
            number, not_ready = states.get(zone, (0, 0))
            down = node.metadata.name in silent or not nodelifecycle.is_ready(node)
            states[zone] = ZoneState(number + 1, not_ready + down)
    return states


def _all_down(states: Mapping[tuple[str, str], ZoneState]) -> bool:
    return all(state.down for state in states.values())


class TaintEviction:
    """The evictions from nodes that do not answer: node after node, and each pod after its toleration."""

    def __init__(self, cluster: SimulatedCluster, fresh: Collection[str] = ()) -> None:
        """Plan the evictions as the zones are now.

        Args:
            cluster: The cluster.
            fresh: The nodes that failed just now, all at the same time. They are seen to fail within some seconds, so
                that a few may be tainted before most of their zone is NotReady.
        """
        silent = cluster.unreachable
        self._left: list[list[SimulatedPod]] = []
        if all(outage is Outage.EVICTED for outage in silent.values()):
            return
        states = _states(cluster.nodes, silent)
        tainted: list[tuple[float, str]] = []
        queued: dict[tuple[str, str], list[str]] = {}
        for node in cluster.nodes:
            match silent.get(node.metadata.name):
                case Outage.TAINTED:
                    tainted.append((0.0, node.metadata.name))
                case Outage.QUEUED if not _all_down(states):
                    queued.setdefault(zone_of(node), []).append(node.metadata.name)
        for zone, names in queued.items():
            cluster.random.shuffle(names)
            state = states.get(zone, ZoneState(0, 0))
            first = names if state.interval is not None else _seen_before(cluster, state, names, fresh)
            tainted += ((number * (state.interval or 0.0), name) for number, name in enumerate(first))
        cluster.unreachable |= {name: Outage.EVICTED for _, name in tainted}
        self._left = _by_time(cluster, tainted)

    def step(self, cluster: SimulatedCluster) -> bool:
        """Evict the next pods."""
        while self._left:
            pods = [pod for pod in self._left.pop(0) if cluster.has(pod)]
            for pod in pods:
                cluster.remove(pod, lost=True)
            if pods:
                return True
        return False


def _seen_before(
    cluster: SimulatedCluster, state: ZoneState, names: Sequence[str], fresh: Collection[str]
) -> list[str]:
    """Return the nodes that are tainted before most of their zone is seen to be NotReady."""
    failed = [name for name in names if name in fresh]
    before = ZoneState(state.nodes, state.not_ready - len(failed))
    if before.partial:
        return []
    most = next(
        number for number in range(1, len(failed) + 1) if ZoneState(state.nodes, before.not_ready + number).partial
    )
    return failed[: cluster.random.randint(0, min(_SEEN_BEFORE, max(1, most - 1)))]


def _by_time(cluster: SimulatedCluster, tainted: Iterable[tuple[float, str]]) -> list[list[SimulatedPod]]:
    """Return the pods that are evicted, in groups of a node and a moment."""
    times = {name: time for time, name in tainted}
    groups: dict[tuple[float, str], list[SimulatedPod]] = {}
    for pod in cluster.on(times) if times else ():
        seconds = tolerated(cluster, pod)
        if seconds is not None:
            groups.setdefault((times[pod.node] + seconds, pod.node), []).append(pod)
    # Of nodes of several zones, any may be the first.
    order = [*groups]
    cluster.random.shuffle(order)
    return [groups[each] for each in sorted(order, key=lambda each: each[0])]


def tolerated(cluster: SimulatedCluster, pod: SimulatedPod) -> float | None:
    """Return the seconds for which a pod stays on a node that does not answer; None without end."""
    if pod.is_daemon:
        return None
    comparison = cluster.world.behaviour.toleration_comparison
    return nodelifecycle.tolerated_seconds(pod.kind.pod_class.placement.tolerations, comparison_operators=comparison)


def minutes(cluster: SimulatedCluster, names: Collection[str]) -> int:
    """Return the minutes after which the last pod is evicted from nodes that fail together."""
    silent = {*cluster.unreachable, *names}
    states = _states(cluster.nodes, silent)
    queued: dict[tuple[str, str], int] = {}
    for node in cluster.nodes:
        if node.metadata.name in names:
            zone = zone_of(node)
            queued[zone] = queued.get(zone, 0) + 1
    spread = [(states[zone].interval or 0.0) * (number - 1) for zone, number in queued.items() if zone in states]
    stays = [seconds for pod in cluster.on(names) if (seconds := tolerated(cluster, pod)) is not None]
    return math.ceil((nodelifecycle.GRACE + max(spread, default=0.0) + max(stays, default=0.0)) / 60)


def not_replaced(cluster: SimulatedCluster) -> list[tuple[SimulatedPod, str]]:
    """Return the pods on nodes that do not answer that nothing replaces, or in vain, each with the reason.

    The reason of a pod that nothing would replace anyway is "": one of a DaemonSet, or without a controller. A pod that
    its StatefulSet no longer asks for is left out.
    """
    if not cluster.unreachable:
        return []
    states = _states(cluster.nodes, cluster.unreachable)
    zones = {node.metadata.name: zone_of(node) for node in cluster.nodes}
    pods = [(pod, _why_it_stays(cluster, pod, states, zones)) for pod in cluster.on(cluster.unreachable)]
    pods += ((pod, _ATTACHED) for pod in cluster.all_pods() if pod.lacks_volume)
    terminating = ((pod, _why_it_is_not_replaced(cluster, pod)) for pod in cluster.terminating_pods())
    pods += ((pod, why) for pod, why in terminating if why is not None)
    return [(pod, why) for pod, why in pods if not _is_superfluous(cluster, pod)]


def _is_superfluous(cluster: SimulatedCluster, pod: SimulatedPod) -> bool:
    """Tell whether a StatefulSet that was scaled down asks for fewer pods than this one's ordinal."""
    stored = None if pod.owner is None else cluster.world.object(pod.owner)
    if pod.owner not in cluster.desired or not isinstance(stored, StatefulSet):
        return False
    return ordinal_of(pod.name) >= stored.spec.ordinals.start + cluster.desired[pod.owner]


def _why_it_stays(
    cluster: SimulatedCluster,
    pod: SimulatedPod,
    states: Mapping[tuple[str, str], ZoneState],
    zones: Mapping[str, tuple[str, str]],
) -> str:
    if pod.is_daemon:
        return ""
    if cluster.unreachable[pod.node] is Outage.EVICTED:
        return f"they tolerate {nodelifecycle.UNREACHABLE}, so they stay on nodes that do not answer"
    if _all_down(states):
        return "no pod is evicted while all nodes of the cluster are NotReady"
    zone = zones[pod.node]
    name = f"zone {zone[1] or zone[0]}" if any(zone) else "the cluster"
    state = states[zone]
    return (
        f"no pod is evicted while {state.not_ready} of {plural(state.nodes, 'node')} of {name} are NotReady (at least "
        f"{nodelifecycle.UNHEALTHY:.0%}, but not all, of at most {nodelifecycle.LARGE})"
    )


def _why_it_is_not_replaced(cluster: SimulatedCluster, pod: SimulatedPod) -> str | None:
    """Return why nothing replaces a terminating pod; None where its controller has created another one."""
    if pod.owner is None:
        return ""
    job = cluster.world.object(pod.owner)
    if isinstance(job, Job):
        return None if job.replaces_terminating else "podReplacementPolicy Failed waits until they have ended"
    if pod.is_daemon:
        return ""
    if base_kind(pod.owner.kind) == "StatefulSet":
        return (
            "a StatefulSet replaces a pod only when it is gone, and these stay Terminating until their nodes answer or "
            "are deleted"
        )
    return None
