"""The control plane of the end-to-end tests behaves like a real one."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from kubectl_spread.kube.features import Gate
from tests.builders import ZONE, constraint
from tests.controlplane.cluster import ControlPlane
from tests.e2e.manifests import deployment, pod
from tests.e2e.workloads import scheduled

pytest_plugins = ["tests.controlplane.fixtures"]
pytestmark = pytest.mark.e2e

FORBIDDEN = 403
REFUSED = "Node failed spreadConstraint: matchNum + selfMatchNum - minMatchNum > maxSkew"


def test_a_deployment_spreads_over_the_zones(control_plane: ControlPlane, namespace: str) -> None:
    """Controllers make the pods, the scheduler spreads them, and they come to run."""
    control_plane.apply(deployment(constraints=[constraint()], replicas=6, namespace=namespace))
    control_plane.kubectl("rollout", "status", "deployment/web", "-n", namespace, "--timeout=60s")
    pods = control_plane.api.get(f"/api/v1/namespaces/{namespace}/pods")["items"]
    zones = Counter(pod["spec"]["nodeName"][0] for pod in pods)
    assert zones == {"a": 2, "b": 2, "c": 2}


def test_the_scheduler_logs_why_it_refuses(control_plane: ControlPlane, namespace: str) -> None:
    """A pod that may run in zone a alone is refused when zone a has more pods than the others."""
    only_a = {"nodeSelector": {ZONE: "a"}}
    # Zones that the node selector rules out count all the same.
    over_all_zones = constraint(nodeAffinityPolicy="Ignore")
    control_plane.apply(pod("first", namespace=namespace, nodeName="a1"))
    control_plane.apply(pod("second", [over_all_zones], namespace=namespace, **only_a))

    def refused() -> bool:
        second = control_plane.api.get(f"/api/v1/namespaces/{namespace}/pods/second")
        return scheduled(second).get("reason") == "Unschedulable"

    control_plane.wait_for(refused, what="the second pod is refused")
    assert REFUSED in control_plane.scheduler_log.read_text(encoding="utf-8")


def test_deleted_pods_go_away(control_plane: ControlPlane, namespace: str) -> None:
    """A pod with a node ends although no kubelet exists, unless that is switched off."""
    control_plane.apply(pod("web", namespace=namespace, nodeName="a1"))
    with control_plane.kubelet.paused():
        control_plane.kubectl("delete", "pod", "web", "-n", namespace, "--wait=false")
        assert control_plane.kubectl("get", "pod", "web", "-n", namespace).stdout
    control_plane.kubectl("wait", "--for=delete", "pod/web", "-n", namespace, "--timeout=30s")


def test_no_workload_stays_on_an_emptied_control_plane(own_control_plane: ControlPlane) -> None:
    """Those in kube-system, too, would take the room on the nodes of the next module."""
    own_control_plane.add_nodes()
    for namespace in ("default", "kube-system"):
        own_control_plane.apply(deployment(replicas=2, namespace=namespace))
        own_control_plane.kubectl("rollout", "status", "deployment/web", "-n", namespace, "--timeout=60s")
    own_control_plane.empty()
    for resource in ("/apis/apps/v1/deployments", "/apis/apps/v1/replicasets", "/api/v1/pods", "/api/v1/nodes"):
        assert own_control_plane.api.get(resource)["items"] == []


def test_users_and_credentials_that_are_refused(control_plane: ControlPlane) -> None:
    """Users have no rights by default, and bad credentials have an error of their own."""
    listing = ("get", "pods", "--all-namespaces")
    alice = control_plane.kubeconfig_for("alice", ["developers"])
    bob = control_plane.token_kubeconfig("token-user")
    expired = control_plane.kubeconfig_for("carol", lifetime=timedelta(hours=-1))
    invalid = control_plane.invalid_token_kubeconfig()
    errors = [
        control_plane.kubectl(*listing, kubeconfig=path, check=False).stderr for path in (alice, bob, expired, invalid)
    ]
    assert 'User "alice" cannot list resource "pods"' in errors[0]
    assert 'User "token-user" cannot list resource "pods"' in errors[1]
    assert all("must be logged in" in error or "Unauthorized" in error for error in errors[2:])


def test_requests_are_audited(control_plane: ControlPlane) -> None:
    """Each request of a user is one line of the audit log."""
    dave = control_plane.kubeconfig_for("dave")
    control_plane.kubectl("get", "--raw", "/api/v1/nodes", kubeconfig=dave, check=False)
    of_dave = [event for event in control_plane.audited() if event["user"]["username"] == "dave"]
    assert of_dave[-1]["verb"] == "list"
    assert of_dave[-1]["responseStatus"]["code"] == FORBIDDEN


@pytest.fixture(scope="module")
def storage(built_control_plane: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """Return an apiserver and etcd alone, free to be restarted."""
    directory = tmp_path_factory.mktemp("storage")
    with ControlPlane.start(directory, scheduler=False, controllers=False) as cluster:
        yield cluster


def stored_selector(cluster: ControlPlane, name: str) -> dict[str, Any]:
    """Create a pod with ``matchLabelKeys`` and return its selector as stored."""
    by_app = constraint(selects={}, match=["app"])
    created = cluster.api.create(pod(name, [by_app]))
    selector: dict[str, Any] = created["spec"]["topologySpreadConstraints"][0]["labelSelector"]
    return selector


def test_an_apiserver_restarts_with_other_gates(storage: ControlPlane) -> None:
    """With the gate off the selector is stored as written, and with it on again, merged."""
    storage.restart_apiserver(feature_gates={Gate.SELECTOR_MERGE: False})
    assert stored_selector(storage, "unmerged") == {}
    storage.restart_apiserver()
    merged = {"matchExpressions": [{"key": "app", "operator": "In", "values": ["web"]}]}
    assert stored_selector(storage, "merged") == merged
    names = [pod["metadata"]["name"] for pod in storage.api.get("/api/v1/pods")["items"]]
    assert names == ["merged", "unmerged"]


def test_a_second_apiserver_on_the_same_etcd(storage: ControlPlane) -> None:
    """Two apiservers with gates of their own read the same objects."""
    second = storage.add_apiserver(feature_gates={Gate.SELECTOR_MERGE: False})
    assert stored_selector(storage, "from-first")
    listing = ("get", "pods", "-o", "name")
    assert "pod/from-first" in storage.kubectl(*listing, kubeconfig=second.kubeconfig).stdout
    second.stop()


def test_nothing_stays_after_a_failed_start(built_control_plane: None, tmp_path: Path) -> None:
    """If the apiserver ends at once, the error contains its log, and etcd is stopped."""
    with pytest.raises(RuntimeError, match="NoSuchGate"):
        ControlPlane.start(tmp_path, feature_gates={"NoSuchGate": True})
    commands = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline")]
    assert not [command for command in commands if os.fsencode(tmp_path) in command]
