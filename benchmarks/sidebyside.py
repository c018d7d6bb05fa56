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
    return {name: _median(found, runs[base]) for name, found in runs.items()}


def table(found: Mapping[str, Median], base: str) -> list[str]:
    """Return the lines of a Markdown table."""
    lines = [f"| command | wall | processor | peak memory | wall, multiple of {base} |", "|---|---|---|---|---|"]
    lines += [
        f"| `{name}` | {one.wall:.2f} s | {one.processor:.2f} s | {one.memory:.0f} MiB | {one.ratio:.2f} |"
        for name, one in found.items()
    ]
    return lines


def _median(found: Sequence[Run], base: Sequence[Run]) -> Median:
    wall, processor, memory = (
        statistics.median(getattr(one, field) for one in found) for field in ("wall", "processor", "memory")
    )
    ratio = statistics.median(one.wall / other.wall for one, other in zip(found, base, strict=True))
    return Median(wall, processor, memory, ratio)
