"""Errors of ``monitor``; the monitor of a cluster is in ``tests/e2e/test_monitor.py``."""

from __future__ import annotations

import socket
from contextlib import closing

import pytest
from click.testing import CliRunner

from kubectl_spread.cli import cli

REFUSED = "The connection to the server 127.0.0.1:1 was refused - did you specify the right host or port?\n"


def monitor(*arguments: str) -> tuple[int, str, str]:
    """Return the exit status, stdout and stderr of a monitor; no API server listens at its address."""
    ports = ("--listen", "127.0.0.1:0", "--telemetry", "127.0.0.1:0")
    outcome = CliRunner().invoke(cli, ["monitor", "--server", "http://127.0.0.1:1", *ports, *arguments])
    return outcome.exit_code, outcome.stdout, outcome.stderr


def test_an_api_server_that_does_not_answer_is_an_error() -> None:
    status, stdout, stderr = monitor()
    assert (status, stdout) == (2, "")
    assert stderr.endswith(REFUSED)


@pytest.mark.parametrize("option", ["--interval", "--max-age"])
@pytest.mark.parametrize("text", ["0", "0s", "-1s", "soon", "1d"])
def test_times_are_above_0(option: str, text: str) -> None:
    assert monitor(option, text) == (
        2,
        "",
        f'error: {option}: "{text}" is not a time above 0 with a unit (write 2s, 3m)\n',
    )


def test_a_state_must_be_served_for_longer_than_an_interval() -> None:
    error = "error: --interval 3m is not shorter than --max-age 3m: each state would be too old\n"
    assert monitor("--interval", "3m") == (2, "", error)


@pytest.mark.parametrize("option", ["--listen", "--telemetry"])
def test_an_address_of_another_form_is_an_error(option: str) -> None:
    assert monitor(option, "8080") == (2, "", f'error: {option}: "8080" is not HOST:PORT or :PORT\n')


@pytest.mark.parametrize("option", ["--listen", "--telemetry"])
def test_a_port_in_use_is_an_error(option: str) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        output = f"error: {option}: cannot listen at {address}: address already in use\n"
        assert monitor(option, address) == (2, "", output)


@pytest.mark.parametrize("option", ["--filename", "--output", "--watch", "--fail-on", "--baseline"])
def test_options_of_a_single_report_are_unknown(option: str) -> None:
    status, _, stderr = monitor(option, "x")
    assert status == 2
    assert stderr.startswith(f"error: No such option '{option}'")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--field-selector", "x"), 'invalid field selector: "x"'),
        (("--field-selector", "spec.priority=1"), 'field label not supported: "spec.priority"'),
        (("--to", "1.99"), "--to: Kubernetes 1.99 is not known"),
        (("--scheduler-config", "missing.yaml"), "error reading missing.yaml: no such file or directory"),
        (("--defaults", "--scheduler-config", "x"), "--defaults and --scheduler-config name two schedulers"),
    ],
)
def test_wrong_scopes_and_schedulers_are_errors(options: tuple[str, ...], message: str) -> None:
    status, _, stderr = monitor(*options)
    assert status == 2
    assert stderr.startswith(f"error: {message}")


def test_gates_are_refused_once_the_version_is_known() -> None:
    """Kubernetes 1.30 has this gate, and the newest does not."""
    gates = ("--feature-gates", "NodeInclusionPolicyInPodTopologySpread=false")
    assert monitor(*gates)[2].endswith(REFUSED)
    assert not monitor(*gates, "--server-version", "1.37")[2].endswith(REFUSED)
    assert monitor("--feature-gates", "x")[2] == 'error: --feature-gates: "x" is not NAME=true or NAME=false\n'


def test_rules_that_do_not_exist_are_an_error() -> None:
    status, _, stderr = monitor("--select", "SPR999")
    assert (status, stderr) == (2, 'error: no rule has the code or name "SPR999" (kubectl spread rules lists them)\n')
