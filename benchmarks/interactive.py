"""``check`` and ``explain`` of one namespace of a large cluster, next to the bare download of what they read.

Run as ``python -m benchmarks.interactive --pods 150000 --nodes 5000``; a namespace has 510 pods.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks.download import PROTOBUF, Download
from benchmarks.load import PODS_A_WORKLOAD, Load
from benchmarks.sidebyside import medians, table
from kubectl_spread.sources.decode.resources import NODES, PODS, WORKLOADS
from tests.controlplane.binaries import kubectl
from tests.controlplane.client import parallel
from tests.controlplane.cluster import ControlPlane

_PLUGIN: Final = str(Path(sys.executable).parent / "kubectl-spread")
_NAMESPACE: Final = "team-0"
_WORKLOADS: Final = 17
"""The number of workloads in a namespace."""
_BARE: Final = "curl: pods and workloads of the namespace, nodes"
_IMAGES: Final = 50
"""The number of images that a kubelet reports by default."""


def main() -> None:
    """Fill a control plane and compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pods", type=int, default=10_000)
    parser.add_argument("--nodes", type=int, default=5_000)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    namespaces = -(-options.pods // (PODS_A_WORKLOAD * _WORKLOADS))
    with (
        tempfile.TemporaryDirectory() as directory,
        ControlPlane.start(Path(directory), scheduler=False, controllers=False) as cluster,
    ):
        Load(cluster, namespaces).grow(pods=options.pods, nodes=options.nodes)
        parallel(lambda name: _report_images(cluster, name), _names(cluster))
        download = Download(cluster.api, cluster.kubeconfig, Path(directory) / "curl")
        commands = {
            _BARE: download.command(PROTOBUF, 500, (PODS, NODES, *WORKLOADS), _NAMESPACE),
            "kubectl get pods -n": [str(kubectl()), "get", "pods", "-n", _NAMESPACE],
            "check -n": [_PLUGIN, "check", "-n", _NAMESPACE],
            "check NAME": [_PLUGIN, "check", "-n", _NAMESPACE, "rs/service-0-7c9d8f6b54"],
            "explain NAME": [_PLUGIN, "explain", "-n", _NAMESPACE, "rs/service-0-7c9d8f6b54"],
            "explain POD": [_PLUGIN, "explain", "-n", _NAMESPACE, "pod/service-0-7c9d8f6b54-00000"],
        }
        environment = {**os.environ, **cluster.environment()}
        print("\n".join(table(medians(commands, environment, options.rounds, _BARE), _BARE)))


def _names(cluster: ControlPlane) -> Sequence[str]:
    nodes: Mapping[str, Any] = cluster.api.get("/api/v1/nodes")
    return [node["metadata"]["name"] for node in nodes["items"]]


def _report_images(cluster: ControlPlane, node: str) -> None:
    """Report images as a kubelet does: most of a node's bytes."""
    digest = "sha256:" + "0123456789abcdef" * 4
    images = [
        {"names": [f"registry.example.com/team/image-{number}@{digest}", f"registry.example.com/team/image-{number}:1"]}
        for number in range(_IMAGES)
    ]
    cluster.api.patch(f"/api/v1/nodes/{node}/status", {"status": {"images": images}})


if __name__ == "__main__":
    main()
