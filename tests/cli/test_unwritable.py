"""Standard output that takes nothing: one line on stderr and exit status 2."""

from __future__ import annotations

import json
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
def folder(tmp_path: Path) -> Path:
    """Return a folder with a file to read."""
    found = (pod_json("p", constraints=[constraint()]), deployment(constraints=[constraint()]))
    (tmp_path / "cluster.json").write_text("\n".join(map(json.dumps, found)), encoding="utf-8")
    return tmp_path


def written(folder: Path, arguments: tuple[str, ...], redirection: str) -> tuple[int, str]:
    """Return the exit status and the last line of stderr of a command whose stdout a shell redirects."""
    command = ["sh", "-c", f'exec "$@" {redirection}', "sh", sys.executable, "-m", "kubectl_spread", *arguments]
    done = subprocess.run(command, cwd=folder, check=False, capture_output=True, text=True, timeout=60)
    assert "Traceback" not in done.stderr
    return done.returncode, done.stderr.splitlines()[-1]


@pytest.mark.skipif(not FULL.exists(), reason="there is no /dev/full")
@pytest.mark.parametrize("arguments", COMMANDS)
def test_a_full_device(folder: Path, arguments: tuple[str, ...]) -> None:
    said = "error: cannot write to standard output: No space left on device"
    assert written(folder, arguments, f">{FULL}") == (2, said)


@pytest.mark.parametrize("arguments", COMMANDS)
def test_a_closed_output(folder: Path, arguments: tuple[str, ...]) -> None:
    assert written(folder, arguments, ">&-") == (2, "error: cannot write to standard output: Bad file descriptor")
