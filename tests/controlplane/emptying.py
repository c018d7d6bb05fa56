"""Make a used control plane like a new one: without nodes, workloads, policies, kinds and roles of tests."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from tests.controlplane import nodes
from tests.controlplane.client import NOT_FOUND, ApiClient, ApiError
from tests.controlplane.components import wait_for

_STANDARD: Final = frozenset({"default", "kube-node-lease", "kube-public", "kube-system"})
_FILLED: Final = ("default", "kube-system")
"""The standard namespaces in which tests create objects; no namespace of ``_STANDARD`` can be deleted."""
_NAMESPACED: Final = (
    "apis/apps/v1 deployments statefulsets daemonsets replicasets controllerrevisions",
    "apis/batch/v1 cronjobs jobs",
    "apis/policy/v1 poddisruptionbudgets",
    "apis/rbac.authorization.k8s.io/v1 rolebindings roles",
    "api/v1 replicationcontrollers pods persistentvolumeclaims podtemplates secrets",
)
"""What tests put into ``_FILLED``."""
_CLUSTER: Final = (
    # The first ones might refuse the deletion of others.
    "apis/admissionregistration.k8s.io/v1 validatingadmissionpolicybindings validatingadmissionpolicies",
    "apis/admissionregistration.k8s.io/v1 mutatingadmissionpolicybindings mutatingadmissionpolicies",
    "apis/apiextensions.k8s.io/v1 customresourcedefinitions",
    "apis/rbac.authorization.k8s.io/v1 clusterrolebindings clusterroles",
    "apis/storage.k8s.io/v1 storageclasses csinodes",
    "api/v1 persistentvolumes nodes",
)
_OF_TESTS: Final = "!kubernetes.io/bootstrapping"
"""The API server's own roles have this label."""
_IN_BACKGROUND: Final = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"}
_AT_ONCE: Final = {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0}
_NO_NODES: Final = "no nodes available to schedule pods"
"""The words of kubernetes v1.37.1 pkg/scheduler/schedule_one.go, ErrNoNodesAvailable."""
_PATIENCE: Final = 120.0
"""Seconds; controllers wait up to 30 before they watch a restarted API server again."""


def empty(client: ApiClient) -> None:
    """Delete what tests have made, and wait until it is gone.

    Raises:
        TimeoutError: Something was left.
    """
    namespaced = (path for name in _FILLED for path in _paths(_NAMESPACED, f"namespaces/{name}/"))
    paths = [*_paths(_CLUSTER, ""), *namespaced]

    left: list[str] = []

    def emptied() -> bool:
        # Controllers replace a pod until they know that its owner was deleted.
        left[:] = [path for path in paths if _clear(client, path)] + _delete_namespaces(client) + _stale_groups(client)
        _release_pods(client)
        nodes.finish_deletions(client)
        return not left

    try:
        wait_for(emptied, _PATIENCE, "an empty control plane")
    except TimeoutError as error:
        raise TimeoutError(f"not deleted: {', '.join(left)}") from error


def knows_no_node(client: ApiClient) -> bool:
    """Tell whether the scheduler refuses a pod because there are no nodes at all; wait until it has looked at it."""
    manifest = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"generateName": "nowhere-", "namespace": "default"},
        "spec": {"containers": [{"name": "app", "image": "registry.example/app:1"}]},
    }
    path = f"/api/v1/namespaces/default/pods/{client.create(manifest)['metadata']['name']}"

    def answer() -> str:
        pod = client.get(path)
        messages = (condition.get("message", "") for condition in pod["status"].get("conditions", ()))
        return pod["spec"].get("nodeName", "") or next(messages, "")

    try:
        return wait_for(answer, _PATIENCE, "the scheduler has looked at a pod") == _NO_NODES
    finally:
        client.request("DELETE", path, _AT_ONCE)


def _paths(groups: tuple[str, ...], scope: str) -> list[str]:
    split = [group.split() for group in groups]
    return [f"/{root}/{scope}{resource}" for root, *resources in split for resource in resources]


def _clear(client: ApiClient, path: str) -> bool:
    """Delete what a path lists; tell whether there was anything."""
    try:
        listed = client.get(path, labelSelector=_OF_TESTS)["items"]
    except ApiError as error:
        if error.status == NOT_FOUND:
            return False
        raise
    if listed:
        client.request("DELETE", f"{path}?labelSelector={_OF_TESTS}", _IN_BACKGROUND)
    return bool(listed)


def _stale_groups(client: ApiClient) -> list[str]:
    """Return the groups of deleted kinds that the API server still names."""
    versions = [group["preferredVersion"]["groupVersion"] for group in client.get("/apis")["groups"]]
    return [version for version in versions if not _served(client, version)]


def _served(client: ApiClient, version: str) -> bool:
    try:
        client.get(f"/apis/{version}")
    except ApiError:
        return False
    return True


def _release_pods(client: ApiClient) -> None:
    """Remove the finalizers of deleted pods: the controller of Jobs waits for Jobs that are deleted too."""
    for pod in client.get("/api/v1/pods")["items"]:
        metadata = pod["metadata"]
        if "deletionTimestamp" in metadata and "finalizers" in metadata:
            path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"
            with suppress(ApiError):
                client.patch(path, {"metadata": {"finalizers": None}})


def _delete_namespaces(client: ApiClient) -> list[str]:
    listed = client.get("/api/v1/namespaces")["items"]
    names = [item["metadata"]["name"] for item in listed if item["metadata"]["name"] not in _STANDARD]
    for item in listed:
        if item["metadata"]["name"] in names and item["status"]["phase"] == "Active":
            client.request("DELETE", f"/api/v1/namespaces/{item['metadata']['name']}")
    return names
