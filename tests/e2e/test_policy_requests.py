"""Requests of people and kubelets pass where policies refuse what the rules find, unless a rule is about them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from tests.builders import Json, constraint
from tests.controlplane.client import STRATEGIC_PATCH, ApiClient, ApiError
from tests.controlplane.cluster import ControlPlane, KubectlError
from tests.e2e.guarded import ABSENT, EARLY, KEPT, refusal, try_label
from tests.e2e.manifests import SCHEDULING_GATE, deployment, pod, workload
from tests.e2e.spread import Spread
from tests.e2e.verdicts import look
from tests.e2e.workloads import label, owner_reference, pod_names, roll_out, wait_for_rollout

pytestmark = pytest.mark.e2e

KEYS = [constraint(match=["rev"])]
LABELS = {"app": "web", "rev": "r1"}
STALE_LABEL = "SPR101 stale-label: "


@pytest.fixture(scope="module")
def shop(guarded_cluster: ControlPlane) -> Iterator[str]:
    """Return a namespace with one merged pod that runs."""
    with guarded_cluster.namespace("shop") as namespace:
        guarded_cluster.api.create(pod("web", KEYS, labels=LABELS, namespace=namespace))
        path = f"/api/v1/namespaces/{namespace}/pods/web"
        guarded_cluster.wait_for(lambda: _phase(guarded_cluster, path) == "Running", 60, "the pod runs")
        yield namespace


def _phase(cluster: ControlPlane, path: str) -> str:
    phase: str = cluster.api.get(path)["status"]["phase"]
    return phase


@pytest.fixture(scope="module")
def kubelet(guarded_cluster: ControlPlane) -> Iterator[ApiClient]:
    """Return a client of the kubelet of node a1, with the rights of all kubelets."""
    group = "rbac.authorization.k8s.io"
    guarded_cluster.api.create(
        {
            "apiVersion": f"{group}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": "kubelets"},
            "subjects": [{"apiGroup": group, "kind": "Group", "name": "system:nodes"}],
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "system:node"},
        }
    )
    with guarded_cluster.client_of("system:node:a1", ["system:nodes"]) as client:
        yield client


def test_the_merged_label_of_a_pod_is_kept(guarded_cluster: ControlPlane, shop: str) -> None:
    """Changed or removed by kubectl or by the status subresource, with the code and the values in the message."""
    path = f"/api/v1/namespaces/{shop}/pods/web"

    def patch(value: str | None, subresource: str = "") -> str:
        body = {"metadata": {"labels": {"rev": value}}}
        return refusal(lambda: guarded_cluster.api.patch(f"{path}{subresource}", body))

    assert patch("r2").startswith(STALE_LABEL)
    assert patch("r2", "/status").startswith(STALE_LABEL)
    assert patch(None).startswith("SPR102 removed-label: ")
    assert guarded_cluster.api.get(path)["metadata"]["labels"]["rev"] == "r1"


def test_other_labels_and_annotations_change(guarded_cluster: ControlPlane, shop: str) -> None:
    """Labels that no matchLabelKeys names are added, changed and removed, also next to the merged label."""
    for change in ("tier=one", "tier=two", "tier-"):
        label(guarded_cluster, shop, "web", change, "rev=r1")
    guarded_cluster.kubectl("annotate", "pod/web", "-n", shop, "example.com/note=yes")


def test_server_side_apply(guarded_cluster: ControlPlane, shop: str) -> None:
    """A Deployment is applied, applied again, changed and scaled by server-side apply, and so is a pod's label."""
    web = workload("Deployment", "applied", KEYS, replicas=2, labels={"app": "applied", "rev": "r1"}, namespace=shop)
    web["spec"]["template"]["spec"]["topologySpreadConstraints"] = [
        constraint(match=["pod-template-hash"], selects={"matchLabels": {"app": "applied"}})
    ]
    arguments = ("apply", "--server-side", "-f", "-")
    guarded_cluster.kubectl(*arguments, input=json.dumps(web))
    wait_for_rollout(guarded_cluster, "deploy/applied", shop)
    again = guarded_cluster.kubectl(*arguments, input=json.dumps(web))
    web["spec"]["replicas"] = 3
    guarded_cluster.kubectl(*arguments, input=json.dumps(web))
    wait_for_rollout(guarded_cluster, "deploy/applied", shop)
    assert "serverside-applied" in again.stdout
    part: Json = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "web", "namespace": shop, "labels": {"tier": "x"}},
    }
    guarded_cluster.kubectl(*arguments, "--field-manager=tests", input=json.dumps(part))
    part["metadata"]["labels"] = {"rev": "r2"}
    with pytest.raises(KubectlError, match=STALE_LABEL):
        guarded_cluster.kubectl(*arguments, "--field-manager=tests", "--force-conflicts", input=json.dumps(part))


