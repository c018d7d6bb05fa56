"""Commands run in turn, so that what else the machine does meets all of them alike."""

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
    """What one finished process took: seconds of wall time and of its own processor time, peak memory in MiB."""

    wall: float
    processor: float
    memory: float


@dataclass(frozen=True, slots=True)
class Median:
    """The medians of several runs; ``ratio`` is that of the wall times to the base's in the same round."""

    wall: float
    processor: float
    memory: float
    ratio: float


def run(command: Sequence[str], environment: Mapping[str, str]) -> Run:
    """Run a command with its output thrown away and return what it took.

    Raises:
        RuntimeError: it failed.
    """
    measure = [sys.executable, str(Path(__file__).with_name("measure.py")), *command]
    done = subprocess.run(measure, env=dict(environment), check=True, capture_output=True, text=True)
    took = json.loads(done.stdout)
    # A traceback ends with 1 too, as findings do.
    if took.pop("code") not in (0, 1) or "Traceback" in done.stderr:
        raise RuntimeError(f"{' '.join(command)} failed: {done.stderr}")
    return Run(**took)


def medians(
    commands: Mapping[str, Sequence[str]], environment: Mapping[str, str], rounds: int, base: str
) -> dict[str, Median]:
    """Run the commands in turn, ``rounds`` times, and return the medians of each by its name."""
    runs: dict[str, list[Run]] = {name: [] for name in commands}
    for _ in range(rounds):
        for name, command in commands.items():
            runs[name].append(run(command, environment))
    return {name: _median(run_entry, runs[base]) for name, run_entry in runs.items()}


def table(mapping: Mapping[str, Median], base: str) -> list[str]:
    """Return the lines of a Markdown table."""
    lines = [f"| command | wall | processor | peak memory | wall, multiple of {base} |", "|---|---|---|---|---|"]
    lines += [
        f"| `{name}` | {item.wall:.2f} s | {item.processor:.2f} s | {item.memory:.0f} MiB | {item.ratio:.2f} |"
        for name, item in mapping.items()
    ]
    return lines


def _median(items: Sequence[Run], base: Sequence[Run]) -> Median:
    wall, processor, memory = (
        statistics.median(getattr(item, field) for item in items) for field in ("wall", "processor", "memory")
    )
    ratio = statistics.median(item.wall / other.wall for item, other in zip(items, base, strict=True))
    return Median(wall, processor, memory, ratio)
