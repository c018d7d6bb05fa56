"""The benchmarks name functions of the program, which may have moved; none is measured here."""

import json
import subprocess
import sys


def test_the_clock_knows_every_phase() -> None:
    command = [sys.executable, "-m", "benchmarks.phases", "check", "-f", "examples/cluster.json"]
    completed = subprocess.run(command, check=False, capture_output=True, text=True)
    phases = json.loads(completed.stderr.splitlines()[-1])
    assert {"start", "rules", "render"} <= phases.keys()
