"""Credential plugins are run as by the real kubectl, and their output has the same effect."""

from __future__ import annotations

import json
import os
import pty
import shlex
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.builders import Json
from tests.controlplane.cluster import ControlPlane
from tests.e2e.both import Both, matching_request
from tests.e2e.recorder import Recorder, Request
from tests.kubeconfigs import config

pytestmark = pytest.mark.e2e

V1 = "client.authentication.k8s.io/v1"
BETA = "client.authentication.k8s.io/v1beta1"
GETTING = "Unable to connect to the server: getting credentials: "


def credential(version: str = V1, **status: str) -> str:
    """Return the output of a plugin."""
    return json.dumps({"apiVersion": version, "kind": "ExecCredential", "status": status})


def says(text: str) -> str:
    """Return a script that prints a text."""
    return f"printf '%s' {shlex.quote(text)}"


class Desk:
    """A plugin in a file next to the kubeconfig, and both programs that run it."""

    def __init__(self, both: Both, recorder: Recorder) -> None:
        """Ask the recorder."""
        self.both = both
        self.recorder = recorder
        self.calls = both.directory / "calls"

    def user(self, script: str, **changes: object) -> Json:
        """Write the plugin, which records its input, and return the user that runs it."""
        note = f"printf '%s' \"$KUBERNETES_EXEC_INFO\" | tr -d '\\n' >>{self.calls}; echo >>{self.calls}"
        self.both.write(f"#!/bin/sh\n{note}\n{script}\n", "plugin").chmod(0o755)
        plugin = {"command": "./plugin", "apiVersion": V1, "interactiveMode": "IfAvailable", **changes}
        return {"exec": {key: value for key, value in plugin.items() if value is not None}}

    def config(self, user: Json, **cluster: object) -> Json:
        """Return a kubeconfig for the recorder."""
        return config(self.recorder.url, self.recorder.authority.certificate, user, **cluster)

    def ask(self, script: str, **changes: object) -> Request:
        """Run both programs, and return our request, which has the credentials of kubectl's."""
        self.both.ask(self.config(self.user(script, **changes)))
        return matching_request(self.recorder)

    @property
    def inputs(self) -> list[Json]:
        """The input of each run of the plugin."""
        return [json.loads(line) for line in self.calls.read_text(encoding="utf-8").splitlines()]


@pytest.fixture
def desk(both: Both, recorder: Recorder) -> Desk:
    """Return both programs, a plugin and the recorder."""
    return Desk(both, recorder)


@pytest.mark.parametrize("version", [V1, BETA])
def test_a_token_of_either_version_of_the_api_is_sent(desk: Desk, version: str) -> None:
    """The output may be JSON or YAML; only the newer version needs interactiveMode."""
    mode = "IfAvailable" if version == V1 else None
    script = says(credential(version, token="abc"))
    assert desk.ask(script, apiVersion=version, interactiveMode=mode).header("Authorization") == "Bearer abc"
    script = says(f"apiVersion: {version}\nkind: ExecCredential\nstatus: {{token: yaml}}\n")
    assert desk.ask(script, apiVersion=version, interactiveMode=mode).header("Authorization") == "Bearer yaml"


def test_a_certificate_is_used_alone_or_with_a_token(desk: Desk) -> None:
    pair = desk.recorder.authority.client("bob", "bob")
    status = {"clientCertificateData": pair.certificate.read_text(), "clientKeyData": pair.key.read_text()}
    assert desk.ask(says(credential(**status))).certificate == "bob"
    request = desk.ask(says(credential(token="abc", **status)))
    assert (request.certificate, request.header("Authorization")) == ("bob", "Bearer abc")


def test_a_plugin_gets_arguments_and_environment(desk: Desk) -> None:
    """Variables of the kubeconfig override the environment."""
    script = f"printf '%s' {shlex.quote(credential(token='TOKEN'))} | sed \"s/TOKEN/$1-$HOME-$EXTRA/\""
    variables = [{"name": "HOME", "value": "home"}, {"name": "EXTRA", "value": "more"}]
    assert desk.ask(script, args=["first"], env=variables).header("Authorization") == "Bearer first-home-more"


@pytest.mark.parametrize("provided", [False, True])
def test_a_plugin_gets_the_cluster_only_where_it_asks_for_it(desk: Desk, provided: bool) -> None:
    """The cluster has the authority in full and the plugin's own configuration."""
    extension = {"name": "client.authentication.k8s.io/exec", "extension": {"audience": "x"}}
    user = desk.user(says(credential(token="abc")), provideClusterInfo=provided)
    fields = {"tls_server_name": "apiserver.test", "disable_compression": True, "extensions": [extension]}
    desk.both.ask(desk.config(user, **fields))
    matching_request(desk.recorder)
    assert len(desk.inputs) >= 2
    assert all(info == desk.inputs[0] for info in desk.inputs)
    assert ("cluster" in desk.inputs[-1]["spec"]) == provided


def test_other_credentials_go_before_a_plugin(desk: Desk) -> None:
    """These are tokens, passwords and certificates."""
    pair = desk.recorder.authority.client("bob", "bob")
    certificate = {"client-certificate": str(pair.certificate), "client-key": str(pair.key)}
    plugin = desk.user("exit 1")
    for credentials in ({"token": "a"}, {"username": "a", "password": "b"}, certificate):
        desk.both.ask(desk.config({**plugin, **credentials}))
        matching_request(desk.recorder)
    assert not desk.calls.exists()


