"""``kubectl spread`` where the locale has few characters: bars are in ASCII, and nothing fails."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests import generated


@pytest.mark.parametrize(
    ("environment", "blocks"),
    [
        ({"PYTHONIOENCODING": "utf-8"}, True),
        ({"PYTHONIOENCODING": "ascii"}, False),
        ({"PYTHONIOENCODING": "latin-1"}, False),
        ({"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}, False),
    ],
    ids=["UTF-8", "ASCII", "Latin 1", "locale C"],
)
def test_characters_outside_the_locale_do_not_fail(environment: dict[str, str], *, blocks: bool) -> None:
    """Bars are in ASCII if the locale has no block characters."""
    completed = run_in(environment, *generated.EXPLAIN_API)
    assert (completed.returncode, completed.stderr) == (0, b"")
    assert ("\N{FULL BLOCK}".encode() in completed.stdout) is blocks
    if not blocks:
        assert completed.stdout.isascii()


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_help_is_printed_in_every_encoding(encoding: str) -> None:
    """The help has an ellipsis, which latin-1 lacks."""
    completed = run_in({"PYTHONIOENCODING": encoding}, "check", "--help")
    assert (completed.returncode, completed.stderr) == (0, b"")
    assert b"--all-namespaces" in completed.stdout


def run_in(environment: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[bytes]:
    """Return what a command prints in an environment."""
    command = [sys.executable, "-m", "kubectl_spread", *arguments]
    return subprocess.run(
        command, check=False, capture_output=True, cwd=generated.ROOT, env={**os.environ, **environment}
    )
