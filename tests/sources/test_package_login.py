"""What exec plugins and OIDC issuers meet with the kubernetes package: the differences from kubectl in decision 10.

``test_credentials.py``, ``test_oidc.py`` and ``tests/e2e/test_exec_plugins.py`` have the same cases with the plugin. A
test that fails here says that the package has changed, and that its login may do.
"""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from base64 import b64encode
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs

import pytest
from kubernetes.client import Configuration
from kubernetes.config.kube_config import KubeConfigLoader
from urllib3.exceptions import InsecureRequestWarning

from tests.builders import Json
from tests.controlplane.certificates import Authority
from tests.kubeconfigs import config
from tests.sources.server import Reply, Server, serve, serving
from tests.sources.test_oidc import config as issued
from tests.sources.test_oidc import jwt, says, timeouts

API: Final = "client.authentication.k8s.io/v1"
_LOGIN: Final = """
import json, sys
from kubernetes.client import Configuration
from kubernetes.config.kube_config import KubeConfigLoader
configuration = Configuration()
KubeConfigLoader(json.loads(sys.argv[1]), config_base_path=sys.argv[2]).load_and_set(configuration)
print(configuration.api_key.get("BearerToken", "no token"))
"""


class Plugin:
    """An exec plugin, and the package that runs it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.info = directory / "info"

    def config(self, script: str, cluster: Json | None = None, **changes: object) -> Json:
        """Return a kubeconfig with a plugin that keeps its input."""
        path = self.directory / "plugin"
        path.write_text(f'#!/bin/sh\nprintf "%s" "$KUBERNETES_EXEC_INFO" >{self.info}\n{script}\n')
        path.chmod(0o755)
        plugin = {"command": str(path), "apiVersion": API, "interactiveMode": "IfAvailable", **changes}
        return config("https://127.0.0.1:1", None, {"exec": plugin}, **(cluster or {}))

    def login(self, script: str, **changes: Any) -> Configuration:
        """Return the configuration after the package has run the plugin."""
        configuration = Configuration()
        loader = KubeConfigLoader(self.config(script, **changes), config_base_path=str(self.directory))
        loader.load_and_set(configuration)
        return configuration

    def ask(self, script: str, **streams: Any) -> subprocess.CompletedProcess[str]:
        """Run a program that logs in with the package, and return what it printed."""
        mode = streams.pop("mode", "IfAvailable")
        content = json.dumps(self.config(script, interactiveMode=mode))
        command = [sys.executable, "-c", _LOGIN, content, str(self.directory)]
        return subprocess.run(command, check=False, text=True, **{"stderr": subprocess.PIPE, **streams})

    @property
    def spec(self) -> Json:
        """The part of the plugin's input about the run."""
        spec: Json = json.loads(self.info.read_text())["spec"]
        return spec


@pytest.fixture
def plugin(tmp_path: Path) -> Plugin:
    """Return a plugin in a directory of its own."""
    return Plugin(tmp_path)


def credential(**status: object) -> str:
    """Return a script that prints credentials."""
    return f"echo '{json.dumps({'apiVersion': API, 'kind': 'ExecCredential', 'status': status})}'"


@pytest.fixture
def terminal() -> Iterator[int]:
    """Return a terminal on which nobody types."""
    master, slave = pty.openpty()
    yield slave
    os.close(master)
    os.close(slave)


def test_a_login_of_the_user_is_not_seen_where_the_output_is_read_by_a_program(plugin: Plugin) -> None:
    """A device code is for a terminal on stderr; only a failed plugin's is in the log, with whatever it printed."""
    script = "echo 'enter this code: SECRET' >&2; {}"
    completed = plugin.ask(script.format(credential(token="a")), stdout=subprocess.PIPE)
    assert (completed.stdout, completed.stderr) == ("Bearer a\n", "")
    failed = plugin.ask(script.format("exit 1"), stdout=subprocess.PIPE)
    assert failed.stdout == "no token\n"
    assert "exec: process returned 1. enter this code: SECRET" in failed.stderr


