"""Pytest fixtures with a real control plane, for ``pytest_plugins``."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.controlplane import binaries
from tests.controlplane.cluster import ControlPlane


def require_built(version: str = binaries.KUBERNETES_VERSION, names: tuple[str, ...] = binaries.CONTROL_PLANE) -> None:
    """Skip the test where the programs of a Kubernetes version are not built; on CI, fail."""
    missing = binaries.not_built(version, names)
    if missing:
        programs = ", ".join(f"{path.name} ({path.parent.name})" for path in missing)
        reason = f"not built: {programs}; `make tools` builds them, with Go"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)


@pytest.fixture(scope="session")
def built_control_plane() -> None:
    """Skip the test where the default control plane is not built; on CI, fail."""
    require_built()


@pytest.fixture(scope="session")
def control_plane(built_control_plane: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """Return the control plane of all tests: two nodes in each of the zones a, b and c.

    Pods that have a node start running by themselves, and end when they are deleted.
    """
    directory = tmp_path_factory.mktemp("control-plane")
    with ControlPlane.start(directory, kubelet=True, tokens={"token-user": ["token-users"]}) as cluster:
        cluster.add_nodes()
        yield cluster


@pytest.fixture(scope="module")
def own_control_plane(control_plane: ControlPlane) -> Iterator[ControlPlane]:
    """Return the control plane of all tests without nodes, for the tests of one module; then make it as it was."""
    control_plane.empty()
    yield control_plane
    control_plane.empty()
    control_plane.add_nodes()


@pytest.fixture
def namespace(control_plane: ControlPlane) -> Iterator[str]:
    """Return a namespace for one test."""
    with control_plane.namespace() as name:
        yield name
