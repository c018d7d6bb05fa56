"""Workloads of well-known charts cause no false alarm on a cluster like those of clouds."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.builders import HOSTNAME, ZONE, Json
from tests.controlplane.cluster import ControlPlane
from tests.e2e import region
from tests.e2e.healthy_directory import DESERVED, DIRECTORY, Place, by_chance, place, serious
from tests.e2e.spread import Plugin, Report, Spread
from tests.e2e.workloads import pods

pytestmark = [pytest.mark.e2e, pytest.mark.long]


@pytest.fixture(scope="module")
def cluster(own_control_plane: ControlPlane) -> ControlPlane:
    """Return a control plane with every workload of the directory placed and running."""
    cluster = own_control_plane
    region.build(cluster)
    cluster.kubectl("apply", "-f", str(DIRECTORY / "namespaces.yaml"))
    cluster.kubectl("apply", "-f", str(DIRECTORY))
    cluster.kubectl("create", "job", "nightly-report-1", "--from=cronjob/nightly-report", "-n", "batch")
    cluster.wait_for(lambda: _complete(cluster), timeout=180, what="every pod that is asked for runs")
    return cluster


@pytest.fixture(scope="module")
def spread(cluster: ControlPlane, plugin: Plugin) -> Spread:
    return plugin.on(cluster)


@pytest.fixture(scope="module")
def report(spread: Spread) -> Report:
    return spread.report("-A")


def _complete(cluster: ControlPlane) -> bool:
    """Tell whether no workload lacks a pod and every autoscaler has scaled its target to the minimum."""
    for autoscaler in cluster.api.get("/apis/autoscaling/v2/horizontalpodautoscalers")["items"]:
        if autoscaler["status"].get("desiredReplicas", 0) < autoscaler["spec"]["minReplicas"]:
            return False
    for kind in ("deployments", "statefulsets"):
        for workload in cluster.api.get(f"/apis/apps/v1/{kind}")["items"]:
            if workload["status"].get("readyReplicas", 0) != workload["spec"]["replicas"]:
                return False
    for daemon_set in cluster.api.get("/apis/apps/v1/daemonsets")["items"]:
        expected = daemon_set["status"].get("desiredNumberScheduled", 0)
        if not expected or daemon_set["status"].get("numberReady", 0) != expected:
            return False
    for job in cluster.api.get("/apis/batch/v1/jobs")["items"]:
        if job["status"].get("ready", 0) != job["spec"]["parallelism"]:
            return False
    listed: list[Json] = cluster.api.get("/api/v1/pods")["items"]
    return all(pod["status"]["phase"] == "Running" for pod in listed)


def _undeserved(cluster: ControlPlane, findings: Sequence[Json]) -> set[Place]:
    """Return the places of the findings above info that are neither deserved nor true by chance.

    Where only a preference keeps pods apart, all of them may be on one node or in one zone; then they are, in the API.
    """
    places = {place(finding) for finding in findings if _is_true(cluster, finding)} & by_chance()
    return serious(findings) - DESERVED.keys() - places


def _is_true(cluster: ControlPlane, finding: Json) -> bool:
    """Tell whether all pods of a workload are in one domain, as SPR501 and SPR502 say."""
    key = {"SPR501": HOSTNAME, "SPR502": ZONE}.get(finding["code"])
    if key is None:
        return False
    labels = {
        node["metadata"]["name"]: node["metadata"]["labels"] for node in cluster.api.get("/api/v1/nodes")["items"]
    }
    owned = [pod for pod in pods(cluster, finding["namespace"]) if _owner(pod) == finding["object"]]
    domains = {labels[pod["spec"]["nodeName"]][key] for pod in owned}
    return sorted(pod["metadata"]["name"] for pod in owned) == finding["pods"] and len(owned) > 1 and len(domains) == 1


def _owner(pod: Json) -> Json:
    """Return the workload of a pod: its StatefulSet, or the Deployment in the name of its ReplicaSet."""
    (owner,) = pod["metadata"].get("ownerReferences", [{"kind": "Pod", "name": ""}])
    if owner["kind"] == "ReplicaSet":
        return {"kind": "Deployment", "name": owner["name"].rpartition("-")[0]}
    return {"kind": owner["kind"], "name": owner["name"]}


def test_every_warning_and_error_is_deserved(cluster: ControlPlane, report: Report) -> None:
    """Every warning and error has a reason, and every reason is still needed."""
    assert _undeserved(cluster, report["findings"]) == set()
    assert serious(report["findings"]) >= DESERVED.keys()
    assert report["cluster"]["nodes"] == "listed"
    assert not report["summary"]["skipped"]


def test_what_is_said_about_nodes_and_zones_is_true(cluster: ControlPlane, report: Report) -> None:
    """The racks that are pinned to a zone are always among these."""
    said = [finding for finding in report["findings"] if finding["code"] in ("SPR501", "SPR502")]
    assert len(said) >= 3
    assert [finding for finding in said if not _is_true(cluster, finding)] == []


def test_infos_are_rare(report: Report) -> None:
    """They are about soft skew, workloads that count each other, hostname alone, pinned racks, and majorities."""
    infos = [place(finding) for finding in report["findings"] if finding["severity"] == "info"]
    assert {code for code, _ in infos} <= {"SPR219", "SPR302", "SPR314", "SPR502", "SPR503"}
    assert {each for each in infos if each[0] == "SPR502"} <= by_chance()
    assert len(infos) <= 15


def test_nothing_changes_on_an_older_server_that_merges(spread: Spread, report: Report) -> None:
    """With ``--to`` such a minor there is no further warning or error."""
    assert serious(spread.report("-A", "--to", "1.34")["findings"]) == serious(report["findings"])


def test_controllers_would_make_the_pods_again(spread: Spread, report: Report) -> None:
    """Stored pods would be refused with the merge in them, but controllers create them from templates."""
    assert serious(spread.report("-A", "--recreate")["findings"]) == serious(report["findings"])
