"""The time of commands that have little to do, next to the imports that they need and to kubectl, run in turn.

Run as ``python -m benchmarks.startup``.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path
from typing import Final

from benchmarks.load import PODS_A_NODE, Load
from benchmarks.sidebyside import medians, table
from tests.controlplane.binaries import kubectl
from tests.controlplane.cluster import ControlPlane

_PLUGIN: Final = str(Path(sys.executable).parent / "kubectl-spread")
_IMPORTS: Final = "import click, msgspec"
_KUBECTL: Final = "kubectl get pods"
_PODS: Final = 613
"""Workloads of 30 pods go to 20 namespaces in turn, so that ``team-0`` has 43 of all pods."""
_POD: Final = """\
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: default, labels: {app: web}}
spec:
  containers: [{name: web, image: web}]
  topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: topology.kubernetes.io/zone
    whenUnsatisfiable: DoNotSchedule
    labelSelector: {matchLabels: {app: web}}
"""


def main() -> None:
    """Compare commands that need no cluster, and then a check of a namespace with 43 pods."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args().rounds
    # As installed: with the modules compiled.
    with tempfile.TemporaryDirectory() as directory:
        compiled = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": directory}
        environment = {**os.environ, **compiled}
        manifest = Path(directory, "small.yaml")
        manifest.write_text(_POD)
        offline = {
            _IMPORTS: [sys.executable, "-c", _IMPORTS],
            "--help": [_PLUGIN, "--help"],
            "rules": [_PLUGIN, "rules"],
            "check -f small.yaml": [_PLUGIN, "check", "-f", str(manifest)],
        }
        print("\n".join(table(medians(offline, environment, rounds, _IMPORTS), _IMPORTS)))
        with ControlPlane.start(Path(directory), scheduler=False, controllers=False) as cluster:
            Load(cluster).grow(pods=_PODS, nodes=-(-_PODS // PODS_A_NODE))
            live = {
                _KUBECTL: [str(kubectl()), "get", "pods", "--namespace=team-0"],
                "check": [_PLUGIN, "check", "--namespace=team-0"],
            }
            live_medians = medians(live, {**cluster.environment(), **compiled}, rounds, _KUBECTL)
            print("", *table(live_medians, _KUBECTL), sep="\n")


if __name__ == "__main__":
    main()
