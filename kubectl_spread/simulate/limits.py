"""Limits: what does a simulation leave out that could matter here?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from kubectl_spread.audit.evaluation.volumes import UNBOUND, UNREAD
from kubectl_spread.phrases import plural
from kubectl_spread.simulate.runs import RunResult, Simulation
from kubectl_spread.simulate.world import World

_AUTOSCALED: Final = ("karpenter.sh/", "cloud.google.com/gke-nodepool", "eks.amazonaws.com/nodegroup", "agentpool")
"""The beginnings of labels of nodes that an autoscaler may manage."""
_AUTOSCALER: Final = "cluster-autoscaler"


def not_simulated(simulation: Simulation, runs: Sequence[RunResult]) -> list[str]:
    """Return what the simulation leaves out, as far as it could matter."""
    pending = any(result.pending for each in runs for result in each.workloads.values())
    return [*left_out(simulation.world, max(each.preempting for each in runs), pending=pending)]


def left_out(world: World, preempting: int = 0, *, pending: bool = False) -> Iterator[str]:
    """Yield what simulations of a cluster leave out.

    Args:
        world: The cluster.
        preempting: The number of pending pods that could preempt others.
        pending: Whether any pod stays pending, so that a new node could matter.
    """
    snapshot = world.snapshot
    if preempting:
        yield f"preemption ({plural(preempting, 'pod')} could preempt others)"
    labels = {label for node in snapshot.nodes for label in node.metadata.labels}
    managed = any(label.startswith(_AUTOSCALED) for label in labels)
    if pending and (managed or any(_AUTOSCALER in ref.name for ref in snapshot.workload_objects)):
        yield "cluster autoscalers"
    if any(pod.pod_class.spec.host_network for pod in snapshot.pods if not pod.pod_class.pinned):
        yield "host ports"
    _, volumes = world.table(world.nodes)
    unknown = {volumes.of(pod).unknown for pod in snapshot.pods if pod.claims}
    if unknown:
        yield "limits on the number of volumes of a node"
    if UNREAD in unknown:
        yield "volumes, which were not read"
    if UNBOUND in unknown:
        yield "where new volumes can be"
    if foreign := sorted({pod.pod_class.scheduler_name for pod in snapshot.pods if pod.pod_class.profile is None}):
        yield f"the rules of other schedulers ({', '.join(foreign)}): their pods are placed as by kube-scheduler"
