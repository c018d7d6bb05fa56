"""``--contexts`` asks each cluster, and never another one than it names."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from click.testing import CliRunner, Result

from kubectl_spread.cli import cli
from tests import contract
from tests.builders import Json
from tests.cli.test_identity import KUBE_SYSTEM, Routed, json_reply
from tests.sources.server import Reply, Request, Server, listed, serve

EMPTY = {
    "services": "Service",
    "poddisruptionbudgets": "PodDisruptionBudget",
    "persistentvolumeclaims": "PersistentVolumeClaim",
    "persistentvolumes": "PersistentVolume",
    "priorityclasses": "PriorityClass",
    "horizontalpodautoscalers": "HorizontalPodAutoscaler",
}


class Fleet(NamedTuple):
    """Two clusters, ``eu`` and ``us``, and a context ``down`` without a server; ``twin`` leads to ``eu`` too."""

    kubeconfig: Path
    servers: dict[str, Server]

    def __call__(self, *arguments: str) -> Result:
        """Run a command; it must not depend on the current context, which is ``eu``."""
        runner = CliRunner(env={"KUBECONFIG": str(self.kubeconfig)})
        return runner.invoke(cli, arguments, prog_name="kubectl spread")


class Complete(Routed):
    """An API server that has the lists of a simulation too, all of them empty."""

    def next(self, request: Request) -> Reply:
        if (resource := request.path.rpartition("/")[2]) not in EMPTY:
            return super().next(request)
        version = "/".join(request.path.split("/")[2:4]) if request.path.startswith("/apis/") else "v1"
        return listed(kind=f"{EMPTY[resource]}List", version=version)


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    with ExitStack() as stack:
        servers = {name: stack.enter_context(serve()) for name in ("eu", "us")}
        for name, server in servers.items():
            system = json_reply({**KUBE_SYSTEM, "metadata": {"name": "kube-system", "uid": f"uid-{name}"}})
            server.__class__ = type("Named", (Complete,), {"kube_system": system})
        addresses = {**{name: server.url for name, server in servers.items()}, "down": closed()}
        path = tmp_path / "kubeconfig"
        path.write_text(json.dumps(kubeconfig({**addresses, "twin": servers["eu"].url})), encoding="utf-8")
        yield Fleet(path, servers)


def closed() -> str:
    """Return an address at which nothing listens."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{listener.getsockname()[1]}"


def kubeconfig(addresses: dict[str, str]) -> Json:
    clusters = [{"name": name, "cluster": {"server": address}} for name, address in addresses.items()]
    contexts = [{"name": name, "context": {"cluster": name, "user": ""}} for name in addresses]
    return {"apiVersion": "v1", "kind": "Config", "clusters": clusters, "contexts": contexts, "current-context": "eu"}


def document(result: Result) -> Any:
    return contract.loaded(result.stdout)


def test_each_cluster_has_its_own_identity(fleet: Fleet) -> None:
    result = fleet("check", "-A", "--contexts", "us,eu", "-o", "json")
    assert (result.exit_code, result.stderr) == (0, "")
    report = document(result)
    assert [(each["context"], each["uid"], each["status"]) for each in report["clusters"]] == [
        ("us", "uid-us", "complete"),
        ("eu", "uid-eu", "complete"),
    ]
    for each in report["clusters"]:
        assert contract.loaded(json.dumps(each["report"]))["cluster"]["context"] == each["context"]
        assert each["report"]["summary"]["pods"] == 1
    assert report["summary"]["clusters"] == 2


def test_clusters_are_read_at_once(fleet: Fleet) -> None:
    """Neither server answers before both were asked."""
    both = threading.Barrier(len(fleet.servers))

    class Waiting(Complete):
        def next(self, request: Request) -> Reply:
            if request.path == "/version":
                both.wait(timeout=20)
            return super().next(request)

    for server in fleet.servers.values():
        system = server.kube_system  # type: ignore[attr-defined]
        server.__class__ = type("Named", (Waiting,), {"kube_system": system})
    result = fleet("check", "-A", "--contexts", "us,eu", "-o", "json")
    assert (result.exit_code, result.stderr) == (0, "")
    assert [each["uid"] for each in document(result)["clusters"]] == ["uid-us", "uid-eu"]


