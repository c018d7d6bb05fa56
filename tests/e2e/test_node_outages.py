"""Nodes stop answering on a real cluster: the pods are where ``simulate --lose`` said."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.builders import constraint, selector
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.components import OUTAGE
from tests.controlplane.fixtures import require_built
from tests.e2e.manifests import pod_spec
from tests.e2e.own_nodes import in_namespace, workload
from tests.e2e.shell import paste
from tests.e2e.simulations import Difference, play
from tests.e2e.spread import Plugin
from tests.e2e.workloads import pods

pytestmark = [pytest.mark.e2e, pytest.mark.long]

FEW = range(8)
MANY = range(8, 108)
_ATTEMPTS = 3


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """Return a control plane whose nodes send heartbeats, until a test stops their kubelets."""
    require_built()
    with ControlPlane.start(tmp_path_factory.mktemp("outages"), kubelet=True, outages=True) as started:
        yield started


@pytest.mark.parametrize("seeds", [FEW, pytest.param(MANY, marks=pytest.mark.nightly)], ids=["few", "many"])
def test_what_an_outage_does_is_what_was_simulated(cluster: ControlPlane, plugin: Plugin, seeds: range) -> None:
    cluster.empty()
    played = play(cluster, plugin.program(cluster), seeds, outages=True)
    assert len(played) >= 0.98 * len(seeds)
    differences: list[Difference] = [difference for each in played for difference in each.differences]
    assert len(differences) <= len(seeds) // 50, differences


def ready(cluster: ControlPlane) -> list[str]:
    """Return the status of the condition Ready of each node."""
    conditions = (each for node in cluster.api.get("/api/v1/nodes")["items"] for each in node["status"]["conditions"])
    return [each["status"] for each in conditions if each["type"] == "Ready"]


def evicting(cluster: ControlPlane) -> list[str]:
    """Return the nodes with a taint that evicts pods."""
    return [
        node["metadata"]["name"]
        for node in cluster.api.get("/api/v1/nodes")["items"]
        if any(taint["effect"] == "NoExecute" for taint in node["spec"].get("taints", ()))
    ]


def silence(cluster: ControlPlane, names: Sequence[str], last: Sequence[str]) -> None:
    """Let all nodes fail, some of them last, and wait until the controller has taken the taints back.

    Raises:
        TimeoutError: It has left one.
    """
    cluster.kubelet.silent |= {*names} - {*last}
    cluster.wait_for(
        lambda: ready(cluster).count("Unknown") == len(names) - len(last), timeout=120, what="most are NotReady"
    )
    cluster.kubelet.silent |= {*last}
    cluster.wait_for(lambda: {*ready(cluster)} == {"Unknown"}, timeout=120, what="all nodes are NotReady")
    cluster.wait_for(lambda: not evicting(cluster), timeout=30, what="the taints are taken back")


def test_no_pod_is_evicted_while_all_nodes_are_silent(cluster: ControlPlane, plugin: Plugin) -> None:
    """The controller sees one node after another fail; then it takes the taints back, which end the tolerations.

    The pods tolerate the taints for 300 seconds, as they do by default. Most nodes of each zone fail first, after which
    the controller taints no more. Without that it may taint one while it sees the last ones fail, and leave that.
    """
    tolerations = [
        {"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
        for key in ("not-ready", "unreachable")
    ]
    cluster.empty()
    cluster.kubelet.silent.clear()
    names = cluster.add_nodes(("a", "b"), per_zone=4)
    with cluster.namespace() as namespace:
        cluster.apply(in_namespace(workload("Deployment", "web", 4, pod_spec(tolerations=tolerations)), namespace))
        cluster.wait_for(lambda: sum(pod["status"]["phase"] == "Running" for pod in pods(cluster, namespace)) == 4)
        report = plugin.program(cluster)("simulate", "--lose", ",".join(names), "-n", namespace, "-o", "json").report
        (row,) = report["workloads"]
        assert row["after"]["notReplaced"] == {"min": 4, "max": 4}
        for attempt in range(_ATTEMPTS):
            try:
                silence(cluster, names, last=["a4", "b4"])
                break
            except TimeoutError:
                # A node may be tainted at the moment at which the controller takes the taints back, and stays so.
                assert attempt < _ATTEMPTS - 1
                cluster.kubelet.silent.clear()
                cluster.wait_for(lambda: {*ready(cluster)} == {"True"}, timeout=120, what="all nodes are Ready")
                cluster.wait_for(lambda: not evicting(cluster), timeout=60, what="no node is tainted")
        time.sleep(4 * OUTAGE.eviction)
        assert evicting(cluster) == []
        stored = pods(cluster, namespace)
        assert len(stored) == 4
        assert not any("deletionTimestamp" in pod["metadata"] for pod in stored)
    cluster.kubelet.silent.clear()


def test_the_patch_that_is_printed_lets_the_pods_run(cluster: ControlPlane, plugin: Plugin, tmp_path: Path) -> None:
    """A lost zone holds the minimum at 0; after ``nodeTaintsPolicy: Honor`` all pods run in the other zones."""
    keys = ("not-ready", "unreachable")
    soon = {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 1}
    tolerations = [{"key": f"node.kubernetes.io/{key}", **soon} for key in keys]
    cluster.empty()
    cluster.kubelet.silent.clear()
    # The controller may remember that nodes of other tests, which have other names, failed.
    cluster.add_nodes(("x", "y", "z"), per_zone=2)
    hard = pod_spec([constraint(selects=selector({"app": "web"}))], tolerations=tolerations)
    with cluster.namespace() as namespace:
        cluster.apply(in_namespace(workload("Deployment", "web", 6, hard), namespace))

        def running() -> int:
            return sum(
                pod["status"]["phase"] == "Running" and "deletionTimestamp" not in pod["metadata"]
                for pod in pods(cluster, namespace)
            )

        cluster.wait_for(lambda: running() == 6, timeout=120, what="all pods run")
        spread = plugin.program(cluster)
        report = spread("simulate", "--lose", "zone=x", "-n", namespace, "-o", "json").report.document
        (finding,) = [each for each in report["findings"] if each["severity"] == "error"]
        assert finding["fix"] == "set nodeTaintsPolicy: Honor in their constraint on zone"
        cluster.kubelet.silent |= {"x1", "x2"}
        waiting = finding["workloads"][0]["pending"]["max"]
        cluster.wait_for(lambda: running() == 6 - waiting, timeout=120, what=f"{waiting} pods wait")
        (patch,) = finding["commands"]
        pasted = paste(patch, tmp_path, spread.environment)
        assert pasted.returncode == 0, pasted.stderr
        cluster.wait_for(lambda: running() == 6, timeout=120, what="all pods run again")
    cluster.kubelet.silent.clear()
