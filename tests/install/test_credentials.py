"""The programs of the archive log in, and pass the environment of the user to the programs that they start."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from tests.controlplane.cluster import ControlPlane
from tests.e2e.spread import Program, install
from tests.install.krew import Krew

pytestmark = pytest.mark.install

_EXEC = "client.authentication.k8s.io/v1"


def _with_exec_plugin(kubeconfig: Path, directory: Path) -> Path:
    """Return a kubeconfig whose token comes from a plugin that writes its environment to ``directory``."""
    config = yaml.safe_load(kubeconfig.read_text())
    token = config["users"][0]["user"]["token"]
    credential = {"apiVersion": _EXEC, "kind": "ExecCredential", "status": {"token": token}}
    (directory / "credential.json").write_text(json.dumps(credential))
    plugin = directory / "credential-plugin"
    plugin.write_text(f"#!/bin/sh\nenv >{directory}/environment\ncat {directory}/credential.json\n")
    plugin.chmod(0o700)
    plugin_config = {"command": str(plugin), "apiVersion": _EXEC, "interactiveMode": "Never"}
    config["users"][0]["user"] = {"exec": plugin_config}
    written = directory / "kubeconfig"
    written.write_text(yaml.safe_dump(config))
    return written


def _environment(directory: Path) -> set[str]:
    return {
        line for line in (directory / "environment").read_text().splitlines() if not line.startswith(("PATH=", "_="))
    }


def test_a_token_of_the_kubeconfig_logs_in(web: ControlPlane, krew: Krew) -> None:
    kubeconfig = web.token_kubeconfig("token-user")
    assert krew.spread(web.environment(kubeconfig)).report().row("Deployment/web")["verdicts"] == {"merged": 3}


@pytest.mark.parametrize("libraries", ["/opt/users/own", None], ids=["LD_LIBRARY_PATH", "without"])
def test_an_exec_plugin_gets_the_environment_of_the_user(
    libraries: str | None, web: ControlPlane, krew: Krew, tmp_path: Path
) -> None:
    """The environment is the same when a plugin installed by pip starts it."""
    kubeconfig = _with_exec_plugin(web.token_kubeconfig("token-user"), tmp_path)
    environment = web.environment(kubeconfig)
    environment.pop("LD_LIBRARY_PATH", None)
    if libraries:
        environment["LD_LIBRARY_PATH"] = libraries
    answers = []
    for spread in (krew.spread(environment), Program(install(tmp_path / "plugins"), environment)):
        answers.append((spread.report().row("Deployment/web")["verdicts"], _environment(tmp_path)))
        (tmp_path / "environment").unlink()
    assert answers[0] == answers[1]
    assert (f"LD_LIBRARY_PATH={libraries}" in answers[0][1]) == bool(libraries)
