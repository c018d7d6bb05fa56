"""A load for a real apiserver: many realistic pods on many nodes in three zones."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from tests.controlplane.client import ApiClient, parallel
from tests.controlplane.cluster import ControlPlane

ZONES: Final = ("europe-west1-a", "europe-west1-b", "europe-west1-c")
PODS_A_WORKLOAD: Final = 30
_NAMESPACES: Final = 20


def fill(cluster: ControlPlane, *, pods: int, nodes: int) -> None:
    """Create ``nodes`` nodes and ``pods`` bound pods that look as a ReplicaSet's would.

    A pod has two containers, twenty environment variables, annotations, two spread constraints and one affinity term.
    """
    cluster.add_nodes(ZONES, per_zone=-(-nodes // len(ZONES)))
    found = cluster.api.get("/api/v1/nodes")["items"]
    names = [node["metadata"]["name"] for node in found][:nodes]
    cluster.api.create_all(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": f"team-{number}"}}
        for number in range(_NAMESPACES)
    )
    replica_sets = cluster.api.create_all(_replica_set(number) for number in range(-(-pods // PODS_A_WORKLOAD)))
    _create(cluster.api, _pods(replica_sets, names, pods))


def _create(api: ApiClient, manifests: Iterator[dict[str, Any]]) -> None:
    """Create pods a slice at a time, so that the manifests never stand in memory together."""
    while some := [manifest for _, manifest in zip(range(2000), manifests, strict=False)]:
        parallel(api.create, some)


def _pods(replica_sets: list[dict[str, Any]], nodes: list[str], number: int) -> Iterator[dict[str, Any]]:
    for index in range(number):
        owner = replica_sets[index // PODS_A_WORKLOAD]
        yield _pod(owner, index % PODS_A_WORKLOAD, nodes[index % len(nodes)])


def _labels(name: str) -> dict[str, str]:
    return {
        "app.kubernetes.io/name": name,
        "app.kubernetes.io/instance": name,
        "app.kubernetes.io/managed-by": "Helm",
        "pod-template-hash": "7c9d8f6b54",
    }


def _replica_set(number: int) -> dict[str, Any]:
    name = f"service-{number}"
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": f"{name}-7c9d8f6b54", "namespace": f"team-{number % _NAMESPACES}"},
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": _labels(name)},
            "template": {"metadata": {"labels": _labels(name)}, "spec": _spec(name)},
        },
    }


def _pod(owner: dict[str, Any], index: int, node: str) -> dict[str, Any]:
    metadata = owner["metadata"]
    name = metadata["name"].removesuffix("-7c9d8f6b54")
    reference = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "name": metadata["name"],
        "uid": metadata["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{metadata['name']}-{index:05d}",
            "namespace": metadata["namespace"],
            "labels": _labels(name),
            "annotations": {
                "prometheus.io/scrape": "true",
                "prometheus.io/port": "9090",
                "checksum/config": f"{hash((name, index)) & (2**128 - 1):064x}",
                "kubectl.kubernetes.io/restartedAt": "2026-11-01T09:00:00Z",
            },
            "ownerReferences": [reference],
        },
        "spec": {**_spec(name), "nodeName": node},
    }


def _spec(name: str) -> dict[str, Any]:
    selector = {"matchLabels": {"app.kubernetes.io/name": name}}
    return {
        "containers": [_container(name), _container(f"{name}-proxy")],
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": "topology.kubernetes.io/zone",
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": selector,
                "matchLabelKeys": ["pod-template-hash"],
            },
            {
                "maxSkew": 1,
                "topologyKey": "kubernetes.io/hostname",
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": selector,
            },
        ],
        "affinity": {
            "podAntiAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {
                        "weight": 50,
                        "podAffinityTerm": {
                            "topologyKey": "kubernetes.io/hostname",
                            "labelSelector": selector,
                            "matchLabelKeys": ["pod-template-hash"],
                        },
                    }
                ]
            }
        },
    }


def _container(name: str) -> dict[str, Any]:
    return {
        "name": name,
        "image": f"registry.example.com/{name}:1.4.2",
        "ports": [{"name": "http", "containerPort": 8080}],
        "env": [{"name": f"SETTING_{index}", "value": f"value of setting {index} of {name}"} for index in range(20)],
        "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}, "limits": {"memory": "64Mi"}},
        "readinessProbe": {"httpGet": {"path": "/ready", "port": 8080}, "periodSeconds": 10},
    }
