"""The monitor's manifests on a real API server: it takes them, and their roles allow what the monitor requests."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.builders import Json, constraint, selector
from tests.commands import SPREAD
from tests.controlplane import binaries
from tests.controlplane.cluster import ControlPlane
from tests.deploy.objects import BASE, CHART, DEPLOY, NAME, VALUES, Objects, chart, helm, kustomized, overlay
from tests.deploy.pods import pod_of, service_account, variables
from tests.e2e import audit, go_programs
from tests.e2e.manifests import deployment
from tests.e2e.monitored import RunningMonitor, running
from tests.e2e.proxied import proxied, slow_clients
from tests.e2e.shell import paste
from tests.e2e.spread import Plugin
from tests.generated import ROOT
from tests.rbac import Permission, permissions_of

pytestmark = pytest.mark.e2e

VERSION = Permission("get", "", "/version")
"""The permission that each authenticated user has."""
MOUNT = """
mount -t tmpfs none /run &&
mkdir -p /run/secrets/kubernetes.io/serviceaccount &&
cp -r "$ACCOUNT"/. /run/secrets/kubernetes.io/serviceaccount/ &&
exec "$@"
"""
IN_A_POD = ("unshare", "--map-root-user", "--mount", "sh", "-c", MOUNT, "sh")
OPERATOR = {"ServiceMonitor": "servicemonitors", "PrometheusRule": "prometheusrules"}
"""The kinds of the Prometheus operator that the chart may have."""


def any_fields(kind: str, plural: str) -> Json:
    """Return the definition of a kind of the Prometheus operator, with any fields."""
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.monitoring.coreos.com"},
        "spec": {
            "group": "monitoring.coreos.com",
            "names": {"kind": kind, "plural": plural},
            "scope": "Namespaced",
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        },
    }


@pytest.fixture(scope="module")
def cluster(own_control_plane: ControlPlane) -> ControlPlane:
    """Return a cluster with a template whose evaluation depends on feature gates."""
    cluster = own_control_plane
    cluster.add_nodes()
    for namespace in ("shop", "web", "monitoring", "observability"):
        cluster.kubectl("create", "namespace", namespace)
    for kind, plural in OPERATOR.items():
        cluster.apply(any_fields(kind, plural))
        cluster.kubectl("wait", "--for=condition=Established", f"crd/{plural}.monitoring.coreos.com")
    twice = constraint(match=["rev"], selects=selector({"rev": "r1"}))
    cluster.apply(deployment("web", [twice], labels={"app": "web", "rev": "r1"}, namespace="shop"))
    return cluster


def apply(cluster: ControlPlane, objects: Objects, *flags: str) -> None:
    """Apply objects; the API server refuses unknown fields."""
    content = {"apiVersion": "v1", "kind": "List", "items": list(objects.values())}
    cluster.kubectl("apply", "--validate=strict", "-f", "-", *flags, input=json.dumps(content))


@pytest.mark.parametrize("values", [None, *VALUES], ids=lambda path: path.name if path else "values.yaml")
def test_the_api_server_takes_what_the_chart_renders(cluster: ControlPlane, values: Path | None) -> None:
    cluster.kubectl("create", "namespace", NAME, check=False)
    apply(cluster, chart(*(["-f", str(values)] if values else [])), "--dry-run=server")


@pytest.mark.parametrize("component", ["default-constraints", "service-monitor", "kube-rbac-proxy"])
def test_the_api_server_takes_the_base_with_a_component(cluster: ControlPlane, tmp_path: Path, component: str) -> None:
    cluster.kubectl("create", "namespace", NAME, check=False)
    apply(cluster, kustomized(overlay(tmp_path / "overlay", component)), "--dry-run=server")


class Installed(NamedTuple):
    """An installation: the pod, the roles that were applied, and the monitor that runs as this pod."""

    pod: Json
    roles: list[Json]
    monitor: RunningMonitor

    @property
    def user(self) -> str:
        """The user of its requests."""
        metadata, spec = self.pod["metadata"], self.pod["spec"]
        return f"system:serviceaccount:{metadata['namespace']}:{spec['serviceAccountName']}"

    @property
    def permissions(self) -> set[Permission]:
        """The permissions of its roles, and the one that each user has."""
        return {*permissions_of(self.roles), VERSION}

    def requests(self, cluster: ControlPlane) -> list[Json]:
        """Stop the monitor, and return its requests from the audit log, which has a watch only when it has ended."""

        def logged() -> list[Json]:
            events = [event for event in audit.requests(cluster.directory) if event["user"]["username"] == self.user]
            return events if set(map(audit.permission_of, events)) >= self.permissions else []

        assert self.monitor.end() == 0
        return cluster.wait_for(logged, what=f"the audit log has {', '.join(map(str, sorted(self.permissions)))}")


def run_as_pod(cluster: ControlPlane, pod: Json, directory: Path) -> Iterator[RunningMonitor]:
    """Run the checkout's program as the first container of a pod."""
    account = service_account(cluster, pod, directory / "account")
    command = [*IN_A_POD, str(SPREAD), *pod["spec"]["containers"][0]["args"]]
    with running(command, variables(cluster, account)) as monitor:
        yield monitor


