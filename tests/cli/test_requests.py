"""A check sends all requests that it will need at once, and reports errors as if it had sent them in turn."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Final

import pytest
from click.testing import CliRunner, Result

from kubectl_spread.cli import cli
from kubectl_spread.sources.apiserver import transport
from tests.cli.test_identity import LISTS, Routed, configure
from tests.sources.server import Reply, Request, serve, status

_PATIENCE: Final = 10.0
READ_AT_ONCE: Final = {"version", "kube-system", *LISTS} - {"events"}
UNAVAILABLE: Final = Reply(503, b"", headers={"Retry-After": "2"})


class AllAtOnce(Routed):
    """Answers no request before all that a check needs have arrived."""

    everyone = threading.Barrier(len(READ_AT_ONCE), timeout=_PATIENCE)

    def next(self, request: Request) -> Reply:
        reply = super().next(request)
        self.everyone.wait()
        return reply


class Failing(Routed):
    """Answers some requests with errors; that for the version fails last, and any error of pods at once."""

    failures: Final[dict[str, Reply]] = {
        "version": Reply(500, b"no version", "text/plain", delay=0.3),
        "pods": status(500, "InternalError", "no pods"),
        "nodes": status(500, "InternalError", "no nodes"),
        "jobs": status(500, "InternalError", "no jobs"),
    }
    failing: tuple[str, ...] = ()

    def next(self, request: Request) -> Reply:
        reply = super().next(request)
        plural = request.path.rpartition("/")[2]
        return self.failures[plural] if plural in self.failing else reply


class Overloaded(Routed):
    """Answers every path with 503 once."""

    def next(self, request: Request) -> Reply:
        is_first = request.path not in [earlier.path for earlier in self.requests]
        reply = super().next(request)
        return UNAVAILABLE if is_first else reply


class WithoutNodes(Routed):
    """Forbids listing nodes."""

    def next(self, request: Request) -> Reply:
        reply = super().next(request)
        return status(403, "Forbidden", "nodes is forbidden") if request.path.endswith("/nodes") else reply


def check(server_class: type[Routed], directory: Path, *arguments: str) -> Result:
    with serve(Reply()) as server:
        server.__class__ = server_class
        configure(directory / "config", server)
        return CliRunner().invoke(cli, ["check", "--kubeconfig", str(directory / "config"), *arguments])


def test_version_and_lists_are_requested_at_the_same_time(tmp_path: Path) -> None:
    assert check(AllAtOnce, tmp_path).exit_code == 0


def test_nodes_that_may_not_be_listed_are_an_error(tmp_path: Path) -> None:
    outcome = check(WithoutNodes, tmp_path)
    assert outcome.exit_code == 2
    assert "nodes is forbidden: zones are inferred from the pods' own labels" in outcome.stderr


@pytest.mark.parametrize(
    ("failing", "error"),
    [
        (("version", "pods", "nodes", "jobs"), "no version"),
        (("pods", "nodes", "jobs"), "no pods"),
        (("nodes", "jobs"), "no nodes"),
        (("jobs",), "no jobs"),
    ],
)
def test_the_error_of_the_first_list_is_reported_even_if_another_one_fails_first(
    failing: tuple[str, ...], error: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transport, "_FIRST_BACKOFF", 0.0001)
    monkeypatch.setattr(transport, "RETRIES", 0)
    monkeypatch.setattr(Failing, "failing", failing)
    result = check(Failing, tmp_path)
    (line,) = result.stderr.splitlines()
    assert (result.exit_code, error in line) == (2, True), line


def test_an_unknown_version_is_reported_although_pods_are_still_being_read(tmp_path: Path) -> None:
    result = check(Slow, tmp_path)
    assert (result.exit_code, "Kubernetes 1.12 is not known" in result.stderr) == (2, True), result.stderr


class Slow(Routed):
    """Reports an old version, and answers about pods only when the server stops."""

    def next(self, request: Request) -> Reply:
        if request.path == "/version":
            return Reply(body=b'{"major": "1", "minor": "12"}')
        reply = super().next(request)
        return Reply(body=reply.body, delay=60) if request.path.endswith("/pods") else reply


def test_a_server_that_overloads_many_requests_is_mentioned_once(tmp_path: Path) -> None:
    result = check(Overloaded, tmp_path)
    assert (result.exit_code, result.stderr.count("trying again")) == (0, 1), result.stderr


@pytest.mark.parametrize(
    ("option", "limits"), [((), {"500"}), (("--chunk-size", "7"), {"7"}), (("--chunk-size", "0"), set())]
)
def test_lists_are_read_in_pages_of_the_chunk_size(option: tuple[str, ...], limits: set[str], tmp_path: Path) -> None:
    config = tmp_path / "config"
    with serve(Reply()) as server:
        server.__class__ = Routed
        configure(config, server)
        outcome = CliRunner().invoke(cli, ["check", "--kubeconfig", str(config), *option])
    assert outcome.exit_code == 0
    assert {limit for request in server.requests for limit in request.query.get("limit", [])} == limits
