"""Objects that are written to etcd, past the API server, which would refuse or change them."""

from __future__ import annotations

import base64
import json
from typing import Final

import urllib3

from tests.builders import Json
from tests.controlplane.cluster import ControlPlane

_RESOURCES: Final = {
    "Node": "minions",
    "Pod": "pods",
    "Deployment": "deployments",
    "ReplicaSet": "replicasets",
    "StatefulSet": "statefulsets",
    "DaemonSet": "daemonsets",
    "Job": "jobs",
    "CronJob": "cronjobs",
    "ControllerRevision": "controllerrevisions",
}
"""The names in etcd of the kinds that tests write or remove."""


class Store:
    """The etcd of a control plane."""

    def __init__(self, cluster: ControlPlane) -> None:
        """Connect to etcd when it is first needed."""
        self._url = cluster._etcd.url
        self._pool = urllib3.PoolManager(retries=False, timeout=30)

    def put(self, manifest: Json) -> None:
        """Create or replace an object as it is."""
        metadata = manifest["metadata"]
        key = "/".join((_prefix(manifest["kind"]), *filter(None, (metadata.get("namespace"), metadata["name"]))))
        self._request("kv/put", {"key": _encoded(key), "value": _encoded(json.dumps(manifest))})

    def clear(self) -> None:
        """Remove all nodes, pods and workloads of the cluster, owners first."""
        for kind in ("CronJob", "Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "Pod", "Node"):
            # The end of a range that has all keys with this prefix: "0" follows "/".
            prefix = _prefix(kind)
            self._request("kv/deleterange", {"key": _encoded(f"{prefix}/"), "range_end": _encoded(f"{prefix}0")})

    def _request(self, path: str, body: Json) -> None:
        answer = self._pool.request("POST", f"{self._url}/v3/{path}", body=json.dumps(body).encode())
        assert answer.status == 200, answer.data


def _prefix(kind: str) -> str:
    return f"/registry/{_RESOURCES[kind]}"


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
