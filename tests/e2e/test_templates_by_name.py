"""A workload whose pods are all refused is found by its own name and by that of each owner."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.builders import Json, constraint
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.components import wait_for
from tests.e2e.manifests import deployment
from tests.e2e.spread import Spread

pytestmark = pytest.mark.e2e

REFUSED = constraint(match=["app"])
"""Its key is in the selector too: the API takes the template, and none of its pods."""


def replica_set_of_a_rollout(namespace: str) -> Json:
    """Return a ReplicaSet that another controller owns, of a kind that this cluster does not know."""
    web = deployment(constraints=[REFUSED], replicas=1, namespace=namespace)
    reference = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "name": "web", "uid": "u", "controller": True}
    metadata = {**web["metadata"], "name": "web-1", "ownerReferences": [{**reference, "blockOwnerDeletion": False}]}
    spec = {key: web["spec"][key] for key in ("replicas", "selector", "template")}
    return {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": metadata, "spec": spec}


def finding_on(spread: Spread, namespace: str, name: str) -> Any:
    """Return the only finding on a workload, once the controller has reported the refused pods."""

    def reported() -> Any:
        (finding,) = spread.report("-n", namespace, name, status=1)["findings"]
        return finding if "FailedCreate" in finding["message"] else None

    return wait_for(reported, timeout=30)


@pytest.mark.parametrize("name", ["rollout/web", "rs/web-1"])
def test_a_replica_set_is_found_by_an_owner_of_an_unknown_kind(
    control_plane: ControlPlane, namespace: str, spread: Spread, name: str
) -> None:
    control_plane.api.create(replica_set_of_a_rollout(namespace))
    finding = finding_on(spread, namespace, name)
    assert (finding["code"], finding["object"]) == ("SPR202", {"kind": "Rollout", "name": "web"})
    assert "spec.topologySpreadConstraints[0][0]: Invalid value" in finding["message"]


def test_a_replica_set_is_found_by_its_deployment(control_plane: ControlPlane, namespace: str, spread: Spread) -> None:
    """The finding on the manifest has the text of the later event."""
    manifest = deployment(constraints=[REFUSED], replicas=1, namespace=namespace)
    answer = spread("check", "-f", "-", "--server-version", "1.37", "-o", "json", input=json.dumps(manifest))
    (before,) = json.loads(answer.stdout)["findings"]
    assert (answer.status, before["code"]) == (1, "SPR202")
    control_plane.api.create(manifest)
    finding = finding_on(spread, namespace, "deploy/web")
    assert finding["message"].startswith(before["message"])
    (owned,) = control_plane.api.get(f"/apis/apps/v1/namespaces/{namespace}/replicasets")["items"]
    by_its_own = finding_on(spread, namespace, f"rs/{owned['metadata']['name']}")
    assert (by_its_own["code"], by_its_own["object"]) == (finding["code"], finding["object"])