def test_a_plugin_that_fails_at_a_terminal_is_a_fault_of_the_package(plugin: Plugin, terminal: int) -> None:
    """The run continues without credentials, as everywhere in the package."""
    failed = plugin.ask("echo 'log in first' >&2; exit 1", stdout=terminal)
    assert failed.returncode == 0
    assert failed.stderr == "log in first\nERROR:root:'NoneType' object has no attribute 'strip'\n"


@pytest.mark.parametrize("mode", ["Never", "Always"])
def test_a_plugin_reads_the_input_of_the_program(plugin: Plugin, mode: str) -> None:
    """With ``-f -`` it would read the manifests; kubectl refuses ``Always`` without a terminal."""
    script = f'read line; {credential(token="LINE")} | sed "s/LINE/$line/"'
    completed = plugin.ask(script, mode=mode, input="apiVersion\n", stdout=subprocess.PIPE)
    assert completed.stdout == "Bearer apiVersion\n"
    assert plugin.spec == {"interactive": False}


@pytest.mark.parametrize(
    "output",
    [
        pytest.param(f"echo 'apiVersion: {API}\nkind: ExecCredential\nstatus: {{token: a}}'", id="YAML"),
        pytest.param(credential(clientCertificateData="only"), id="a certificate without its key"),
        pytest.param(credential(), id="nothing"),
    ],
)
def test_credentials_that_cannot_be_used_are_a_line_of_the_log(plugin: Plugin, output: str) -> None:
    assert plugin.login(output).api_key == {}


def test_a_variable_without_a_value_is_not_taken(plugin: Plugin) -> None:
    variables = [{"name": "EMPTY"}]
    assert plugin.login(credential(token="a"), env=variables).api_key == {}
    assert plugin.login(credential(token="a"), env=[{"name": "EMPTY", "value": ""}]).api_key


def test_the_certificate_next_to_a_token_is_left_out(plugin: Plugin) -> None:
    pair = Authority(plugin.directory / "pki").client("bob", "bob")
    pem = {"clientCertificateData": pair.certificate.read_text(), "clientKeyData": pair.key.read_text()}
    assert plugin.login(credential(token="a", **pem)).cert_file is None


def test_the_key_of_a_certificate_is_written_to_the_file_system(plugin: Plugin) -> None:
    pem = {"clientCertificateData": "certificate", "clientKeyData": "key"}
    assert Path(str(plugin.login(credential(**pem)).key_file)).read_text() == "key"


def test_the_cluster_is_that_of_the_kubeconfig_with_a_file_name(plugin: Plugin) -> None:
    """A plugin in another directory, or without the right to read it, cannot use it; nor with names as in kubectl."""
    authority = Authority(plugin.directory / "pki").certificate
    cluster = {"certificate_authority": str(authority)}
    plugin.login(credential(token="a"), cluster=cluster, provideClusterInfo=True)
    assert plugin.spec["cluster"] == {"server": "https://127.0.0.1:1", "certificate-authority": str(authority)}


def test_short_credentials_are_got_again_for_each_request(plugin: Plugin) -> None:
    """The package ends them five minutes before their end."""
    soon = (datetime.now(UTC) + timedelta(minutes=4)).isoformat()
    configuration = plugin.login(
        f"echo run >>{plugin.directory}/runs; {credential(token='a', expirationTimestamp=soon)}"
    )
    for _ in range(3):
        configuration.get_api_key_with_prefix("BearerToken")
    assert len((plugin.directory / "runs").read_text().splitlines()) == 4


def tokens(lifetime: float) -> Reply:
    """Return an issuer's answer with a token."""
    return says(access_token="a", token_type="Bearer", id_token=jwt(lifetime), refresh_token="new")


