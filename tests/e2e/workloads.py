"""Workloads on the control plane: rollouts, labels, scaling, and the pods and owners of tests."""

from __future__ import annotations

from collections import Counter

from tests.builders import ZONE, Json
from tests.controlplane.client import ApiClient
from tests.controlplane.cluster import ControlPlane


def roll_out(cluster: ControlPlane, manifest: Json) -> list[str]:
    """Apply a workload, wait until its pods run, and return their names."""
    metadata = manifest["metadata"]
    cluster.apply(manifest)
    wait_for_rollout(cluster, f"{manifest['kind']}/{metadata['name']}", metadata["namespace"])
    return pod_names(cluster, metadata["namespace"])


def wait_for_rollout(cluster: ControlPlane, workload: str, namespace: str) -> None:
    """Wait until the pods of a workload's last revision run and older pods are deleted."""
    cluster.kubectl("rollout", "status", workload, "-n", namespace, "--timeout=60s")

    def settled() -> bool:
        return not any("deletionTimestamp" in pod["metadata"] for pod in pods(cluster, namespace))

    cluster.wait_for(settled, what=f"{workload} has no terminating pods")


def pods(cluster: ControlPlane, namespace: str) -> list[Json]:
    """Return the pods of a namespace."""
    listed: list[Json] = cluster.api.get(f"/api/v1/namespaces/{namespace}/pods")["items"]
    return listed


def pods_of(cluster: ControlPlane, namespace: str, app: str) -> list[Json]:
    """Return the pods of one app in a namespace, sorted by name."""
    named = [pod for pod in pods(cluster, namespace) if pod["metadata"]["labels"]["app"] == app]
    return sorted(named, key=lambda pod: str(pod["metadata"]["name"]))


def pod_names(cluster: ControlPlane, namespace: str) -> list[str]:
    """Return the names of the pods of a namespace, sorted."""
    return sorted(pod["metadata"]["name"] for pod in pods(cluster, namespace))


def label(cluster: ControlPlane, namespace: str, pod: str, *changes: str) -> None:
    """Change labels of a pod as users do: ``rev=r2`` sets one, ``rev-`` removes it."""
    cluster.kubectl("label", "pod", pod, "-n", namespace, "--overwrite", *changes)


def scheduled(pod: Json) -> Json:
    """Return the condition of a pod about the scheduler's decision; empty before the decision."""
    conditions: list[Json] = pod["status"].get("conditions", [])
    return next((condition for condition in conditions if condition["type"] == "PodScheduled"), {})


def rests(pod: Json) -> bool:
    """Tell whether a pod runs, or was refused by the scheduler."""
    if "deletionTimestamp" in pod["metadata"]:
        return False
    return pod["status"].get("phase") == "Running" or scheduled(pod).get("reason") == "Unschedulable"


def owner_reference(owner: Json) -> Json:
    """Return the reference of a pod to its controller, an object as it is stored."""
    metadata = owner["metadata"]
    identity = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": metadata["name"]}
    return {**identity, "uid": metadata["uid"], "controller": True}


def idle_replica_set(api: ApiClient, template: Json) -> Json:
    """Create a ReplicaSet without replicas whose template is a pod; return the reference of pods that it owns."""
    metadata, labels = template["metadata"], template["metadata"]["labels"]
    owner = api.create(
        {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "metadata": {"name": metadata["name"], "namespace": metadata["namespace"]},
            "spec": {
                "replicas": 0,
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": template["spec"]},
            },
        }
    )
    return owner_reference(owner)


def scale_down_unevenly(cluster: ControlPlane, namespace: str, app: str) -> None:
    """Scale a Deployment from two pods in each zone to two, one and none.

    A ReplicaSet respects deletion costs when it chooses pods to delete, and no constraints.
    """
    costs = {"a": ["30", "30"], "b": ["20", "0"], "c": ["0", "0"]}
    for pod in pods_of(cluster, namespace, app):
        annotation = f"controller.kubernetes.io/pod-deletion-cost={costs[pod['spec']['nodeName'][0]].pop(0)}"
        cluster.kubectl("annotate", "pod", pod["metadata"]["name"], "-n", namespace, annotation)
    assert costs == {"a": [], "b": [], "c": []}
    cluster.kubectl("scale", f"deploy/{app}", "-n", namespace, "--replicas=3")
    cluster.wait_for(lambda: len(pods_of(cluster, namespace, app)) == 3, what=f"{app} is scaled down")
    wait_for_rollout(cluster, f"deploy/{app}", namespace)


def pods_per_zone(cluster: ControlPlane, namespace: str) -> dict[str, int]:
    """Count the pods of a namespace by the zone that their node is labelled with."""
    nodes = cluster.api.get("/api/v1/nodes")["items"]
    zone_of = {node["metadata"]["name"]: node["metadata"]["labels"].get(ZONE) for node in nodes}
    return dict(Counter(zone_of[pod["spec"]["nodeName"]] for pod in pods(cluster, namespace)))


def end_pods(cluster: ControlPlane, namespace: str, name: str = "web") -> None:
    """Scale a Deployment to 0, and wait until its pods are gone, whose room the next test on these nodes needs.

    Many namespaces are deleted at the same time, which takes minutes.
    """
    cluster.api.patch(f"/apis/apps/v1/namespaces/{namespace}/deployments/{name}", {"spec": {"replicas": 0}})
    cluster.wait_for(lambda: not pods(cluster, namespace), what=f"the pods of {namespace} are gone")