def applied(cluster: ControlPlane, directory: Path, scratch: Path) -> Iterator[Installed]:
    """Apply a kustomization, and run its pod; ``scratch`` gets the files of its service account."""
    cluster.kubectl("apply", "-k", str(directory))
    cluster.kubectl("rollout", "status", "-n", NAME, f"deploy/{NAME}", "--timeout=60s")
    pod = pod_of(cluster, NAME)
    roles = [kustomized(directory)[f"ClusterRole/{NAME}"]]
    for monitor in run_as_pod(cluster, pod, scratch):
        yield Installed(pod, roles, monitor)
    cluster.kubectl("delete", "-k", str(directory))


@pytest.fixture
def base(cluster: ControlPlane, tmp_path: Path) -> Iterator[Installed]:
    """Apply the base, and run its pod."""
    yield from applied(cluster, BASE, tmp_path)


@pytest.fixture
def defaults(cluster: ControlPlane, tmp_path: Path) -> Iterator[Installed]:
    """Apply the base with default constraints, and run its pod."""
    yield from applied(cluster, overlay(tmp_path / "overlay", "default-constraints"), tmp_path)


@pytest.fixture
def behind_proxy(cluster: ControlPlane, tmp_path: Path) -> Iterator[Installed]:
    """Apply the base behind kube-rbac-proxy, and run the monitor of its pod."""
    yield from applied(cluster, overlay(tmp_path / "overlay", "kube-rbac-proxy"), tmp_path)


@pytest.fixture
def release(cluster: ControlPlane, tmp_path: Path) -> Iterator[Installed]:
    """Install the chart for one namespace, and run its pod."""
    flags = ("--set=namespaces={shop}", "--namespace=observability")
    environment = cluster.environment()
    installed = helm("install", NAME, str(CHART), *flags, "--wait", "--timeout=60s", environment=environment)
    assert installed.returncode == 0, installed.stderr
    pod = pod_of(cluster, "observability")
    objects = chart("--set=namespaces={shop}")
    roles = [objects[f"Role/{NAME} in shop"], objects[f"ClusterRole/{NAME}"]]
    for monitor in run_as_pod(cluster, pod, tmp_path):
        yield Installed(pod, roles, monitor)
    removed = helm("uninstall", NAME, "--namespace=observability", "--wait", environment=environment)
    assert removed.returncode == 0, removed.stderr


@pytest.mark.parametrize("way", ["base", "defaults", "release"])
def test_the_roles_allow_each_request_and_nothing_else(
    request: pytest.FixtureRequest, cluster: ControlPlane, way: str
) -> None:
    """The audit log of the pod's user has each permission of its roles, and no other; every request succeeds."""
    installed: Installed = request.getfixturevalue(way)
    metrics = installed.monitor.get("/metrics").data.decode()
    assert 'kube_spread_finding{namespace="shop",workload="web"' in metrics
    events = installed.requests(cluster)
    assert {event["responseStatus"]["code"] for event in events} == {200}
    assert {audit.permission_of(event) for event in events} == installed.permissions
    assert {event["verb"] for event in events} == {"get", "list", "watch"}


def test_a_proxy_answers_those_whom_rbac_allows_while_clients_are_slow_and_silent(
    cluster: ControlPlane, behind_proxy: Installed, tmp_path: Path
) -> None:
    """The real kube-rbac-proxy asks the real API server about each token."""
    cluster.kubectl("create", "serviceaccount", "scraper", "-n", "monitoring")
    role = ("--clusterrole=kubectl-spread-monitor-reader", "--serviceaccount=monitoring:scraper")
    cluster.kubectl("create", "clusterrolebinding", "scraper", *role)
    allowed, other = (
        cluster.kubectl("create", "token", name, "-n", "monitoring").stdout.strip() for name in ("scraper", "default")
    )
    monitor, arguments = behind_proxy.monitor, behind_proxy.pod["spec"]["containers"][1]["args"]
    environment = variables(cluster, tmp_path / "account")
    with proxied(IN_A_POD, arguments, environment, monitor, tmp_path) as proxy:

        def statuses() -> list[int]:
            return [proxy.get("/metrics", token)[0] for token in ("", "wrong", other, allowed)]

        cluster.wait_for(lambda: statuses() == [401, 401, 403, 200], what="the role of the scraper")
        assert proxy.get("/metrics", allowed)[1].startswith("# HELP kube_spread")
        assert [proxy.get(path, allowed)[0] for path in ("/", "/report.json", "/other")] == [200, 200, 403]
        before, of_proxy = monitor.resident, proxy.resident
        with slow_clients(proxy, monitor, allowed, number=500):
            for _ in range(5):
                assert statuses() == [401, 401, 403, 200]
            more = monitor.resident - before
            print(f"{more:.1f} MiB more in the monitor, {proxy.resident:.1f} after {of_proxy:.1f} MiB in the proxy")
            assert more < 64
            assert behind_proxy.monitor.get("/readyz", telemetry=True).status == 200


