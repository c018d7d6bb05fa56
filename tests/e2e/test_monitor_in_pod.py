"""The monitor in a pod: it uses the service account, and the token that the kubelet writes in place of an old one."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
import urllib3

from tests.builders import Json, constraint, selector
from tests.controlplane.cluster import ControlPlane
from tests.e2e.manifests import deployment
from tests.e2e.monitored import monitoring
from tests.e2e.users import allow_account
from tests.e2e.workloads import wait_for_rollout

pytestmark = pytest.mark.e2e

ACCOUNT = "/api/v1/namespaces/default/serviceaccounts/monitor"
SECRETS = "/api/v1/namespaces/default/secrets"
MOUNT = """
mount -t tmpfs none /run &&
mkdir -p /run/secrets/kubernetes.io &&
ln -s "$ACCOUNT" /run/secrets/kubernetes.io/serviceaccount &&
exec "$@"
"""
IN_A_POD = ("unshare", "--map-root-user", "--mount", "sh", "-c", MOUNT, "sh")
SHOWN = 'kube_spread_workload_pods{{namespace="default",workload="web",workload_type="deployment"}} {}\n'


@pytest.fixture(scope="module")
def cluster(own_control_plane: ControlPlane) -> ControlPlane:
    own_control_plane.add_nodes(("a", "b", "c"), per_zone=1)
    scale(own_control_plane, 3)
    return own_control_plane


def scale(cluster: ControlPlane, replicas: int) -> None:
    spread = constraint(selects=selector({"app": "web"}), match=["pod-template-hash"])
    cluster.apply(deployment("web", [spread], replicas=replicas, labels={"app": "web"}, namespace="default"))
    wait_for_rollout(cluster, "deployment/web", "default")


def token(cluster: ControlPlane, name: str) -> str:
    """Return a token that is valid until a secret is deleted, as that of a pod until the pod is deleted."""
    secret = cluster.api.create(
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": "default"}}
    )
    bound = {"apiVersion": "v1", "kind": "Secret", "name": name, "uid": secret["metadata"]["uid"]}
    request: Json = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest"}
    answer = cluster.api.request("POST", f"{ACCOUNT}/token", {**request, "spec": {"boundObjectRef": bound}})
    text: str = answer["status"]["token"]
    return text


def test_a_new_token_replaces_one_that_is_no_longer_valid(cluster: ControlPlane, tmp_path: Path) -> None:
    api, account = cluster.api, tmp_path / "account"
    account.mkdir()
    api.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "monitor", "namespace": "default"}})
    allow_account(cluster, "default", "monitor", [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["list", "watch"]}])
    first = token(cluster, "first")
    (account / "token").write_text(first, encoding="utf-8")
    (account / "namespace").write_text("default", encoding="utf-8")
    shutil.copy(cluster._security.authority.certificate, account / "ca.crt")
    host, _, port = api.server.removeprefix("https://").rpartition(":")
    environment = {
        "PATH": os.environ["PATH"],
        "ACCOUNT": str(account),
        "KUBERNETES_SERVICE_HOST": host,
        "KUBERNETES_SERVICE_PORT": port,
    }
    with monitoring(environment, "--interval=200ms", wrapper=IN_A_POD) as monitor:
        assert SHOWN.format(3) in monitor.metrics()
        (account / "token").write_text(token(cluster, "second"), encoding="utf-8")
        api.request("DELETE", f"{SECRETS}/first")
        # The API server believes for some seconds what it knows about a token, but not after a restart.
        cluster.restart_apiserver()
        scale(cluster, 5)
        monitor.until(lambda: SHOWN.format(5) in monitor.metrics())
    assert status_with(first, cluster) == 401


def status_with(bearer: str, cluster: ControlPlane) -> int:
    authority = str(cluster._security.authority.certificate)
    with urllib3.PoolManager(ca_certs=authority) as pool:
        headers = {"Authorization": f"Bearer {bearer}"}
        return pool.request("GET", f"{cluster.api.server}/api/v1/namespaces/default/pods", headers=headers).status
