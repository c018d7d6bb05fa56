"""After random events on a real cluster, as many pods are pending as ``simulate`` said, and for its reasons."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.builders import HOSTNAME
from tests.controlplane.cluster import ControlPlane
from tests.e2e.manifests import workload
from tests.e2e.simulations import Difference, play
from tests.e2e.spread import Plugin, Spread
from tests.e2e.workloads import pods

pytestmark = [pytest.mark.e2e, pytest.mark.long]

FEW = range(10)
MANY = range(10, 110)


@pytest.mark.parametrize("seeds", [FEW, pytest.param(MANY, marks=pytest.mark.nightly)], ids=["few", "many"])
def test_what_happens_is_what_was_simulated(
    own_control_plane: ControlPlane, plugin: Plugin, seeds: Sequence[int]
) -> None:
    """The order of queues and ties are random, so that one case in a hundred may be one that no run had."""
    played = play(own_control_plane, plugin.program(own_control_plane), seeds)
    assert len(played) >= 0.98 * len(seeds)
    differences: list[Difference] = [difference for each in played for difference in each.differences]
    assert len(differences) <= len(seeds) // 100, differences
    assert sum(each.pending for each in played) >= len(seeds) // 5


def test_an_edited_replica_set_makes_pods_of_its_template(control_plane: ControlPlane, spread: Spread) -> None:
    """The pods that are there have the nodeSelector that its template no longer has; pods of others show that."""
    with control_plane.namespace("edited") as namespace:
        on_a1 = {HOSTNAME: "a1"}
        control_plane.apply(workload("ReplicaSet", "web", replicas=2, namespace=namespace, nodeSelector=on_a1))
        control_plane.apply(workload("Deployment", "other", labels={"app": "other"}, namespace=namespace))

        def nodes() -> list[str]:
            stored = [each for each in pods(control_plane, namespace) if each["metadata"]["labels"]["app"] == "web"]
            return [each["spec"].get("nodeName", "") for each in stored if "deletionTimestamp" not in each["metadata"]]

        control_plane.wait_for(lambda: nodes() == ["a1", "a1"], what="both pods are on a1")
        edit = '[{"op":"remove","path":"/spec/template/spec/nodeSelector"}]'
        control_plane.kubectl("patch", "rs/web", "-n", namespace, "--type=json", "-p", edit)
        rows = spread("simulate", "--drain", "a1", "-n", namespace, "-o", "json").report["workloads"]
        (after,) = [row["after"] for row in rows if row["workload"]["name"] == "web"]
        assert (after["running"], after["pending"]) == ({"min": 2, "max": 2}, {"min": 0, "max": 0})
        control_plane.kubectl("cordon", "a1")
        try:
            control_plane.kubectl("delete", "pod", "-n", namespace, "-l", "app=web")
            control_plane.wait_for(lambda: len(nodes()) == 2 and not {"", "a1"} & {*nodes()}, what="both run elsewhere")
        finally:
            control_plane.kubectl("uncordon", "a1")