def test_its_token_is_in_no_page_and_in_no_log(base: Installed, tmp_path: Path) -> None:
    token = (tmp_path / "account" / "token").read_bytes()
    pages = [base.monitor.get(path).data for path in ("/", "/metrics", "/report.json")]
    pages.append(base.monitor.get("/metrics", telemetry=True).data)
    assert all(pages)
    base.monitor.end()
    assert not [page for page in (*pages, base.monitor.printed.encode()) if token in page]


def test_a_monitor_of_one_namespace_requests_no_other(cluster: ControlPlane, release: Installed) -> None:
    release.monitor.get("/metrics")
    namespaces = {
        event["objectRef"]["resource"]: event["objectRef"].get("namespace")
        for event in release.requests(cluster)
        if "objectRef" in event
    }
    in_cluster = {"nodes", "persistentvolumes"}
    assert {resource for resource, namespace in namespaces.items() if namespace is None} == in_cluster
    assert {namespaces[resource] for resource in namespaces.keys() - in_cluster - {"namespaces"}} == {"shop"}


def test_the_namespace_of_the_base_admits_its_pod_and_no_ordinary_one(cluster: ControlPlane, base: Installed) -> None:
    refused = cluster.kubectl("run", "root", "-n", NAME, "--image=busybox", check=False)
    assert "violates PodSecurity" in refused.stderr
    assert base.pod["spec"]["nodeName"]


def test_a_release_can_be_upgraded_and_leaves_nothing(cluster: ControlPlane, plugin: Plugin) -> None:
    """The real scheduler spreads its pods, so that they have no findings, not even notes."""
    environment = {**os.environ, **cluster.environment()}
    where = ("--namespace=tools", "--timeout=60s", "--wait")
    for flags, pods in (
        (["--create-namespace"], 1),
        (["--set=replicas=3", "--set=prometheus.monitor.enabled=true"], 3),
    ):
        done = helm("upgrade", "--install", NAME, str(CHART), *where, *flags, environment=environment)
        assert done.returncode == 0, done.stderr
        (advice,) = re.findall(r"\$ (kubectl rollout .*)", done.stdout)
        assert paste(advice, ROOT, environment).returncode == 0
        report = plugin.on(cluster).report("-n", "tools", "--severity=info")
        assert (report["summary"]["pods"], report["findings"]) == (pods, [])
    removed = helm("uninstall", NAME, *where, environment=environment)
    assert removed.returncode == 0, removed.stderr
    kinds = "deploy,svc,sa,pdb,netpol,servicemonitors,roles,rolebindings,clusterroles,clusterrolebindings"
    left = cluster.kubectl("get", kinds, "-A", "-l", f"app.kubernetes.io/instance={NAME}", "-o", "name").stdout
    assert left == ""


def test_the_commands_of_the_page_run_as_they_are_written(cluster: ControlPlane, tmp_path: Path) -> None:
    page, access = (
        (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8") for name in ("monitor", "monitor-access")
    )
    commands = re.findall(r"^\$ ((?:helm|kubectl (?:apply|rollout|get|create)) .*)$", page + access, re.MULTILINE)
    (values,) = re.findall(r"^```yaml\n(image:.*?)^```$", page, re.MULTILINE | re.DOTALL)
    (tmp_path / "values.yaml").write_text(values, encoding="utf-8")
    (tmp_path / "deploy").symlink_to(DEPLOY)
    programs = os.pathsep.join([str(go_programs.binary(*go_programs.HELM).parent), str(binaries.kubectl().parent)])
    environment = cluster.environment()
    environment["PATH"] = f"{programs}{os.pathsep}{environment['PATH']}"
    for command in commands:
        done = paste(command, tmp_path, environment)
        assert done.returncode == 0, done.stderr
    assert [command.split()[:2] for command in commands] == [
        ["kubectl", "apply"],
        ["kubectl", "rollout"],
        ["helm", "upgrade"],
        ["kubectl", "get"],
        ["kubectl", "create"],
    ]
    monitor = cluster.api.get("/apis/apps/v1/namespaces/monitor/deployments")["items"][0]
    (container,) = monitor["spec"]["template"]["spec"]["containers"]
    assert container["image"].startswith("registry.example.com/")
    paste("helm uninstall monitor -n monitor && kubectl delete -k deploy/kustomize/base", tmp_path, environment)
