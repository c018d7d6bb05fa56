"""What users do to workloads before they ask for a report."""

from __future__ import annotations

from collections import Counter

from tests.builders import ZONE, Json
from tests.controlplane.cluster import ControlPlane


def roll_out(cluster: ControlPlane, manifest: Json) -> list[str]:
    """Apply a workload, wait until its pods run, and return their names."""
    metadata = manifest["metadata"]
    cluster.apply(manifest)
    wait_for_rollout(cluster, f"{manifest['kind']}/{metadata['name']}", metadata["namespace"])
    return pod_names(cluster, metadata["namespace"])


def wait_for_rollout(cluster: ControlPlane, workload: str, namespace: str) -> None:
    """Wait until the pods of a workload's last revision run, and the older ones are gone."""
    cluster.kubectl("rollout", "status", workload, "-n", namespace, "--timeout=60s")

    def settled() -> bool:
        return not any("deletionTimestamp" in pod["metadata"] for pod in pods(cluster, namespace))

    cluster.wait_for(settled, what=f"{workload} has no terminating pods")


def pods(cluster: ControlPlane, namespace: str) -> list[Json]:
    """Return the pods of a namespace."""
    items: list[Json] = cluster.api.get(f"/api/v1/namespaces/{namespace}/pods")["items"]
    return items


def pod_names(cluster: ControlPlane, namespace: str) -> list[str]:
    """Return the names of the pods of a namespace, sorted."""
    return sorted(pod["metadata"]["name"] for pod in pods(cluster, namespace))


def label(cluster: ControlPlane, namespace: str, pod: str, *changes: str) -> None:
    """Change labels of a pod as users do: ``rev=r2`` sets one, ``rev-`` removes it."""
    cluster.kubectl("label", "pod", pod, "-n", namespace, "--overwrite", *changes)


def pods_per_zone(cluster: ControlPlane, namespace: str) -> dict[str, int]:
    """Count the pods of a namespace by the zone that their node is labelled with."""
    nodes = cluster.api.get("/api/v1/nodes")["items"]
    zone_of = {node["metadata"]["name"]: node["metadata"]["labels"].get(ZONE) for node in nodes}
    return dict(Counter(zone_of[pod["spec"]["nodeName"]] for pod in pods(cluster, namespace)))
