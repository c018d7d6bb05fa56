"""How lists are read: side by side, and on a terminal with a line that tells how far."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import threading

import pytest

from tests.commands import SPREAD
from tests.e2e.faulty import CHECK, NAMESPACE, PODS, Faulty, assert_complete
from tests.faults.proxy import Exchange, passed

pytestmark = pytest.mark.e2e


def test_nodes_and_workloads_are_read_while_the_pods_are(behind: Faulty) -> None:
    """The first page of pods comes only when all other lists have been asked for."""
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


def test_the_next_page_is_asked_for_while_one_arrives(behind: Faulty) -> None:
    """The end of the first page is sent only when the second one has been asked for."""
    event = threading.Event()
    in_time: list[bool] = []

    def hold_back(exchange: Exchange) -> None:
        reply = exchange.forward()
        exchange.send_head(reply)
        exchange.send_part(reply.body[:-1000])
        in_time.append(event.wait(10))
        exchange.send_part(reply.body[-1000:])

    def tell(exchange: Exchange) -> None:
        event.set()
        passed(exchange)

    behind.proxy.script("pods", hold_back, tell)
    answer = behind.spread("check", "-n", NAMESPACE, "-o", "json", f"--chunk-size={PODS - 1}")
    assert_complete(answer)
    assert in_time == [True]


def test_a_terminal_sees_how_far_it_is(behind: Faulty) -> None:
    """The line is taken away before the answer; in a pipe there is none (see ``test_without_a_fault``)."""
    terminal, stderr = pty.openpty()
    command = [str(SPREAD), *CHECK]
    environment = behind.cluster.environment(behind.kubeconfig({"token": behind.token}))
    completed = subprocess.run(command, stdout=subprocess.PIPE, stderr=stderr, env=environment, check=False, timeout=60)
    os.close(stderr)
    screen = os.read(terminal, 1 << 16).decode()
    os.close(terminal)
    assert json.loads(completed.stdout)["summary"]["pods"] == PODS
    assert screen.split("\r\x1b[K") == ["", *(f"pods: {number}" for number in (7, 14, 21, 28)), ""]
