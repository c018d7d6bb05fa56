"""The end of the process: all exit handlers run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

FULL: Final = Path("/dev/full")
_RUN: Final = """
import atexit, sys
from kubectl_spread.cli import ending

def run():
    atexit.register(print, "cleaned up")
    print("found")
    {end}

ending.run(run)
"""


def ended(end: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", _RUN.format(end=end)], capture_output=True, text=True, check=False)


@pytest.mark.parametrize(("end", "status"), [("sys.exit()", 0), ("sys.exit(1)", 1), ("sys.exit(2)", 2)])
def test_exit_handlers_run(end: str, status: int) -> None:
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
