"""The benchmarks name functions of the program, which may have moved; none is measured here."""

import json
import subprocess
import sys
from pathlib import Path


def test_the_clock_knows_every_phase() -> None:
    command = [sys.executable, "-m", "benchmarks.phases", "check", "-f", "examples/cluster.json"]
    completed = subprocess.run(command, check=False, capture_output=True, text=True)
    phases = json.loads(completed.stderr.splitlines()[-1])
    assert {"start", "rules", "render"} <= phases.keys()


def test_the_calls_of_memoized_methods_are_counted(tmp_path: Path) -> None:
    counts = tmp_path / "counts.json"
    command = [sys.executable, "-m", "benchmarks.memos", "--counts", str(counts)]
    subprocess.run([*command, "check", "-f", "examples/cluster.json"], check=False, capture_output=True)
    calls, computed = json.loads(counts.read_text())["audit.evaluation.counted.CountedPods.of"]
    assert calls > computed > 0
