"""Pods that a controller makes from a template that was edited are where ``simulate`` said."""

from __future__ import annotations

import pytest

from tests.builders import HOSTNAME
from tests.controlplane.cluster import ControlPlane
from tests.e2e.manifests import workload
from tests.e2e.spread import Spread
from tests.e2e.workloads import pods

pytestmark = pytest.mark.e2e


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
