"""Karpenter with its kwok provider as a process: the nodes that it makes for waiting pods exist in the API alone."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Final

from tests.builders import ZONE, Json
from tests.conformance.newnodes import oracles
from tests.controlplane.client import ApiClient, ApiError
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.processes import Process, free_port

_OF_KUBELET: Final = "node.kubernetes.io/"
_ON_DEMAND: Final = {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]}
_INTERVAL: Final = 0.3


@contextmanager
def running(cluster: ControlPlane, zones: Sequence[str]) -> Iterator[None]:
    """Run Karpenter on a cluster, with one instance type of 2 cpus in some zones, and a NodePool that names them.

    Karpenter keeps 100m of the cpu of each node for the kubelet.
    """
    program = oracles.kwok()
    cluster.kubectl("apply", "--server-side", "-f", str(program.parent / "crds"))
    types, log = cluster.directory / "instance-types.json", cluster.directory / "karpenter.log"
    types.write_text(json.dumps([_instance_type(zones)]), encoding="utf-8")
    flags = [
        "--disable-leader-election=true",
        f"--metrics-port={free_port()}",
        f"--health-probe-port={free_port()}",
        f"--instance-types-file-path={types}",
    ]
    process = Process("karpenter", ["env", f"KUBECONFIG={cluster.kubeconfig}", str(program), *flags], log)
    stopping = threading.Event()
    kubelets = threading.Thread(target=_register, args=(cluster.api, stopping), name="registering", daemon=True)
    kubelets.start()
    try:
        cluster.apply(_objects(zones))
        yield
        process.check()
    finally:
        stopping.set()
        kubelets.join()
        process.stop()


def _instance_type(zones: Sequence[str]) -> Json:
    def offering(zone: str) -> Json:
        in_zone = {"key": ZONE, "operator": "In", "values": [zone]}
        return {"Price": 1.0, "Available": True, "Requirements": [_ON_DEMAND, in_zone]}

    return {
        "name": "two-cpus",
        "offerings": [offering(zone) for zone in zones],
        "architecture": "amd64",
        "operatingSystems": ["linux"],
        "resources": {"cpu": "2", "memory": "32Gi", "ephemeral-storage": "100Gi", "pods": "110"},
    }


def _objects(zones: Sequence[str]) -> list[Json]:
    requirements = [{"key": ZONE, "operator": "In", "values": [*zones]}, _ON_DEMAND]
    reference = {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"}
    template = {"requirements": requirements, "nodeClassRef": reference, "expireAfter": "Never"}
    disruption = {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "Never"}
    return [
        {
            "apiVersion": "karpenter.sh/v1",
            "kind": "NodePool",
            "metadata": {"name": "default"},
            "spec": {"template": {"spec": template}, "disruption": disruption},
        },
        {"apiVersion": "karpenter.kwok.sh/v1alpha1", "kind": "KWOKNodeClass", "metadata": {"name": "default"}},
    ]


def _register(api: ApiClient, stopping: threading.Event) -> None:
    """Do what kubelets do with new nodes: report them ready, without the taints of nodes that are not."""
    while not stopping.wait(_INTERVAL):
        for node in api.get("/api/v1/nodes")["items"]:
            path, taints = f"/api/v1/nodes/{node['metadata']['name']}", node["spec"].get("taints", [])
            kept = [taint for taint in taints if not taint["key"].startswith(_OF_KUBELET)]
            conditions = node.get("status", {}).get("conditions", [])
            # A node may be deleted, and Karpenter may have changed its taints.
            with suppress(ApiError):
                if not any((each["type"], each["status"]) == ("Ready", "True") for each in conditions):
                    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
                    api.patch(f"{path}/status", {"status": {"conditions": [ready]}})
                if kept != taints:
                    version = {"resourceVersion": node["metadata"]["resourceVersion"]}
                    api.patch(path, {"metadata": version, "spec": {"taints": kept}})
