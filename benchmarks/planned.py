"""Plans for a large cluster from a capture, where a zone takes the replacements, is cordoned, or is full.

Run as ``python -m benchmarks.planned --nodes 5000 --workloads 5000``.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from benchmarks.sidebyside import medians, table
from benchmarks.simulated import Json, nodes, workload, write_capture
from tests.builders import ZONE

_PLUGIN: Final = str(Path(sys.executable).parent / "kubectl-spread")
_OF_WORKLOAD: Final = 30
_EMPTIER: Final = "c"
"""The zone with two pods too few of each uneven workload."""
_MOVED: Final = (2, 5)
"""The pods of an uneven workload that are in the first zone instead."""
CORRECTABLE: Final = "correctable"
SITUATIONS: Final = (CORRECTABLE, "cordoned zone", "full zone")


def _is_uneven(index: int) -> bool:
    """Choose one workload in 25, with a hard constraint."""
    return index % 50 in {2, 4}


def _workloads(places: int, workloads: int) -> Iterator[Json]:
    for index in range(workloads):
        for each in workload(index, places, _OF_WORKLOAD):
            number = each["metadata"]["name"].rpartition("-")[2]
            if each["kind"] == "Pod" and _is_uneven(index) and int(number) in _MOVED:
                each["spec"]["nodeName"] = f"n{int(each['spec']['nodeName'][1:]) - 2:05}"
            yield each


def objects(situation: str, places: int, workloads: int) -> Iterator[Json]:
    """Yield the objects of a cluster in a situation."""
    everything = [*_workloads(places, workloads)]
    pods_on = Counter(each["spec"]["nodeName"] for each in everything if each["kind"] == "Pod")
    for node in nodes(places):
        if node["metadata"]["labels"][ZONE] == _EMPTIER and situation == "cordoned zone":
            node["spec"]["unschedulable"] = True
        elif node["metadata"]["labels"][ZONE] == _EMPTIER and situation == "full zone":
            allocatable = {**node["status"]["allocatable"], "pods": str(pods_on[node["metadata"]["name"]])}
            node["status"]["allocatable"] = allocatable
        yield node
    yield from everything


def main() -> None:
    """Write a capture for each situation and plan."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=5_000)
    parser.add_argument("--workloads", type=int, default=5_000)
    parser.add_argument("--rounds", type=int, default=1)
    options = parser.parse_args()
    uneven = sum(map(_is_uneven, range(options.workloads)))
    print(f"{options.workloads * _OF_WORKLOAD} pods of {options.workloads} workloads, {uneven} of them uneven\n")
    with tempfile.TemporaryDirectory() as directory:
        commands: dict[str, Sequence[str]] = {}
        for situation in SITUATIONS:
            capture = Path(directory, f"{situation}.json")
            write_capture(capture, objects(situation, options.nodes, options.workloads))
            commands[situation] = [_PLUGIN, "plan", "-A", "-f", str(capture)]
        print("\n".join(table(medians(commands, os.environ, options.rounds, CORRECTABLE), CORRECTABLE)))


if __name__ == "__main__":
    main()
