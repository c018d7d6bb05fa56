"""The monitor's report of a real API server, kept current by lists and watches, is that of a fresh check."""

from __future__ import annotations

import threading
from contextlib import closing
from typing import Any

import pytest

from kubectl_spread.app.checkrun import CheckRun
from kubectl_spread.app.cluster.live import LiveRun
from kubectl_spread.app.monitoring.mirrored import mirrored
from kubectl_spread.app.options import CheckOptions
from kubectl_spread.monitor.current import CurrentReport
from kubectl_spread.monitor.world import World
from kubectl_spread.render import structured
from kubectl_spread.rules import RULES
from kubectl_spread.rules.selection import SelectedRules
from kubectl_spread.sources.apiserver.cluster import LiveCluster
from kubectl_spread.sources.apiserver.resources import NODES
from kubectl_spread.sources.apiserver.watch import WatchedCluster
from kubectl_spread.sources.auth.connection import ConnectionFlags
from tests.builders import Json, constraint, selector
from tests.controlplane.cluster import ControlPlane
from tests.e2e.manifests import deployment
from tests.e2e.workloads import label, pod_names, wait_for_rollout

pytestmark = pytest.mark.e2e

PATIENCE = 30.0
OPTIONS = CheckOptions(all_namespaces=True, server_version="1.37")


@pytest.fixture(scope="module")
def cluster(own_control_plane: ControlPlane) -> ControlPlane:
    own_control_plane.add_nodes(("a", "b", "c"), per_zone=2)
    return own_control_plane


class Monitored:
    """The current report of a cluster, next to fresh checks."""

    def __init__(self, cluster: ControlPlane) -> None:
        """Read the cluster and watch it."""
        self._cluster = cluster
        self._flags = ConnectionFlags(kubeconfig=str(cluster.kubeconfig))
        run = self._check()
        self._lock = threading.Lock()
        self._world = World(run.scope)
        self._current = CurrentReport(self._world, run.audit.context, SelectedRules(RULES, OPTIONS.selection))
        watched = WatchedCluster.connect(self._flags)
        self._stores = mirrored(watched, self._world, self._lock, None)

    def _check(self) -> CheckRun:
        with closing(LiveCluster.connect(self._flags)) as cluster:
            return LiveRun(OPTIONS, cluster).collect()

    def agrees(self) -> bool:
        """Tell whether the report is that of a fresh check; at rest it becomes so as soon as all events have come."""
        fresh, current = self._check().report(OPTIONS), None
        with self._lock:
            if all(store.mirror.complete for store in self._stores.values()):
                self._stores[NODES.plural].release()
                self._current.refresh()
                current = self._current.report(fresh.cluster)
        return current is not None and structured.json(current) == structured.json(fresh)

    def settles(self) -> None:
        """Wait until it agrees."""
        self._cluster.wait_for(self.agrees, timeout=PATIENCE, what="the current report is that of a fresh check")


def web(replicas: int, **labels: str) -> Json:
    spread = constraint(selects=selector({"app": "web"}), match=["pod-template-hash"])
    return deployment("web", [spread], replicas=replicas, labels={"app": "web", **labels}, namespace="default")


def test_the_report_follows_the_cluster(cluster: ControlPlane) -> None:
    cluster.apply(web(4))
    wait_for_rollout(cluster, "deployment/web", "default")
    monitored = Monitored(cluster)
    monitored.settles()
    changes: list[Any] = [
        lambda: cluster.apply(web(7)),
        lambda: cluster.apply(web(7, rev="r2")),
        lambda: wait_for_rollout(cluster, "deployment/web", "default"),
        lambda: label(cluster, "default", pod_names(cluster, "default")[0], "pod-template-hash=other"),
        lambda: cluster.kubectl("cordon", cluster.api.get("/api/v1/nodes")["items"][0]["metadata"]["name"]),
        lambda: cluster.kubectl("delete", "pods", "-n", "default", "-l", "app=web", "--wait=false"),
        lambda: cluster.add_nodes(("d",), per_zone=1),
        lambda: cluster.kubectl("delete", "deployment", "web", "-n", "default"),
    ]
    for change in changes:
        change()
        monitored.settles()
