"""The steps of the simulated scheduler, each after kube-scheduler's placements of the pods before."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Final

from kubectl_spread.audit.snapshot.scope import Scope
from kubectl_spread.audit.snapshot.snapshot import Snapshot
from kubectl_spread.engine.cluster import SimulatedCluster
from kubectl_spread.engine.pods import SimulatedPod
from kubectl_spread.engine.world import World
from kubectl_spread.kube import features
from kubectl_spread.kube.api.labels import ascending
from kubectl_spread.kube.api.storage import PersistentVolume, PersistentVolumeClaim
from kubectl_spread.kube.api.types import Namespace, Node
from kubectl_spread.kube.api.workloads import ReplicatedWorkload
from kubectl_spread.kube.scheduler import configuration
from kubectl_spread.kube.scheduler.podtopologyspread.constraints import Service
from tests.builders import Json, decode, decode_pod
from tests.conformance.placements.oracles import MINOR

_BEHAVIOUR: Final = features.behaviour(MINOR, features.gates(MINOR, {}))


def answer(question: Json, steps: Sequence[Json]) -> Json:
    """Return the order of the queue, and the nodes and scores for each step of kube-scheduler."""
    cluster = SimulatedCluster(World(_snapshot(question), _BEHAVIOUR, None), Random(0))
    # A scheduler that has just started begins with the first node.
    cluster.state.start = 0
    queue = cluster.queue()
    pods = {pod.name: pod for pod in queue}
    return {
        "priorities": [pod.kind.priority for pod in queue],
        "steps": [_step(cluster, pods[step["pod"]], step["node"]) for step in steps],
    }


def _snapshot(question: Json) -> Snapshot:
    snapshot = Snapshot(Scope(), detailed=True, schedulers=configuration.SYSTEM)
    for node in question["nodes"]:
        snapshot.add_node(decode(node, Node))
    for namespace in question["namespaces"]:
        snapshot.anti_affinity.add_namespace(decode(namespace, Namespace))
    for service in question["services"]:
        snapshot.default_selectors.add_service(decode(service, Service))
    for replica_set in question["replicaSets"]:
        snapshot.add_workload("ReplicaSet", decode(replica_set, ReplicatedWorkload))
    for claim in question["claims"]:
        snapshot.volumes.add(decode(claim, PersistentVolumeClaim))
    for volume in question["volumes"]:
        snapshot.volumes.add(decode(volume, PersistentVolume))
    snapshot.volumes.complete = True
    for pod in (*question["pods"], *question["queue"]):
        snapshot.add_pod(decode_pod(pod, detailed=True))
    snapshot.pods, _ = snapshot.default_selectors.applied_to(snapshot.pods)
    return snapshot


def _step(cluster: SimulatedCluster, pod: SimulatedPod, chosen: str) -> Json:
    state, names = cluster.state, cluster.table.names
    feasible = state.feasible(pod.kind, pod.refused)
    candidates = state.sample(feasible)
    scored = state.scores(pod.kind, candidates) if len(candidates) > 1 else {}
    best = sorted(names[number] for number in state.best(pod.kind, candidates))
    if chosen in cluster.table.numbers:
        state.add(pod.kind, cluster.table.numbers[chosen])
    return {
        "pod": pod.name,
        "feasible": sorted(names[number] for number in ascending(feasible)),
        "candidates": sorted(names[number] for number in candidates),
        "scores": {
            plugin: dict(zip((names[number] for number in candidates), part, strict=True))
            for plugin, part in scored.items()
        },
        "node": chosen if chosen in best or not (chosen or best) else f"one of {', '.join(best)}",
    }