def test_hundreds_of_labels(guarded_cluster: ControlPlane, shop: str) -> None:
    """A Deployment whose pods have 500 labels rolls out, and its pods are labelled."""
    labels = {"app": "labelled", **{f"label-{number}": f"value-{number}" for number in range(500)}}
    keys = [constraint(match=["pod-template-hash"], selects={"matchLabels": {"app": "labelled"}})]
    roll_out(guarded_cluster, workload("Deployment", "labelled", keys, replicas=1, labels=labels, namespace=shop))
    (labelled,) = guarded_cluster.api.get(f"/api/v1/namespaces/{shop}/pods", labelSelector="app=labelled")["items"]
    label(guarded_cluster, shop, labelled["metadata"]["name"], "label-7=other", "label-8-")


def test_subresources_of_a_pod(guarded_cluster: ControlPlane, shop: str) -> None:
    """An ephemeral container and other resources are accepted, and these subresources never change labels.

    Source: kubernetes v1.37.1 pkg/registry/core/pod/strategy.go, dropNonEphemeralContainerUpdates and
    dropNonResizeUpdates.
    """
    # The API server takes no resize of a container that runs on a node without support for it.
    resized = pod("resized", KEYS, labels=LABELS, namespace=shop, **SCHEDULING_GATE)
    resized["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "10m"}}
    guarded_cluster.api.create(resized)
    path = f"/api/v1/namespaces/{shop}/pods/resized"
    other: Json = {"metadata": {"labels": {"rev": "r2"}}}
    debugger = {"name": "debug", "image": "registry.example/debug:1"}
    bodies: dict[str, Json] = {
        "ephemeralcontainers": {"spec": {"ephemeralContainers": [debugger]}},
        "resize": {"spec": {"containers": [{"name": "app", "resources": {"requests": {"cpu": "20m"}}}]}},
    }
    for subresource, body in bodies.items():
        guarded_cluster.api.patch(f"{path}/{subresource}", body | other, STRATEGIC_PATCH)
    stored = guarded_cluster.api.get(path)
    assert stored["metadata"]["labels"]["rev"] == "r1"
    assert stored["spec"]["ephemeralContainers"][0]["name"] == "debug"
    assert stored["spec"]["containers"][0]["resources"]["requests"]["cpu"] == "20m"


def test_a_kubelet_reports_and_deletes_a_stale_pod(guarded_cluster: ControlPlane, kubelet: ApiClient) -> None:
    """The label of the pod changed before the policies."""
    path = f"/api/v1/namespaces/{EARLY}/pods/stale"
    condition = {"type": "Ready", "status": "False", "reason": "Reported"}
    reported = kubelet.patch(f"{path}/status", {"status": {"conditions": [condition]}}, STRATEGIC_PATCH)
    assert condition["reason"] in [each.get("reason") for each in reported["status"]["conditions"]]
    kubelet.request("DELETE", path, {"gracePeriodSeconds": 0})
    assert "stale" not in pod_names(guarded_cluster, EARLY)


def test_a_kubelet_creates_the_mirror_of_a_static_pod(guarded_cluster: ControlPlane, kubelet: ApiClient) -> None:
    """Its file on the node has a constraint that a policy refuses in pods without a controller."""
    metadata = {"annotations": {"kubernetes.io/config.mirror": "1"}}
    manifest = pod("static-a1", [ABSENT], namespace=EARLY, metadata=metadata, nodeName="a1")
    assert refusal(partial(guarded_cluster.api.create, manifest, dryRun="All")).startswith("SPR107 absent-key: ")
    owner = {"ownerReferences": [_node_a1(guarded_cluster)]}
    kubelet.create(manifest | {"metadata": manifest["metadata"] | owner})


def _node_a1(cluster: ControlPlane) -> Json:
    """Return the reference of pods whose controller is a node."""
    return owner_reference(cluster.api.get("/api/v1/nodes/a1"))


@pytest.mark.parametrize(
    "manifest", [pod("forged", [ABSENT]), deployment("forged", [ABSENT])], ids=["Pod", "Deployment"]
)
def test_anyone_may_name_a_controller_that_did_not_create_the_object(
    guarded_cluster: ControlPlane, shop: str, manifest: Json
) -> None:
    """As docs/policy.md says under its limits: kube-apiserver does not compare an owner reference with anything."""
    path = f"/api/v1/namespaces/{shop}/configmaps/kube-root-ca.crt"
    bystander = guarded_cluster.wait_for(lambda: _existing(guarded_cluster.api, path), what="the namespace is prepared")
    metadata = manifest["metadata"] | {"namespace": shop}
    create = partial(guarded_cluster.api.create, dryRun="All")
    assert refusal(lambda: create(manifest | {"metadata": metadata})).startswith("SPR107 absent-key: ")
    metadata["ownerReferences"] = [owner_reference(bystander)]
    assert refusal(lambda: create(manifest | {"metadata": metadata})) == ""


def _existing(api: ApiClient, path: str) -> Any:
    """Return an object, or None if it does not exist."""
    try:
        return api.get(path)
    except ApiError:
        return None


def test_a_stale_pod_gets_its_label_back(guarded_cluster: ControlPlane) -> None:
    """The value that was merged is accepted, and then no other."""
    name = "stale-relabelled"
    label(guarded_cluster, EARLY, name, "rev=r1")
    assert refusal(lambda: try_label(guarded_cluster, name, {"rev": "r2"})).startswith(STALE_LABEL)


def test_a_finalizer_of_a_stale_pod_is_removed(guarded_cluster: ControlPlane) -> None:
    """The pod is deleted then."""
    path = f"/api/v1/namespaces/{EARLY}/pods/stale-deleted"
    guarded_cluster.kubectl("delete", "pod/stale-deleted", "-n", EARLY, "--wait=false")
    assert guarded_cluster.api.get(path)["metadata"]["finalizers"] == [KEPT]
    guarded_cluster.api.patch(path, {"metadata": {"finalizers": []}})

    guarded_cluster.wait_for(lambda: "stale-deleted" not in pod_names(guarded_cluster, EARLY), 60, "the pod is deleted")


def test_an_excluded_namespace(guarded_cluster: ControlPlane) -> None:
    """kube-system is excluded by default."""
    guarded_cluster.api.create(pod("bare", [ABSENT], namespace="kube-system"), dryRun="All")


def test_check_names_the_pods_whose_updates_would_be_refused(
    control_plane: ControlPlane, namespace: str, guarded_cluster: ControlPlane, shop: str, spread: Spread
) -> None:
    """Without policies, check finds the pods by the codes with which a policy refuses the same updates."""
    edits: dict[str, Json] = {"changed": {"rev": "r2"}, "removed": {"rev": None}}
    refusals = {}
    for name, labels in edits.items():
        body = {"metadata": {"labels": labels}}
        manifest = pod(name, KEYS, labels=LABELS, namespace=namespace, **SCHEDULING_GATE)
        control_plane.api.create(manifest)
        control_plane.api.patch(f"/api/v1/namespaces/{namespace}/pods/{name}", body)
        # With a controller, a pod is not refused for the label that it lacks.
        home = {"namespace": shop, "ownerReferences": [_node_a1(guarded_cluster)]}
        guarded_cluster.api.create(manifest | {"metadata": manifest["metadata"] | home})
        path = f"/api/v1/namespaces/{shop}/pods/{name}"
        refusals[name] = refusal(partial(guarded_cluster.api.patch, path, body)).partition(" ")[0]
    report = look(spread, namespace, "--select=SPR1")
    findings = {name: finding["code"] for finding in report["findings"] for name in finding["pods"]}
    assert refusals == findings == {"changed": "SPR101", "removed": "SPR102"}
