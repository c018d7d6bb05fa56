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


def test_a_method_without_its_memo_is_computed_at_each_call(tmp_path: Path) -> None:
    memo = "audit.evaluation.counted.CountedPods.of"
    calls, computed = _calls(memo, tmp_path, without="")
    assert calls > computed > 0
    calls, computed = _calls(memo, tmp_path, without=memo)
    assert calls == computed > 0


def _calls(memo: str, directory: Path, *, without: str) -> tuple[int, int]:
    counts = directory / "counts.json"
    options = ["--counts", str(counts), "--without", without]
    command = [sys.executable, "-m", "benchmarks.memos", *options, "check", "-f", "examples/cluster.json"]
    subprocess.run(command, check=False, capture_output=True)
    calls, computed = json.loads(counts.read_text())[memo]
    return calls, computed