@pytest.mark.parametrize("mode", ["Never", "IfAvailable", "Always"])
def test_a_plugin_may_read_from_the_terminal(desk: Desk, mode: str) -> None:
    """It may not if its interactiveMode is Never."""
    script = f'read typed || typed=nothing; {says(credential(token="TOKEN"))} | sed "s/TOKEN/$typed/"'
    desk.both.write(desk.config(desk.user(script, interactiveMode=mode)))
    master, terminal = pty.openpty()
    try:
        os.write(master, b"typed\n" * 3)
        desk.both.run(stdin=terminal)
    finally:
        os.close(master)
        os.close(terminal)
    expected = "nothing" if mode == "Never" else "typed"
    assert matching_request(desk.recorder).header("Authorization") == f"Bearer {expected}"
    assert {info["spec"]["interactive"] for info in desk.inputs} == {mode != "Never"}


def test_a_plugin_that_needs_a_terminal_is_not_run_without_one(desk: Desk) -> None:
    theirs, ours = desk.both.ask(desk.config(desk.user("exit 1", interactiveMode="Always"))).complaints
    assert ours == theirs
    assert not desk.calls.exists()


REFUSED: Mapping[str, tuple[str, Json]] = {
    "no version": ("", {"apiVersion": None}),
    "removed version": ("", {"apiVersion": "client.authentication.k8s.io/v1alpha1"}),
    "no command": ("", {"command": None}),
    "other version": (says(credential(BETA, token="SECRET")), {}),
    "no status": (says(json.dumps({"apiVersion": V1, "kind": "ExecCredential"})), {}),
    "nothing in it": (says(credential()), {}),
    "certificate alone": (says(credential(clientCertificateData="SECRET")), {}),
    "fails": ("echo broken >&2; exit 3", {}),
    "not executable": ("", {"command": "./config"}),
}


@pytest.mark.parametrize("name", REFUSED)
def test_errors_of_plugins_are_those_of_kubectl(desk: Desk, name: str) -> None:
    """The error has the words of kubectl, after the plugin's own output on stderr."""
    script, changes = REFUSED[name]
    pair = desk.both.ask(desk.config(desk.user(script, **changes)))
    theirs, ours = pair.complaints
    assert ours == theirs
    lines = pair.spread.stderr.splitlines()
    assert lines[:-1] == (["broken"] if name == "fails" else [])
    assert "SECRET" not in pair.spread.stderr


UNREADABLE: Mapping[str, str] = {
    "text": "SECRET",
    "half": '{"status": {"token": "SECRET',
    "other kind": json.dumps({"apiVersion": V1, "kind": "SECRET", "status": {"token": "SECRET"}}),
    "wrong type": json.dumps({"apiVersion": V1, "kind": "ExecCredential", "status": {"token": ["SECRET"]}}),
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_output_that_cannot_be_decoded_is_refused(desk: Desk, name: str) -> None:
    """Our message leaves out the output, which may contain a secret."""
    pair = desk.both.ask(desk.config(desk.user(says(UNREADABLE[name]))))
    theirs, _ = pair.complaints
    assert theirs.startswith(f"{GETTING}decoding stdout: ")
    assert pair.spread.error.startswith(f"{GETTING}decoding stdout: ")
    if name != "other kind":
        assert "SECRET" not in pair.spread.stderr


def test_a_certificate_that_is_not_pem_is_reported(desk: Desk) -> None:
    """The plugin reports it when the certificate is used."""
    pair = desk.both.ask(desk.config(desk.user(says(credential(clientCertificateData="x", clientKeyData="y")))))
    assert "failed parsing client key/certificate" in pair.kubectl.stderr
    assert pair.spread.error == "Unable to connect to the server: the client certificate or its key is not PEM"


def test_the_install_hint_of_a_missing_plugin_is_printed(desk: Desk) -> None:
    """It is one line, with control characters escaped."""
    hint = "get it:\n  brew install \x1b[1mgizmo"
    user = desk.user("", command="no-such-plugin", installHint=hint)
    pair = desk.both.ask(desk.config(user))
    assert pair.kubectl.stderr.startswith(f"{GETTING}exec: executable no-such-plugin not found\n")
    assert pair.kubectl.stderr.endswith("brew install U+001B[1mgizmo\n")
    assert pair.spread.error == (
        f"{GETTING}exec: executable no-such-plugin not found (get it: brew install \\x1b[1mgizmo)"
    )


def test_a_bare_plugin_name_is_looked_up_in_path(desk: Desk, tmp_path: Path) -> None:
    """It is not looked up next to the kubeconfig."""
    user = desk.user(says(credential(token="abc")), command="gizmo-login")
    (tmp_path / "plugin").rename(desk.both.directory / "gizmo-login")
    assert "gizmo-login not found" in desk.both.ask(desk.config(user)).spread.error
    path = f"{desk.both.directory}{os.pathsep}{desk.both.path}"
    desk.both.ask(desk.config(user), environment={"PATH": path})
    assert matching_request(desk.recorder).header("Authorization") == "Bearer abc"


@pytest.mark.parametrize("ends", ["", "2020-01-01T00:00:00Z", "2199-01-01T00:00:00+01:00"])
def test_credentials_are_reused_until_they_expire(
    faulty_cluster: ControlPlane, both: Both, recorder: Recorder, ends: str
) -> None:
    """The plugin is run once for all requests of a run, unless its credential has expired."""
    desk = Desk(both, recorder)
    token = faulty_cluster._security.tokens["first"]
    status = {"token": token} | ({"expirationTimestamp": ends} if ends else {})
    user = desk.user(says(credential(**status)))
    pair = both.ask(config(faulty_cluster.api.server, faulty_cluster._security.authority.certificate, user))
    assert (pair.kubectl.status, pair.spread.status) == (0, 0), pair.spread.stderr
    before = len(desk.inputs)
    answer = both.spread("check", "-A")
    assert answer.status == 0, answer.stderr
    assert (len(desk.inputs) - before == 1) == (not ends.startswith("2020"))
