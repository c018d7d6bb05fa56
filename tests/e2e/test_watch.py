"""``check --watch`` on a real control plane reports changes and recovers from faults."""

from __future__ import annotations

import json
import os
import signal
import statistics
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import datetime
from itertools import pairwise
from typing import Any

import pytest

from tests.controlplane.client import MERGE_PATCH
from tests.controlplane.cluster import ControlPlane
from tests.e2e import faulty
from tests.e2e.faulty import Faulty
from tests.e2e.users import allow
from tests.e2e.watching import COMMAND, OnTerminal, Piped, piped
from tests.faults import steps
from tests.faults.proxy import Exchange, Step, passed

pytestmark = pytest.mark.e2e

NAMESPACE = "watched"
JSON = ("-n", NAMESPACE, "-o", "json")
LOST = "the connection is lost"
AGAIN = "reconnected"


@pytest.fixture
def cluster(faulty_cluster: ControlPlane) -> Iterator[ControlPlane]:
    """Return a control plane where nothing but the tests changes anything, with a namespace for one test."""
    namespaces = [namespace["metadata"]["name"] for namespace in faulty_cluster.api.get("/api/v1/namespaces")["items"]]
    if NAMESPACE not in namespaces:
        faulty_cluster.api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    yield faulty_cluster
    faulty_cluster.api.request("DELETE", f"/api/v1/namespaces/{NAMESPACE}/pods?gracePeriodSeconds=0")


def create(cluster: ControlPlane, name: str, node: str = "a1") -> None:
    cluster.api.create(faulty.bound(name, node, NAMESPACE))


def patch(cluster: ControlPlane, name: str, body: dict[str, Any], subresource: str = "") -> None:
    cluster.api.patch(f"/api/v1/namespaces/{NAMESPACE}/pods/{name}{subresource}", body, MERGE_PATCH)


def relabel(cluster: ControlPlane, name: str, revision: str = "r2") -> None:
    patch(cluster, name, {"metadata": {"labels": {"rev": revision}}})


def delete(cluster: ControlPlane, name: str) -> None:
    cluster.api.request("DELETE", f"/api/v1/namespaces/{NAMESPACE}/pods/{name}?gracePeriodSeconds=0")


def count_errors(watching: Piped, *words: str) -> int:
    """Count the lines on stderr that begin with one of these."""
    return sum(line.startswith(words) for line in watching.errors)


def test_pods_that_come_change_and_go_are_reported(cluster: ControlPlane) -> None:
    """Each change is reported within seconds, in one line and once."""
    with piped(cluster.environment(), *JSON) as watching:
        watching.until(lambda: watching.lines and watching.last["summary"]["pods"] == 0)
        create(cluster, "one")
        create(cluster, "two", "b1")
        watching.until(watching.sees(merged=2), patience=10)
        relabel(cluster, "one")
        watching.until(watching.sees(merged=1, stale_label=1), patience=10)
        delete(cluster, "two")
        watching.until(watching.sees(stale_label=1), patience=10)
        delete(cluster, "one")
        watching.until(watching.sees(), patience=10)
        assert watching.end() == 130
    reports = [json.loads(line) for line in watching.lines]
    times = [report["cluster"].pop("readAt") for report in reports]
    assert times == sorted(times)
    assert times[0] < times[-1]
    assert len({report["cluster"]["uid"] for report in reports}) == 1
    for report in reports:
        report["cluster"]["resourceVersions"].clear()
    assert all(before != after for before, after in pairwise(reports))
    assert watching.errors == []


def test_changes_outside_the_report_print_nothing(cluster: ControlPlane) -> None:
    create(cluster, "one")
    with piped(cluster.environment(), *JSON) as watching:
        watching.until(watching.sees(merged=1))
        before = len(watching.lines)
        patch(cluster, "one", {"metadata": {"annotations": {"example.com/nothing": "new"}}})
        patch(cluster, "one", {"status": {"phase": "Running", "podIP": "10.0.0.9"}}, "/status")
        cluster.api.patch("/api/v1/nodes/c1", {"metadata": {"annotations": {"example.com/nothing": "new"}}})
        # The watch reports a later change, so it has received the changes before.
        relabel(cluster, "one")
        watching.until(watching.sees(stale_label=1))
        assert len(watching.lines) == before + 1


def test_nodes_and_workloads_are_watched_too(cluster: ControlPlane) -> None:
    create(cluster, "one")
    with piped(cluster.environment(), *JSON) as watching:
        watching.until(watching.sees(merged=1))
        nodes = watching.last["cluster"]["nodeCount"]
        cluster.add_nodes(["d"], 1)
        watching.until(lambda: watching.last["cluster"]["nodeCount"] == nodes + 1, patience=10)
        cluster.api.request("DELETE", "/api/v1/nodes/d1")
        watching.until(lambda: watching.last["cluster"]["nodeCount"] == nodes, patience=10)


