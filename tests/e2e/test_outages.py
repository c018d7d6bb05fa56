"""The server stops, changes its certificate or rejects the token, or the user interrupts."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.commands import INTERRUPTIBLE
from tests.controlplane.certificates import Authority
from tests.e2e.faulty import CHECK, INCOMPLETE, NAMESPACE, Faulty, assert_complete, assert_no_secrets, assert_refused
from tests.faults import steps
from tests.faults.proxy import Exchange, Step, passed

pytestmark = pytest.mark.e2e

OLD_TOKEN = "an-old-token-that-nobody-may-see"
NOT_LOGGED_IN = "You must be logged in to the server (Unauthorized)"


def test_a_list_continues_after_the_apiserver_restarts(behind: Faulty) -> None:
    """It is killed after two pages; the other pages are of the same revision."""
    cluster = behind.cluster
    restarting = threading.Thread(target=cluster.restart_apiserver)

    def kill(exchange: Exchange) -> None:
        os.kill(cluster._server.process.pid, signal.SIGKILL)
        restarting.start()
        passed(exchange)

    behind.proxy.script("pods", passed, passed, kill)
    try:
        answer = behind.check()
    finally:
        restarting.join()
    report = assert_complete(answer)
    assert int(report["cluster"]["resourceVersions"]["pods"]) > 0
    assert len(behind.proxy.requests_for("pods")) > 5


def test_an_apiserver_that_does_not_run_is_reported_at_once(behind: Faulty) -> None:
    """The first connection is not tried again, because the address may be wrong."""
    cluster = behind.cluster
    cluster._server.stop()
    try:
        refused = behind.directly()(*CHECK)
        gone = behind.check("--request-timeout=3s")
    finally:
        cluster.restart_apiserver()
    assert refused.error.endswith("was refused - did you specify the right host or port?")
    assert_refused(gone, "Error from server: HTTP status 502")


def test_a_certificate_that_changes(behind: Faulty, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server with another certificate gets no request in the middle of a list."""
    # An open connection to the first server would be used again.
    monkeypatch.setattr(behind.proxy, "keeps_alive", False)
    stranger = Authority(tmp_path).server("stranger", ["127.0.0.1"])

    def change(exchange: Exchange) -> None:
        behind.proxy.serve_with(stranger)
        steps.cut_off(exchange)

    behind.proxy.script("pods", passed, passed, change)
    answer = behind.check()
    assert_refused(answer, "x509: certificate signed by unknown authority", INCOMPLETE)
    assert len(behind.proxy.requests_for("pods")) == 3


def expiring(change: Step) -> list[Step]:
    """Return steps by which a token expires in the middle of a list, while ``change`` happens."""

    def expire(exchange: Exchange) -> None:
        change(exchange)
        steps.as_token(OLD_TOKEN)(exchange)

    return [passed, passed, expire]


def test_a_token_file_that_changes(behind: Faulty, tmp_path: Path) -> None:
    """The file is read again when the apiserver refuses its token."""
    file = tmp_path / "token"
    file.write_text(behind.token)
    second = behind.cluster._security.tokens["second"]
    spread = behind.as_user({"tokenFile": str(file)})

    def change(_: Exchange) -> None:
        file.write_text(second)

    behind.proxy.script("pods", *expiring(change))
    answer = spread(*CHECK)
    assert_complete(answer)
    used = [request.headers["Authorization"] for request in behind.proxy.requests_for("pods")]
    assert used == [f"Bearer {behind.token}"] * 3 + [f"Bearer {second}"] * 3


def test_a_token_file_that_stays_old(behind: Faulty, tmp_path: Path) -> None:
    """The file is read again once."""
    file = tmp_path / "token"
    file.write_text(behind.token)
    spread = behind.as_user({"tokenFile": str(file)})
    behind.proxy.script("pods", passed, *[steps.as_token(OLD_TOKEN)] * 10)
    answer = spread(*CHECK)
    assert_refused(answer, NOT_LOGGED_IN, INCOMPLETE)
    assert_no_secrets(answer, [behind.token, OLD_TOKEN])
    assert len(behind.proxy.requests_for("pods")) == 3


def test_a_token_that_cannot_be_renewed(behind: Faulty) -> None:
    behind.proxy.script("pods", passed, steps.as_token(OLD_TOKEN))
    assert_refused(behind.check(), NOT_LOGGED_IN, INCOMPLETE)
    assert len(behind.proxy.requests_for("pods")) == 2


