"""What was not read, or cannot be simulated, is named, and the exit status is 2 where it may decide about a pod."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.builders import HOSTNAME, Json, node_pool_json, selector
from tests.cli.test_check import run
from tests.simulate.clusters import command, deployment, node, nodes, pod, simulated, stateful_set, template, workload

ONE_RUN = ("--runs", "1")


def unknown(cluster: list[Json], *arguments: str, status: int = 2) -> str:
    """Return what is unknown in one text; stderr has it too, and the answer does not say that all pods would run."""
    texts = simulated(cluster, *arguments)["summary"]["unknown"]
    answer = command(cluster, *ONE_RUN, *arguments, "--fail-on", "never")
    assert answer.exit_code == (status if texts else 0)
    for text in texts:
        assert f"error: not simulated: {text}" in answer.stderr
        assert text.split()[0] in answer.stdout
    assert ("All pods of" in answer.stdout) <= (not texts)
    return "; ".join(texts)


def requests(**amounts: str) -> list[Json]:
    return [{"name": "app", "image": "app", "resources": {"requests": amounts}}]


def test_pods_on_nodes_that_were_not_read() -> None:
    cluster = [*nodes("a1"), *deployment("web", ["a1", "b7"])]
    assert unknown(cluster, "--restart", "deploy/web") == "nodes that were not read, with 1 pod (b7)"


@pytest.mark.parametrize("amount", ["4 cores", "0x4", "${CPU}", "-1", ""])
def test_requests_that_cannot_be_read(amount: str) -> None:
    cluster = [*nodes("a1", "b1"), *deployment("web", ["a1"], containers=requests(cpu=amount))]
    text = unknown(cluster, "--delete", "a1")
    assert text.startswith("the requests of deploy/web (spec.containers[0].resources.requests[cpu]: ")
    assert unknown([*cluster, *nodes("c1")], "--delete", "c1") == "", "no pod is placed"


@pytest.mark.parametrize("amount", ["4 cores", "0x4", "${CPU}", "-1", "", None])
def test_nodes_whose_room_is_not_known(amount: str | None) -> None:
    odd = node("b1")
    if amount is None:
        del odd["status"]["allocatable"]
    else:
        odd["status"]["allocatable"]["cpu"] = amount
    cluster = [*nodes("a1", "c1"), odd, *deployment("web", ["a1"])]
    assert unknown(cluster, "--delete", "a1").startswith("the room on node b1 (status.allocatable")
    pinned: dict[str, Any] = {"nodeSelector": {HOSTNAME: "c1"}}
    assert unknown([*nodes("c1"), odd, *deployment("web", ["c1"], **pinned)], "--restart", "deploy/web") == ""


def test_a_pod_with_unreadable_requests_hides_the_room_of_its_node() -> None:
    odd = pod("odd", "b1", template("odd", cpu="${CPU}"))
    assert unknown([*nodes("a1", "b1"), odd, *deployment("web", ["a1"])], "--delete", "a1").startswith(
        "the requests of po/odd ("
    )


def test_namespaces_that_a_term_selects_by_labels() -> None:
    term = {"topologyKey": HOSTNAME, "labelSelector": selector({"app": "x"})}
    term["namespaceSelector"] = selector({"team": "a"})
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    cluster = [*nodes("a1", "b1"), *deployment("web", ["a1"], affinity=affinity)]
    text = "the labels of namespaces, which a namespaceSelector needs, were not read (shop)"
    assert unknown(cluster, "--delete", "a1") == text
    assert (
        unknown([*cluster, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}], "--delete", "a1")
        == ""
    )
    term["namespaceSelector"] = {}
    assert unknown([*nodes("a1", "b1"), *deployment("web", ["a1"], affinity=affinity)], "--delete", "a1") == ""


def test_pods_that_another_scheduler_places() -> None:
    cluster = [*nodes("a1", "b1"), *deployment("web", ["a1"], schedulerName="volcano")]
    text = "the rules of scheduler volcano, which places the pods of deploy/web"
    assert unknown(cluster, "--delete", "a1") == text
    assert unknown(cluster, "--delete", "b1") == "", "no pod is placed"


def test_devices() -> None:
    claims: dict[str, Any] = {"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "gpu"}]}
    cluster = [*nodes("a1", "b1"), *deployment("web", ["a1"], **claims)]
    assert unknown(cluster, "--delete", "a1") == "devices (resourceClaims of deploy/web)"
    assert unknown(cluster, "--delete", "b1") == ""
    cluster = [*nodes("a1", "b1"), *deployment("web", [""], containers=requests(**{"example.com/gpu": "1"}))]
    assert unknown(cluster, "--delete", "a1") == "devices (no node lists example.com/gpu)"
    for each in cluster[:2]:
        each["status"]["allocatable"]["example.com/gpu"] = "0"
    assert unknown(cluster, "--delete", "a1") == ""


def test_claims_of_new_ordinals_and_claims_that_were_not_read(tmp_path: Path) -> None:
    db = stateful_set("db", ["a1", "b1"], claims=True)
    assert unknown([*nodes("a1", "b1"), *db], "--scale", "sts/db=3") == "where new volumes can be"
    assert unknown([*nodes("a1", "b1"), *db], "--restart", "sts/db") == ""
    web = deployment("web", ["a1"])
    web[0]["spec"]["template"]["spec"]["volumes"] = [{"name": "v", "persistentVolumeClaim": {"claimName": "v"}}]
    path = tmp_path / "web.json"
    path.write_text(json.dumps(web[0]), encoding="utf-8")
    cluster = [*nodes("a1"), *deployment("web", ["a1"])]
    assert unknown(cluster, "--apply", str(path)) == "volumes, which were not read"


def test_a_daemon_set_that_selects_other_nodes(tmp_path: Path) -> None:
    spec = {"selector": selector({"app": "agent"}), "template": template("agent")}
    agent = workload("DaemonSet", "agent", spec)
    changed = json.loads(json.dumps(agent))
    changed["spec"]["template"]["spec"]["nodeSelector"] = {HOSTNAME: "b1"}
    path = tmp_path / "agent.json"
    path.write_text(json.dumps(changed), encoding="utf-8")
    cluster = [*nodes("a1", "b1"), agent, pod("agent-1", "a1", template("agent"), "DaemonSet/agent")]
    assert unknown(cluster, "--apply", str(path)) == "the nodes that ds/agent selects after its change"


def test_an_autoscaler_changes_the_replicas_again() -> None:
    autoscaler = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"scaleTargetRef": {"kind": "Deployment", "name": "web"}, "maxReplicas": 4},
    }
    cluster = [*nodes("a1", "b1"), *deployment("web", ["a1", "b1"]), autoscaler]
    text = "the metrics of HorizontalPodAutoscaler web (1 to 4 replicas) of deploy/web"
    for event in (("--scale", "deploy/web=9"), ("--delete", "a1"), ("--lose", "a1"), ("--restart", "deploy/web")):
        assert unknown(cluster, *event) == "", "it may change the number, and its bounds are simulated"
    assert text in simulated(cluster, "--scale", "deploy/web=9")["summary"]["notSimulated"]
    assert text not in simulated(cluster, "--restart", "deploy/web")["summary"]["notSimulated"]


@pytest.mark.parametrize(
    ("kind", "status"), [("Service", 0), ("ConfigMap", 0), ("Widget", 2), ("PodDisruptionBudget", 2)]
)
def test_other_objects_of_a_manifest_are_named(kind: str, status: int, tmp_path: Path) -> None:
    versions = {"PodDisruptionBudget": "policy/v1", "Widget": "example.com/v1"}
    other = {"apiVersion": versions.get(kind, "v1"), "kind": kind, "metadata": {"name": "x"}, "spec": {}}
    web = deployment("web", ["a1"])
    path = tmp_path / "web.json"
    path.write_text("\n".join(map(json.dumps, (web[0], other))), encoding="utf-8")
    summary = simulated([*nodes("a1"), *web], "--apply", str(path))["summary"]
    text = f"other objects in the applied manifest (1 {kind})"
    assert (text in summary["notSimulated"], text in summary["unknown"]) == (True, status == 2)
    assert command([*nodes("a1"), *web], *ONE_RUN, "--apply", str(path)).exit_code == status


def test_a_manifest_of_another_namespace_is_refused_as_by_kubectl(tmp_path: Path) -> None:
    web = deployment("web", ["a1"])
    other = json.loads(json.dumps(web[0]))
    other["metadata"]["namespace"] = "other"
    path = tmp_path / "web.json"
    path.write_text(json.dumps(other, indent=2), encoding="utf-8")
    cluster = [*nodes("a1"), *web]
    answer = command(cluster, "--apply", str(path), "-n", "shop")
    assert (answer.exit_code, answer.stdout) == (2, "")
    assert (
        'the namespace from the provided object "other" does not match the namespace "shop". '
        "You must pass '--namespace=other' to perform this operation."
    ) in answer.stderr
    assert answer.stderr.startswith(f"error: {path}:6: ")
    assert simulated(cluster, "--apply", str(path))["events"] == ["apply deploy/web, which is new"]


def test_a_namespace_that_no_manifest_names_is_not_taken_for_a_new_one(tmp_path: Path) -> None:
    web = deployment("web", ["a1"])
    unnamed = json.loads(json.dumps(web[0]))
    del unnamed["metadata"]["namespace"]
    path = tmp_path / "web.json"
    cluster = [*nodes("a1"), *web]
    arguments = (*ONE_RUN, "--apply", str(path), "-n", "shpo")

    def applied(*objects: Json) -> Any:
        path.write_text("\n".join(map(json.dumps, objects)), encoding="utf-8")
        return command(cluster, *arguments)

    answer = applied(unnamed)
    hint = f'did you mean "shop"? (for a new one, set metadata.namespace in {path})'
    assert (answer.exit_code, answer.stdout) == (2, "")
    assert f'error: namespace "shpo" not found in the files; {hint}\n' in answer.stderr
    new = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shpo"}}
    named = {**unnamed, "metadata": {**unnamed["metadata"], "namespace": "shpo"}}
    for objects in ((named,), (new, unnamed), (unnamed, new)):
        answer = applied(*objects)
        assert "apply deploy/web, which is new" in answer.stdout, answer.stderr
        assert ("error:" in answer.stderr) is (new in objects), "what a Namespace decides is not simulated"
    arguments = (*ONE_RUN, "--apply", str(path), "-n", "shop")
    assert applied(unnamed).exit_code == 0


def test_a_key_that_no_node_has_is_a_wrong_key() -> None:
    constraint = {"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zones", "whenUnsatisfiable": "DoNotSchedule"}
    constraint["labelSelector"] = selector({"app": "web"})
    web = deployment("web", [""], topologySpreadConstraints=[constraint])
    (finding,) = simulated([*nodes("a1", "b1"), *web], "--delete", "a1")["findings"]
    text = "no node has the label topology.kubernetes.io/zones of their constraint"
    assert finding["message"].endswith(f"{text}; did you mean topology.kubernetes.io/zone?")
    assert finding["fix"] == "set topologyKey: topology.kubernetes.io/zone in their constraint on zones"
    constraint["topologyKey"] = "example.com/rack"
    (finding,) = simulated([*nodes("a1", "b1"), *web], "--delete", "a1")["findings"]
    assert ("example.com/rack of their constraint." in finding["message"], "fix" in finding) == (True, False)


def planned(cluster: list[Json], *arguments: str) -> Any:
    return run("plan", *arguments, "-f", "-", stdin="\n".join(map(json.dumps, cluster)))


def test_plan_takes_pods_and_replica_sets_for_their_workload() -> None:
    constraint = {"maxSkew": 1, "topologyKey": HOSTNAME, "whenUnsatisfiable": "DoNotSchedule"}
    constraint["labelSelector"] = selector({"app": "web"})
    web = deployment("web", ["a1", "a1", "a1"], topologySpreadConstraints=[constraint])
    cluster = [*nodes("a1", "b1"), *web, *deployment("other", ["b1"])]
    for argument in ("deploy/web", "rs/web-5d9c", "pod/web-5d9c-0"):
        answer = planned(cluster, argument)
        assert (answer.exit_code, "1 of 1 uneven workload" in answer.stdout) == (1, True), argument
    assert planned(cluster, "rs/other-5d9c").exit_code == 0
    for arguments, text in ((["-l", "app=nope"], "No resources found"), (["pod/nope"], 'pods "nope" not found')):
        answer = planned(cluster, *arguments)
        assert (answer.exit_code, answer.stdout, text in answer.stderr) == (2, "", True)


def test_a_plan_names_what_is_not_known() -> None:
    cluster = [*nodes("a1"), *deployment("web", ["a1", "b7"])]
    answer = planned(cluster)
    assert answer.exit_code == 2
    assert "Not simulated: nodes that were not read, with 1 pod (b7)." in answer.stdout


@pytest.mark.parametrize(
    ("pods", "text"),
    [
        pytest.param(
            deployment("web", [""], containers=requests(**{"example.com/gpu": "1"})),
            "devices (no node lists example.com/gpu)",
            id="devices of a class",
        ),
        pytest.param(
            deployment("web", [""], resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": "gpu"}]),
            "devices (resourceClaims of deploy/web)",
            id="devices of claims",
        ),
        pytest.param(
            [*deployment("batch", ["a1"]), *deployment("web", [""], priority=9)],
            "preemption (1 pod could preempt others)",
            id="preemption",
        ),
    ],
)
def test_a_plan_does_not_say_that_nothing_is_to_correct_while_a_pod_waits_for_what_is_not_known(
    pods: list[Json], text: str
) -> None:
    answer = planned([*nodes("a1", cpu=1), *pods])
    assert (answer.exit_code, f"error: not simulated: {text}" in answer.stderr) == (2, True)
    assert "Whether there is anything to correct is not known." in answer.stdout
    assert f"Not simulated: {text}" in answer.stdout


def test_a_daemon_set_is_not_taken_for_a_pod_without_ports() -> None:
    own = {"selector": selector({"app": "agent"}), "template": template("agent")}
    cluster = [*nodes("a1", "b1"), workload("DaemonSet", "agent", own), *deployment("web", ["a1"])]
    assert unknown(cluster, "--delete", "a1") == ""


@pytest.mark.parametrize(
    ("more", "arguments", "said"),
    [
        pytest.param([node_pool_json()], ("--delete", "a1", "--no-autoscale"), True, id="a NodePool"),
        pytest.param([node_pool_json()], ("--delete", "a1"), False, id="new nodes"),
        pytest.param([], ("--delete", "a1"), False, id="no autoscaler"),
        pytest.param([node_pool_json()], ("--restart", "deploy/web"), False, id="no pod waits"),
    ],
)
def test_the_first_line_says_that_no_nodes_are_added(more: list[Json], arguments: tuple[str, ...], said: bool) -> None:
    cluster = [*nodes("a1"), *deployment("web", ["a1"]), *more]
    answer = command(cluster, *ONE_RUN, *arguments, "--fail-on", "never")
    assert ("cluster autoscalers not simulated" in answer.stdout.partition("\n\n")[0]) is said