def test_a_line_with_the_time_precedes_each_table_in_a_pipe(cluster: ControlPlane) -> None:
    create(cluster, "one")
    create(cluster, "two", "b1")
    with piped(cluster.environment(), "-n", NAMESPACE) as watching:
        watching.until(lambda: any("No findings" in line for line in watching.lines))
        relabel(cluster, "one")
        watching.until(lambda: any("1 warning" in line for line in watching.lines))
        assert watching.end() == 130
    first, second = "".join(watching.lines).split("--- ")[1:]
    assert all(datetime.fromisoformat(each.splitlines()[0]).tzinfo for each in (first, second))
    assert ("stale-label" in first, "stale-label" in second) == (False, True)


def test_names_in_a_pipe(cluster: ControlPlane) -> None:
    create(cluster, "one")
    with piped(cluster.environment(), "-n", NAMESPACE, "-o", "name") as watching:
        watching.until(lambda: watching.lines == ["\n"])
        relabel(cluster, "one")
        watching.until(lambda: watching.lines == ["\n", "rs/web\n", "\n"])


def test_a_named_workload_may_be_deleted_and_created_again(cluster: ControlPlane) -> None:
    """It must exist at the start."""
    create(cluster, "one")
    with piped(cluster.environment(), "po/one", *JSON) as watching:
        watching.until(watching.sees(merged=1))
        delete(cluster, "one")
        watching.until(watching.sees())
        watching.until(lambda: count_errors(watching, "Error from server (NotFound)") == 1)
        create(cluster, "one")
        watching.until(watching.sees(merged=1))
        assert count_errors(watching, "Error from server (NotFound)") == 1
    with piped(cluster.environment(), "po/nobody", *JSON) as watching:
        assert watching.process.wait(60) == 2


def before_all(watch_step: Step) -> list[Step]:
    """Return steps: the list passes, and ``watch_step`` is done to its watch."""
    return [passed, watch_step]


def test_a_watch_that_the_proxy_closes_is_resumed(behind: Faulty, cluster: ControlPlane) -> None:
    """It continues where it ended. No change is lost, and nothing is printed."""
    closing = threading.Event()
    behind.proxy.script("pods", *before_all(lambda exchange: exchange.pass_on(until=closing)))
    create(cluster, "one")
    environment = cluster.environment(behind.kubeconfig({"token": behind.token}))
    with piped(environment, *JSON) as watching:
        watching.until(watching.sees(merged=1))
        closing.set()
        relabel(cluster, "one")
        watching.until(watching.sees(stale_label=1), patience=15)
        assert watching.errors == []
    listed, first, again, *_ = behind.proxy.requests_for("pods")
    assert [request.watches for request in (listed, first, again)] == [False, True, True]


def from_the_beginning(exchange: Exchange) -> None:
    """Request the changes since a revision that the apiserver has compacted, and pass on its answer."""
    target = "&".join(
        "resourceVersion=1" if part.startswith("resourceVersion=") else part
        for part in exchange.request.target.split("&")
    )
    exchange.pass_on(target)


FORGOTTEN: dict[str, Step] = {
    "by the apiserver": from_the_beginning,
    "as a status": steps.status(410, "Expired", "too old resource version: 1 (2)"),
}


@pytest.mark.parametrize("step", FORGOTTEN.values(), ids=FORGOTTEN)
def test_the_list_is_read_again_after_an_expired_revision(behind: Faulty, cluster: ControlPlane, step: Step) -> None:
    """Changes in the meantime are reported."""

    def late(exchange: Exchange) -> None:
        relabel(cluster, "one")
        step(exchange)

    # The restarted apiserver has an empty watch cache.
    cluster.restart_apiserver()
    create(cluster, "one")
    behind.proxy.script("pods", *before_all(late))
    environment = cluster.environment(behind.kubeconfig({"token": behind.token}))
    with piped(environment, *JSON) as watching:
        watching.until(watching.sees(stale_label=1), patience=15)
        assert watching.errors == []
    watched = [request.watches for request in behind.proxy.requests_for("pods")]
    assert watched[:4] == [False, True, False, True]


def test_a_lost_connection_and_its_return_are_reported_once(cluster: ControlPlane) -> None:
    """The apiserver restarts."""
    create(cluster, "one")
    with piped(cluster.environment(), *JSON) as watching:
        watching.until(watching.sees(merged=1))
        os.kill(cluster._server.process.pid, signal.SIGKILL)
        watching.until(lambda: count_errors(watching, LOST))
        cluster.restart_apiserver()
        watching.until(lambda: count_errors(watching, AGAIN))
        relabel(cluster, "one")
        watching.until(watching.sees(stale_label=1), patience=20)
        assert watching.end() == 130
    assert (count_errors(watching, LOST), count_errors(watching, AGAIN), len(watching.errors)) == (1, 1, 2)