def plugin(directory: Path, *tokens: str) -> dict[str, object]:
    """Return a user whose credentials come from a program: one token after another, then it fails."""
    version = "client.authentication.k8s.io/v1"
    for number, token in enumerate(tokens):
        credential = {"apiVersion": version, "kind": "ExecCredential", "status": {"token": token}}
        (directory / f"{number}.json").write_text(json.dumps(credential))
    path = directory / "login"
    path.write_text(
        f'#!/bin/sh\ncd {directory}\nfor file in *.json; do cat "$file" && rm "$file"; exit; done 2>/dev/null\n'
    )
    path.chmod(0o700)
    return {"exec": {"command": str(path), "apiVersion": version, "interactiveMode": "Never"}}


def test_a_plugin_is_run_again_for_an_expired_token(behind: Faulty, tmp_path: Path) -> None:
    """The credential comes from an exec plugin."""
    second = behind.cluster._security.tokens["second"]
    spread = behind.as_user(plugin(tmp_path, behind.token, second))
    behind.proxy.script("pods", *expiring(lambda _: None))
    answer = spread(*CHECK)
    assert_complete(answer)
    used = [request.headers["Authorization"] for request in behind.proxy.requests_for("pods")]
    assert used == [f"Bearer {behind.token}"] * 3 + [f"Bearer {second}"] * 3


@pytest.mark.parametrize("tokens", [[], ["second token that\ncannot be sent"]], ids=["fails", "no token"])
def test_a_plugin_that_fails_later(behind: Faulty, tmp_path: Path, tokens: list[str]) -> None:
    spread = behind.as_user(plugin(tmp_path, behind.token, *tokens))
    behind.proxy.script("pods", *expiring(lambda _: None))
    answer = spread(*CHECK)
    assert_refused(answer, "bearer token holds" if tokens else "getting credentials: exec: ", INCOMPLETE)
    assert_no_secrets(answer, [behind.token, "second token"])


def start(behind: Faulty, arguments: Sequence[str] = CHECK, **environment: str) -> subprocess.Popen[str]:
    """Start the plugin and do not wait for it."""
    environment = {**behind.cluster.environment(behind.kubeconfig({"token": behind.token})), **environment}
    return subprocess.Popen(
        [*INTERRUPTIBLE, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )


@pytest.mark.parametrize(
    ("resource", "step"),
    [
        pytest.param("version", steps.silent(60), id="waiting for the first answer"),
        pytest.param("pods", steps.silent(60), id="waiting for a page"),
        pytest.param("pods", steps.slow(60), id="reading a page"),
        pytest.param("pods", steps.answer(503, Retry_After="60"), id="in a pause"),
    ],
)
def test_an_interrupt_ends_the_check(behind: Faulty, resource: str, step: Step) -> None:
    """Ctrl-C ends it at once, like kubectl."""
    event = threading.Event()

    def then(exchange: Exchange) -> None:
        event.set()
        step(exchange)

    behind.proxy.script(resource, *[passed] * (resource == "pods"), then)
    running = start(behind)
    assert event.wait(60)
    exchange_is_on_its_way = 0.5
    event.clear()
    event.wait(exchange_is_on_its_way)
    running.send_signal(signal.SIGINT)
    stdout, stderr = running.communicate(timeout=10)
    assert (running.returncode, stdout) == (130, "")
    assert "Traceback" not in stderr
    assert "Error" not in stderr


def test_a_key_is_not_left_behind(behind: Faulty, tmp_path: Path) -> None:
    """A key from the kubeconfig is in no file, neither during a request nor after a signal ended the program."""
    written: list[list[str]] = []

    def then(exchange: Exchange) -> None:
        written.append([path.name for path in tmp_path.iterdir()])
        steps.silent(60)(exchange)

    behind.proxy.script("version", then)
    running = start(behind, TMPDIR=str(tmp_path))
    behind.cluster.wait_for(lambda: written, what="the plugin asks")
    running.terminate()
    stdout, stderr = running.communicate(timeout=10)
    assert (running.returncode, stdout, stderr) == (143, "", "")
    assert written[0] == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("form", ["json", "yaml", "wide"])
def test_a_closed_pipe_ends_the_check(behind: Faulty, form: str) -> None:
    """``| head`` closes the pipe."""
    running = start(behind, ["check", "-n", NAMESPACE, "-o", form])
    assert running.stdout
    running.stdout.close()
    assert running.wait(60) == 141
    assert running.stderr
    assert running.stderr.read() == ""
    running.stderr.close()
