"""Threads that are the first to decode a type do not end the process.

msgspec lets other threads use a type before it is complete. Threads that take turns after a microsecond show that.
"""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Final

import pytest

from tests.cli.test_identity import Routed
from tests.sources.server import Reply, serve

PROCESSES: Final = 200
_TYPES: Final = """
import sys, threading
import msgspec
from kubectl_spread.kube.api.types import Message
from kubectl_spread.sources.decode import json_objects

sys.setswitchinterval(1e-6)
names = [f"field{number}" for number in range(50)]
body = msgspec.json.encode({"inner": dict.fromkeys(names, "x")})
for _ in range(int(sys.argv[1])):
    inner = msgspec.defstruct("Inner", [(name, str, "") for name in names], bases=(Message,), frozen=True)
    outer = msgspec.defstruct("Outer", [("inner", inner, inner())], bases=(Message,), frozen=True)
    together = threading.Barrier(2)

    def decode():
        together.wait()
        assert json_objects.decode(body, outer).inner.field49 == "x"

    threads = [threading.Thread(target=decode) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
"""
"""Each type is new, as in a process of its own."""
_CHECKS: Final = """
import os, sys
from collections import Counter
from kubectl_spread.cli import check, cli
from kubectl_spread.run import live

statuses = Counter()
for _ in range(int(sys.argv[1])):
    child = os.fork()
    if not child:
        sys.setswitchinterval(1e-6)
        try:
            cli(["check", "-A", "-o", "name", "-s", sys.argv[2]])
        except SystemExit as ended:
            os._exit(ended.code)
    statuses[os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])] += 1
sys.exit(f"processes by exit status: {dict(statuses)}")
"""
"""Each check is a process in which no type was decoded before; only the imports are shared."""


def run(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "KUBECONFIG": "/no/where", "PYTHONWARNINGS": "ignore"}
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], env=environment, capture_output=True, text=True, check=False
    )


def test_two_threads_decode_new_types() -> None:
    completed = run(_TYPES, str(PROCESSES))
    assert (completed.returncode, completed.stderr) == (0, "")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="Windows has no fork")
def test_no_check_of_a_json_server_dies() -> None:
    with serve(Reply()) as server:
        server.__class__ = Routed
        completed = run(_CHECKS, str(PROCESSES), server.url)
    assert completed.stderr.splitlines()[-1] == f"processes by exit status: {{0: {PROCESSES}}}"