def test_a_missing_permission_to_watch_is_named(cluster: ControlPlane) -> None:
    """One line has the verb."""
    reads = {"apiGroups": ["", "apps", "batch"], "resources": ["*"], "verbs": ["get", "list"]}
    paths = {"nonResourceURLs": ["/version", "/metrics"], "verbs": ["get"]}
    allow(cluster, "no-watch", [reads, paths])
    with piped(cluster.environment(cluster.kubeconfig_for("no-watch")), *JSON) as watching:
        assert watching.process.wait(60) == 2
    (line,) = watching.errors
    assert line.startswith("Error from server (Forbidden): ")
    assert "cannot watch resource" in line


def test_a_closed_pipe_ends_the_watch(cluster: ControlPlane) -> None:
    """``| head`` closes the pipe; this is noticed with the next answer of the API server."""
    create(cluster, "one")
    ours, theirs = os.pipe()
    process = subprocess.Popen(
        [*COMMAND, *JSON], stdout=theirs, stderr=subprocess.PIPE, text=True, env=cluster.environment()
    )
    os.close(theirs)
    assert os.read(ours, 1)
    os.close(ours)
    relabel(cluster, "one")
    _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (141, "")


def test_memory_does_not_grow(cluster: ControlPlane) -> None:
    """A round with a new pod, a new label and a new value leaves no more objects than the round before it.

    What is made once, such as by the first look at the API server, is in one difference, which the median leaves out.
    """
    rounds, warm, apart = 150, 50, 10
    create(cluster, "pod-0")
    lines = []
    command = [sys.executable, "-m", "tests.e2e.updates", str(cluster.kubeconfig), NAMESPACE]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout
            for number in range(1, rounds + 1):
                lines.append(process.stdout.readline())
                delete(cluster, f"pod-{number - 1}")
                create(cluster, f"pod-{number}")
                relabel(cluster, f"pod-{number}", f"r{number}")
        finally:
            process.kill()
    counts = [int(line.split()[0]) for line in lines[warm:]]
    growth = statistics.median(after - before for before, after in zip(counts, counts[apart:], strict=False))
    assert growth < 10 * apart, (growth, lines[warm], lines[-1])


def test_a_terminal_is_updated_in_place(cluster: ControlPlane) -> None:
    """The screen has the size of the window, and is restored at the end."""
    create(cluster, "one")
    create(cluster, "two", "b1")
    seen = OnTerminal(cluster.environment(), 100, 24, ["-n", NAMESPACE])
    try:
        seen.until(lambda: "No findings" in seen.text)
        assert seen.lines[0].startswith("20")
        first = len(seen.raw)
        relabel(cluster, "one")
        seen.until(lambda: "1 warning" in seen.text, patience=10)
        assert not any("No findings" in line for line in seen.lines)
        drawn = seen.raw[first:]
        assert drawn.startswith(b"\x1b[H")
        assert b"\x1b[2J" not in seen.raw
        seen.resize(60, 10)
        seen.until(lambda: any("more lines" in line for line in seen.lines), patience=10)
        assert "1 warning" in seen.text
        assert seen.lines[-1] == ""
        seen.resize(120, 40)
        seen.until(lambda: not any("more lines" in line for line in seen.lines), patience=10)
        assert seen.interrupt() == 130
    finally:
        seen.close()
    end = seen.raw[seen.raw.rindex(b"\x1b[?1049l") :]
    assert b"1 warning" in end
    assert b"\x1b[?25h" in seen.raw
    assert b"Traceback" not in seen.raw


def test_a_terminal_shows_a_lost_connection(cluster: ControlPlane) -> None:
    create(cluster, "one")
    seen = OnTerminal(cluster.environment(), 100, 24, ["-n", NAMESPACE])
    try:
        seen.until(lambda: "No findings" in seen.text)
        cluster._server.stop()
        seen.until(lambda: LOST in seen.text)
        assert "deploy" in seen.text or "rs/web" in seen.text
        cluster.restart_apiserver()
        seen.until(lambda: LOST not in seen.text)
        assert seen.interrupt() == 130
    finally:
        seen.close()


def test_a_dumb_terminal_is_a_pipe(cluster: ControlPlane) -> None:
    ours, theirs = os.openpty()
    environment = {**cluster.environment(), "TERM": "dumb"}
    process = subprocess.Popen([*COMMAND, "-n", NAMESPACE], stdout=theirs, env=environment)
    os.close(theirs)
    create(cluster, "one")
    text = b""
    try:
        while b"o findings" not in text:
            text += os.read(ours, 4096)
    finally:
        process.kill()
        process.wait()
        os.close(ours)
    assert b"\x1b[H" not in text
