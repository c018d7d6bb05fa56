"""The end of the process: objects are not freed, and all exit handlers run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.builders import constraint, pod_json

FULL: Final = Path("/dev/full")
_RUN: Final = """
import atexit, sys
from kubectl_spread.cli import ending

class Large:
    def __del__(self):
        print("freed")

def run():
    atexit.register(print, "cleaned up")
    ending.keep(Large())
    print("found")
    {end}

ending.run(run)
"""


def ended(end: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", _RUN.format(end=end)], capture_output=True, text=True, check=False)


_TELLING: Final = """
from kubectl_spread.cli import main
from kubectl_spread.run.run import CheckRun

CheckRun.__del__ = lambda _: print("freed", flush=True)
main()
"""


@pytest.mark.parametrize("arguments", [("check",), ("explain", "p")], ids=" ".join)
def test_commands_never_free_their_run(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    (tmp_path / "pod.json").write_text(json.dumps(pod_json("p", constraints=[constraint()])), encoding="utf-8")
    command = [sys.executable, "-c", _TELLING, *arguments, "-f", "pod.json", "--server-version=1.37"]
    completed = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (completed.returncode, completed.stderr) == (0, "")
    assert "ZONE" in completed.stdout.upper()
    assert "freed" not in completed.stdout


@pytest.mark.parametrize(("end", "status"), [("sys.exit()", 0), ("sys.exit(1)", 1), ("sys.exit(2)", 2)])
def test_referenced_objects_are_not_freed_and_exit_handlers_run(end: str, status: int) -> None:
    completed = ended(end)
    assert (completed.returncode, completed.stdout, completed.stderr) == (status, "found\ncleaned up\n", "")


def test_a_text_to_exit_with_is_printed() -> None:
    completed = ended("sys.exit('no')")
    assert (completed.returncode, completed.stderr) == (1, "no\n")


def test_a_defect_has_a_traceback() -> None:
    completed = ended("1 / 0")
    assert completed.returncode == 1
    assert completed.stderr.endswith("ZeroDivisionError: division by zero\n")
    assert completed.stdout.startswith("found\ncleaned up\n")


@pytest.mark.skipif(not FULL.exists(), reason="there is no /dev/full")
def test_a_failed_write_at_the_end_is_reported() -> None:
    """The interpreter reports it with its own exit status."""
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    command = [sys.executable, "-c", _RUN.format(end="sys.exit(0)")]
    with FULL.open("w") as full:
        completed = subprocess.run(command, env=buffered, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert completed.returncode == 120
    assert "No space left on device" in completed.stderr
