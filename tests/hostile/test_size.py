"""Large input takes memory in proportion to its size, and objects that no API server holds are refused."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from tests.builders import Json, constraint, pod_json
from tests.hostile.commands import refusal, run, run_alone

FEW, MANY = 40_000, 120_000
LARGEST = 3 * 1024 * 1024


def labelled(path: Path, number: int) -> Path:
    """Write a pod with a number of labels."""
    labels = {f"key-{index:07}": f"v{index:07}" for index in range(number)}
    path.write_text(json.dumps(pod_json(labels=labels, constraints=[constraint()])))
    return path


@pytest.mark.parametrize("arguments", [["check"], ["check", "-o", "json"]], ids=" ".join)
def test_labels_of_three_megabytes(tmp_path: Path, arguments: list[str]) -> None:
    """Three times as many labels take at most 3.6 times as much additional memory."""
    runs = [
        run_alone([*arguments, "-f", "-"], stdin=labelled(tmp_path / f"{number}.json", number))
        for number in (1, FEW, MANY)
    ]
    least, few, many = (run.memory for run in runs)
    assert [run.status for run in runs] == [0, 0, 0], runs[-1].output[-500:]
    assert many - least < 3.6 * (few - least)


@pytest.mark.parametrize("command", ["check", "merge"])
def test_annotations_of_two_megabytes(tmp_path: Path, command: str) -> None:
    pod = pod_json(metadata={"annotations": {"text": 'x"\\' * 300_000, "kubectl-spread/ignore": "," * 1_000_000}})
    path = tmp_path / "pod.json"
    path.write_text(json.dumps({**pod, "metadata": {**pod["metadata"], "generation": None}}))
    run = run_alone([command, "-f", "-"], stdin=path)
    assert run.status == 0, run.output[-500:]
    assert run.memory < 60 * path.stat().st_size


def pod_of(size: int) -> Json:
    """Return a pod whose JSON without white space has this size in bytes."""
    empty = pod_json(metadata={"annotations": {"text": ""}}, constraints=[constraint()])
    return pod_json(
        metadata={"annotations": {"text": "x" * (size - len(compact(empty)))}},
        constraints=[constraint()],
    )


def compact(manifest: Json) -> str:
    return json.dumps(manifest, separators=(",", ":"))


def as_list(pod: Json) -> Json:
    return {"apiVersion": "v1", "kind": "List", "items": [pod_json("small"), pod]}


FORMS = [
    pytest.param(compact, "", id="JSON"),
    pytest.param(lambda pod: json.dumps(pod, indent=4), "", id="JSON with white space"),
    pytest.param(lambda pod: compact(as_list(pod)), "items[1]", id="a list in JSON"),
    pytest.param(yaml.safe_dump, "", id="YAML"),
    pytest.param(lambda pod: yaml.safe_dump(as_list(pod)), "items[1]", id="a list in YAML"),
]


@pytest.mark.parametrize("command", ["check", "merge"])
@pytest.mark.parametrize(("written", "place"), FORMS)
def test_the_largest_object_that_an_api_server_takes_is_read_and_a_larger_one_is_refused(
    written: Callable[[Json], str], place: str, command: str
) -> None:
    taken = run(written(pod_of(LARGEST)), command)
    assert "bytes" not in taken.stderr
    assert taken.exit_code == 0, taken.stderr[-500:]
    error = refusal(written(pod_of(LARGEST + 1)), command)
    assert re.fullmatch(
        r"error: STDIN:\d+: Pod default/web-1: "
        + re.escape(f"{place}: " if place else "")
        + "3,145,729 bytes as JSON: the API server takes objects of 3,145,728 bytes at most",
        error,
    )
