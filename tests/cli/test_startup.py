"""Commands import only the modules that they use."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest
import yaml

from tests.cli.test_identity import Routed, configure
from tests.sources.server import Reply, serve

_ONLY_FOR_FILES: Final = (
    "ruamel",
    "kubectl_spread.sources.files.manifests",
)
_ONLY_FOR_OTHER_COMMANDS: Final = (
    "deepdiff",
    "jinja2",
    "kubectl_spread.explain",
    "kubectl_spread.cli.watch",
)


def imported(*arguments: str) -> set[str]:
    """Return the modules that a command has imported when it ends."""
    code = (
        "import sys; from kubectl_spread.cli import cli\n"
        "try: cli(sys.argv[1:])\n"
        "finally: sys.stderr.write(' '.join(sys.modules))"
    )
    completed = subprocess.run([sys.executable, "-c", code, *arguments], check=True, capture_output=True, text=True)
    return set(completed.stderr.split())


@pytest.mark.parametrize(
    ("arguments", "spared"),
    [
        (["--help"], ["kubectl_spread.audit", "kubectl_spread.rules", "wcwidth"]),
        (["schema"], ["kubectl_spread.audit", "kubectl_spread.rules", "wcwidth"]),
        (["rules"], ["kubectl_spread.sources.files.manifests", "ruamel", "yaml", "kubernetes", "deepdiff"]),
        (["merge", "--help"], ["kubernetes", "ruamel", "yaml", "deepdiff"]),
        (["check", "--help"], ["kubernetes", "ruamel", "yaml", "deepdiff", "jinja2", "kubectl_spread.sources.edit"]),
    ],
)
def test_commands_do_not_import_what_they_do_not_use(arguments: list[str], spared: list[str]) -> None:
    assert imported(*arguments).isdisjoint(spared)


@pytest.mark.parametrize("credentials", [{"token": "t"}, {"username": "u", "password": "p"}, {}], ids=str)
def test_a_login_outside_of_pods_does_not_import_kubernetes(credentials: dict[str, str], tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text(json.dumps({"clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:6443"}}]}))
    code = (
        "import json, sys\n"
        "from kubectl_spread.sources.apiserver.cluster import LiveCluster\n"
        "from kubectl_spread.sources.auth.connection import ConnectionFlags\n"
        "LiveCluster.connect(ConnectionFlags(**json.loads(sys.argv[1])))\n"
        "print('urllib3' in sys.modules, 'kubernetes' in sys.modules)"
    )
    flags = json.dumps({"kubeconfig": str(config), "cluster": "c", **credentials})
    completed = subprocess.run([sys.executable, "-c", code, flags], check=True, capture_output=True, text=True)
    assert completed.stdout.split() == ["True", "False"]


@pytest.mark.parametrize("form", [json.dumps, yaml.safe_dump], ids=["JSON", "YAML"])
def test_a_check_of_a_cluster_spares_what_it_does_not_need(form: Callable[[object], str], tmp_path: Path) -> None:
    config = tmp_path / "config"
    with serve(Reply()) as server:
        server.__class__ = Routed
        configure(config, server)
        config.write_text(form(json.loads(config.read_text())))
        modules = imported("check", "--kubeconfig", str(config))
    assert "urllib3" in modules
    assert modules.isdisjoint((*_ONLY_FOR_FILES, *_ONLY_FOR_OTHER_COMMANDS, "kubernetes", "socks", "ctypes"))
