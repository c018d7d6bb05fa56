"""What ``check`` prints to type is pasted on a real cluster, and the finding is gone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.builders import HOSTNAME, ZONE, Json, constraint, selector
from tests.controlplane.cluster import ControlPlane
from tests.e2e.manifests import deployment
from tests.e2e.shell import paste
from tests.e2e.spread import Spread
from tests.e2e.workloads import pods, roll_out, wait_for_rollout

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def cluster(own_control_plane: ControlPlane) -> ControlPlane:
    """Return a cluster with one node in each of three zones, which the tests cordon."""
    own_control_plane.add_nodes(("a", "b", "c"), per_zone=1)
    return own_control_plane


def findings(spread: Spread, namespace: str, *codes: str) -> list[Json]:
    answer = spread("check", "-n", namespace, "--fail-on", "never", "-o", "json")
    assert answer.status == 0, answer.stderr
    return [finding for finding in answer.report["findings"] if finding["code"] in codes]


def web(namespace: str, replicas: int, constraints: Sequence[Json] = ()) -> Json:
    return deployment(constraints=constraints, replicas=replicas, labels={"app": "web"}, namespace=namespace)


def follow(cluster: ControlPlane, spread: Spread, namespace: str, code: str, directory: Path) -> str:
    """Paste the commands of the only finding of a rule, and wait until all pods run; return the commands."""
    (finding,) = findings(spread, namespace, code)
    commands = "\n".join(finding["commands"])
    pasted = paste(commands, directory, spread.environment)
    assert pasted.returncode == 0, pasted.stderr
    wait_for_rollout(cluster, "deployment/web", namespace)
    return commands


def wait_for_refusal(cluster: ControlPlane, namespace: str, running: int) -> None:
    """Wait until so many pods run and the scheduler has refused the others."""

    def refused() -> bool:
        listed = pods(cluster, namespace)
        conditions = [each for pod in listed for each in pod["status"].get("conditions", ())]
        unscheduled = [each for each in conditions if each["type"] == "PodScheduled" and each["status"] == "False"]
        return sum("nodeName" in pod["spec"] for pod in listed) == running and len(unscheduled) == len(listed) - running

    cluster.wait_for(refused, what=f"{running} pods run and the others are refused")


def test_soft_constraints_separate_pods_that_share_a_node(
    cluster: ControlPlane, spread: Spread, namespace: str, tmp_path: Path
) -> None:
    names = sorted(node["metadata"]["name"] for node in cluster.api.get("/api/v1/nodes")["items"])
    cluster.kubectl("cordon", *names[1:])
    roll_out(cluster, web(namespace, 2))
    cluster.kubectl("uncordon", *names[1:])
    follow(cluster, spread, namespace, "SPR501", tmp_path)
    assert findings(spread, namespace, "SPR501", "SPR502") == []


def test_the_selector_of_the_workload_selects_its_pods(
    cluster: ControlPlane, spread: Spread, namespace: str, tmp_path: Path
) -> None:
    roll_out(cluster, web(namespace, 3, [constraint(selects=selector({"app": "wbe"}))]))
    follow(cluster, spread, namespace, "SPR206", tmp_path)
    # The rollout may leave a skew, as the new pods are placed while the old ones count.
    assert findings(spread, namespace, "SPR206", "SPR303") == []


def test_fewer_domains_let_the_pending_pod_run(
    cluster: ControlPlane, spread: Spread, namespace: str, tmp_path: Path
) -> None:
    cluster.apply(web(namespace, 4, [constraint(minDomains=4)]))
    wait_for_refusal(cluster, namespace, 3)
    follow(cluster, spread, namespace, "SPR303", tmp_path)
    assert findings(spread, namespace, "SPR303", "SPR304") == []


def test_a_cordoned_domain_that_has_pods_is_opened(
    cluster: ControlPlane, spread: Spread, namespace: str, tmp_path: Path
) -> None:
    roll_out(cluster, web(namespace, 3, [constraint()]))
    (held,) = (node["metadata"]["name"] for node in cluster.api.get("/api/v1/nodes")["items"][-1:])
    cluster.kubectl("cordon", held)
    cluster.kubectl("scale", "deploy/web", "-n", namespace, "--replicas=6")
    wait_for_refusal(cluster, namespace, 5)
    assert follow(cluster, spread, namespace, "SPR303", tmp_path) == f"kubectl uncordon {held}"
    assert findings(spread, namespace, "SPR303", "SPR307") == []


def test_all_that_wait_for_a_cordoned_zone_run_after_one_command(
    cluster: ControlPlane, spread: Spread, namespace: str, tmp_path: Path
) -> None:
    """A constraint by zone and one by node wait for the same zone; the header and ``domains`` say that it is closed."""
    (held,) = (node["metadata"]["name"] for node in cluster.api.get("/api/v1/nodes")["items"][-1:])
    cluster.kubectl("cordon", held)
    for name, key in (("by-zone", ZONE), ("by-node", HOSTNAME)):
        own = {"app": name}
        constraints = [constraint(key=key, selects=selector(own))]
        cluster.apply(deployment(name, constraints, replicas=3, labels=own, namespace=namespace))
    wait_for_refusal(cluster, namespace, 4)
    waiting = findings(spread, namespace, "SPR303")
    assert sorted(finding["object"]["name"] for finding in waiting) == ["by-node", "by-zone"]
    assert len({finding["group"] for finding in waiting}) == 1
    text = spread("check", "-n", namespace, "--fail-on", "never").stdout
    (zone,) = waiting[0]["closed"]["domains"]
    assert f"Zone {zone} is cordoned ({held}): 2 pods of 2 workloads wait for it." in " ".join(text.split())
    assert f"zone {zone} is cordoned" in text.splitlines()[0]
    (command,) = waiting[0]["closed"]["commands"]
    assert text.count(f"$ {command}\n") == 1
    assert f"$ {command}\n" in spread("domains", "-n", namespace).stdout
    pasted = paste(command, tmp_path, spread.environment)
    assert pasted.returncode == 0, pasted.stderr
    for name in ("by-zone", "by-node"):
        wait_for_rollout(cluster, f"deployment/{name}", namespace)
    assert findings(spread, namespace, "SPR303", "SPR307") == []
    assert "is cordoned" not in spread("check", "-n", namespace).stdout


def test_the_policy_for_a_zone_that_stays_closed_holds_until_it_is_open(
    cluster: ControlPlane, spread: Spread, namespace: str, tmp_path: Path
) -> None:
    """The text says that the zone counts again when it is open; then nothing waits, and the moved pod is even."""
    (held,) = (node["metadata"]["name"] for node in cluster.api.get("/api/v1/nodes")["items"][-1:])
    cluster.kubectl("cordon", held)
    # As the controller of node lifecycles does, which does not run here because it wants kubelets.
    taint = "node.kubernetes.io/unschedulable:NoSchedule"
    cluster.kubectl("taint", "node", held, taint)
    cluster.apply(web(namespace, 3, [constraint()]))
    wait_for_refusal(cluster, namespace, 2)
    (waiting,) = findings(spread, namespace, "SPR303")
    (zone,) = waiting["closed"]["domains"]
    assert "nodeTaintsPolicy: Honor" in waiting["fix"]
    assert f"zone {zone} counts only when it is open again" in waiting["fix"]
    text = " ".join(spread("check", "-n", namespace, "--fail-on", "never").stdout.split())
    assert text.index(f"$ kubectl uncordon {held}") < text.index("If it stays closed:")
    follow(cluster, spread, namespace, "SPR303", tmp_path)
    assert findings(spread, namespace, "SPR301", "SPR303", "SPR304", "SPR307") == []
    cluster.kubectl("uncordon", held)
    cluster.kubectl("taint", "node", held, f"{taint}-")
    # The zone counts again and has no pod: a warning about the running pods, while the next pod has a node.
    assert findings(spread, namespace, "SPR303", "SPR304", "SPR307") == []
    follow(cluster, spread, namespace, "SPR301", tmp_path)
    assert findings(spread, namespace, "SPR301", "SPR303") == []


def test_a_zone_that_a_policy_leaves_out_is_opened_for_min_domains(
    cluster: ControlPlane, spread: Spread, namespace: str, tmp_path: Path
) -> None:
    (held,) = (node["metadata"]["name"] for node in cluster.api.get("/api/v1/nodes")["items"][-1:])
    cluster.kubectl("cordon", held)
    cluster.apply(web(namespace, 3, [constraint(minDomains=3, nodeTaintsPolicy="Honor")]))
    wait_for_refusal(cluster, namespace, 2)
    (waiting,) = findings(spread, namespace, "SPR303", "SPR304")
    (command,) = waiting["closed"]["commands"]
    assert command == f"kubectl uncordon {held}"
    pasted = paste(command, tmp_path, spread.environment)
    assert pasted.returncode == 0, pasted.stderr
    wait_for_rollout(cluster, "deployment/web", namespace)
    assert findings(spread, namespace, "SPR303", "SPR304") == []


def test_a_patch_that_was_applied_is_not_printed_again_during_the_rollout(
    cluster: ControlPlane, spread: Spread, namespace: str, tmp_path: Path
) -> None:
    """The rollout waits with a new pod that is not available yet, next to the pending pod of the old revision."""
    manifest = web(namespace, 3, [constraint()])
    manifest["spec"] |= {
        "strategy": {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
        "progressDeadlineSeconds": 7200,
    }
    roll_out(cluster, manifest)
    (node,) = (node["metadata"]["name"] for node in cluster.api.get("/api/v1/nodes")["items"][-1:])
    (there,) = (pod["metadata"]["name"] for pod in pods(cluster, namespace) if pod["spec"]["nodeName"] == node)
    cluster.kubectl("taint", "node", node, "gpu=yes:NoSchedule")
    try:
        cluster.kubectl("delete", "pod", there, "-n", namespace)
        wait_for_refusal(cluster, namespace, 2)
        (blocked,) = findings(spread, namespace, "SPR303")
        hold = '{"spec":{"minReadySeconds":3600}}'
        cluster.kubectl("patch", "deploy/web", "-n", namespace, "-p", hold)
        pasted = paste("\n".join(blocked["commands"]), tmp_path, spread.environment)
        assert pasted.returncode == 0, pasted.stderr

        def placed() -> bool:
            return sum("nodeName" in pod["spec"] for pod in pods(cluster, namespace)) == 3

        cluster.wait_for(placed, what="a new pod runs")
        (left,) = findings(spread, namespace, "SPR303")
        assert (left["fix"], left["pods"]) == (
            "Corrected in the template; the rollout replaces this pod.",
            blocked["pods"],
        )
        assert not left.keys() & {"patch", "commands"}
        cluster.kubectl("patch", "deploy/web", "-n", namespace, "-p", hold.replace("3600", "0"))
        wait_for_rollout(cluster, "deployment/web", namespace)
        assert findings(spread, namespace, "SPR303") == []
    finally:
        cluster.kubectl("taint", "node", node, "gpu-")


def test_a_node_gets_the_label_that_replaces_its_deprecated_one(
    cluster: ControlPlane, spread: Spread, namespace: str, tmp_path: Path
) -> None:
    (node,) = (node["metadata"] for node in cluster.api.get("/api/v1/nodes")["items"][-1:])
    deprecated = "failure-domain.beta.kubernetes.io/zone"
    cluster.kubectl("label", "node", node["name"], f"{ZONE}-", f"{deprecated}={node['labels'][ZONE]}")
    try:
        roll_out(cluster, web(namespace, 2, [constraint()]))
        command = follow(cluster, spread, namespace, "SPR305", tmp_path)
        assert command == f"kubectl label node {node['name']} {ZONE}={node['labels'][ZONE]}"
        assert findings(spread, namespace, "SPR305") == []
    finally:
        cluster.kubectl("label", "node", node["name"], "--overwrite", f"{ZONE}={node['labels'][ZONE]}")
        cluster.kubectl("label", "node", node["name"], f"{deprecated}-")


def test_pods_that_their_template_pins_spread_when_the_node_selector_is_gone(
    cluster: ControlPlane, spread: Spread, namespace: str
) -> None:
    pinned = web(namespace, 2, [constraint()])
    pinned["spec"]["template"]["spec"]["nodeSelector"] = {ZONE: "a"}
    roll_out(cluster, pinned)
    exposed, single = findings(spread, namespace, "SPR501", "SPR313")
    assert "the only node that nodeSelector or node affinity in the pod template allows" in exposed["message"]
    assert single["fix"].startswith("Let nodeSelector or node affinity in the pod template match nodes of more domains")
    roll_out(cluster, web(namespace, 2, [constraint()]))
    assert findings(spread, namespace, "SPR501", "SPR502", "SPR313") == []
