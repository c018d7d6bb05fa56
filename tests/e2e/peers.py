"""Helm, and tools that look at the placement of pods, built from their Go modules and run on a control plane."""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
from pathlib import Path
from typing import Final

from tests.controlplane import binaries
from tests.controlplane.cluster import ControlPlane

DESCHEDULER: Final = ("sigs.k8s.io/descheduler", "v0.36.0", "cmd/descheduler")
HELM: Final = ("helm.sh/helm/v3", "v3.22.0", "cmd/helm")
KUBE_RBAC_PROXY: Final = ("github.com/brancz/kube-rbac-proxy", "v0.19.1", "cmd/kube-rbac-proxy")
KUBE_SCORE: Final = ("github.com/zegl/kube-score", "v1.20.0", "cmd/kube-score")
_CYCLE_ENDS: Final = '"Number of evictions/requests"'
_CYCLES: Final = 5
"""A dry run fills its cache with nodes and pods one by one, and its first cycles evict by what is there already."""
_POLICY: Final = {
    "apiVersion": "descheduler/v1alpha2",
    "kind": "DeschedulerPolicy",
    "profiles": [
        {
            "name": "spread",
            "pluginConfig": [
                {"name": "DefaultEvictor", "args": {}},
                {"name": "RemovePodsViolatingTopologySpreadConstraint", "args": {}},
            ],
            "plugins": {"balance": {"enabled": ["RemovePodsViolatingTopologySpreadConstraint"]}},
        }
    ],
}


def binary(module: str, version: str, package: str) -> Path:
    """Return the program of a Go module, built with the versions that its own go.mod pins, where it is missing.

    Raises:
        MissingToolError: Go is needed and not on PATH.
    """
    name = package.rpartition("/")[2]
    directory = binaries.cache_directory() / f"{name}-{version}"
    with binaries._missing(directory, (name,)) as missing:
        if missing:
            binaries._build(_go_mod(module, version), {name: f"{module}/{package}"}, directory, ldflags="-s -w")
    return directory / name


def _go_mod(module: str, version: str) -> str:
    with tempfile.TemporaryDirectory() as scratch:
        directory = Path(scratch)
        (directory / "go.mod").write_text("module download\n", encoding="utf-8")
        download = json.loads(binaries._go("mod", "download", "-json", f"{module}@{version}", cwd=directory))
    body = re.sub(
        r"^module .*$", "module peer", Path(download["GoMod"]).read_text(encoding="utf-8"), flags=re.MULTILINE
    )
    return f"{body}\nrequire {module} {version}\n"


def descheduler(cluster: ControlPlane) -> str:
    """Return the log of the last cycle of a dry run of the descheduler's plugin for spread constraints."""
    command = [*_descheduler(cluster), "--dry-run", "--descheduling-interval=1s"]
    log = cluster.directory / "descheduler.log"
    with log.open("wb") as output, subprocess.Popen(command, stderr=output, env=cluster.environment()) as process:
        try:
            cycles = cluster.wait_for(lambda: _cycles(log), timeout=60, what=f"{_CYCLES} cycles of the descheduler")
        finally:
            process.terminate()
    return cycles[-1]


def deschedule(cluster: ControlPlane) -> None:
    """Let that plugin evict pods once."""
    subprocess.run(_descheduler(cluster), check=True, capture_output=True, env=cluster.environment(), timeout=120)


def _descheduler(cluster: ControlPlane) -> list[str]:
    policy = cluster.directory / "descheduler-policy.json"
    policy.write_text(json.dumps(_POLICY), encoding="utf-8")
    return [
        str(binary(*DESCHEDULER)),
        f"--kubeconfig={cluster.kubeconfig}",
        f"--policy-config-file={policy}",
        "--secure-port=0",
        "--v=2",
    ]


def _cycles(log: Path) -> list[str]:
    """Return the logs of the first cycles; none before all of them have ended."""
    *cycles, _ = log.read_text(encoding="utf-8").split(_CYCLE_ENDS)
    return cycles[:_CYCLES] if len(cycles) >= _CYCLES else []


def kube_score(manifests: str) -> str:
    """Return what kube-score prints about manifests, one line a check."""
    command = [str(binary(*KUBE_SCORE)), "score", "--output-format=ci", "-"]
    # Its exit status is 1, as the sample has findings that are not about placement.
    completed = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120, input=manifests)
    return completed.stdout
