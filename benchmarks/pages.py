"""``check -A`` in pages of several sizes, on apiservers of several minors: older ones serve pages from etcd.

Run as ``python -m benchmarks.pages --pods 30000 --versions v1.33.13,v1.37.1``.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Final

from benchmarks.load import PODS_A_NODE, Load
from benchmarks.sidebyside import medians, table
from tests.controlplane import binaries
from tests.controlplane.cluster import ControlPlane

_DEFAULT: Final = 500
_SIZES: Final = (_DEFAULT, 250, 1000, 2000)


def compare(version: str, pods: int, rounds: int) -> list[str]:
    """Return a table of the cost of a check by page size on one version of Kubernetes."""
    plugin = str(Path(sys.executable).parent / "kubectl-spread")
    commands = {f"--chunk-size={size}": [plugin, "check", "-A", f"--chunk-size={size}"] for size in _SIZES}
    with (
        tempfile.TemporaryDirectory() as directory,
        ControlPlane.start(Path(directory), version=version, scheduler=False, controllers=False) as cluster,
    ):
        Load(cluster).grow(pods=pods, nodes=-(-pods // PODS_A_NODE))
        base = f"--chunk-size={_DEFAULT}"
        return table(medians(commands, cluster.environment(), rounds, base), base)


def main() -> None:
    """Compare the page sizes on each version."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pods", type=int, default=30_000)
    parser.add_argument("--versions", default=f"v1.33.13,{binaries.KUBERNETES_VERSION}")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    for version in options.versions.split(","):
        print(f"\n{options.pods:,} pods, {version}:\n")
        print("\n".join(compare(version, options.pods, options.rounds)), flush=True)


if __name__ == "__main__":
    main()
