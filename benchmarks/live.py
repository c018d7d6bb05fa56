"""``check -A`` on a real apiserver at several sizes, compared with kubectl and with the bare download of the lists.

Run as ``python -m benchmarks.live --pods 1000,3000,10000,30000,100000,150000``; there is a node for every 30 pods.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from benchmarks.download import JSON, PROTOBUF, Download
from benchmarks.load import PODS_A_NODE, Load
from benchmarks.sidebyside import Median, medians, table
from tests.controlplane.cluster import ControlPlane

CHECK: Final = "kubectl spread check -A"
BARE: Final = "curl, protobuf"
_KUBECTL_FITS: Final = 30_000
"""Pods up to which kubectl fits the machine next to the apiserver."""


def commands(cluster: ControlPlane, directory: Path, pods: int, page: int) -> dict[str, list[str]]:
    """Return the commands to compare on a cluster of so many pods, by name."""
    download = Download(cluster.api, cluster.kubeconfig, directory)
    plugin = str(Path(sys.executable).parent / "kubectl-spread")
    lines_by_name = {
        BARE: download.command(PROTOBUF, page),
        CHECK: [plugin, "check", "-A", f"--chunk-size={page}"],
        "curl, JSON": download.command(JSON, page),
    }
    if pods <= _KUBECTL_FITS:
        lines_by_name["kubectl get pods -A"] = ["kubectl", "get", "pods", "-A"]
        lines_by_name["kubectl get pods -A -o json"] = ["kubectl", "get", "pods", "-A", "-o", "json"]
    return lines_by_name


def phases(cluster: ControlPlane, rounds: int, page: int) -> dict[str, float]:
    """Return the median seconds of each phase of a check."""
    command = [sys.executable, "-m", "benchmarks.phases", "check", "-A", f"--chunk-size={page}"]
    runs = []
    for _ in range(rounds):
        completed = subprocess.run(command, env=cluster.environment(), check=False, capture_output=True, text=True)
        runs.append(json.loads(completed.stderr.splitlines()[-1]))
    return {name: statistics.median(run[name] for run in runs) for name in runs[0]}


def by_phase(seconds_by_size: dict[int, dict[str, float]]) -> list[str]:
    """Return a table of the seconds of each phase of a check at each size."""
    names = list(next(iter(seconds_by_size.values())))
    lines = [f"| pods | {' | '.join(names)} |", "|---" * (len(names) + 1) + "|"]
    return lines + [
        f"| {pods:,} | {' | '.join(f'{seconds[name]:.2f} s' for name in names)} |"
        for pods, seconds in seconds_by_size.items()
    ]


def growth(checks: dict[int, Median]) -> list[str]:
    """Return a table of the cost of a check at each size, and per pod."""
    lines = ["| pods | wall | peak memory | wall for 1,000 pods | multiple of curl, protobuf |"]
    lines.append("|---|---|---|---|---|")
    lines += [
        f"| {pods:,} | {cost.wall:.2f} s | {cost.memory:.0f} MiB | {cost.wall / pods * 1e6:.0f} ms | {cost.ratio:.2f} |"
        for pods, cost in checks.items()
    ]
    return lines


def main() -> None:
    """Fill a control plane with more and more pods, and compare at each size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pods", default="1000,3000,10000,30000", help="sizes, ascending")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--page", type=int, default=500)
    options = parser.parse_args()
    checks, seconds = {}, {}
    with (
        tempfile.TemporaryDirectory() as directory,
        ControlPlane.start(Path(directory), scheduler=False, controllers=False) as cluster,
    ):
        load = Load(cluster)
        for pods in map(int, options.pods.split(",")):
            begin = time.monotonic()
            load.grow(pods=pods, nodes=-(-pods // PODS_A_NODE))
            print(f"\n{pods:,} pods after {time.monotonic() - begin:.0f} s more\n")
            compared = commands(cluster, Path(directory) / "curl", pods, options.page)
            times = medians(compared, cluster.environment(), options.rounds, BARE)
            print("\n".join(table(times, BARE)), flush=True)
            checks[pods] = times[CHECK]
            seconds[pods] = phases(cluster, options.rounds, options.page)
    print("", *growth(checks), "", *by_phase(seconds), sep="\n")


if __name__ == "__main__":
    main()
