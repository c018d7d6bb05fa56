"""A recommendation for one workload of a capture: how long does it take, by the size of the cluster?

Run as ``python -m benchmarks.recommended --nodes 100 --pods 1000``. The workload has a hard constraint on the zone, so
that changes are tried.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from benchmarks.sidebyside import medians, table
from benchmarks.simulated import nodes, workload, write_capture

_PLUGIN: Final = str(Path(sys.executable).parent / "kubectl-spread")
_WORKLOAD: Final = ("deploy/app2", "-n", "ns2")
"""A Deployment with a hard constraint on the zone."""


def _objects(places: int, pods: int, replicas: int) -> Iterator[dict[str, Any]]:
    yield from nodes(places)
    for index in range(pods // replicas):
        yield from workload(index, places, replicas)


def main() -> None:
    """Write captures of each size and measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=100)
    parser.add_argument("--pods", default="300,1000,3000")
    parser.add_argument("--replicas", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    for pods in map(int, options.pods.split(",")):
        with tempfile.TemporaryDirectory() as directory:
            capture = Path(directory, "capture.json")
            write_capture(capture, _objects(options.nodes, pods, options.replicas))
            commands = {"recommend": [_PLUGIN, "recommend", *_WORKLOAD, "-f", str(capture)]}
            print(f"\n{pods:,} pods on {options.nodes} nodes, {options.replicas} replicas\n")
            print("\n".join(table(medians(commands, os.environ, options.rounds, "recommend"), "recommend")))


if __name__ == "__main__":
    main()
