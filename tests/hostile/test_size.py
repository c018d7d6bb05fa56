"""Large input takes memory in proportion to its size, and no more."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.builders import constraint, pod_json
from tests.hostile.commands import run_alone

FEW, MANY = 100_000, 1_000_000


def labelled(path: Path, number: int) -> Path:
    """Write a pod with so many labels."""
    labels = {f"key-{index:07}": f"v{index:07}" for index in range(number)}
    path.write_text(json.dumps(pod_json(labels=labels, constraints=[constraint()])))
    return path


@pytest.mark.parametrize("arguments", [["check"], ["check", "-o", "json"]], ids=" ".join)
def test_a_million_labels(tmp_path: Path, arguments: list[str]) -> None:
    """Ten times as many labels take at most ten times as much more memory, give or take a fifth."""
    taken = [
        run_alone([*arguments, "-f", "-"], stdin=labelled(tmp_path / f"{number}.json", number))
        for number in (1, FEW, MANY)
    ]
    least, few, many = (item.memory for item in taken)
    assert [item.status for item in taken] == [0, 0, 0], taken[-1].output[-500:]
    assert many - least < 12 * (few - least)


@pytest.mark.parametrize("command", ["check", "merge"])
def test_an_annotation_of_ten_megabytes(tmp_path: Path, command: str) -> None:
    pod = pod_json(metadata={"annotations": {"text": 'x"\\' * 3_500_000, "kubectl-spread/ignore": "," * 1_000_000}})
    path = tmp_path / "pod.json"
    path.write_text(json.dumps({**pod, "metadata": {**pod["metadata"], "generation": None}}))
    actual = run_alone([command, "-f", "-"], stdin=path)
    assert actual.status == 0, actual.output[-500:]
    assert actual.memory < 25 * path.stat().st_size
