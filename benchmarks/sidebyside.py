"""Commands run in turn, so that the machine's other work slows all of them alike."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Run:
    """The cost of one finished process: seconds of wall time and of its own processor time, peak memory in MiB."""

    wall: float
    processor: float
    memory: float


@dataclass(frozen=True, slots=True)
class Median:
    """The medians of several runs; ``ratio`` compares the wall times with the base's in the same rounds."""

    wall: float
    processor: float
    memory: float
    ratio: float


def run(command: Sequence[str], environment: Mapping[str, str]) -> Run:
    """Run a command with its output thrown away, and return its cost.

    Raises:
        RuntimeError: The command failed.
    """
    measure = [sys.executable, str(Path(__file__).with_name("measure.py")), *command]
    completed = subprocess.run(measure, env=dict(environment), check=True, capture_output=True, text=True)
    cost = json.loads(completed.stdout)
    # Findings and tracebacks both end with 1.
    if cost.pop("code") not in (0, 1) or "Traceback" in completed.stderr:
        raise RuntimeError(f"{' '.join(command)} failed: {completed.stderr}")
    return Run(**cost)


def medians(
    commands: Mapping[str, Sequence[str]], environment: Mapping[str, str], rounds: int, base: str
) -> dict[str, Median]:
    """Run the commands in turn, ``rounds`` times, and return the medians of each by its name."""
    runs: dict[str, list[Run]] = {name: [] for name in commands}
    for _ in range(rounds):
        for name, command in commands.items():
            runs[name].append(run(command, environment))
    return {name: _median(runs_of_command, runs[base]) for name, runs_of_command in runs.items()}


def table(medians_by_name: Mapping[str, Median], base: str) -> list[str]:
    """Return the lines of a Markdown table."""
    lines = [f"| command | wall | processor | peak memory | wall, multiple of {base} |", "|---|---|---|---|---|"]
    lines += [
        f"| `{name}` | {median.wall:.2f} s | {median.processor:.2f} s | {median.memory:.0f} MiB | {median.ratio:.2f} |"
        for name, median in medians_by_name.items()
    ]
    return lines


def _median(runs: Sequence[Run], base_runs: Sequence[Run]) -> Median:
    wall, processor, memory = (
        statistics.median(getattr(measured, field) for measured in runs) for field in ("wall", "processor", "memory")
    )
    ratios = (measured.wall / base.wall for measured, base in zip(runs, base_runs, strict=True))
    return Median(wall, processor, memory, statistics.median(ratios))
