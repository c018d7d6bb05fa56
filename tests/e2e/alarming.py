"""Workloads on the real control plane that alerts are about, and healthy ones."""

from __future__ import annotations

from typing import Final

from tests.builders import constraint, selector
from tests.controlplane.client import STRATEGIC_PATCH
from tests.controlplane.cluster import ControlPlane
from tests.e2e.manifests import deployment, workload
from tests.e2e.workloads import label, pods_of, roll_out, scale_down_unevenly

NAMESPACE: Final = "shop"
PENDING: Final = "capped"
"""The Deployment with a pending pod."""


def make_healthy(cluster: ControlPlane) -> None:
    """Make a namespace with two workloads that are spread over three zones."""
    cluster.api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    for kind, name in (("Deployment", "web"), ("StatefulSet", "db")):
        constraints = [constraint(selects=selector({"app": name}))]
        manifest = workload(kind, name, constraints, labels={"app": name}, namespace=NAMESPACE)
        roll_out(cluster, manifest)


def make_faults(cluster: ControlPlane) -> None:
    """Make a workload for each alert about workloads."""
    _skewed(cluster)
    _stale(cluster)
    _in_one_domain(cluster)
    _refused(cluster)
    _capped(cluster)


def make_harmless(cluster: ControlPlane) -> None:
    """Make workloads that look like faults: one whose pods wait for CPU, and one whose next pod would be refused."""
    big = [{"name": "app", "image": "registry.example/app:1", "resources": {"requests": {"cpu": "10k"}}}]
    constraints = [constraint(selects=selector({"app": "hungry"}), minDomains=5)]
    cluster.apply(
        deployment("hungry", constraints, labels={"app": "hungry"}, namespace=NAMESPACE, replicas=1, containers=big)
    )
    constraints = [constraint(selects=selector({"app": "at-limit"}), minDomains=5)]
    roll_out(cluster, deployment("at-limit", constraints, labels={"app": "at-limit"}, namespace=NAMESPACE))


def _skewed(cluster: ControlPlane) -> None:
    constraints = [constraint(selects=selector({"app": "skewed"}))]
    manifest = deployment("skewed", constraints, labels={"app": "skewed"}, namespace=NAMESPACE, replicas=6)
    roll_out(cluster, manifest)
    scale_down_unevenly(cluster, NAMESPACE, "skewed")


def _stale(cluster: ControlPlane) -> None:
    labels = {"app": "stale", "rev": "r1"}
    constraints = [constraint(selects=selector({"app": "stale"}), match=["rev"])]
    roll_out(cluster, deployment("stale", constraints, labels=labels, namespace=NAMESPACE))
    first, *_ = pods_of(cluster, NAMESPACE, "stale")
    label(cluster, NAMESPACE, first["metadata"]["name"], "rev=r2")


def _in_one_domain(cluster: ControlPlane) -> None:
    """Place all pods on one node while the others are cordoned."""
    first, *others = (node["metadata"]["name"] for node in cluster.api.get("/api/v1/nodes")["items"])
    _cordon(cluster, others, cordoned=True)
    roll_out(cluster, deployment("packed", labels={"app": "packed"}, namespace=NAMESPACE))
    _cordon(cluster, others, cordoned=False)
    assert {pod["spec"]["nodeName"] for pod in pods_of(cluster, NAMESPACE, "packed")} == {first}


def _cordon(cluster: ControlPlane, nodes: list[str], *, cordoned: bool) -> None:
    for node in nodes:
        cluster.api.patch(f"/api/v1/nodes/{node}", {"spec": {"unschedulable": cordoned}}, STRATEGIC_PATCH)


def _refused(cluster: ControlPlane) -> None:
    """Create a Deployment that is accepted although its pods are refused."""
    labels = {"app": "refused", "rev": "r1"}
    constraints = [constraint(selects=selector(labels), match=["rev"])]
    cluster.apply(deployment("refused", constraints, labels=labels, namespace=NAMESPACE))


def _capped(cluster: ControlPlane) -> None:
    """Ask for more domains than there are, so that each zone takes one pod and the fourth is pending."""
    constraints = [constraint(selects=selector({"app": PENDING}), minDomains=5)]
    manifest = deployment(PENDING, constraints, labels={"app": PENDING}, namespace=NAMESPACE, replicas=4)
    cluster.apply(manifest)

    def settled() -> bool:
        nodes = [pod["spec"].get("nodeName") for pod in pods_of(cluster, NAMESPACE, PENDING)]
        return len(nodes) == 4 and len(list(filter(None, nodes))) == 3

    cluster.wait_for(settled, what="one pod is pending")
