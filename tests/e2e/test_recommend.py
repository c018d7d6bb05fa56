"""After a recommended patch and an event on a real cluster, what was promised is there."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
import yaml

from tests.controlplane.cluster import ControlPlane
from tests.e2e.manifests import deployment
from tests.e2e.recommendations import play
from tests.e2e.spread import Plugin

pytestmark = [pytest.mark.e2e, pytest.mark.long]

FEW = range(10)
MANY = range(10, 110)


@pytest.mark.parametrize("seeds", [FEW, pytest.param(MANY, marks=pytest.mark.nightly)], ids=["few", "many"])
def test_what_was_promised_is_there(own_control_plane: ControlPlane, plugin: Plugin, seeds: Sequence[int]) -> None:
    """Ties are random, so that one case in fifty may be one that no run had."""
    played = play(own_control_plane, plugin.program(own_control_plane), seeds)
    assert len(played) >= 0.98 * len(seeds)
    differences = [(each.case.seed, text) for each in played for text in each.differences]
    assert len(differences) <= len(seeds) // 50, differences
    assert sum(each.changed for each in played) >= len(seeds) // 3


def test_a_manifest_gets_the_namespace_of_the_context(
    own_control_plane: ControlPlane, plugin: Plugin, tmp_path: Path
) -> None:
    """As with kubectl apply: one without a namespace would go there."""
    nodes = own_control_plane.add_nodes(["a", "b", "c"])
    config = yaml.safe_load(own_control_plane.kubeconfig.read_text(encoding="utf-8"))
    manifest = tmp_path / "web.yaml"
    manifest.write_text(yaml.safe_dump(deployment(namespace="")), encoding="utf-8")
    with own_control_plane.namespace("written") as namespace:
        for context in config["contexts"]:
            context["context"]["namespace"] = namespace
        kubeconfig = tmp_path / "config"
        kubeconfig.write_text(yaml.safe_dump(config), encoding="utf-8")
        spread = plugin.on(own_control_plane, kubeconfig)
        answer = spread("recommend", "-f", str(manifest), "--runs", "1", "-o", "json")
        assert answer.report["namespace"] == namespace
        assert spread("recommend", "-f", str(manifest), "--runs", "1", "-o", "yaml").stdout.startswith("apiVersion")
    for name in nodes:
        own_control_plane.api.request("DELETE", f"/api/v1/nodes/{name}")
