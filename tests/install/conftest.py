"""Fixtures with the release, installed and ready to run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from release.environments import ROOT
from release.platforms import here
from tests.builders import constraint
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.fixtures import require_built
from tests.e2e.manifests import deployment
from tests.e2e.workloads import roll_out
from tests.install.krew import Krew


@pytest.fixture(scope="session")
def dist() -> Path:
    """Return the directory that ``make dist`` wrote."""
    directory = ROOT / "dist"
    assert (directory / "spread.yaml").exists(), "run `make dist` first"
    return directory


@pytest.fixture(scope="session")
def archive(dist: Path) -> Path:
    """Return the archive of this platform."""
    return dist / here().archive


@pytest.fixture(scope="session")
def krew(dist: Path, archive: Path, tmp_path_factory: pytest.TempPathFactory) -> Krew:
    """Return krew with the plugin installed from its manifest and archive."""
    krew = Krew(tmp_path_factory.mktemp("krew"))
    krew("install", f"--manifest={dist / 'spread.yaml'}", f"--archive={archive}")
    return krew


@pytest.fixture(scope="session")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """Return a control plane with a Deployment, for users with client certificates and users with tokens."""
    require_built()
    tokens = {"token-user": ["token-users"]}
    with ControlPlane.start(tmp_path_factory.mktemp("web"), kubelet=True, tokens=tokens) as cluster:
        cluster.add_nodes()
        cluster.kubectl("create", "clusterrolebinding", "all", "--clusterrole=cluster-admin", "--group=token-users")
        roll_out(cluster, deployment(constraints=[constraint(match=["pod-template-hash"])], replicas=3))
        yield cluster
