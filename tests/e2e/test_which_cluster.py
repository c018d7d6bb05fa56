"""Reports name the cluster and the time of the reading."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from tests.builders import constraint
from tests.controlplane import binaries
from tests.controlplane.cluster import ControlPlane
from tests.e2e.manifests import deployment
from tests.e2e.spread import Plugin, Spread
from tests.e2e.users import allow_listing
from tests.e2e.workloads import roll_out

pytestmark = pytest.mark.e2e

KUBE_SYSTEM = "/api/v1/namespaces/kube-system"
VERSION = binaries.KUBERNETES_VERSION.removeprefix("v")


def now() -> datetime:
    """Return the time to the second, as a Date header has it; the API server runs on this machine."""
    return datetime.now(UTC).replace(microsecond=0)


def test_the_kubeconfig_and_the_api_server_identify_the_cluster(
    control_plane: ControlPlane, namespace: str, spread: Spread
) -> None:
    began = now()
    cluster = spread.report("-n", namespace)["cluster"]
    assert (cluster["context"], cluster["name"], cluster["nameSource"]) == ("tests", "tests", "kubeconfig")
    assert cluster["uid"] == control_plane.api.get(KUBE_SYSTEM)["metadata"]["uid"]
    assert cluster["serverVersion"] == VERSION
    assert (cluster["namespace"], cluster["nodeCount"], cluster["zoneCount"]) == (namespace, 6, 3)
    assert began <= datetime.fromisoformat(cluster["readAt"]) <= now() + timedelta(seconds=1)


def test_explain_and_the_table_name_the_cluster_too(
    control_plane: ControlPlane, namespace: str, spread: Spread
) -> None:
    roll_out(control_plane, deployment(constraints=[constraint()], namespace=namespace))
    explained = json.loads(spread("explain", "deploy/web", "-n", namespace, "-o", "json").stdout)["cluster"]
    assert explained["uid"] == control_plane.api.get(KUBE_SYSTEM)["metadata"]["uid"]
    assert datetime.fromisoformat(explained["readAt"]) > now() - timedelta(minutes=1)
    name, version, read, time = spread("check", "-n", namespace).stdout.splitlines()[0].split("  ")
    assert (name, version) == ("tests", f"Kubernetes {VERSION}")
    assert read == f"namespace {namespace}: 3 pods in 1 workload, 6 nodes in 3 zones"
    assert datetime.fromisoformat(time) > now() - timedelta(minutes=1)


def test_the_cluster_name_of_a_flag_is_reported(namespace: str, spread: Spread) -> None:
    cluster = spread.report("-n", namespace, "--cluster-name", "prod-eu")["cluster"]
    assert (cluster["context"], cluster["name"], cluster["nameSource"]) == ("tests", "prod-eu", "flag")


def test_a_server_of_a_flag_has_no_name(control_plane: ControlPlane, namespace: str, spread: Spread) -> None:
    """The name in the kubeconfig is that of another server; the UID identifies the cluster."""
    cluster = spread.report("-n", namespace, "--server", control_plane.api.server)["cluster"]
    assert not {"context", "name", "nameSource"} & set(cluster)
    assert cluster["uid"] == control_plane.api.get(KUBE_SYSTEM)["metadata"]["uid"]


def test_a_user_who_may_not_read_kube_system_gets_the_rest(
    control_plane: ControlPlane, namespace: str, plugin: Plugin
) -> None:
    """The exit status is 0, and ``kube-system`` is not mentioned."""
    user = f"pods-of-{namespace}"
    allow_listing(control_plane, user, "pods", namespace=namespace)
    reader = plugin.on(control_plane, control_plane.kubeconfig_for(user))
    answer = reader("check", "-n", namespace, "--select", "SPR1", "-o", "json")
    assert answer.status == 0, answer.stderr
    assert "kube-system" not in answer.stderr
    cluster = answer.report["cluster"]
    assert "uid" not in cluster
    assert (cluster["context"], cluster["serverVersion"]) == ("tests", VERSION)
    assert datetime.fromisoformat(cluster["readAt"]) > now() - timedelta(minutes=1)
