"""The answers of kubectl_spread to the same questions, in the oracle's format."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from kubectl_spread.kube import descheduler
from kubectl_spread.kube.api.types import Node, Pod
from kubectl_spread.kube.descheduler import Bearer, Evictee, EvictionObstacle, PodCounts, PodGroup
from kubectl_spread.kube.scheduler.podtopologyspread.domains import Placement
from kubectl_spread.sources.decode import json_objects
from tests.builders import Json

_CHECKS: Final[dict[EvictionObstacle, tuple[str, ...]]] = {
    EvictionObstacle.MIRROR: ("pod is a mirror pod",),
    EvictionObstacle.STATIC: ("pod is a static pod",),
    EvictionObstacle.TERMINATING: ("pod is terminating",),
    # The default priority threshold is the lowest system-critical priority.
    EvictionObstacle.SYSTEM_CRITICAL: (
        "pod has system critical priority and is protected against eviction",
        "pod has higher priority than specified priority class threshold",
    ),
    EvictionObstacle.NO_OWNER: ("pod does not have any ownerRefs",),
    EvictionObstacle.LOCAL_STORAGE: ("pod has local storage and is protected against eviction",),
    EvictionObstacle.DAEMON_SET: ("daemonset pods are protected against eviction",),
}


class _Spec(msgspec.Struct, frozen=True):
    """The fields that the default evictor reads and the core's types do not have."""

    priority: int | None = None
    volumes: tuple[dict[str, Any], ...] = ()


class _PodRest(msgspec.Struct, frozen=True):
    spec: _Spec = _Spec()


class Question(msgspec.Struct, frozen=True):
    """One case."""

    nodes: tuple[msgspec.Raw, ...] = ()
    pods: tuple[msgspec.Raw, ...] = ()


_DECODER: Final = msgspec.json.Decoder(Question)


def answer(question: bytes) -> Json:
    """Answer one case for the descheduler."""
    decoded = _DECODER.decode(question)
    pods = [json_objects.decode(raw, Pod) for raw in decoded.pods]
    obstacles_of = {
        pod.metadata.name: descheduler.obstacles(evictee(raw)) for pod, raw in zip(pods, decoded.pods, strict=True)
    }
    groups = {pod.metadata.name: group(pod, evictable=not obstacles_of[pod.metadata.name]) for pod in pods}
    cluster = PodCounts(nodes(decoded), groups.values())
    counts: dict[str, Json | None] = {}
    evicts = set()
    for pod in pods:
        if cluster.lists(groups[pod.metadata.name]):
            for index, constraint in enumerate(pod.spec.topology_spread_constraints):
                looks = descheduler.looks_at(constraint)
                count = descheduler.count(constraint, bearer(pod), cluster)
                answered = {"domains": dict(count.match_num), "violated": count.exceeds_max_skew}
                counts[f"{pod.metadata.name}/{index}"] = answered if looks else None
                evicts |= {pod.metadata.namespace} if looks and count.exceeds_max_skew else set()
    checks = {
        name: [text for obstacle in obstacles for text in _CHECKS[obstacle]]
        for name, obstacles in obstacles_of.items()
        if obstacles
    }
    return {"obstacles": checks, "counts": counts, "evicts": sorted(evicts)}


def nodes(question: Question) -> list[Node]:
    """Return the nodes."""
    return [json_objects.decode(raw, Node) for raw in question.nodes]


def evictee(raw: msgspec.Raw) -> Evictee:
    """Return the fields of a pod that the default evictor reads."""
    pod = json_objects.decode(raw, Pod)
    rest = msgspec.json.decode(raw, type=_PodRest)
    return Evictee(
        owner_kinds=[owner.kind for owner in pod.metadata.owner_references],
        annotations=pod.metadata.annotations,
        priority=rest.spec.priority,
        volume_kinds={kind for volume in rest.spec.volumes for kind in volume if kind != "name"},
        terminating=pod.metadata.deletion_timestamp is not None,
    )


def group(pod: Pod, *, evictable: bool) -> PodGroup:
    """Return the fields of a pod that may count."""
    return PodGroup(
        namespace=pod.metadata.namespace,
        labels=pod.metadata.labels,
        node=pod.spec.node_name,
        evictable=evictable,
        terminating=pod.metadata.deletion_timestamp is not None,
        phase=pod.status.phase,
    )


def bearer(pod: Pod) -> Bearer:
    """Return the fields of a pod with constraints."""
    return Bearer(
        namespace=pod.metadata.namespace,
        labels=pod.metadata.labels,
        placement=Placement(pod.spec.node_selector, pod.spec.affinity, pod.spec.tolerations),
        constraints=pod.spec.topology_spread_constraints,
    )
