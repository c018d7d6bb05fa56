"""The script of a simulation, run on a real control plane: what it patches survives the event that was simulated."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.builders import constraint, selector
from tests.controlplane.cluster import ControlPlane
from tests.e2e.manifests import deployment
from tests.e2e.shell import paste
from tests.e2e.spread import Json, Plugin
from tests.e2e.workloads import roll_out

pytestmark = pytest.mark.e2e

NAMES = [f"web{number}" for number in range(6)]
"""More than are patched at the same time."""


def web(name: str) -> Json:
    labels = {"app": name}
    return deployment(name, [constraint(selects=selector(labels))], labels=labels, namespace="shop", replicas=3)


def test_the_patches_of_a_script_end_what_the_simulation_showed(
    own_control_plane: ControlPlane, plugin: Plugin, tmp_path: Path
) -> None:
    cluster, spread = own_control_plane, plugin.on(own_control_plane)
    cluster.add_nodes(("a", "b", "c"), per_zone=1)
    cluster.kubectl("create", "namespace", "shop")
    for name in NAMES:
        roll_out(cluster, web(name))
    lose = ("simulate", "--lose", "zone=c", "-n", "shop", "--runs", "5")
    before = spread(*lose, "-o", "json", "-o", f"script={tmp_path / 'patches.sh'}")
    assert (before.status, before.report["summary"]["pending"]["max"]) == (1, len(NAMES))
    done = f"done: {len(NAMES)} of {len(NAMES)} workloads rolled out"
    for _ in range(2):
        pasted = paste("sh patches.sh", tmp_path, spread.environment)
        assert (pasted.returncode, pasted.stdout.splitlines()[-1:]) == (0, [done]), pasted
    after = spread(*lose, "-o", "json")
    assert (after.status, after.report["summary"]["pending"]["max"], after.report["findings"]) == (0, 0, [])
