"""A command that is pasted reaches the cluster that was read, whatever its names have that a shell reads."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from tests.builders import Json, constraint
from tests.controlplane.cluster import ControlPlane
from tests.e2e.manifests import pod
from tests.e2e.shell import paste
from tests.e2e.spread import Plugin, Spread
from tests.e2e.workloads import label

pytestmark = pytest.mark.e2e

FIRST: Final = "first"
SECOND: Final = """it's "the second"; $(touch pwned) & `id` \\"""
SHOP: Final = "shop"


class Clusters(NamedTuple):
    """Two clusters that have the same pods, and a directory for kubeconfigs."""

    first: ControlPlane
    second: ControlPlane
    plugin: Plugin
    directory: Path

    def kubeconfig(self, current: str) -> Path:
        """Write a kubeconfig with a context for each cluster, in a directory with a name that shells read."""
        path = self.directory / "its $HOME & 'files'" / f"{('first', 'second')[current == SECOND]} config.json"
        entries: dict[str, list[Json]] = {"clusters": [], "users": [], "contexts": []}
        for name, cluster in ((FIRST, self.first), (SECOND, self.second)):
            config = json.loads(cluster.kubeconfig.read_text(encoding="utf-8"))
            entries["clusters"].append({"name": name, "cluster": config["clusters"][0]["cluster"]})
            entries["users"].append({"name": name, "user": config["users"][0]["user"]})
            context = {"cluster": name, "user": name, "namespace": SHOP}
            entries["contexts"].append({"name": name, "context": context})
        path.parent.mkdir(exist_ok=True)
        content = {"apiVersion": "v1", "kind": "Config", **entries, "current-context": current}
        path.write_text(json.dumps(content), encoding="utf-8")
        return path


@pytest.fixture(scope="module")
def second(without_controllers: ControlPlane) -> Iterator[ControlPlane]:
    """Return another cluster."""
    without_controllers.kubectl("delete", "nodes", "--all")
    without_controllers.add_nodes()
    without_controllers.kubelet.start()
    yield without_controllers
    without_controllers.kubelet.stop()


@pytest.fixture
def clusters(control_plane: ControlPlane, second: ControlPlane, plugin: Plugin, tmp_path: Path) -> Iterator[Clusters]:
    """Return two clusters with a pod whose label has changed, and its sibling."""
    both = (control_plane, second)
    labels = {"app": "web", "rev": "r1"}
    for cluster in both:
        cluster.api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SHOP}})
        for name in ("web-0", "web-1"):
            cluster.api.create(pod(name, [constraint(match=["rev"])], labels=labels, namespace=SHOP))
        _wait_until_running(cluster)
        label(cluster, SHOP, "web-0", "rev=r2")
    yield Clusters(control_plane, second, plugin, tmp_path)
    for cluster in both:
        cluster.kubectl("delete", "namespace", SHOP, "--wait=false")
        cluster.kubectl("delete", "pod", "--all", "-n", SHOP)
        cluster.api.request("PUT", f"/api/v1/namespaces/{SHOP}/finalize", _without_finalizers(cluster))


def _without_finalizers(cluster: ControlPlane) -> Json:
    namespace: Json = cluster.api.get(f"/api/v1/namespaces/{SHOP}")
    return {**namespace, "spec": {"finalizers": []}}


def _wait_until_running(cluster: ControlPlane) -> None:
    def running() -> bool:
        listed = cluster.api.get(f"/api/v1/namespaces/{SHOP}/pods")["items"]
        return all(each["status"].get("phase") == "Running" for each in listed)

    cluster.wait_for(running, what="the pods run")


def _stored(cluster: ControlPlane) -> Json:
    found: Json = cluster.api.get(f"/api/v1/namespaces/{SHOP}/pods/web-0")
    return found


def _findings(spread: Spread, *flags: str) -> list[Any]:
    answer = spread("check", *flags, "-o", "json", "--fail-on", "never")
    assert answer.status == 0, answer.stderr
    findings: list[Any] = answer.report["findings"]
    return [finding for finding in findings if finding["code"] == "SPR101"]


@pytest.mark.parametrize("by", ["context", "kubeconfig", "cluster and user", "current context", "namespace"])
def test_the_commands_reach_the_cluster_that_was_read(clusters: Clusters, tmp_path: Path, by: str) -> None:
    """The pod of the second cluster is created again with a merged selector; the first cluster has not changed."""
    current = SECOND if by in ("current context", "namespace") else FIRST
    environment = clusters.plugin.on(clusters.first).environment | {"KUBECONFIG": str(clusters.kubeconfig(current))}
    flags: Mapping[str, tuple[str, ...]] = {
        "context": ("--context", SECOND),
        "kubeconfig": ("--kubeconfig", str(clusters.kubeconfig(SECOND))),
        "cluster and user": ("--cluster", SECOND, "--user", SECOND),
        "namespace": ("-n", SHOP),
    }
    if by == "kubeconfig":
        environment["KUBECONFIG"] = str(clusters.first.kubeconfig)
    spread = Spread(clusters.plugin.directory, environment)
    untouched, before = _stored(clusters.first), _stored(clusters.second)
    (finding,) = _findings(spread, *flags.get(by, ()))
    work = tmp_path / "work"
    work.mkdir()
    done = paste("\n".join(finding["commands"]), work, spread.environment)
    assert done.returncode == 0, (finding["commands"], done.stderr)
    _wait_until_running(clusters.second)
    assert _findings(spread, *flags.get(by, ())) == []
    assert _stored(clusters.first) == untouched
    after = _stored(clusters.second)
    assert after["metadata"]["uid"] != before["metadata"]["uid"]
    assert _authored(after) == _authored(before)
    assert sorted(path.name for path in work.iterdir()) == ["web-0-unmerged.yaml", "web-0.yaml"]


def _authored(pod: Json) -> Json:
    """Return the spec of a pod without its node, and without the requirement that the API server merged.

    The API server sets the labels of the node's zone and region when the pod is bound.
    """
    spec: Json = copy.deepcopy(pod["spec"])
    del spec["nodeName"]
    (requirement,) = spec["topologySpreadConstraints"][0]["labelSelector"].pop("matchExpressions")
    assert requirement["key"] == "rev"
    labels = pod["metadata"]["labels"]
    return {"labels": {key: labels[key] for key in ("app", "rev")}, "spec": spec}
