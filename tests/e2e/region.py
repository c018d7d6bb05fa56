"""A cluster like those of clouds: three zones, control-plane nodes, workers, and a GPU pool in two zones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tests.builders import HOSTNAME, ZONE, Json
from tests.controlplane import nodes
from tests.controlplane.cluster import ControlPlane

REGION = "eu-central-1"
ZONES = tuple(f"{REGION}{letter}" for letter in "abc")
WORKERS_PER_ZONE = 4
POOL = "node.example.com/pool"
_CONTROL_PLANE = {"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}
_GPU = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
_SMALL = {"cpu": "4", "memory": "16Gi", "pods": "110"}
_LARGE = {"cpu": "16", "memory": "64Gi", "pods": "110"}
_ACCELERATED = {"cpu": "32", "memory": "128Gi", "pods": "110", "nvidia.com/gpu": "4"}


def build(cluster: ControlPlane) -> None:
    """Add every node of the region."""
    for pool, taints in _pools():
        nodes.add(cluster.api, pool, taints)


def _pools() -> Iterator[tuple[list[Json], Sequence[Json]]]:
    leaders = [_node(zone, 10, _SMALL, "m7i.xlarge", {_CONTROL_PLANE["key"]: ""}) for zone in ZONES]
    yield leaders, [_CONTROL_PLANE]
    numbers = range(100, 100 + WORKERS_PER_ZONE)
    yield [_node(zone, number, _LARGE, "m7i.4xlarge", {POOL: "general"}) for zone in ZONES for number in numbers], []
    accelerated = {POOL: "gpu", "nvidia.com/gpu.present": "true"}
    yield (
        [_node(zone, 200 + offset, _ACCELERATED, "g6.8xlarge", accelerated) for zone in ZONES[:2] for offset in (0, 1)],
        [_GPU],
    )


def _node(zone: str, number: int, capacity: Mapping[str, str], instance: str, labels: Mapping[str, str]) -> Json:
    name = f"ip-10-0-{ZONES.index(zone)}-{number}.{REGION}.compute.internal"
    standard = {
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/os": "linux",
        HOSTNAME: name,
        "node.kubernetes.io/instance-type": instance,
        nodes.REGION: REGION,
        ZONE: zone,
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {**standard, **labels}},
        "spec": {"providerID": f"aws:///{zone}/i-{number:017x}"},
        "status": {
            "capacity": {**capacity, "ephemeral-storage": "100Gi"},
            "allocatable": {
                **capacity,
                "cpu": f"{int(capacity['cpu']) * 1000 - 110}m",
                "memory": f"{int(capacity['memory'].removesuffix('Gi')) * 1024 - 1024}Mi",
                "ephemeral-storage": "90Gi",
            },
            "conditions": list(_conditions()),
            "nodeInfo": _INFO,
        },
    }


_INFO = {
    "architecture": "amd64",
    "bootID": "8d2b7c1e",
    "containerRuntimeVersion": "containerd://2.1.3",
    "kernelVersion": "6.12.40",
    "kubeProxyVersion": "",
    "kubeletVersion": "v1.37.1",
    "machineID": "ec2a1f",
    "operatingSystem": "linux",
    "osImage": "Amazon Linux 2023",
    "systemUUID": "ec2a1f",
}


def _conditions() -> Iterator[Json]:
    pressures = ("MemoryPressure", "DiskPressure", "PIDPressure")
    for kind in pressures:
        yield {"type": kind, "status": "False", "reason": f"KubeletHasNo{kind}"}
    yield {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "kubelet is posting ready status"}
