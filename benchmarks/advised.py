"""``check -A`` of a capture with uneven workloads and waiting pods, compared with the same cluster without them.

Run as ``python -m benchmarks.advised --nodes 5000 --pods 150000 --uneven 200 --waiting 1000``; no cluster is needed.
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
_OF_WORKLOAD: Final = 50
_EVEN: Final = "check, all well"
_UNEVEN: Final = "check, uneven and waiting"
_HARD: Final = 2
"""Every second workload has a hard constraint, and none of these has anti-affinity; every tenth has no constraint."""


def objects(places: int, pods: int, uneven: int, waiting: int) -> Iterator[dict[str, Any]]:
    """Yield nodes and workloads; the first with a hard constraint are uneven or wait.

    Args:
        places: The number of nodes.
        pods: The number of pods.
        uneven: The number of workloads whose pods are all in one zone.
        waiting: The number of pods that wait, all of a workload, with requests that no node has.
    """
    yield from nodes(places)
    hard = [index for index in range(pods // _OF_WORKLOAD) if not index % _HARD and index % 5]
    wrong = {*hard[:uneven]}
    pending = {*hard[uneven : uneven + -(-waiting // _OF_WORKLOAD)]}
    for index in range(pods // _OF_WORKLOAD):
        for each in workload(index, places):
            if each["kind"] == "Pod" and index in wrong:
                number = int(each["spec"]["nodeName"].removeprefix("n"))
                each["spec"]["nodeName"] = f"n{number - number % 3:05}"
            elif index in pending and each["kind"] == "Pod":
                yield _refused(each)
                continue
            yield each


def _refused(pod: dict[str, Any]) -> dict[str, Any]:
    """Return a pod as the scheduler leaves it that found no node for it."""
    spec = {key: field for key, field in pod["spec"].items() if key != "nodeName"}
    resources = {"requests": {"cpu": "64"}}
    spec["containers"] = [{**container, "resources": resources} for container in spec["containers"]]
    message = "0/5000 nodes are available: 5000 Insufficient cpu."
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
    return {**pod, "spec": spec, "status": {"phase": "Pending", "conditions": [condition]}}


def main() -> None:
    """Write both captures and compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=5_000)
    parser.add_argument("--pods", type=int, default=15_000)
    parser.add_argument("--uneven", type=int, default=200)
    parser.add_argument("--waiting", type=int, default=1_000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        commands = {}
        for name, uneven, waiting in ((_EVEN, 0, 0), (_UNEVEN, options.uneven, options.waiting)):
            capture = Path(directory, f"{uneven}.json")
            write_capture(capture, objects(options.nodes, options.pods, uneven, waiting))
            commands[name] = [_PLUGIN, "check", "-A", "-f", str(capture)]
        print("\n".join(table(medians(commands, os.environ, options.rounds, _EVEN), _EVEN)))


if __name__ == "__main__":
    main()
