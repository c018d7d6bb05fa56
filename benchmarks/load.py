"""A load for a real apiserver: many realistic pods on many nodes in three zones."""

from __future__ import annotations

from typing import Any, Final

from tests.controlplane.client import Object, parallel
from tests.controlplane.cluster import ControlPlane

ZONES: Final = ("europe-west1-a", "europe-west1-b", "europe-west1-c")
PODS_A_WORKLOAD: Final = 30
PODS_A_NODE: Final = 30
_NAMESPACES: Final = 20
_UNEVEN: Final = 20
_CONDITIONS: Final = ("ContainersReady", "Initialized", "PodReadyToStartContainers", "PodScheduled", "Ready")
_FIELDS: Final = (".", "f:lastTransitionTime", "f:observedGeneration", "f:status", "f:type")
_REPORTED: Final[dict[str, Any]] = {name: {} for name in _FIELDS}
_MANAGED_FIELDS: Final = [
    {
        "manager": "kubelet",
        "operation": "Update",
        "subresource": "status",
        "apiVersion": "v1",
        "time": "2026-11-01T09:00:07Z",
        "fieldsType": "FieldsV1",
        "fieldsV1": {
            "f:status": {
                "f:conditions": {f'k:{{"type":"{name}"}}': _REPORTED for name in _CONDITIONS},
                "f:containerStatuses": {},
                "f:hostIP": {},
                "f:hostIPs": {},
                "f:phase": {},
                "f:podIP": {},
                "f:podIPs": {".": {}, 'k:{"ip":"10.0.0.1"}': {".": {}, "f:ip": {}}},
                "f:startTime": {},
            }
        },
    }
]
"""The entry of a kubelet; the apiserver adds the entry of the creator."""


class Load:
    """Pods like those of ReplicaSets, bound to nodes, in one control plane, which can get more pods.

    Attributes:
        nodes: The names of the nodes, one of each zone in turn.
        owners: The ReplicaSets.
        pods_a_workload: The pods of each ReplicaSet.
    """

    def __init__(
        self, cluster: ControlPlane, namespaces: int = _NAMESPACES, pods_a_workload: int = PODS_A_WORKLOAD
    ) -> None:
        """Start with namespaces, and without nodes and pods."""
        self.nodes: list[str] = []
        self.owners: list[Object] = []
        self.pods_a_workload = pods_a_workload
        self._namespaces = namespaces
        self._cluster = cluster
        self._pods = 0
        cluster.api.create_all(
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": f"team-{number}"}}
            for number in range(namespaces)
        )

    def grow(self, *, pods: int, nodes: int) -> None:
        """Add nodes and pods until there are so many.

        A pod has two containers, forty environment variables, annotations, two spread constraints, one affinity term,
        and managedFields of its controller and its kubelet.
        """
        per_zone = -(-(nodes - len(self.nodes)) // len(ZONES))
        added = [self._cluster.add_nodes([zone], per_zone=max(0, per_zone)) for zone in ZONES]
        # One node of each zone in turn, so that workloads are spread as a scheduler would spread them.
        self.nodes += [name for names in zip(*added, strict=True) for name in names]
        workloads = range(len(self.owners), -(-pods // self.pods_a_workload))
        self.owners += self._cluster.api.create_all(
            replica_set(number, f"team-{number % self._namespaces}") for number in workloads
        )
        parallel(self._create, range(self._pods, pods))
        self._pods = max(pods, self._pods)

    def _create(self, index: int) -> None:
        owner = self.owners[index // self.pods_a_workload]
        self._cluster.api.create(pod(owner, index % self.pods_a_workload, self.nodes[self.first_node(index)]))

    def first_node(self, index: int) -> int:
        """Return the index of a pod's node; the pods of one workload in twenty are all in one zone."""
        workload, number = divmod(index, self.pods_a_workload)
        if workload % _UNEVEN:
            return index % len(self.nodes)
        return (number * len(ZONES) + workload) % len(self.nodes)


def _labels(name: str) -> dict[str, str]:
    return {
        "app.kubernetes.io/name": name,
        "app.kubernetes.io/instance": name,
        "app.kubernetes.io/managed-by": "Helm",
        "pod-template-hash": "7c9d8f6b54",
    }


def replica_set(number: int, namespace: str) -> dict[str, Any]:
    """Return the manifest of a ReplicaSet whose controller makes no pods."""
    name = f"service-{number}"
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": f"{name}-7c9d8f6b54", "namespace": namespace},
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": _labels(name)},
            "template": {"metadata": {"labels": _labels(name)}, "spec": _spec(name)},
        },
    }


def pod(owner: Object, index: int, node: str) -> dict[str, Any]:
    """Return the manifest of a workload's pod with the number ``index``, bound to a node."""
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
            "managedFields": _MANAGED_FIELDS,
        },
        "spec": {**_spec(name), "nodeName": node},
    }


def template(name: str) -> dict[str, Any]:
    """Return the pod template of a workload."""
    return {"metadata": {"labels": _labels(name)}, "spec": _spec(name)}


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