def refresh(server: Server, directory: Path, **changes: str | None) -> Configuration:
    """Return the configuration after the package has refreshed a token at an issuer."""
    fields = {name: value for name, value in {**issued(server, directory), **changes}.items() if value is not None}
    fields["idp-issuer-url"] = server.url
    user = {"auth-provider": {"name": "oidc", "config": fields}}
    configuration = Configuration()
    KubeConfigLoader(config("https://127.0.0.1:1", None, user)).load_and_set(configuration)
    return configuration


def test_the_secret_of_the_client_is_in_the_header_and_in_the_form(tmp_path: Path) -> None:
    """RFC 6749, 2.3: a client must not use more than one method of authentication in a request."""
    with serve(says(), tokens(3600), tls=serving(tmp_path)) as server:
        server.replies[0] = says(token_endpoint=f"{server.url}/token")
        refresh(server, tmp_path)
    request = server.requests[1]
    assert dict(request.headers)["Authorization"] == f"Basic {b64encode(b'kube/1:word').decode()}"
    assert parse_qs(request.body)["client_secret"] == ["word"]


def test_an_issuer_that_refuses_the_request_is_not_asked_again(tmp_path: Path) -> None:
    with serve(says(), Reply(401), tls=serving(tmp_path)) as server:
        server.replies[0] = says(token_endpoint=f"{server.url}/token")
        with pytest.raises(Exception, match="missing_token"):
            refresh(server, tmp_path)
    assert [request.path for request in server.requests] == ["/.well-known/openid-configuration", "/token"]


def test_a_silent_issuer_is_waited_for_without_end(tmp_path: Path) -> None:
    """Nothing ends the reading of a socket that has no timeout."""
    with serve(Reply(delay=60), tls=serving(tmp_path)) as server, ThreadPoolExecutor() as pool:
        login = pool.submit(refresh, server, tmp_path)
        assert timeouts(server) == [None]
        server.stopped.set()
        with pytest.raises(KeyError, match="token_endpoint"):
            login.result()


def test_the_secrets_follow_a_redirect(tmp_path: Path) -> None:
    with (
        serve(tokens(3600)) as other,
        serve(says(), Reply(307, headers={"Location": f"{other.url}/"}), tls=serving(tmp_path)) as server,
    ):
        server.replies[0] = says(token_endpoint=f"{server.url}/token")
        refresh(server, tmp_path)
    form = parse_qs(other.requests[0].body)
    assert (form["refresh_token"], form["client_secret"]) == (["old-refresh"], ["word"])


@pytest.mark.parametrize("absent", ["client-secret", "id-token"])
def test_a_kubeconfig_without_a_field_that_kubectl_does_not_need(tmp_path: Path, absent: str) -> None:
    with serve(says(), tls=serving(tmp_path)) as server:
        server.replies[0] = says(token_endpoint=f"{server.url}/token")
        with pytest.raises(Exception, match=absent):
            refresh(server, tmp_path, **{absent: None})


def test_an_answer_without_an_access_token(tmp_path: Path) -> None:
    with serve(says(), says(id_token=jwt(3600)), tls=serving(tmp_path)) as server:
        server.replies[0] = says(token_endpoint=f"{server.url}/token")
        with pytest.raises(Exception, match="missing_token"):
            refresh(server, tmp_path)


def test_a_token_is_refreshed_five_minutes_before_its_end(tmp_path: Path) -> None:
    with serve(says(), tokens(240), tls=serving(tmp_path)) as server:
        server.replies[0] = says(token_endpoint=f"{server.url}/token")
        refresh(server, tmp_path, **{"id-token": jwt(240)})
    assert len(server.requests) == 2


def test_an_issuer_without_an_authority_is_not_verified(tmp_path: Path) -> None:
    """Whoever answers names the endpoint that gets the secrets; only that one is verified."""
    with serve(Reply(404), tls=serving(tmp_path)) as server, pytest.warns(InsecureRequestWarning):
        refresh(server, tmp_path, **{"idp-certificate-authority": None})
    assert [request.path for request in server.requests] == ["/.well-known/openid-configuration"]
