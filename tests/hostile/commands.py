"""Run the commands on hostile input, in this process, or in a process of its own to measure its memory."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from click.testing import CliRunner, Result

from kubectl_spread.cli import cli
from tests.builders import Json
from tests.fuzz.outcome import Outcome
from tests.fuzz.watch import problem

COMMANDS = (
    ("check",),
    ("check", "-o", "wide", "--show", "all"),
    ("check", "-o", "json"),
    ("check", "-o", "yaml"),
    ("check", "-o", "name"),
    ("check", "-o", "html"),
    ("merge", "-o", "json"),
    ("merge", "-o", "yaml"),
    ("unmerge", "-o", "json"),
)
"""Every form of output but the manifests of ``merge``, which keep their text."""

NOBODY = 65534

_AS_USER = """
import os, sys
from click.testing import CliRunner
from kubectl_spread.cli import cli, main
user, *sys.argv[1:] = sys.argv[1:]
for source in (("-f", "-"), ("-s", "http://127.0.0.1:1")):
    CliRunner().invoke(cli, ["check", *source], input='{"apiVersion": "v1", "kind": "Pod"}')
if os.geteuid() == 0:
    os.setuid(int(user))
main()
"""
"""Runs the plugin as another user. Two checks import its modules first, as that user may not be able to read them."""

_MEASURED = """
from kubectl_spread.cli import main
try:
    main()
finally:
    print(next(line for line in open("/proc/self/status") if line.startswith("VmHWM:")))
"""
"""Runs the plugin and prints its peak memory; getrusage would count the memory of this process before exec."""


def run(body: str | bytes, *arguments: str) -> Result:
    """Run a command, by default ``check``, on standard input."""
    return CliRunner().invoke(cli, [*(arguments or ("check",)), "-f", "-"], input=body)


def refusal(body: str | bytes, *arguments: str) -> str:
    """Return the only error of a command that cannot read its input."""
    invocation = run(body, *arguments)
    assert invocation.exit_code == 2, invocation.output
    line, *more = [line for line in invocation.stderr.splitlines() if line.startswith("error:")]
    assert not more
    return line


def clean(invocation: Result) -> Result:
    """Return a result that has no traceback and no unprintable characters."""
    error = None if isinstance(invocation.exception, SystemExit) else invocation.exception
    finding = problem(Outcome(invocation.exit_code, invocation.stdout_bytes, invocation.stderr_bytes, error))
    assert finding is None, finding.text
    return invocation


def check(*arguments: str) -> tuple[int, str]:
    """Run ``check``; return its exit status and its stderr."""
    outcome = clean(CliRunner().invoke(cli, ["check", *arguments]))
    return outcome.exit_code, outcome.stderr


def open_to_all(directory: Path) -> None:
    """Let every user search a temporary directory and those above it."""
    top = Path(tempfile.gettempdir()).resolve()
    for path in (directory, *directory.parents):
        if path.is_relative_to(top) and path != top:
            path.chmod(0o755)


def as_nobody(*arguments: str, user: int = NOBODY) -> tuple[int, str]:
    """Check as another user if this user is root, who may read everything; return the exit status and stderr."""
    command = [sys.executable, "-c", _AS_USER, str(user), "check", *arguments]
    outcome = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    return outcome.returncode, outcome.stderr


def text_of(*objects: Json) -> str:
    """Return objects as JSON documents, one a line."""
    return "\n".join(json.dumps(manifest) for manifest in objects)


@dataclass(frozen=True, slots=True)
class Usage:
    """The exit status, the output and the peak memory in bytes of a process."""

    status: int
    output: str
    memory: int


def run_alone(arguments: Sequence[str], *, stdin: Path) -> Usage:
    """Run the plugin in a process of its own."""
    with stdin.open("rb") as file:
        command = [sys.executable, "-c", _MEASURED, *arguments]
        done = subprocess.run(command, stdin=file, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    output, _, memory = done.stdout.decode().rpartition("VmHWM:")
    return Usage(done.returncode, output, int(memory.split()[0]) << 10)
