"""What events do to workloads of each kind, where their pods go, and why others wait."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.builders import HOSTNAME, Json, selector
from tests.cli.test_check import run
from tests.simulate.clusters import (
    RUNS,
    after,
    budget,
    command,
    deployment,
    node,
    nodes,
    only_on,
    pod,
    reasons,
    simulated,
    stateful_set,
    template,
    workload,
    zone_constraint,
)

REGION = "topology.kubernetes.io/region"
SIX = nodes("a1", "a2", "b1", "b2", "c1", "c2")
HARD: dict[str, Any] = {"topologySpreadConstraints": [zone_constraint("web")]}


def anti_affinity(name: str) -> Json:
    term = {"topologyKey": HOSTNAME, "labelSelector": selector({"app": name})}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def test_no_skew_is_named_where_soft_constraints_spread_nothing() -> None:
    """Where one of them is over a key that no node has, the scheduler scores no node for the others either."""
    on_host = zone_constraint("web", topologyKey=HOSTNAME, whenUnsatisfiable="ScheduleAnyway")
    on_nothing = zone_constraint("web", topologyKey="kubernetes.io/zone", whenUnsatisfiable="ScheduleAnyway")
    for constraints, keys in (([on_host], [HOSTNAME]), ([on_host, on_nothing], [])):
        cluster = [*SIX, *deployment("web", ["a1", "a1", "a1"], topologySpreadConstraints=constraints)]
        report = simulated(cluster, "--restart", "deploy/web")
        assert [skew["topologyKey"] for skew in report["workloads"][0]["skews"]] == keys


def test_a_deleted_zone_no_longer_counts_so_its_pods_move() -> None:
    report = simulated([*SIX, *deployment("web", ["a1", "b1", "c1"], **HARD)], "--delete", "zone=a")
    assert after(report, "web") == ("3", "0")
    assert report["events"] == ["delete zone a: 2 of 6 nodes, 1 of 3 pods"]
    assert report["findings"] == []
    assert [skew["skew"] for skew in report["workloads"][0]["skews"]] == [{"min": 1, "max": 1}]
    before = {domain["value"]: domain["before"] for domain in report["workloads"][0]["domains"]}
    assert before == {"a": 1, "b": 1, "c": 1}


def test_a_drained_zone_counts_so_its_pods_wait() -> None:
    cluster = [*SIX, *deployment("web", ["a1", "b1", "c1"], **HARD), budget("other", minAvailable=1)]
    report = simulated(cluster, "--drain", "zone=a")
    assert after(report, "web") == ("2", "1")
    (reason,) = reasons(report, "web")
    text = "their constraint on zone (maxSkew 1) allows no more, because zone a has none and no node there takes one"
    assert reason == f"{text}; 2 nodes: cordoned"
    (finding,) = report["findings"]
    assert (finding["severity"], finding["fix"]) == (
        "error",
        "set nodeTaintsPolicy: Honor in their constraint on zone",
    )
    assert command(cluster, "--drain", "zone=a", "--runs", "1").exit_code == 1
    assert command(cluster, "--drain", "zone=a", "--runs", "1", "--fail-on", "never").exit_code == 0


def test_nodes_that_were_cordoned_before_are_the_first_fix() -> None:
    cluster = [node("a1", cordoned=True), *nodes("b1", "c1"), *deployment("web", ["b1", "c1"], **HARD)]
    report = simulated(cluster, "--scale", "deploy/web=3")
    assert after(report, "web") == ("2", "1")
    assert report["findings"][0]["fix"] == "uncordon node a1"
    assert report["findings"][0]["commands"] == ["kubectl uncordon a1"]


def test_a_node_is_the_fix_where_room_is_missing() -> None:
    report = simulated([*nodes("a1", cpu=2), *deployment("web", ["a1", "a1"])], "--scale", "deploy/web=3")
    assert after(report, "web") == ("2", "1")
    assert reasons(report, "web") == ["1 node: Insufficient cpu"]
    assert report["findings"][0]["fix"] == "add 1 node in zone a"


def test_a_node_like_another_is_the_fix_where_each_node_is_a_domain() -> None:
    spread: dict[str, Any] = {"topologySpreadConstraints": [zone_constraint("web", topologyKey=HOSTNAME)]}
    cluster = [*nodes("a1", "c1"), *nodes("b1", cpu=1), *deployment("web", ["a1", "c1"], **spread)]
    report = simulated([*cluster, *deployment("other", ["b1"])], "--drain", "a1")
    assert after(report, "web") == ("1", "1")
    assert report["findings"][0]["fix"] == "add 1 node like a1"


@pytest.mark.parametrize(("owner", "commands"), [("DaemonSet/agent", ["kubectl delete node a1"]), ("", None)])
def test_nodes_are_deleted_only_where_no_pod_is_lost(owner: str, commands: list[str] | None) -> None:
    """Zone a is also a region, so that a change of one constraint does not help."""
    taint = {"key": "broken", "effect": "NoSchedule"}
    cluster: list[Json] = [node("a1", taints=[taint]), node("b1"), node("c1")]
    for each in cluster:
        each["metadata"]["labels"][REGION] = "one" if each["metadata"]["name"] == "a1" else "two"
    constraints = [zone_constraint("web"), zone_constraint("web", topologyKey=REGION)]
    cluster += deployment("web", ["b1"], topologySpreadConstraints=constraints)
    daemon: Json = {"selector": selector({"app": "agent"}), "template": template("agent")}
    cluster += [workload("DaemonSet", "agent", daemon), pod("agent-1", "a1", template("agent"), owner)]
    (finding,) = simulated(cluster, "--scale", "deploy/web=2")["findings"]
    assert finding["message"].startswith("1 pod of deploy/web would stay pending")
    assert finding.get("commands") == commands


def test_a_drain_ends_although_pods_come_back_to_the_cordoned_node() -> None:
    pinned: dict[str, Any] = {"tolerations": [{"operator": "Exists"}], "nodeSelector": {HOSTNAME: "a1"}}
    report = simulated([*nodes("a1", "b1"), *deployment("web", ["a1", "a1"], **pinned)], "--drain", "a1")
    assert after(report, "web") == ("2", "0")
    assert report["workloads"][0]["lost"] == 2


def test_a_drain_goes_on_when_replacements_are_ready() -> None:
    cluster = [*nodes("a1", "b1"), *deployment("web", ["a1", "a1", "a1"]), budget("web", maxUnavailable=1)]
    report = simulated(cluster, "--drain", "a1")
    assert after(report, "web") == ("3", "0")
    assert report["refusedEvictions"] == []


def test_a_waiting_pod_may_be_placed_before_the_last_node_is_cordoned() -> None:
    """A pod on a cordoned node does not count where nodeTaintsPolicy is Honor."""
    spread = zone_constraint("web", nodeTaintsPolicy="Honor")
    cluster = [*nodes("a1", "a2"), *nodes("b1", cpu=1), pod("full", "b1", template("full"))]
    web = deployment("web", ["a1", ""], topologySpreadConstraints=[spread])
    report = simulated([*cluster, *web, budget("web", minAvailable=2)], "--drain", "a1,a2", "--runs", "20")
    assert after(report, "web") == ("1..2", "0..1")


def test_a_pod_may_be_replaced_before_or_after_the_next_one_is_evicted() -> None:
    """While zone b has a pod, zone c may have one more."""
    spread: dict[str, Any] = {"topologySpreadConstraints": [zone_constraint("web", maxSkew=2)]}
    placed = ["a1", "a1", "a1", "b1", "b1", "c1", "c1"]
    report = simulated([*nodes("a1", "b1", "c1"), *deployment("web", placed, **spread)], "--drain", "b1")
    assert after(report, "web") == ("5..6", "1..2")


@pytest.mark.parametrize(
    ("policy", "refused"),
    [
        pytest.param("AlwaysAllow", 0, id="a pod that is not ready may go"),
        pytest.param("IfHealthyBudget", 1, id="only while the others are enough"),
    ],
)
def test_unhealthy_pods_are_evicted_by_the_policy_of_their_budget(policy: str, refused: int) -> None:
    web = deployment("web", ["a1"])
    web[-1]["status"]["conditions"] = [{"type": "Ready", "status": "False"}]
    cluster = [*nodes("a1", "b1"), *web, budget("web", minAvailable=1, unhealthyPodEvictionPolicy=policy)]
    assert len(simulated(cluster, "--drain", "a1")["refusedEvictions"]) == refused


def test_pods_of_a_stateful_set_need_their_volumes_and_are_replaced_in_order() -> None:
    report = simulated([*SIX, *stateful_set("db", ["a1", "a2", "b1"], claims=True)], "--delete", "zone=a")
    assert after(report, "db") == ("1", "1")
    (reason,) = reasons(report, "db")
    assert reason.startswith("its volume is in zone a")
    parallel = stateful_set("db", ["a1", "a2", "b1"], claims=True, podManagementPolicy="Parallel")
    assert after(simulated([*SIX, *parallel], "--delete", "zone=a"), "db") == ("1", "2")


def test_a_stateful_set_goes_on_when_the_pod_that_it_waited_for_has_a_node() -> None:
    db = stateful_set("db", ["a1", ""])
    db[0]["spec"]["replicas"] = 4
    report = simulated([*nodes("a1", cpu=1), *db], "--add", "a1:3")
    assert after(report, "db") == ("4", "0")


@pytest.mark.parametrize(
    ("on", "policy", "left"),
    [
        pytest.param(["a1", "", ""], "OrderedReady", ("1", "2"), id="the last one waits for the one before"),
        pytest.param(["a1", "a1", ""], "OrderedReady", ("1", "0"), id="only the last one waits"),
        pytest.param(["a1", "", ""], "Parallel", ("1", "0"), id="parallel"),
    ],
)
def test_an_ordered_stateful_set_does_not_delete_a_pod_while_one_before_it_waits(
    on: Sequence[str], policy: str, left: tuple[str, str]
) -> None:
    db = stateful_set("db", on, podManagementPolicy=policy)
    report = simulated([*nodes("a1", cpu=len([node for node in on if node])), *db], "--scale", "sts/db=1")
    assert after(report, "db") == left


@pytest.mark.parametrize(("version", "left"), [("1.36", ("0", "2")), ("1.37", ("1", "1"))])
def test_a_parallel_rollout_replaces_pods_that_wait_first_since_1_37(
    version: str, left: tuple[str, str], tmp_path: Path
) -> None:
    db = stateful_set("db", ["", "a1"], podManagementPolicy="Parallel")
    db[1]["spec"]["nodeSelector"] = {"disk": "fast"}
    changed = json.loads(json.dumps(db[0]))
    changed["spec"]["template"]["spec"]["nodeSelector"] = {"disk": "fast"}
    assert after(_applied([*nodes("a1"), *db], changed, tmp_path, "--server-version", version), "db") == left


def test_a_waiting_pod_may_get_the_room_of_a_replaced_one() -> None:
    db = stateful_set("db", ["a1"])
    report = simulated([*nodes("a1", cpu=1), *db, *deployment("web", [""])], "--restart", "sts/db", "--runs", "20")
    assert (after(report, "db"), after(report, "web")) == (("0..1", "0..1"), ("0..1", "0..1"))


def test_the_new_pod_of_a_rollout_is_there_when_the_old_one_leaves_room() -> None:
    replacing = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}
    web = deployment("web", ["a1"], strategy=replacing, priority=1000)
    report = simulated([*nodes("a1", cpu=1), *web, *deployment("low", [""])], "--restart", "deploy/web")
    assert after(report, "web") == ("1", "0")


def test_a_volume_is_named_last_where_other_filters_refuse_all_nodes() -> None:
    full = [*nodes("a1", "b1", cpu=1), *deployment("web", ["b1"])]
    report = simulated([*full, *stateful_set("db", ["a1"], claims=True)], "--delete", "zone=a")
    assert reasons(report, "db") == ["1 node: Insufficient cpu; its volume is in zone a"]


def test_daemons_and_bare_pods_are_not_replaced() -> None:
    daemon = template("agent")
    daemon_set = workload("DaemonSet", "agent", {"selector": selector({"app": "agent"}), "template": daemon})
    daemon["spec"]["affinity"] = only_on("a1")
    agents = [daemon_set, pod("agent-a", "a1", daemon, "DaemonSet/agent")]
    report = simulated([*nodes("a1", "b1"), *agents, pod("bare", "a1", template("bare"))], "--delete", "a1")
    assert after(report, "agent") == ("0", "0")
    assert after(report, "bare") == ("0", "0")
    assert report["summary"]["stopped"] == {"min": 2, "max": 2}
    assert "2 workloads would have no running pod" in report["findings"][0]["message"]


def test_a_pending_pod_of_a_daemon_set_waits_for_its_own_node() -> None:
    """Other nodes do not matter, whatever they lack: here b1 is cordoned."""
    agent = template("agent", affinity=only_on("a1"))
    daemon: Json = {"selector": selector({"app": "agent"}), "template": template("agent")}
    cluster = [*nodes("a1", cpu=1), *nodes("c1"), node("b1", cordoned=True), *deployment("web", ["a1"])]
    cluster += [workload("DaemonSet", "agent", daemon), pod("agent-a1", "", agent, "DaemonSet/agent")]
    report = simulated(cluster, "--scale", "deploy/web=1")
    assert after(report, "agent") == ("0", "1")
    assert reasons(report, "agent") == ["1 node: Insufficient cpu"]
    assert after(simulated(cluster, "--add", "a1:1"), "agent") == ("1", "1")
    assert after(simulated(cluster, "--delete", "a1"), "agent") == ("0", "0")


def test_one_of_two_daemon_sets_with_the_same_port_runs_on_a_new_node() -> None:
    ports = [{"name": "app", "image": "app", "ports": [{"containerPort": 80, "hostPort": 80}]}]
    first, second = (template(name, containers=ports) for name in ("first", "second"))
    cluster = [*nodes("a1"), pod("first-a1", "a1", first, "DaemonSet/first")]
    for each in (first, second):
        name = each["metadata"]["labels"]["app"]
        cluster.append(workload("DaemonSet", name, {"selector": selector({"app": name}), "template": each}))
    waiting = {**second, "spec": {**second["spec"], "affinity": only_on("a1")}}
    report = simulated([*cluster, pod("second-a1", "", waiting, "DaemonSet/second")], "--add", "a1:1", "--runs", "20")
    assert after(report, "first") == ("1..2", "0..1")
    assert after(report, "second") == ("0..1", "1..2")


def test_new_nodes_have_the_pods_of_daemon_sets() -> None:
    daemon = template("agent", cpu="7")
    daemon_set = workload("DaemonSet", "agent", {"selector": selector({"app": "agent"}), "template": daemon})
    cluster = [*nodes("a1"), daemon_set, pod("agent-a", "a1", daemon, "DaemonSet/agent"), *deployment("web", ["a1"])]
    report = simulated(cluster, "--add", "zone=a:2", "--scale", "deploy/web=4")
    assert after(report, "agent") == ("3", "0")
    assert after(report, "web") == ("3", "1")


@pytest.mark.parametrize(
    ("limit", "running"), [pytest.param(6, "1", id="replaced"), pytest.param(0, "0", id="a failure too many")]
)
def test_a_job_replaces_pods_as_far_as_its_backoff_limit_allows(limit: int, running: str) -> None:
    batch = template("batch", restartPolicy="Never")
    job = workload("Job", "batch", {"backoffLimit": limit, "template": batch}, version="batch/v1")
    report = simulated([*nodes("a1", "b1"), job, pod("batch-1", "a1", batch, "Job/batch")], "--delete", "a1")
    assert after(report, "batch") == (running, "0")


def test_a_scale_down_deletes_cheap_pods_first_and_then_those_that_share_a_node() -> None:
    web = deployment("web", ["a1", "b1", "b1", "c1"])
    web[2]["metadata"]["annotations"] = {"controller.kubernetes.io/pod-deletion-cost": "-5"}
    report = simulated([*SIX, *web], "--scale", "deploy/web=2")
    places = {domain["value"]: domain["pods"]["max"] for domain in report["workloads"][0]["domains"]}
    assert places == {"a": 0, "b": 1, "c": 1}


@pytest.mark.parametrize(
    ("seconds", "left"),
    [
        pytest.param(range(4), {"a": (0, 0), "b": (1, 1), "c": (1, 1)}, id="ages of one magnitude: the UIDs decide"),
        pytest.param([0] * 4, {"a": (0, 1), "b": (0, 2), "c": (0, 1)}, id="one age: nothing decides"),
    ],
)
def test_a_scale_down_of_a_bare_replica_set_does_not_look_at_what_shares_a_node(
    seconds: Sequence[int], left: dict[str, tuple[int, int]]
) -> None:
    web = template("web")
    owner = workload("ReplicaSet", "web", {"replicas": 4, "selector": selector({"app": "web"}), "template": web})
    pods = [pod(f"web-{number}", on, web, "ReplicaSet/web") for number, on in enumerate(["a1", "b1", "b1", "c1"])]
    for each, second in zip(pods, seconds, strict=True):
        each["status"]["conditions"][0]["lastTransitionTime"] = f"2026-08-01T10:00:{second:02}Z"
    report = simulated([*SIX, owner, *pods], "--scale", "rs/web=2", "--runs", "50")
    places = {domain["value"]: domain["pods"] for domain in report["workloads"][0]["domains"]}
    assert places == {value: {"min": least, "max": most} for value, (least, most) in left.items()}


def test_ages_may_have_another_rank_when_the_event_happens() -> None:
    web = deployment("web", ["a1", "b1", "c1"])
    for each, seconds in zip(web[2:], [0, 30, 32], strict=True):
        each["metadata"]["creationTimestamp"] = f"2026-09-01T10:00:{seconds:02}Z"
        each["status"]["conditions"][0]["lastTransitionTime"] = f"2026-09-01T10:00:{seconds:02}Z"
    report = simulated([*SIX, *web], "--scale", "deploy/web=1", "--runs", "20")
    places = {domain["value"]: domain["pods"] for domain in report["workloads"][0]["domains"]}
    assert places == {"a": {"min": 0, "max": 1}, "b": {"min": 0, "max": 0}, "c": {"min": 0, "max": 1}}


def test_a_rollout_waits_where_its_new_pods_have_no_node() -> None:
    cluster = [*nodes("a1", "b1"), *deployment("web", ["a1", "b1"], affinity=anti_affinity("web"))]
    report = simulated(cluster, "--restart", "deploy/web")
    assert after(report, "web") == ("2", "1")
    replacing = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}
    cluster = [*nodes("a1", "b1"), *deployment("web", ["a1", "b1"], strategy=replacing, affinity=anti_affinity("web"))]
    assert after(simulated(cluster, "--restart", "deploy/web"), "web") == ("2", "0")


def test_the_new_revision_has_values_of_its_own_for_match_label_keys() -> None:
    keyed = [zone_constraint("web", match=["pod-template-hash"], minDomains=2)]
    cluster = [*nodes("a1", "b1"), *deployment("web", ["a1", "a1"], topologySpreadConstraints=keyed)]
    report = simulated(cluster, "--restart", "deploy/web")
    assert after(report, "web") == ("2", "0")
    assert {domain["value"]: domain["pods"]["max"] for domain in report["workloads"][0]["domains"]} == {"a": 1, "b": 1}


def test_a_rollout_of_a_stateful_set_ends_at_its_partition(tmp_path: Path) -> None:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}
    db = stateful_set("db", ["a1", "b1"], updateStrategy=strategy)
    changed = json.loads(json.dumps(db[0]))
    changed["spec"]["template"]["spec"]["nodeSelector"] = {"disk": "fast"}
    report = _applied([*SIX, *db], changed, tmp_path)
    assert after(report, "db") == ("1", "1")
    assert reasons(report, "db") == ["6 nodes: node affinity or nodeSelector does not match"]


def test_a_changed_manifest_is_rolled_out_and_a_new_one_created(tmp_path: Path) -> None:
    web = deployment("web", ["a1", "b1"])
    larger = json.loads(json.dumps(web[0]))
    larger["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "64"
    assert after(_applied([*SIX, *web], larger, tmp_path), "web") == ("2", "1")
    new = deployment("shop", ["a1", "b1", "c1"])[0]
    assert after(_applied([*SIX, *web], new, tmp_path), "shop") == ("3", "0")
    scaled = {**web[0], "spec": {**web[0]["spec"], "replicas": 4}}
    assert after(_applied([*SIX, *web], scaled, tmp_path), "web") == ("4", "0")


def test_a_manifest_changes_the_replicas_only_if_it_states_them(tmp_path: Path) -> None:
    web = deployment("web", ["a1", "b1"])
    silent = json.loads(json.dumps(web[0]))
    del silent["spec"]["replicas"]
    silent["spec"]["template"]["metadata"]["labels"]["version"] = "2"
    assert after(_applied([*SIX, *web], silent, tmp_path), "web") == ("2", "0")
    path = tmp_path / "manifest.json"
    assert after(simulated([*SIX, *web], "--scale", "deploy/web=3", "--apply", str(path)), "web") == ("3", "0")
    path.write_text(json.dumps(web[0]), encoding="utf-8")
    assert after(simulated([*SIX, *web], "--scale", "deploy/web=3", "--apply", str(path)), "web") == ("2", "0")


def test_a_larger_number_is_first_one_of_old_pods(tmp_path: Path) -> None:
    """The controller scales the ReplicaSet before it rolls out, so its last pod waits, and is deleted first."""
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    web = deployment("web", ["a1", "a1"], strategy=strategy)
    larger = json.loads(json.dumps(web[0]))
    larger["spec"]["replicas"] = 4
    larger["spec"]["template"]["spec"]["nodeSelector"] = {"disk": "fast"}
    report = _applied([*nodes("a1", cpu=3), *web], larger, tmp_path)
    assert after(report, "web") == ("3", "2")
    assert len(reasons(report, "web")) == 2


@pytest.mark.parametrize(("version", "left"), [("1.36", ("2", "1")), ("1.37", ("1", "1"))])
def test_an_ordered_stateful_set_replaces_several_pods_at_once_since_1_37(
    version: str, left: tuple[str, str], tmp_path: Path
) -> None:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 2}}
    db = stateful_set("db", ["a1", "b1", "c1"], updateStrategy=strategy)
    changed = json.loads(json.dumps(db[0]))
    changed["spec"]["template"]["spec"]["nodeSelector"] = {"disk": "fast"}
    report = _applied([*nodes("a1", "b1", "c1"), *db], changed, tmp_path, "--server-version", version)
    assert after(report, "db") == left


def test_a_pod_of_a_daemon_set_that_is_not_ready_does_not_stop_its_rollout(tmp_path: Path) -> None:
    agent = template("agent")
    daemon: Json = {"selector": selector({"app": "agent"}), "template": agent}
    stored = workload("DaemonSet", "agent", daemon)
    pinned = {name: template("agent", affinity=only_on(name)) for name in ("a1", "b1")}
    agents = [pod(f"agent-{name}", name, own, "DaemonSet/agent") for name, own in pinned.items()]
    agents[0]["status"]["conditions"] = [{"type": "Ready", "status": "False"}]
    changed = json.loads(json.dumps(stored))
    changed["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "9"
    assert after(_applied([*nodes("a1", "b1"), stored, *agents], changed, tmp_path), "agent") == ("1", "1")


def _half_done(old: Sequence[str], new: Sequence[str], replicas: int, **deployment_spec: object) -> list[Json]:
    """Return a Deployment with pods of an older and a newer ReplicaSet; new ones need a node of the pool gpu."""
    web = deployment("web", old)
    revised = template("web", nodeSelector={"pool": "gpu"})
    web[0]["spec"] |= {"replicas": replicas, "template": revised, **deployment_spec}
    labels = {"app": "web", "pod-template-hash": "new"}
    later = {**revised, "metadata": {"labels": labels}}
    web.append(
        workload(
            "ReplicaSet",
            "web-new",
            {"replicas": len(new), "selector": selector(labels), "template": later},
            owner="Deployment/web",
            annotations={"deployment.kubernetes.io/revision": "2"},
        )
    )
    return [*web, *(pod(f"web-new-{number}", on, later, "ReplicaSet/web-new") for number, on in enumerate(new))]


def _gpu(name: str, cpu: int = 8) -> Json:
    added = node(name, cpu=cpu)
    added["metadata"]["labels"]["pool"] = "gpu"
    return added


@pytest.mark.parametrize(
    ("spec", "on_new_nodes"),
    [
        pytest.param({}, 3, id="continued"),
        pytest.param({"paused": True}, 1, id="paused"),
        pytest.param({"strategy": {"type": "Recreate"}}, 3, id="recreated"),
    ],
)
def test_a_rollout_that_has_not_ended_is_continued(spec: Json, on_new_nodes: int) -> None:
    web = _half_done(["a1", "a1", "a1"], [""], 3, **spec)
    report = simulated([*nodes("a1", "b1"), *web, _gpu("g1", cpu=1), pod("x", "g1", template("x"))], "--add", "g1:3")
    assert after(report, "web") == ("4" if spec.get("paused") else "3", "0")
    places = {domain["value"]: domain["pods"]["max"] for domain in report["workloads"][0]["domains"]}
    assert places["g"] == on_new_nodes


def test_a_rollout_of_which_no_new_pod_is_there_yet_is_continued() -> None:
    web = _half_done(["a1", "a1"], [], 2)
    assert after(simulated([*nodes("a1", "b1"), *web, _gpu("g1")], "--delete", "b1"), "web") == ("2", "0")


def test_new_pods_have_what_admission_gave_to_others() -> None:
    """Their template has no priority, only the name of its class."""
    web = _half_done(["a1", "a1"], [], 2)
    for each in web[2:4]:
        each["spec"]["priority"] = 1000
    low = deployment("low", [""], nodeSelector={"pool": "gpu"})
    cluster = [*nodes("a1"), *web, *low, _gpu("g1", cpu=1), pod("x", "g1", template("x"))]
    report = simulated(cluster, "--scale", "deploy/low=1", "--add", "g1:1", "--runs", "20")
    assert after(report, "low") == ("0", "1")


@pytest.mark.parametrize(
    ("pods", "before", "replicas", "left"),
    [
        pytest.param((6, 3), 8, 12, (9, 4), id="larger: both have more"),
        pytest.param((6, 3), 8, 4, (3, 2), id="smaller: both have fewer"),
        pytest.param((4, 3), 8, 12, (9, 4), id="what remains goes to the largest"),
        pytest.param((4, 4), 7, 8, (4, 5), id="the newest of equal ones has more"),
        pytest.param((6, 3), 8, 0, (0, 0), id="nothing"),
    ],
)
def test_a_deployment_that_is_rolled_out_is_scaled_in_proportion(
    pods: tuple[int, int], before: int, replicas: int, left: tuple[int, int]
) -> None:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 1}}
    old, new = pods
    web = _half_done(["a1"] * old, [""] * new, before, strategy=strategy)
    report = simulated([*nodes("a1", cpu=40), *web], "--scale", f"deploy/web={replicas}")
    assert after(report, "web") == tuple(map(str, left))


@pytest.mark.parametrize(
    ("status", "partition", "on_new_nodes"),
    [
        pytest.param({"updateRevision": "2"}, 0, 3, id="all are replaced"),
        pytest.param({"updateRevision": "2"}, 1, 2, id="to the partition"),
        pytest.param({}, 0, 1, id="without its status nobody knows"),
    ],
)
@pytest.mark.parametrize("start", [0, 5])
def test_a_rollout_of_a_stateful_set_that_has_not_ended_is_continued(
    status: Json, partition: int, on_new_nodes: int, start: int
) -> None:
    """The pod that has the new revision waits, as it does after the loss of its node, or since the rollout began."""
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": partition}}
    db = stateful_set("db", ["a1", "", "a1"], updateStrategy=strategy, ordinals={"start": start})
    db[0]["status"] = status
    db[0]["spec"]["template"]["spec"]["nodeSelector"] = db[2]["spec"]["nodeSelector"] = {"pool": "gpu"}
    for number, (each, revision) in enumerate(zip(db[1:], ["1", "2", "1"], strict=True), start):
        each["metadata"]["name"] = f"db-{number}"
        each["metadata"]["labels"]["controller-revision-hash"] = revision
    report = simulated([*nodes("a1"), *db, _gpu("g1", cpu=1), pod("x", "g1", template("x"))], "--add", "g1:3")
    assert after(report, "db") == ("3", "0")
    (row,) = (row for row in report["workloads"] if row["workload"]["name"] == "db")
    assert [domain["pods"]["max"] for domain in row["domains"] if domain["value"] == "g"] == [on_new_nodes]


def test_a_second_rollout_replaces_the_pods_of_the_first_one(tmp_path: Path) -> None:
    db = stateful_set("db", ["a1"])
    changed = json.loads(json.dumps(db[0]))
    changed["spec"]["template"]["spec"]["nodeSelector"] = {"pool": "gpu"}
    path = tmp_path / "manifest.json"
    path.write_text(json.dumps(changed), encoding="utf-8")
    report = simulated([*nodes("a1"), *db], "--restart", "sts/db", "--apply", str(path))
    assert after(report, "db") == ("0", "1")


def test_a_paused_deployment_is_not_rolled_out(tmp_path: Path) -> None:
    web = deployment("web", ["a1"])
    web[0]["spec"]["paused"] = True
    answer = command([*SIX, *web], "--restart", "deploy/web")
    assert (answer.exit_code, answer.stderr) == (2, "error: deploy/web is paused, so it is not rolled out\n")
    changed = json.loads(json.dumps(web[0]))
    changed["spec"]["template"]["spec"]["nodeSelector"] = {"pool": "gpu"}
    report = _applied([*SIX, *web], changed, tmp_path)
    assert (report["events"], after(report, "web")) == (["apply deploy/web, which is paused"], ("1", "0"))


def test_a_run_does_not_know_what_another_one_has_changed() -> None:
    """A later run would take the ReplicaSet of an earlier one for the one that is rolled out."""
    web = _half_done(["a1", "a1"], [""], 2)
    cluster = [*nodes("a1", "b1"), *web, _gpu("g1", cpu=1), pod("x", "g1", template("x"))]
    report = simulated(cluster, "--add", "g1:2", "--restart", "deploy/web", "--runs", "5")
    assert after(report, "web") == ("2", "1")


def _applied(cluster: list[Json], manifest: Json, directory: Path, *arguments: str) -> Any:
    path = directory / "manifest.json"
    path.write_text(json.dumps(manifest), encoding="utf-8")
    return simulated(cluster, "--apply", str(path), *arguments)


def test_pods_of_a_higher_priority_are_placed_first_and_could_preempt() -> None:
    low, high = deployment("low", ["a1"], priority=1), deployment("high", ["b1"], priority=1000)
    report = simulated([*nodes("a1", "b1", "c1", cpu=1), *low, *high], "--delete", "a1,b1")
    assert (after(report, "high"), after(report, "low")) == (("1", "0"), ("0", "1"))
    full = [*nodes("a1", "b1", cpu=1), *low, *high]
    report = simulated(full, "--delete", "b1")
    assert after(report, "high") == ("0", "1")
    assert "preemption (1 pod could preempt others)" in report["summary"]["notSimulated"]


def test_pods_that_never_preempt_may_be_placed_after_others() -> None:
    low = deployment("low", ["a1"])
    high = deployment("high", ["b1"], priority=1000, preemptionPolicy="Never")
    report = simulated([*nodes("a1", "b1", "c1", cpu=1), *low, *high], "--delete", "a1,b1", "--runs", "20")
    assert (after(report, "high"), after(report, "low")) == (("0..1", "0..1"), ("0..1", "0..1"))
    assert report["summary"]["notSimulated"] == []


def test_pods_that_found_no_node_may_always_come_last() -> None:
    web, late = deployment("web", ["a1"] * 12), deployment("late", [""])
    report = simulated([*nodes("a1", cpu=12), *web, *late], "--restart", "deploy/web", "--runs", "20")
    assert after(report, "late") == ("0..1", "0..1")
    assert after(report, "web")[1].startswith("0")


@pytest.mark.parametrize(("replicas", "left_out"), [(1, []), (2, []), (3, ["quotas (they could refuse new pods)"])])
def test_quotas_could_matter_where_pods_are_added(replicas: int, left_out: list[str]) -> None:
    cluster = [*SIX, *deployment("web", ["a1", "b1"])]
    report = simulated(cluster, "--scale", f"deploy/web={replicas}", "--delete", "c1")
    assert report["summary"]["notSimulated"] == left_out


def test_events_happen_in_the_order_given() -> None:
    cluster = [*nodes("a1", "b1"), *deployment("web", ["a1", "a1"])]
    events = ("--scale", "deploy/web=1", "--delete", "a1", "--scale", "deploy/web=3")
    assert simulated(cluster, *events)["events"] == [
        "scale deploy/web from 2 to 1 replica",
        "delete node a1: 1 of 2 nodes, 1 of 1 pod",
        "scale deploy/web from 1 to 3 replicas",
    ]


def test_the_same_input_seed_and_runs_give_the_same_bytes() -> None:
    cluster = [*SIX, *deployment("web", ["a1", "a2", "b1", "c1"]), *deployment("api", ["a1", "a2", "b2"])]
    arguments = ("--delete", "zone=a", "--runs", "10", "-o", "json")
    assert command(cluster, *arguments).stdout == command(cluster, *arguments).stdout
    assert command(cluster, *arguments, "--seed", "7").exit_code == 0


def test_results_that_are_not_determined_are_ranges() -> None:
    web, api = deployment("web", ["a1"]), deployment("api", ["a1"])
    cluster = [*nodes("a1", "b1", cpu=2), pod("full", "b1", template("full")), *web, *api]
    report = simulated(cluster, "--delete", "a1", "--runs", "20")
    assert (after(report, "web"), after(report, "api")) == (("0..1", "0..1"), ("0..1", "0..1"))
    assert report["summary"]["pending"] == {"min": 1, "max": 1}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--delete", "zone=x"), "error: no node has zone=x (nodes have a, b, c)"),
        (("--delete", "zone=eu-1x"), "no node has zone=eu-1x"),
        (
            ("--delete", "zone=a,b"),
            '--delete: "zone=a,b" mixes KEY=VALUE and names: write zone=a,zone=b, or repeat --delete',
        ),
        (("--drain", "a11"), 'error: no node is named "a11"; did you mean "a1"?'),
        (("--scale", "deploy/webb=3"), 'deployments "webb" not found in what was read; did you mean deploy/web?'),
        (("--scale", "deploy/web"), '--scale: "deploy/web" is not TYPE/NAME=REPLICAS'),
        (("--restart", "rs/web-5d9c"), "rs/web-5d9c has no rollout"),
        (("--add", "zone=a:x"), '--add: "zone=a:x" is not KEY=VALUE:NUMBER'),
        (("--apply", "missing.yaml"), "missing.yaml"),
        ((), "nothing happens: give at least one event"),
    ],
)
def test_bad_events_end_with_status_2(arguments: tuple[str, ...], message: str) -> None:
    answer = command([*SIX, *deployment("web", ["a1"])], *arguments)
    assert answer.exit_code == 2
    assert message in answer.stderr


@pytest.mark.parametrize("arguments", [("simulate", "--delete", "a1"), ("plan",)])
def test_a_namespace_without_workloads_is_named(arguments: tuple[str, ...], tmp_path: Path) -> None:
    path = tmp_path / "cluster.json"
    empty = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "empty"}}
    objects = [*SIX, *deployment("web", ["a1"]), empty]
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}), encoding="utf-8")
    for namespace, status, message in (
        ("shop", 0, ""),
        ("shoop", 2, 'error: namespace "shoop" not found in the files; did you mean "shop"?\n'),
        ("empty", 0, "No resources found in empty namespace."),
    ):
        answer = run(*arguments, "-f", str(path), "-n", namespace)
        assert (answer.exit_code, message in answer.stderr) == (status, True), answer.stderr
        assert ("No resources found" in answer.stderr) is (namespace == "empty")


def test_a_file_that_cannot_be_read_is_the_only_error(tmp_path: Path) -> None:
    path = tmp_path / "cluster.json"
    path.write_text('{"apiVersion": "v1", "kind": "List", "items": [', encoding="utf-8")
    answer = run("simulate", "-f", str(path), "--delete", "a1")
    assert (answer.exit_code, "capture nodes" in answer.stderr) == (2, False)
    assert "cluster.json:1" in answer.stderr


def test_a_capture_without_nodes_or_owners_says_what_is_missing() -> None:
    web = deployment("web", ["a1"])
    answer = command(web, "--delete", "a1")
    assert (answer.exit_code, "capture nodes as well" in answer.stderr) == (2, True)
    answer = command([*SIX, web[-1]], "--delete", "a1")
    assert answer.exit_code == 2
    assert "the owners of pods are missing (rs/web-5d9c): capture deployments,replicasets" in answer.stderr


@pytest.mark.parametrize("form", ["table", "wide", "markdown", "html", "yaml"])
def test_each_format_names_the_pending_workload_and_the_fix(form: str) -> None:
    cluster = [*SIX, *deployment("web", ["a1", "b1", "c1"], **HARD)]
    text = command(cluster, "--drain", "zone=a", "--runs", "2", "-o", form).stdout
    assert "nodeTaintsPolicy" in text
    assert "web" in text


@pytest.mark.parametrize(
    "owner", ["Deployment/web", "Job/web", "CronJob/web", "Service/web", "Node/a1", "Cassandra/db"]
)
@pytest.mark.parametrize("event", [("--drain", "zone=a"), ("--restart", "deploy/web"), ("--scale", "deploy/web=3")])
def test_owners_of_an_unusual_kind_do_not_end_a_simulation(owner: str, event: tuple[str, str]) -> None:
    """The Deployment has no ReplicaSet, and perhaps a pod or an object that no Deployment has."""
    made = template("web")
    spec = {"replicas": 2, "selector": selector({"app": "web"}), "template": made}
    objects = [*nodes("a1", "b1"), workload("Deployment", "web", spec), pod("web-1", "a1", made, owner)]
    if owner == "Job/web":
        objects.append(workload("Job", "web", {"template": made}, version="batch/v1", owner="Deployment/web"))
    answer = command(objects, *RUNS, *event, "-n", "shop")
    assert answer.exit_code in (0, 1, 2)
    assert "this is a bug" not in answer.stderr


def test_owners_in_a_circle_do_not_end_a_simulation() -> None:
    made = template("web")
    spec = {"replicas": 1, "selector": selector({"app": "web"}), "template": made}
    circle = [
        workload("Deployment", "web", spec, owner="ReplicaSet/web"),
        workload("ReplicaSet", "web", spec, owner="Deployment/web"),
    ]
    answer = command([*nodes("a1", "b1"), *circle, pod("web-1", "a1", made, "ReplicaSet/web")], *RUNS, "--drain", "a1")
    assert answer.exit_code in (0, 1, 2)
    assert "this is a bug" not in answer.stderr


def test_seconds_limit_runs_and_trials_together() -> None:
    spread: dict[str, Any] = {"topologySpreadConstraints": [zone_constraint("web")]}
    cluster = [*nodes("a1", "b1"), *deployment("web", ["a1", "b1"], **spread)]
    answer = command(cluster, "--drain", "a1", "--seconds", "0")
    assert "1 simulated run; others may end differently." in answer.stdout
    assert "Fix" not in answer.stdout
    assert "not all fixes were tried within --seconds (0): a longer time may find one" in answer.stderr
