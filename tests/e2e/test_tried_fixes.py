"""A fix whose new pods would find no node is not printed; once they would, it is printed and ends the finding."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.builders import HOSTNAME, Json, affinity, constraint, term
from tests.controlplane.cluster import ControlPlane
from tests.e2e.manifests import deployment, pod, workload
from tests.e2e.shell import paste
from tests.e2e.spread import Spread
from tests.e2e.workloads import label, pods_of, roll_out, scheduled, wait_for_rollout

pytestmark = pytest.mark.e2e


def requesting(cpu: int) -> list[Json]:
    """Return containers that request so many of the 64 cores of a node."""
    return [{"name": "app", "image": "registry.example/app:1", "resources": {"requests": {"cpu": str(cpu)}}}]


@pytest.fixture(scope="module")
def cluster(own_control_plane: ControlPlane) -> ControlPlane:
    """Return a cluster with one node in each of two zones, which the tests cordon."""
    own_control_plane.add_nodes(("a", "b"), per_zone=1)
    return own_control_plane


def findings(spread: Spread, namespace: str, code: str) -> list[Json]:
    answer = spread("check", "-n", namespace, "--fail-on", "never", "--severity", "info", "-o", "json")
    assert answer.status == 0, answer.stderr
    return [each for each in answer.report["findings"] if each["code"] == code]


def finding(spread: Spread, namespace: str, code: str) -> Json | None:
    found = findings(spread, namespace, code)
    assert len(found) < 2
    return found[0] if found else None


def carried_out(spread: Spread, namespace: str, code: str, directory: Path) -> None:
    """Paste the commands of the only finding of a rule."""
    reported = finding(spread, namespace, code)
    assert reported is not None
    pasted = paste("\n".join(reported["commands"]), directory, spread.environment)
    assert pasted.returncode == 0, pasted.stderr


def wait_for(cluster: ControlPlane, namespace: str, running: int, refused: int = 0) -> None:
    """Wait until no pod of the workload is on its way, so many run, and the scheduler has refused so many."""

    def settled() -> bool:
        pods = pods_of(cluster, namespace, "web")
        if any("deletionTimestamp" in each["metadata"] for each in pods):
            return False
        bound = [each for each in pods if each["status"].get("phase") == "Running"]
        unscheduled = [each for each in pods if scheduled(each).get("reason") == "Unschedulable"]
        return (len(pods), len(bound), len(unscheduled)) == (running + refused, running, refused)

    cluster.wait_for(settled, what=f"{running} pods run and {refused} are refused")


@pytest.fixture
def full_zone(cluster: ControlPlane, namespace: str) -> str:
    """Return a namespace with a ReplicaSet of 5 pods in zone b, two of them relabelled, while zone a is full."""
    cluster.apply(
        pod("filling", labels={"app": "filling"}, namespace=namespace, nodeName="a1", containers=requesting(64))
    )
    web = workload(
        "ReplicaSet",
        "web",
        [constraint(max_skew=3, match=["rev"])],
        replicas=5,
        labels={"app": "web", "rev": "r1"},
        namespace=namespace,
        containers=requesting(1),
    )
    cluster.apply(web)
    wait_for(cluster, namespace, running=3, refused=2)
    relabel(cluster, namespace, 2)
    wait_for(cluster, namespace, running=5)
    return namespace


def relabel(cluster: ControlPlane, namespace: str, number: int) -> None:
    bound = [each["metadata"]["name"] for each in pods_of(cluster, namespace, "web") if "nodeName" in each["spec"]]
    for name in bound[:number]:
        label(cluster, namespace, name, "rev=r2")


def test_pods_stay_whose_replacements_fit_nowhere(cluster: ControlPlane, spread: Spread, full_zone: str) -> None:
    """Their deletion leaves 3 of 5 pods running."""
    reported = finding(spread, full_zone, "SPR101")
    assert reported is not None
    assert "commands" not in reported
    assert reported["fix"].startswith("Keep the pods for now: no node would take a replacement (")
    cluster.kubectl("delete", "pod", "--wait=false", "-n", full_zone, *reported["pods"])
    wait_for(cluster, full_zone, running=3, refused=2)


def test_pods_are_deleted_once_there_is_room(
    cluster: ControlPlane, spread: Spread, full_zone: str, tmp_path: Path
) -> None:
    cluster.kubectl("delete", "pod", "filling", "-n", full_zone)
    carried_out(spread, full_zone, "SPR101", tmp_path)
    wait_for(cluster, full_zone, running=5)
    assert finding(spread, full_zone, "SPR101") is None


@contextmanager
def closed(cluster: ControlPlane, *nodes: str) -> Iterator[None]:
    """Cordon nodes inside a ``with`` block."""
    cluster.kubectl("cordon", *nodes)
    try:
        yield
    finally:
        cluster.kubectl("uncordon", *nodes)


@pytest.fixture
def misspelt(cluster: ControlPlane, namespace: str) -> str:
    """Return a namespace with a Deployment that misspells a key of matchLabelKeys."""
    misspelt = constraint(match=["pod-template-hsah"])
    roll_out(cluster, deployment(constraints=[misspelt], replicas=4, labels={"app": "web"}, namespace=namespace))
    return namespace


def test_a_patch_waits_whose_rollout_could_not_end(cluster: ControlPlane, spread: Spread, misspelt: str) -> None:
    """Applied all the same, it leaves new pods pending until the zone is open."""
    with closed(cluster, "a1"):
        reported = finding(spread, misspelt, "SPR107")
        assert reported is not None
        assert not reported.keys() & {"commands", "patch"}
        assert "Wait with the patch: 2 new pods would find no node (" in reported["fix"]
        path = "/spec/template/spec/topologySpreadConstraints/0/matchLabelKeys/0"
        patch = json.dumps([{"op": "replace", "path": path, "value": "pod-template-hash"}])
        cluster.kubectl("patch", "deploy/web", "-n", misspelt, "--type=json", "-p", patch)
        wait_for(cluster, misspelt, running=3, refused=2)
    wait_for_rollout(cluster, "deployment/web", misspelt)


def test_a_patch_is_printed_once_its_rollout_can_end(
    cluster: ControlPlane, spread: Spread, misspelt: str, tmp_path: Path
) -> None:
    carried_out(spread, misspelt, "SPR107", tmp_path)
    wait_for_rollout(cluster, "deployment/web", misspelt)
    assert finding(spread, misspelt, "SPR107") is None


def test_two_skews_do_not_name_the_same_pod(
    cluster: ControlPlane, spread: Spread, namespace: str, tmp_path: Path
) -> None:
    """To follow the first and to look again ends both."""
    constraints = [constraint(), constraint(key=HOSTNAME)]
    roll_out(cluster, deployment(constraints=constraints, replicas=4, labels={"app": "web"}, namespace=namespace))
    for each in pods_of(cluster, namespace, "web"):
        if each["spec"]["nodeName"] == "a1":
            cost = "controller.kubernetes.io/pod-deletion-cost=100"
            cluster.kubectl("annotate", "pod", each["metadata"]["name"], "-n", namespace, cost)
    cluster.kubectl("scale", "deploy/web", "-n", namespace, "--replicas=2")
    wait_for(cluster, namespace, running=2)
    first, second = findings(spread, namespace, "SPR301")
    assert "commands" not in second
    assert second["fix"] == (
        "First do what SPR301 (spec.topologySpreadConstraints[0]) says, which removes some of the same pods, and look "
        "again."
    )
    assert paste("\n".join(first["commands"]), tmp_path, spread.environment).returncode == 0
    wait_for_rollout(cluster, "deployment/web", namespace)
    assert findings(spread, namespace, "SPR301") == []


@pytest.mark.parametrize("policy", ["Parallel", "OrderedReady"])
def test_a_stateful_set_is_scaled_to_0_where_its_old_pod_keeps_the_new_one_away(
    cluster: ControlPlane, spread: Spread, namespace: str, tmp_path: Path, policy: str
) -> None:
    """All nodes have one value of the topology key, so that only one of the pods runs."""
    apart = affinity("podAntiAffinity", term(key="kubernetes.io/os"))
    web = workload("StatefulSet", "web", replicas=2, namespace=namespace, affinity=apart)
    web["spec"]["podManagementPolicy"] = policy
    cluster.apply(web)
    wait_for(cluster, namespace, running=1, refused=1)
    carried_out(spread, namespace, "SPR217", tmp_path)
    wait_for(cluster, namespace, running=2)
    assert finding(spread, namespace, "SPR217") is None
