"""Pods of an object of a kind that the cluster has from a CustomResourceDefinition are those of that object."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.builders import Json, constraint, selector
from tests.controlplane.cluster import ControlPlane
from tests.e2e.manifests import deployment
from tests.e2e.spread import Spread
from tests.e2e.workloads import owner_reference, scheduled

pytestmark = pytest.mark.e2e

GROUP = "rollouts.example.com"
OTHER = constraint(hard=False, selects=selector({"app": "other"}))
DEFINITION: Json = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": f"rollouts.{GROUP}"},
    "spec": {
        "group": GROUP,
        "scope": "Namespaced",
        "names": {"kind": "Rollout", "plural": "rollouts", "singular": "rollout", "listKind": "RolloutList"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                },
            }
        ],
    },
}


@pytest.fixture(scope="module")
def served(control_plane: ControlPlane) -> str:
    """Define the kind, and return the path of its objects."""
    control_plane.kubectl("apply", "-f", "-", input=json.dumps(DEFINITION))
    control_plane.kubectl("wait", "--for=condition=Established", f"crd/rollouts.{GROUP}", "--timeout=60s")
    return f"/apis/{GROUP}/v1"


def rollout(control_plane: ControlPlane, served: str, namespace: str) -> Any:
    """Create a Rollout, and a ReplicaSet that it owns, as its controller would; return the stored Rollout."""
    web = deployment(constraints=[OTHER], replicas=2, namespace=namespace)
    spec = {key: web["spec"][key] for key in ("replicas", "selector", "template")}
    metadata = {"name": "web", "namespace": namespace}
    manifest = {"apiVersion": f"{GROUP}/v1", "kind": "Rollout", "metadata": metadata, "spec": spec}
    stored = control_plane.api.request("POST", f"{served}/namespaces/{namespace}/rollouts", manifest)
    owned = {**metadata, "name": "web-1", "ownerReferences": [owner_reference(stored)]}
    control_plane.api.create({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": owned, "spec": spec})

    def all_scheduled() -> bool:
        pods = control_plane.api.get(f"/api/v1/namespaces/{namespace}/pods")["items"]
        return len(pods) == 2 and all(scheduled(pod).get("status") == "True" for pod in pods)

    control_plane.wait_for(all_scheduled, what="the pods of the Rollout are scheduled")
    return stored


def test_pods_are_named_by_their_custom_owner(
    control_plane: ControlPlane, served: str, namespace: str, spread: Spread
) -> None:
    rollout(control_plane, served, namespace)
    for arguments in ((), ("rollout/web",), (f"rollouts.{GROUP}/web",), ("rs/web-1",)):
        findings = spread.report("-n", namespace, *arguments, "--select", "SPR206")["findings"]
        assert [(finding["object"], finding["path"]) for finding in findings] == [
            ({"kind": "Rollout", "name": "web"}, "spec.topologySpreadConstraints[0]")
        ], arguments


def test_a_capture_of_the_objects_is_checked(
    control_plane: ControlPlane, served: str, namespace: str, spread: Spread
) -> None:
    """The template of the ReplicaSet, and the pods, have the same finding, which is reported once."""
    rollout(control_plane, served, namespace)
    for kinds, path in (
        (f"rollouts.{GROUP}", "spec.template.spec.topologySpreadConstraints[0]"),
        (f"rollouts.{GROUP},replicasets,pods", "spec.topologySpreadConstraints[0]"),
    ):
        capture = control_plane.kubectl("get", kinds, "-n", namespace, "-o", "json").stdout
        answer = spread(
            "check", "-f", "-", "--server-version", "1.37", "--select", "SPR206", "-o", "json", input=capture
        )
        findings = json.loads(answer.stdout)["findings"]
        assert [(finding["object"], finding["path"]) for finding in findings] == [
            ({"kind": "Rollout", "name": "web"}, path)
        ], kinds