def test_not_all_clusters_of_a_large_fleet_are_read_at_once(fleet: Fleet, tmp_path: Path) -> None:
    waiting, most, lock = [0], [0], threading.Lock()

    class Slow(Complete):
        def next(self, request: Request) -> Reply:
            if request.path == "/version":
                with lock:
                    waiting[0] += 1
                    most[0] = max(most[0], waiting[0])
                time.sleep(0.1)
                with lock:
                    waiting[0] -= 1
            return super().next(request)

    fleet.servers["eu"].__class__ = Slow
    names = [f"c{number:02}" for number in range(30)]
    path = tmp_path / "many"
    path.write_text(json.dumps(kubeconfig(dict.fromkeys(names, fleet.servers["eu"].url))), encoding="utf-8")
    result = Fleet(path, fleet.servers)("check", "-A", "--contexts", "all", "-o", "json")
    assert [each["context"] for each in document(result)["clusters"]] == names
    assert {each["status"] for each in document(result)["clusters"]} == {"complete"}
    assert 1 < most[0] <= 8


def test_a_cluster_that_is_down_is_a_row_and_the_others_are_asked(fleet: Fleet) -> None:
    result = fleet("check", "-A", "--contexts", "down,us", "-o", "json")
    assert result.exit_code == 2
    down, us = document(result)["clusters"]
    assert (down["status"], "report" in down, us["status"]) == ("failed", False, "complete")
    (error,) = down["errors"]
    assert result.stderr == f"error: down: {error}\n"
    table = fleet("check", "-A", "--contexts", "down,us", "--color", "never")
    assert table.exit_code == 2
    lines = table.stdout.splitlines()
    assert "=== us (UID uid-us)" in lines
    assert [line.split()[0] for line in lines[-5:-2]] == ["CONTEXT", "down", "us"]
    assert lines[-1].endswith("in 2 clusters. 1 cluster could not be checked.")


def test_all_means_every_context_and_two_that_lead_to_one_cluster_are_reported(fleet: Fleet) -> None:
    result = fleet("check", "-A", "--contexts", "all", "-o", "json")
    report = document(result)
    assert [each["context"] for each in report["clusters"]] == ["down", "eu", "twin", "us"]
    assert report["summary"]["failed"] == 1
    assert "these contexts lead to one cluster, which is counted for each: eu, twin" in result.stderr


def test_an_unknown_context_is_an_error_before_anything_is_sent(fleet: Fleet) -> None:
    result = fleet("check", "-A", "--contexts", "eu,uss")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == 'error: context "uss" does not exist; did you mean "us"?\n'
    assert all(not server.requests for server in fleet.servers.values())


@pytest.mark.parametrize(
    "flags",
    [
        ["--context=us"],
        ["--cluster=us"],
        ["--server=http://127.0.0.1:1"],
        ["--token=secret"],
        ["--user=jane"],
        ["--cluster-name=prod"],
        ["--watch"],
        ["-f", "web.yaml"],
        ["-o", "sarif"],
    ],
    ids=" ".join,
)
def test_options_about_one_cluster_contradict_it(fleet: Fleet, flags: list[str]) -> None:
    result = fleet("check", "-A", "--contexts", "eu,us", *flags)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "--contexts" in result.stderr
    assert all(not server.requests for server in fleet.servers.values())


def test_findings_decide_the_exit_status(fleet: Fleet) -> None:
    flags = ("check", "-A", "--contexts", "eu,us", "--by", "zone", "--fail-on")
    clean = fleet(*flags, "info")
    findings = document(fleet(*flags, "info", "-o", "json"))["summary"]["findings"]
    assert clean.exit_code == (1 if sum(findings.values()) else 0)
    assert fleet(*flags, "never").exit_code == 0


def test_simulations_of_clusters_are_reported_together(fleet: Fleet) -> None:
    result = fleet("simulate", "--lose", "a1", "-A", "--runs", "1", "--contexts", "eu,down", "-o", "json")
    assert result.exit_code == 2
    eu, down = document(result)["clusters"]
    assert (eu["uid"], eu["report"]["kind"], down["status"]) == ("uid-eu", "SpreadSimulation", "failed")
    table = fleet("simulate", "--lose", "a1", "-A", "--runs", "1", "--contexts", "eu,down", "--color", "never")
    assert "=== eu (UID uid-eu)" in table.stdout


def test_an_event_that_one_cluster_does_not_have_is_an_error_of_this_cluster(fleet: Fleet) -> None:
    result = fleet("simulate", "--lose", "zone=nowhere", "-A", "--contexts", "eu,us", "-o", "json")
    assert result.exit_code == 2
    for each in document(result)["clusters"]:
        assert (each["status"], "nowhere" in each["errors"][0]) == ("failed", True)
