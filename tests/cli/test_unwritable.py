"""An unwritable stdout leads to one line on stderr and exit status 2. A broken stderr loses no data."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.audits import deployment
from tests.builders import constraint, pod_json

FULL = Path("/dev/full")
COMMANDS = [
    ("check", "-f", "cluster.json"),
    ("check", "-f", "cluster.json", "-o", "json"),
    ("explain", "p", "-f", "cluster.json", "-o", "yaml"),
    ("explain", "SPR101", "-o", "json"),
    ("merge", "-f", "cluster.json"),
    ("merge", "-f", "cluster.json", "-o", "json"),
    ("rules", "-o", "json"),
    ("--version",),
    ("--help",),
    ("check", "--help"),
]


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Return a directory with a file to read."""
    objects = (pod_json("p", constraints=[constraint()]), deployment(constraints=[constraint()]))
    (tmp_path / "cluster.json").write_text("\n".join(map(json.dumps, objects)), encoding="utf-8")
    return tmp_path


def with_stdout(directory: Path, arguments: tuple[str, ...], redirection: str) -> tuple[int, str]:
    """Return the exit status and the last line of stderr of a command whose stdout a shell redirects."""
    command = ["sh", "-c", f'exec "$@" {redirection}', "sh", sys.executable, "-m", "kubectl_spread", *arguments]
    completed = subprocess.run(command, cwd=directory, check=False, capture_output=True, text=True, timeout=60)
    assert "Traceback" not in completed.stderr
    return completed.returncode, completed.stderr.splitlines()[-1]


@pytest.mark.skipif(not FULL.exists(), reason="there is no /dev/full")
@pytest.mark.parametrize("arguments", COMMANDS)
def test_a_full_device_is_an_error(directory: Path, arguments: tuple[str, ...]) -> None:
    output = "error: cannot write to standard output: No space left on device"
    assert with_stdout(directory, arguments, f">{FULL}") == (2, output)


@pytest.mark.parametrize("arguments", COMMANDS)
def test_a_closed_standard_output_is_an_error(directory: Path, arguments: tuple[str, ...]) -> None:
    assert with_stdout(directory, arguments, ">&-") == (
        2,
        "error: cannot write to standard output: Bad file descriptor",
    )


BROKEN = {"closed": "2>&-", "full": f"2>{FULL}", "read only": "2</dev/null", "nobody reads": ""}
"""Redirections of stderr; the last is a pipe without a reader."""
SPEAKING = [
    ("check", "-f", "cluster.json", "--fail-on", "info", "-o", "json"),
    ("check", "-f", "cluster.json", "-f", "broken.json", "-o", "json"),
    ("explain", "p", "-f", "cluster.json", "-o", "json"),
    ("merge", "-f", "cluster.json", "-f", "broken.json"),
    ("check", "--nonsense"),
    ("check", "-f", "missing.json"),
]
"""Commands that print to stderr."""


def with_stderr(directory: Path, arguments: tuple[str, ...], redirection: str, reader: bool) -> tuple[int, str, str]:
    """Return the exit status, stdout and stderr of a command whose stderr a shell redirects."""
    command = ["sh", "-c", f'exec "$@" {redirection}', "sh", sys.executable, "-m", "kubectl_spread", *arguments]
    read_end, write_end = os.pipe()
    if not reader:
        os.close(read_end)
    completed = subprocess.run(
        command, cwd=directory, check=False, stdout=subprocess.PIPE, stderr=write_end, text=True, timeout=60
    )
    os.close(write_end)
    output = b""
    if reader:
        with os.fdopen(read_end, "rb") as file:
            output = file.read()
    return completed.returncode, completed.stdout, output.decode()


@pytest.mark.skipif(not FULL.exists(), reason="there is no /dev/full")
@pytest.mark.parametrize("broken", BROKEN)
@pytest.mark.parametrize("arguments", SPEAKING)
def test_a_broken_stderr_loses_no_data(directory: Path, arguments: tuple[str, ...], broken: str) -> None:
    """The exit status does not change either."""
    (directory / "broken.json").write_text("{", encoding="utf-8")
    status, data, output = with_stderr(directory, arguments, "", reader=True)
    assert output
    assert with_stderr(directory, arguments, BROKEN[broken], reader=False) == (status, data, "")
