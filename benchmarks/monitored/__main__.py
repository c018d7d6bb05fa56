"""Run ``kubectl spread monitor -A`` on a real API server at several sizes, with and without kube-state-metrics.

Run as ``python -m benchmarks.monitored --pods 10000,50000,150000 --changes 50,100,200``. There is a node for every
thirty pods. ``--kube-state-metrics PROGRAM`` is run at the largest size, alone and at the same time as the monitor.
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
from benchmarks.monitored.measuring import Plan, measure, rows
from benchmarks.monitored.programs import Program
from tests.controlplane.cluster import ControlPlane

_NAMESPACES: Final = 295
_PODS_A_WORKLOAD: Final = 40
"""With this number 150,000 pods have about 110,000 series."""


def measure_alone(cluster: ControlPlane, churn: Churn, marks: Marks, plan: Plan) -> None:
    """Print the figures of the monitor alone, and what its documents cost."""
    program = programs.monitor(cluster.environment(), cluster.directory)
    _run([program], churn, marks, plan, documents=True)


def compare(cluster: ControlPlane, churn: Churn, marks: Marks, plan: Plan, peer: str) -> None:
    """Print the figures of another program alone, and next to the monitor, at the last rate without node changes."""
    environment, directory = cluster.environment(), cluster.directory
    plan = plan._replace(rates=plan.rates[-1:], node=0.0)
    _run([programs.kube_state_metrics(peer, environment, directory)], churn, marks, plan)
    neighbour = programs.kube_state_metrics(peer, environment, directory)
    neighbour.wait()
    _run([programs.monitor(environment, directory), neighbour], churn, marks, plan)


def _run(running: Sequence[Program], churn: Churn, marks: Marks, plan: Plan, *, documents: bool = False) -> None:
    load_before = os.getloadavg()[0]
    try:
        for program in running:
            program.wait()
        marks.delays.clear()
        figures = measure(running, churn, marks, plan)
        starts = ", ".join(f"{program.name} ready after {program.seconds:.1f} s" for program in running)
        print(f"\n{starts}; load {load_before:.1f} before, {os.getloadavg()[0]:.1f} after")
        print("", *rows(figures), sep="\n", flush=True)
        for path in ("/", "/report.json") if documents else ():
            size, seconds = running[0].read(path)
            print(f"{path}: {size / 1e6:.1f} MB in {seconds:.1f} s, peak {running[0].usage().peak:.0f} MiB", flush=True)
    finally:
        for program in running:
            program.end()


def main() -> None:
    """Fill a control plane with more and more pods, and measure at each size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pods", default="10000,30000", help="sizes, ascending")
    parser.add_argument("--nodes", type=int, default=0, help="nodes at each size; by default one for 30 pods")
    parser.add_argument("--changes", default="200", help="changes of pods in a second, ascending")
    parser.add_argument("--minutes", type=float, default=2, help="time at each rate")
    parser.add_argument("--quiet", type=float, default=30, help="seconds without changes")
    parser.add_argument("--node-changes", type=float, default=0, help="seconds between two relabelled nodes; 0: none")
    parser.add_argument("--scrape", type=float, default=1, help="seconds between two scrapes of the monitor")
    parser.add_argument(
        "--scrape-peer", type=float, default=15, help="seconds between two scrapes of the other program"
    )
    parser.add_argument("--kube-state-metrics", default="", help="the program to compare with")
    options = parser.parse_args()
    rates = [float(rate) for rate in options.changes.split(",")]
    plan = Plan(rates, options.minutes * 60, options.quiet, options.scrape, options.scrape_peer, options.node_changes)
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
            measure_alone(cluster, churn, marks, plan)
        if options.kube_state_metrics and marks:
            compare(cluster, churn, marks, plan, options.kube_state_metrics)


if __name__ == "__main__":
    main()
