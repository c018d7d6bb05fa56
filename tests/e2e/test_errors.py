"""Mistakes of users lead to one line on stderr and exit status 2; an empty namespace is not an error."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path

import pytest

from tests.controlplane.cluster import ControlPlane
from tests.controlplane.processes import free_port
from tests.e2e.spread import Plugin, Spread

pytestmark = pytest.mark.e2e


def test_a_namespace_without_pods_is_not_an_error(control_plane: ControlPlane, namespace: str, spread: Spread) -> None:
    """The message on stderr is that of kubectl, and the exit status is 0."""
    answer = spread("check", "-n", namespace)
    assert (answer.status, answer.stdout) == (0, "")
    assert answer.stderr == control_plane.kubectl("get", "pods", "-n", namespace).stderr
    assert answer.stderr == f"No resources found in {namespace} namespace.\n"


def test_a_misspelt_namespace_is_an_error_with_the_nearest_name(namespace: str, spread: Spread) -> None:
    for command in ("check", "domains"):
        answer = spread(command, "-n", f"{namespace}x")
        assert (answer.status, answer.stdout) == (2, "")
        assert answer.error == f'error: namespace "{namespace}x" not found; did you mean "{namespace}"?'


def test_an_empty_report_is_still_a_report(namespace: str, spread: Spread) -> None:
    """With ``-o json`` the output is JSON."""
    report = spread.report("-n", namespace)
    assert report["constraints"] == report["groups"] == report["pods"] == report["findings"] == []


MISTAKES: Mapping[str, str] = {
    "check --context nowhere": 'context "nowhere" does not exist',
    "check --no-such-flag": "--no-such-flag",
    "--no-such-flag": "--no-such-flag",
    "no-such-command": "no-such-command",
    "check -o xml": "xml",
    "check --select SPR9": "SPR9",
    "check -l 'a in (b'": "a in (b",
    "check --server-version latest": "latest",
    "check gizmo/web": "gizmo",
    "check deploy/missing": '"missing" not found',
    "check m/good.yaml": "did you mean -f m/good.yaml?",
    "--context foo check": "--context comes after the command",
    "explain pod/missing": '"missing" not found',
}


@pytest.mark.parametrize(("line", "words"), MISTAKES.items(), ids=MISTAKES)
def test_a_wrong_word_on_the_command_line_is_named(namespace: str, spread: Spread, line: str, words: str) -> None:
    """The word is a flag, a context, a type or a name."""
    scope = ["-n", namespace] if line.startswith(("check", "explain")) else []
    answer = spread(*shlex.split(line), *scope)
    assert (answer.status, answer.stdout) == (2, "")
    assert words in answer.error


def test_a_refused_connection_has_the_error_of_kubectl(spread: Spread) -> None:
    port = free_port()
    answer = spread("check", "--server", f"https://127.0.0.1:{port}")
    assert (answer.status, answer.stdout) == (2, "")
    refused = f"The connection to the server 127.0.0.1:{port} was refused - did you specify the right host or port?"
    assert answer.error == refused


@pytest.mark.parametrize(
    "credential",
    [ControlPlane.invalid_token_kubeconfig, lambda cluster: cluster.kubeconfig_for("carol", lifetime=timedelta(-1))],
    ids=["token", "certificate"],
)
def test_a_rejected_credential_is_an_error(
    control_plane: ControlPlane, plugin: Plugin, credential: Callable[[ControlPlane], Path]
) -> None:
    answer = plugin.on(control_plane, credential(control_plane))("check")
    assert (answer.status, answer.stdout) == (2, "")
    assert answer.error == "error: You must be logged in to the server (Unauthorized)"


BROKEN: Mapping[str, tuple[bytes, int]] = {
    "truncated.json": (b'{"apiVersion": "v1", "kind": "List", "items": [{"kind": "Po', 1),
    "truncated.yaml": (b'apiVersion: v1\nkind: Pod\nmetadata: {name: "web', 3),
    "syntax.yaml": (b"apiVersion: v1\nkind: Pod\nmetadata:\n  name: a\n   labels: b\n", 5),
    "binary.yaml": (b"\x7fELF\x02\x01\x01\x00\x00\xff\xfe", 1),
    "binary.json": (bytes(range(256)), 1),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_file_is_named_with_its_line(tmp_path: Path, spread: Spread, name: str) -> None:
    content, line = BROKEN[name]
    path = tmp_path / name
    path.write_bytes(content)
    answer = spread("check", "-f", str(path), "--server-version", "1.37")
    assert answer.status == 2
    assert f"{path}:{line}: " in answer.error


def test_a_missing_file_is_named_as_by_kubectl(tmp_path: Path, spread: Spread) -> None:
    answer = spread("check", "-f", str(tmp_path / "missing.yaml"))
    assert (answer.status, answer.stdout) == (2, "")
    assert answer.error == f'error: the path "{tmp_path}/missing.yaml" does not exist'
