"""Run ``kubectl spread monitor -A`` on a real API server at several sizes, alone and with kube-state-metrics.

Run as ``python -m benchmarks.monitored --pods 10000,50000,150000 --changes 200 --minutes 2``. There is a node for every
thirty pods. ``--kube-state-metrics PROGRAM`` is run alone, and at the same time as the monitor.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from benchmarks.load import PODS_A_NODE, Load
from benchmarks.monitored import programs
from benchmarks.monitored.churn import Churn, Marks
from benchmarks.monitored.measuring import Plan, measure, percentiles, rows
from benchmarks.monitored.programs import Program
from tests.controlplane.cluster import ControlPlane

_NAMESPACES: Final = 295
_PODS_A_WORKLOAD: Final = 40
"""With this number 150,000 pods have about 110,000 series."""


def compare(cluster: ControlPlane, churn: Churn, marks: Marks, plan: Plan, peer: str) -> None:
    """Print the figures of the monitor alone, and with another program alone and next to it."""
    environment, directory = cluster.environment(), cluster.directory
    _run([programs.monitor(environment, directory)], churn, marks, plan)
    if peer:
        _run([programs.kube_state_metrics(peer, environment, directory)], churn, marks, plan)
        neighbour = programs.kube_state_metrics(peer, environment, directory)
        neighbour.wait()
        _run([programs.monitor(environment, directory), neighbour], churn, marks, plan)


def _run(running: Sequence[Program], churn: Churn, marks: Marks, plan: Plan) -> None:
    load_before = os.getloadavg()[0]
    try:
        for program in running:
            program.wait()
        marks.delays.clear()
        figures, rate = measure(running, churn, marks, plan)
    finally:
        for program in running:
            program.end()
    starts = ", ".join(f"{program.name} ready after {program.seconds:.1f} s" for program in running)
    print(f"\n{starts}; {rate:.0f} changes a second; load {load_before:.1f} before, {os.getloadavg()[0]:.1f} after")
    if marks.delays:
        half, most = percentiles(marks.delays)
        print(
            f"change to metric, {len(marks.delays)} changes: p50 {half:.2f} s, p99 {most:.2f} s, "
            f"longest {max(marks.delays):.2f} s; {marks.pending} not seen"
        )
    print("", *rows(figures), "", sep="\n", flush=True)


def main() -> None:
    """Fill a control plane with more and more pods, and measure at each size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pods", default="10000,30000", help="sizes, ascending")
    parser.add_argument("--nodes", type=int, default=0, help="nodes at each size; by default one for 30 pods")
    parser.add_argument("--changes", type=float, default=200, help="changes of pods in a second")
    parser.add_argument("--minutes", type=float, default=2, help="time with changes")
    parser.add_argument("--quiet", type=float, default=30, help="seconds without changes")
    parser.add_argument("--node-changes", type=float, default=0, help="seconds between two relabelled nodes; 0: none")
    parser.add_argument("--scrape", type=float, default=1, help="seconds between two scrapes of the monitor")
    parser.add_argument(
        "--scrape-peer", type=float, default=15, help="seconds between two scrapes of the other program"
    )
    parser.add_argument("--kube-state-metrics", default="", help="the program to compare with")
    options = parser.parse_args()
    plan = Plan(
        options.changes, options.minutes * 60, options.quiet, options.scrape, options.scrape_peer, options.node_changes
    )
    with (
        tempfile.TemporaryDirectory() as directory,
        ControlPlane.start(Path(directory), scheduler=False, controllers=False) as cluster,
    ):
        loaded = Load(cluster, _NAMESPACES, _PODS_A_WORKLOAD)
        churn, marks = Churn(cluster.api, loaded), None
        for pods in map(int, options.pods.split(",")):
            begin = time.monotonic()
            loaded.grow(pods=pods, nodes=options.nodes or -(-pods // PODS_A_NODE))
            churn.grow(pods)
            marks = marks or Marks(cluster.api, loaded.nodes)
            print(
                f"\n{pods:,} pods on {len(loaded.nodes):,} nodes after {time.monotonic() - begin:.0f} s more",
                flush=True,
            )
            compare(cluster, churn, marks, plan, options.kube_state_metrics)


if __name__ == "__main__":
    main()
