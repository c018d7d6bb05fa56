"""Run a control plane until interrupted: ``python -m tests.controlplane.serve``."""

from __future__ import annotations

import argparse
import signal
import tempfile
from pathlib import Path

from tests.controlplane import binaries
from tests.controlplane.cluster import ControlPlane

HOW_TO_USE = """\
Kubernetes {version} is ready, with nodes {nodes}. In another shell:

    export KUBECONFIG={kubeconfig}
    kubectl get nodes --label-columns topology.kubernetes.io/zone

Logs are in {directory}. Ctrl-C ends it and removes everything.
"""


def main() -> None:
    """Start a control plane with nodes and keep it until interrupted."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--version", default=binaries.KUBERNETES_VERSION)
    parser.add_argument("--per-zone", type=int, default=2, help="nodes in each of three zones")
    options = parser.parse_args()
    # SIGTERM raises KeyboardInterrupt like Ctrl-C, so that both clean up.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        _serve(options.version, options.per_zone)
    except KeyboardInterrupt:
        print("stopped")


def _serve(version: str, per_zone: int) -> None:
    with tempfile.TemporaryDirectory(prefix="kubectl-spread-") as scratch:
        directory = Path(scratch)
        with ControlPlane.start(directory, version=version, kubelet=True) as cluster:
            names = cluster.add_nodes(per_zone=per_zone)
            message = HOW_TO_USE.format(
                version=version,
                nodes=", ".join(names),
                kubeconfig=cluster.kubeconfig,
                directory=directory,
            )
            print(message, flush=True)
            signal.pause()


if __name__ == "__main__":
    main()
