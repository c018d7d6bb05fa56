"""Wall time and peak memory of ``check -A`` beside ``kubectl get pods -A``, on one real apiserver, in turn.

Run as ``python -m benchmarks.check_beside_get --pods 30000 --nodes 1000``.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.load import fill
from tests.controlplane.cluster import ControlPlane


@dataclass(frozen=True, slots=True)
class Run:
    """What one finished process took: seconds of wall time and of its own processor time, peak memory in MiB."""

    wall: float
    processor: float
    memory: float


def run(command: Sequence[str], environment: Mapping[str, str]) -> Run:
    """Run a command with its output thrown away and return what it took.

    Raises:
        RuntimeError: it failed.
    """
    measure = [sys.executable, str(Path(__file__).with_name("measure.py")), *command]
    done = subprocess.run(measure, env=dict(environment), check=True, capture_output=True, text=True)
    took = json.loads(done.stdout)
    if took.pop("code") not in (0, 1):
        raise RuntimeError(f"{' '.join(command)} failed: {done.stderr}")
    return Run(**took)


def compare(commands: Mapping[str, Sequence[str]], environment: Mapping[str, str], rounds: int) -> None:
    """Run the commands in turn and print the median of each, and the ratio of each to the first."""
    runs: dict[str, list[Run]] = {name: [] for name in commands}
    for _ in range(rounds):
        for name, command in commands.items():
            runs[name].append(run(command, environment))
    first = next(iter(runs))
    print(f"{'command':<24} {'wall s':>8} {'cpu s':>8} {'peak MiB':>9} {'wall ratio':>11}")
    for name, found in runs.items():
        ratio = statistics.median(one.wall / base.wall for one, base in zip(found, runs[first], strict=True))
        wall, processor, memory = (
            statistics.median(getattr(one, field) for one in found) for field in ("wall", "processor", "memory")
        )
        print(f"{name:<24} {wall:>8.2f} {processor:>8.2f} {memory:>9.0f} {ratio:>11.2f}")


def main() -> None:
    """Fill a control plane and compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pods", type=int, default=30_000)
    parser.add_argument("--nodes", type=int, default=1_000)
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    plugin = Path(sys.executable).parent / "kubectl-spread"
    with (
        tempfile.TemporaryDirectory() as folder,
        ControlPlane.start(Path(folder), scheduler=False, controllers=False) as cluster,
    ):
        begin = time.monotonic()
        fill(cluster, pods=asked.pods, nodes=asked.nodes)
        print(f"{asked.pods} pods on {asked.nodes} nodes created in {time.monotonic() - begin:.0f} s")
        commands = {
            "kubectl get pods -A": ["kubectl", "get", "pods", "-A"],
            "kubectl spread check -A": [str(plugin), "check", "-A"],
        }
        compare(commands, cluster.environment(), asked.rounds)


if __name__ == "__main__":
    main()
