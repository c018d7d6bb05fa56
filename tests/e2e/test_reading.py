"""Lists are read at the same time, and a terminal shows the progress."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import threading
from contextlib import suppress

import pytest

from tests.commands import SPREAD
from tests.e2e.faulty import CHECK, PODS, Faulty, assert_complete
from tests.faults.proxy import Exchange, passed

pytestmark = pytest.mark.e2e


def test_nodes_and_workloads_are_read_while_the_pods_are(behind: Faulty) -> None:
    """The first page of pods is sent only when all other lists have been requested."""
    beside = {"nodes", "replicasets", "deployments", "statefulsets", "daemonsets", "jobs", "cronjobs"}
    resources: set[str] = set()
    all_asked = threading.Event()
    in_time: list[bool] = []

    def tell(exchange: Exchange) -> None:
        resources.add(exchange.request.resource)
        if beside <= resources:
            all_asked.set()
        passed(exchange)

    def wait(exchange: Exchange) -> None:
        in_time.append(all_asked.wait(10))
        passed(exchange)

    behind.proxy.script("pods", wait)
    for resource in beside:
        behind.proxy.add(resource, tell)
    assert_complete(behind.check())
    assert in_time == [True]


def _screen(terminal: int) -> str:
    """Return all that was written to a terminal, which the kernel may pass on in pieces."""
    content = b""
    # When the other end is closed and everything was read, Linux reports an error.
    with suppress(OSError):
        while piece := os.read(terminal, 1 << 16):
            content += piece
    return content.decode()


def test_a_terminal_shows_the_progress(behind: Faulty) -> None:
    """The line is removed before the answer; a pipe gets none (see ``test_the_proxy_alone_changes_nothing``)."""
    terminal, stderr = pty.openpty()
    command = [str(SPREAD), *CHECK]
    environment = behind.cluster.environment(behind.kubeconfig({"token": behind.token}))
    completed = subprocess.run(command, stdout=subprocess.PIPE, stderr=stderr, env=environment, check=False, timeout=60)
    os.close(stderr)
    screen = _screen(terminal)
    os.close(terminal)
    assert json.loads(completed.stdout)["summary"]["pods"] == PODS
    assert screen.split("\r\x1b[K") == ["", *(f"pods: {number}" for number in (7, 14, 21, 28)), ""]
