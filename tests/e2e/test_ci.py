"""The manifests of docs/ci.md work on a real cluster with the ready-made roles, and its kustomize hook with kubectl."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import contract
from tests.builders import constraint
from tests.ci import checkout, wheels
from tests.commands import BIN
from tests.controlplane import binaries
from tests.controlplane.cluster import ControlPlane
from tests.e2e.manifests import deployment
from tests.e2e.spread import Spread, install
from tests.e2e.workloads import roll_out
from tests.generated import ROOT

pytestmark = pytest.mark.e2e

EXAMPLES = ROOT / "docs" / "ci"
RESTRICTED = {"pod-security.kubernetes.io/enforce": "restricted"}
REFUSED = ROOT / "tests" / "threads" / "08-error-path-with-two-indices" / "input.yaml"


def pod_of(cluster: ControlPlane, namespace: str, job: str) -> Any:
    """Return the pod that the Job controller creates, in a namespace that admits restricted pods only."""

    def first_pod() -> Any:
        pods = cluster.api.get(f"/api/v1/namespaces/{namespace}/pods", labelSelector=f"job-name={job}")["items"]
        return pods[0] if pods else None

    return cluster.wait_for(first_pod, what=f"a pod of job {job}")


def arguments(pod: Any) -> list[str]:
    """Return the arguments of the container's `kubectl spread`, for the pod's own user."""
    (container,) = pod["spec"]["containers"]
    assert container["command"] == ["python", "-I", "/plugin/kubectl_spread"]
    user = f"system:serviceaccount:{pod['metadata']['namespace']}:{pod['spec']['serviceAccountName']}"
    return [*container["args"], "--as", user]


@pytest.fixture(scope="module")
def cron(control_plane: ControlPlane) -> Iterator[str]:
    """Return the namespace of the CronJob, which admits restricted pods only."""
    metadata = {"name": "kubectl-spread", "labels": RESTRICTED}
    control_plane.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
    _, lock, apply, create, _ = commands_of("## CronJob")
    for command in (lock, apply, create):
        control_plane.kubectl(*command)
    yield "kubectl-spread"
    control_plane.kubectl("delete", "-f", str(EXAMPLES / "cronjob.yaml"))
    control_plane.kubectl("delete", "namespace", "kubectl-spread", "--wait=false")


@pytest.fixture(scope="module")
def shop(control_plane: ControlPlane) -> Iterator[str]:
    """Return a namespace as docs/ci.md prepares it for Argo CD."""
    control_plane.kubectl("create", "namespace", "shop")
    for command in commands_of("## Argo CD"):
        control_plane.kubectl(*command)
    yield "shop"
    control_plane.kubectl("delete", "clusterrolebinding", "kubectl-spread-shop")
    control_plane.kubectl("delete", "namespace", "shop", "--wait=false")


def commands_of(title: str) -> list[list[str]]:
    """Return the arguments of the kubectl commands in a section of docs/ci.md."""
    section = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8").partition(f"{title}\n")[2].partition("\n## ")[0]
    words = [line.split()[2:] for line in section.splitlines() if line.startswith("$ kubectl ")]
    files = {"docs/": f"{ROOT}/docs/", "--from-file=requirements.txt": f"--from-file=requirements.txt={wheels.LOCK}"}
    lines = [[re.sub("^docs/|^--from-file=.*", lambda name: files[name[0]], word) for word in line] for line in words]
    return [line for line in lines if line[0] != "spread"]


def test_the_cron_job_reports_the_whole_cluster(control_plane: ControlPlane, spread: Spread, cron: str) -> None:
    answer = spread(*arguments(pod_of(control_plane, cron, "once")))
    assert (answer.status, answer.stderr) == (0, "")
    assert contract.loaded(answer.stdout)["cluster"]["nodes"] == "listed"


def test_the_hook_of_argo_cd_checks_its_namespace(control_plane: ControlPlane, spread: Spread, shop: str) -> None:
    roll_out(control_plane, deployment("web", [constraint(match=["rev"])], namespace=shop))
    control_plane.kubectl("create", "-f", str(EXAMPLES / "argo-cd.yaml"))
    answer = spread(*arguments(pod_of(control_plane, shop, "kubectl-spread")))
    assert (answer.status, answer.stderr) == (0, "")
    assert "deploy/web" in answer.stdout


@pytest.mark.parametrize(("manifest", "status"), [("healthy", 0), ("refused", 1)])
def test_the_kustomize_hook_fails_for_refused_manifests(tmp_path: Path, manifest: str, status: int) -> None:
    healthy = ROOT / "tests" / "e2e" / "healthy" / "coredns.yaml"
    for directory, resource in (("base", "one.yaml"), ("overlays/production", "../../base")):
        (tmp_path / directory).mkdir(parents=True)
        (tmp_path / directory / "kustomization.yaml").write_text(f"resources: [{resource}]\n", encoding="utf-8")
    shutil.copy(healthy if manifest == "healthy" else REFUSED, tmp_path / "base" / "one.yaml")
    shutil.copy(EXAMPLES / "pre-commit-kustomize.yaml", tmp_path / ".pre-commit-config.yaml")
    checkout.commit(tmp_path)
    plugins = install(tmp_path.parent / f"plugins-{manifest}")
    (plugins / "kubectl").symlink_to(binaries.kubectl())
    path = os.pathsep.join([str(plugins), os.environ["PATH"]])
    home = {"PATH": path, "PRE_COMMIT_HOME": str(tmp_path / "home")}
    completed = subprocess.run(
        [BIN / "pre-commit", "run", "--all-files"],
        cwd=tmp_path,
        env={**checkout.environment(), **home},
        check=False,
        capture_output=True,
        text=True,
    )
    assert completed.returncode == status, completed.stdout
    assert ("SPR202" in completed.stdout) == bool(status)
