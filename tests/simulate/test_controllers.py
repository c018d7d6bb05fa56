"""Controllers and filters by which pods wait, or are not replaced: ports, gates, claims, strategies, Jobs, budgets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.builders import HOSTNAME, Json, constraint, selector
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
)

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def applied(cluster: list[Json], manifest: Json, directory: Path, *arguments: str) -> Any:
    path = directory / "manifest.json"
    path.write_text(json.dumps(manifest), encoding="utf-8")
    return simulated(cluster, "--apply", str(path), *arguments)


def copied(value: Any) -> Any:
    return json.loads(json.dumps(value))


def ports(*each: Json) -> list[Json]:
    return [{"name": "app", "image": "app", "ports": list(each)}]


@pytest.mark.parametrize(
    ("moved", "stays", "fits"),
    [
        ({"hostPort": 80}, {"hostPort": 80}, False),
        ({"hostPort": 80}, {"hostPort": 80, "protocol": "UDP"}, True),
        ({"hostPort": 80}, {"hostPort": 81}, True),
        ({"hostPort": 80, "hostIP": "10.0.0.1"}, {"hostPort": 80, "hostIP": "10.0.0.2"}, True),
        ({"hostPort": 80, "hostIP": "10.0.0.1"}, {"hostPort": 80, "hostIP": "10.0.0.1"}, False),
        ({"hostPort": 80, "hostIP": "10.0.0.1"}, {"hostPort": 80, "hostIP": "0.0.0.0"}, False),
        ({"hostPort": 80}, {"hostPort": 80, "hostIP": "10.0.0.1"}, False),
        ({"containerPort": 80}, {"hostPort": 80}, True),
    ],
)
def test_a_port_of_a_node_has_one_pod_by_protocol_and_address(moved: Json, stays: Json, *, fits: bool) -> None:
    web, other = (
        deployment("web", ["a1"], containers=ports(moved)),
        deployment("other", ["b1"], containers=ports(stays)),
    )
    report = simulated([*nodes("a1", "b1"), *web, *other], "--delete", "a1")
    assert after(report, "web") == (("1", "0") if fits else ("0", "1"))
    if not fits:
        assert reasons(report, "web")[0].startswith("1 node: port 80/TCP")


def test_the_network_of_the_node_takes_all_ports() -> None:
    own: dict[str, Any] = {"hostNetwork": True, "containers": ports({"containerPort": 9100})}
    report = simulated([*nodes("a1", "b1"), *deployment("web", ["a1", "b1"], **own)], "--delete", "b1")
    assert (after(report, "web"), reasons(report, "web")) == (("1", "1"), ["1 node: port 9100/TCP is taken"])


def test_pods_wait_for_the_gates_of_their_template(tmp_path: Path) -> None:
    web = deployment("web", ["a1", "b1"])
    changed = copied(web[0])
    changed["spec"]["template"]["spec"]["schedulingGates"] = [{"name": "example.com/quota"}]
    report = applied([*nodes("a1", "b1"), *web], changed, tmp_path)
    assert (after(report, "web"), reasons(report, "web")) == (
        ("2", "1"),
        ["it has scheduling gates: example.com/quota"],
    )


@pytest.mark.parametrize(("name", "numbers"), [("b1", ("2", "0")), ("b9", ("2", "1"))])
def test_a_template_may_name_the_node(name: str, numbers: tuple[str, str], tmp_path: Path) -> None:
    """No scheduler is asked, so that a cordon does not matter."""
    web = deployment("web", ["a1", "a1"])
    changed = copied(web[0])
    changed["spec"]["template"]["spec"]["nodeName"] = name
    report = applied([node("a1"), node("b1", cordoned=True), *web], changed, tmp_path)
    assert after(report, "web") == numbers
    assert reasons(report, "web") == ([] if name == "b1" else ["its nodeName is b9, and no node has this name"])


def test_a_claim_of_one_pod_keeps_the_next_one_waiting() -> None:
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", "namespace": "shop", "uid": "data"},
        "spec": {"volumeName": "pv", "accessModes": ["ReadWriteOncePod"]},
    }
    volume = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "pv", "uid": "pv"}, "spec": {}}
    cluster = [*nodes("a1", "b1"), *deployment("web", ["a1"], volumes=volumes), claim, volume]
    report = simulated(cluster, "--restart", "deploy/web")
    assert (after(report, "web"), reasons(report, "web")) == (
        ("1", "1"),
        ["its claim data is ReadWriteOncePod, and pod web-5d9c-0 uses it"],
    )
    assert after(simulated(cluster, "--drain", "a1"), "web") == ("1", "0")


def test_a_replica_set_with_an_edited_template_makes_pods_of_it() -> None:
    stored = template("web")
    own = {"replicas": 2, "selector": selector({"app": "web"}), "template": template("web", cpu="7")}
    pods = [pod(f"web-{place}", place, stored, "ReplicaSet/web") for place in ("a1", "b1")]
    report = simulated([*nodes("a1", "b1"), workload("ReplicaSet", "web", own), *pods], "--drain", "a1")
    assert (after(report, "web"), reasons(report, "web")) == (("2", "0"), [])
    report = simulated(
        [*nodes("a1", "b1"), workload("ReplicaSet", "web", own), *pods], "--delete", "a1", "--scale", "rs/web=3"
    )
    assert after(report, "web") == ("2", "1")


def revised(strategy: Json) -> list[Json]:
    """Return a StatefulSet of four whose template asks for more than its pods have."""
    own = stateful_set("db", ["a1", "b1", "a1", "b1"], updateStrategy=strategy)
    for each in own[1:]:
        each["metadata"]["labels"]["controller-revision-hash"] = "old"
    own[0]["spec"]["template"] = template("db", cpu="3")
    own[0]["status"] = {"currentRevision": "old", "updateRevision": "new"}
    return own


@pytest.mark.parametrize(
    ("strategy", "numbers"),
    [
        ({"type": "OnDelete"}, ("3", "1")),
        # db-3 and db-2 are replaced on what they leave, and db-1 comes back as it was.
        ({"type": "RollingUpdate", "rollingUpdate": {"partition": 4}}, ("4", "0")),
    ],
)
def test_a_stateful_set_makes_pods_of_the_revision_of_their_ordinal(strategy: Json, numbers: tuple[str, str]) -> None:
    report = simulated([*nodes("a1", cpu=5), *nodes("b1", cpu=2), *revised(strategy)], "--drain", "b1")
    assert after(report, "db") == numbers


@pytest.mark.parametrize("version", ["1.37", "1.38"])
def test_recreate_deletes_all_pods_first(version: str, tmp_path: Path) -> None:
    """1.37 refuses the strategy, because the gate is off."""
    own = stateful_set("db", ["a1", "b1"])
    changed = copied(own[0])
    changed["spec"]["updateStrategy"] = {"type": "Recreate"}
    changed["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "9"
    path = tmp_path / "manifest.json"
    path.write_text(json.dumps(changed), encoding="utf-8")
    arguments = ("--apply", str(path), "--server-version", version)
    if version == "1.37":
        answer = command([*nodes("a1", "b1"), *own], *arguments)
        assert (answer.exit_code, "must be 'RollingUpdate' or 'OnDelete'" in answer.stderr) == (2, True)
    else:
        # One by one the rollout would stop at db-1, and db-0 would run.
        assert after(simulated([*nodes("a1", "b1"), *own], *arguments), "db") == ("0", "1")


def daemon_set(strategy: Json, *, cpu: str = "1") -> list[Json]:
    spec = {"selector": selector({"app": "agent"}), "template": template("agent", cpu=cpu), "updateStrategy": strategy}
    pods = [pod(f"agent-{place}", place, template("agent", cpu=cpu), "DaemonSet/agent") for place in ("a1", "b1", "c1")]
    return [workload("DaemonSet", "agent", spec), *pods]


@pytest.mark.parametrize(
    ("strategy", "numbers"),
    [
        ({"type": "OnDelete"}, ("3", "0")),
        ({}, ("2", "1")),
        ({"rollingUpdate": {"maxUnavailable": 2}}, ("1", "2")),
        ({"rollingUpdate": {"maxUnavailable": "50%"}}, ("1", "2")),
        ({"rollingUpdate": {"maxUnavailable": 0, "maxSurge": 2}}, ("3", "2")),
    ],
)
def test_a_daemon_set_rolls_out_by_its_strategy(strategy: Json, numbers: tuple[str, str], tmp_path: Path) -> None:
    own = daemon_set(strategy)
    changed = copied(own[0])
    changed["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "9"
    report = applied([*nodes("a1", "b1", "c1"), *own], changed, tmp_path)
    assert after(report, "agent") == numbers


def test_a_surge_of_a_daemon_set_needs_room_for_both_pods() -> None:
    strategy = {"rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}}
    assert after(simulated([*nodes("a1", "b1", "c1"), *daemon_set(strategy)], "--restart", "ds/agent"), "agent") == (
        "3",
        "0",
    )
    full = [*nodes("a1", "b1", "c1", cpu=4), *daemon_set(strategy, cpu="3")]
    assert after(simulated(full, "--restart", "ds/agent"), "agent") == ("3", "1")


def test_nodes_that_replace_lost_ones_have_the_pods_of_daemon_sets() -> None:
    report = simulated([*nodes("a1", "b1", "c1"), *daemon_set({})], "--delete", "a1", "--add", "a1:2")
    assert after(report, "agent") == ("4", "0")


@pytest.mark.parametrize(
    ("generations", "numbers"),
    [
        # The rollout continues where the pod of the new template runs, and the next one finds no room.
        ({"a1": "2", "b1": "1", "c1": "1"}, ("2", "1")),
        ({"a1": "2", "b1": "2", "c1": "2"}, ("3", "0")),
        # Nothing tells of which template they are.
        ({"a1": "", "b1": "", "c1": ""}, ("3", "0")),
    ],
)
def test_a_rollout_of_a_daemon_set_that_had_stopped_continues(
    generations: dict[str, str], numbers: tuple[str, str]
) -> None:
    daemon, *pods = daemon_set({})
    daemon["metadata"]["annotations"] = {"deprecated.daemonset.template.generation": "2"}
    daemon["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "3"
    for each, (place, generation) in zip(pods, generations.items(), strict=True):
        hashed = {"controller-revision-hash": f"h{generation}", "pod-template-generation": generation}
        each["metadata"]["labels"] |= hashed if generation else {}
        each["spec"]["affinity"] = only_on(place)
    pods[0]["spec"] |= {"containers": daemon["spec"]["template"]["spec"]["containers"]}
    del pods[0]["spec"]["nodeName"]
    pods[0]["status"] = {"phase": "Pending"}
    full = [*nodes("a1", "b1", "c1", cpu=3), daemon, *pods, *deployment("web", ["a1"]), *deployment("api", ["b1"])]
    more = deployment("more", ["c1"])
    assert after(simulated([*full, *more], "--scale", "deploy/web=0"), "agent") == numbers


def test_a_daemon_set_makes_the_pods_of_new_nodes_from_its_template() -> None:
    """With the strategy OnDelete its other pods stay as they are."""
    own = daemon_set({"type": "OnDelete"})
    own[0]["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "9"
    assert after(simulated([*nodes("a1", "b1", "c1"), *own], "--add", "a1:1"), "agent") == ("3", "1")


@pytest.mark.parametrize(
    ("fields", "numbers"),
    [
        ({"backoffLimitPerIndex": 0}, ("1", "0")),
        ({"backoffLimitPerIndex": 1}, ("3", "0")),
        ({"backoffLimitPerIndex": 0, "maxFailedIndexes": 1}, ("0", "0")),
        (
            {
                "backoffLimitPerIndex": 1,
                "podFailurePolicy": {
                    "rules": [{"action": "FailIndex", "onPodConditions": [{"type": "DisruptionTarget"}]}]
                },
            },
            ("1", "0"),
        ),
    ],
)
def test_an_index_of_a_job_fails_by_its_own_limit(fields: Json, numbers: tuple[str, str]) -> None:
    spec = {
        "template": template("work", restartPolicy="Never"),
        "completionMode": "Indexed",
        "parallelism": 3,
        **fields,
    }
    pods = [pod(f"work-{index}-x", on, template("work"), "Job/work") for index, on in enumerate(("a1", "a1", "b1"))]
    job = workload("Job", "work", spec, version="batch/v1")
    report = simulated([*nodes("a1", "b1"), job, *pods], "--drain", "a1")
    numbers_after = after(report, "work") if numbers != ("0", "0") else ("0", "0")
    assert numbers_after == numbers
    assert bool(report["summary"]["unknown"]) is (
        fields.get("backoffLimitPerIndex") == 1 and "podFailurePolicy" not in fields
    )


def test_a_failed_index_of_a_job_is_an_error() -> None:
    spec = {"template": template("work"), "completionMode": "Indexed", "backoffLimitPerIndex": 0, "parallelism": 3}
    pods = [pod(f"work-{index}-x", on, template("work"), "Job/work") for index, on in enumerate(("a1", "a1", "b1"))]
    cluster = [*nodes("a1", "b1"), workload("Job", "work", spec, version="batch/v1"), *pods]
    report = simulated(cluster, "--drain", "a1")
    assert report["summary"]["notReplaced"] == {"min": 2, "max": 2}
    (finding,) = report["findings"]
    assert finding["severity"] == "error"
    assert finding["message"].startswith("2 pods of job/work are not replaced: an index of a Job fails with its pod")
    answer = command(cluster, *RUNS, "--drain", "a1")
    assert (answer.exit_code, "2 pods are not replaced." in answer.stdout) == (1, True)
    del spec["backoffLimitPerIndex"]
    assert simulated(cluster, "--drain", "a1")["findings"] == []


def test_a_budget_without_a_limit_refuses_each_eviction() -> None:
    """The disruption controller expects no pods for it."""
    report = simulated([*nodes("a1", "b1"), *deployment("web", ["a1"]), budget("web")], "--drain", "a1")
    assert [each["budget"] for each in report["refusedEvictions"]] == ["web"]


@pytest.mark.parametrize("limit", [{"maxUnavailable": 1}, {"minAvailable": "10%"}, {"maxUnavailable": "50%"}])
def test_a_budget_that_expects_no_pods_refuses_each_eviction(limit: Json) -> None:
    """Only pods with a controller are expected, unless minAvailable is a number."""
    bare = [pod(f"b{number}", "a1", template("b")) for number in range(3)]
    report = simulated([*nodes("a1", "b1"), *bare, budget("b", **limit)], "--drain", "a1")
    assert report["summary"]["lost"] == 0
    assert len(report["refusedEvictions"]) == 3
    report = simulated([*nodes("a1", "b1"), *bare, budget("b", minAvailable=1)], "--drain", "a1")
    assert report["summary"]["stopped"] == {"min": 2, "max": 2}


def test_a_drain_continues_after_a_pod_with_two_budgets() -> None:
    web, other = deployment("web", ["a1", "b1"]), deployment("other", ["a1", "b1"])
    cluster = [*nodes("a1", "b1", "c1"), *web, *other, budget("web", minAvailable=0), budget("web-2", minAvailable=0)]
    cluster[-1]["spec"]["selector"] = selector({"app": "web"})
    report = simulated(cluster, "--drain", "a1,b1")
    lost = {each["workload"]["name"]: each["lost"] for each in report["workloads"]}
    assert lost == {"other": 2, "web": 0}
    assert [each["pod"] for each in report["refusedEvictions"]] == ["web-5d9c-0", "web-5d9c-1"]


def test_a_deployment_undoes_the_scale_of_its_replica_set() -> None:
    report = simulated([*nodes("a1", "b1"), *deployment("web", ["a1", "b1"])], "--scale", "rs/web-5d9c=6")
    assert (report["events"], after(report, "web")) == (["scale rs/web-5d9c to 6, which deploy/web undoes"], ("2", "0"))


@pytest.mark.parametrize(("last", "running"), [({"replicas": 3}, "1"), ({}, "3"), (None, "3")])
def test_replicas_that_kubectl_had_applied_get_their_default(last: Json | None, running: str, tmp_path: Path) -> None:
    web = deployment("web", ["a1", "a1", "b1"])
    if last is not None:
        web[0]["metadata"]["annotations"] = {LAST_APPLIED: json.dumps({"spec": last})}
    silent = copied(web[0])
    del silent["spec"]["replicas"]
    assert after(applied([*nodes("a1", "b1"), *web], silent, tmp_path), "web") == (running, "0")


@pytest.mark.parametrize(("last", "numbers"), [({"paused": True}, ("2", "1")), ({}, ("2", "0"))])
def test_a_rollout_resumes_where_a_manifest_no_longer_pauses_it(
    last: Json, numbers: tuple[str, str], tmp_path: Path
) -> None:
    web = deployment("web", ["a1", "b1"])
    web[0]["spec"] |= {"paused": True, "template": template("web", cpu="9")}
    web[0]["metadata"]["annotations"] = {LAST_APPLIED: json.dumps({"spec": last})}
    manifest = copied(web[0])
    del manifest["spec"]["paused"]
    assert after(applied([*nodes("a1", "b1"), *web], manifest, tmp_path), "web") == numbers


def test_a_template_has_the_priority_of_its_class() -> None:
    high = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 1000}
    web = deployment("web", [], priorityClassName="high")
    full = [*nodes("a1", cpu=2), *deployment("low", ["a1", "a1"], priority=1), *web, high]
    summary = simulated(full, "--scale", "deploy/web=1")["summary"]
    assert "preemption (1 pod could preempt others)" in summary["unknown"]
    unread = simulated(full[:-1], "--scale", "deploy/web=1")["summary"]
    assert unread["unknown"] == ["the priority of the pods of rs/web-5d9c (PriorityClass high was not read)"]


@pytest.mark.parametrize("cpu", ["1", "9"])
def test_preemption_is_named_only_where_it_would_make_room(cpu: str) -> None:
    high = deployment("high", ["b1"], priority=1000, cpu=cpu)
    full = [*nodes("a1", cpu=1), *nodes("b1", cpu=9), *deployment("low", ["a1"], priority=1), *high]
    assert bool(simulated(full, "--delete", "b1")["summary"]["unknown"]) is (cpu == "1")


def test_the_ports_of_a_hostname_constraint_are_named_in_the_reason() -> None:
    own: dict[str, Any] = {"containers": ports({"hostPort": 80}), "nodeSelector": {HOSTNAME: "a1"}}
    report = simulated([*nodes("a1", "b1"), *deployment("web", ["a1"], **own)], "--scale", "deploy/web=2")
    assert "port 80/TCP is taken" in reasons(report, "web")[0]


def autoscaled(least: int = 2, most: int = 4) -> list[Json]:
    """Return a Deployment of three pods, and its autoscaler."""
    scaler = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web", "namespace": "shop", "uid": "hpa-web"},
        "spec": {
            "scaleTargetRef": {"kind": "Deployment", "name": "web"},
            "minReplicas": least,
            "maxReplicas": most,
        },
    }
    return [*nodes("a1", "b1"), *deployment("web", ["a1", "b1", "a1"]), scaler]


@pytest.mark.parametrize(("replicas", "running"), [(9, 4), (1, 2), (4, 4), (0, 0)])
def test_an_autoscaler_brings_replicas_inside_its_bounds(replicas: int, running: int) -> None:
    """It does not scale a workload that has none."""
    report = simulated(autoscaled(), "--scale", f"deploy/web={replicas}")
    assert report["summary"]["unknown"] == []
    numbers = f"scale deploy/web from 3 to {replicas} replica{'' if replicas == 1 else 's'}"
    undone = f", which HorizontalPodAutoscaler web (2 to 4 replicas) brings to {running}"
    assert report["events"] == [numbers if running == replicas else f"{numbers}{undone}"]
    assert after(report, "web") == (str(running), "0")


def test_an_autoscaler_brings_the_replicas_of_a_manifest_inside_its_bounds(tmp_path: Path) -> None:
    cluster = autoscaled()
    manifest = copied(next(each for each in cluster if each["kind"] == "Deployment"))
    manifest["spec"]["replicas"] = 8
    report = applied(cluster, manifest, tmp_path)
    assert after(report, "web") == ("4", "0")
    assert report["events"][0].endswith(", which HorizontalPodAutoscaler web (2 to 4 replicas) brings to 4")
    manifest["spec"]["template"]["metadata"]["annotations"] = {"rev": "2"}
    assert after(applied(cluster, manifest, tmp_path), "web") == ("4", "0")


def tolerating(*keys: str) -> dict[str, Any]:
    return {"tolerations": [{"key": key, "operator": "Exists"} for key in keys]}


def test_a_toleration_that_a_manifest_no_longer_has_is_gone(tmp_path: Path) -> None:
    """Those that admission adds to each pod stay."""
    tainted = [node(name, taints=[{"key": "gpu", "effect": "NoSchedule"}]) for name in ("a1", "b1")]
    web = deployment("web", ["a1", "b1"], **tolerating("gpu"))
    for each in web[2:]:
        each["spec"]["tolerations"] = [*each["spec"]["tolerations"], {"key": "added", "operator": "Exists"}]
    manifest = copied(web[0])
    del manifest["spec"]["template"]["spec"]["tolerations"]
    assert after(applied([*tainted, *web], manifest, tmp_path), "web")[1] == "1"
    added = [node(name, taints=[{"key": "added", "effect": "NoSchedule"}]) for name in ("a2", "b2")]
    assert after(applied([*tainted, *added, *web], manifest, tmp_path), "web") == ("2", "0")


@pytest.mark.parametrize("edited", [{"nodeSelector": {"disk": "ssd"}}, tolerating("gpu"), {"schedulerName": "other"}])
def test_what_was_edited_in_the_template_of_a_replica_set(edited: Json) -> None:
    web = [each for each in deployment("web", ["a1"]) if each["kind"] != "Deployment"]
    del web[0]["metadata"]["ownerReferences"]
    web[0]["spec"]["template"]["spec"] |= edited
    gpu = node("b1", taints=[{"key": "gpu", "effect": "NoSchedule"}])
    report = simulated([*nodes("a1"), gpu, *web], "--delete", "a1")
    fits = "tolerations" in edited
    if "schedulerName" not in edited:
        assert after(report, "web-5d9c") == (("1", "0") if fits else ("0", "1"))
    unknown = ["the rules of scheduler other, which places the pods of rs/web-5d9c"]
    assert report["summary"]["unknown"] == (unknown if "schedulerName" in edited else [])


def without(removed: str, left: Json, *others: Json, **spec: Any) -> Any:
    """Return the report of a ReplicaSet that lost a field of its template, and then its only node; one node is left."""
    web = [each for each in deployment("web", ["a1"], **spec) if each["kind"] != "Deployment"]
    del web[0]["metadata"]["ownerReferences"]
    del web[0]["spec"]["template"]["spec"][removed]
    return simulated([*nodes("a1"), left, *web, *others], "--delete", "a1")


OTHER = pod("other", "b1", template("other"))
GPU = node("b1", taints=[{"key": "gpu", "effect": "NoSchedule"}])


def test_a_node_selector_that_a_replica_set_no_longer_has_is_gone() -> None:
    """Another pod of the namespace has none, so it is not from admission."""
    report = without("nodeSelector", node("b1"), OTHER, nodeSelector={"disk": "ssd"})
    assert (after(report, "web-5d9c"), report["summary"]["unknown"]) == (("1", "0"), [])


def test_a_toleration_that_a_replica_set_no_longer_has_is_gone() -> None:
    report = without("tolerations", GPU, OTHER, **tolerating("gpu"))
    assert (after(report, "web-5d9c"), report["summary"]["unknown"]) == (("0", "1"), [])


def test_a_toleration_of_a_resource_that_pods_request_is_from_admission() -> None:
    """ExtendedResourceToleration adds it to these pods alone."""
    gpu = "nvidia.com/gpu"
    containers = [{"name": "app", "image": "app", "resources": {"requests": {gpu: "1"}, "limits": {gpu: "1"}}}]
    tainted = node("b1", taints=[{"key": gpu, "effect": "NoSchedule"}])
    tainted["status"]["allocatable"][gpu] = "1"
    report = without("tolerations", tainted, OTHER, containers=containers, **tolerating(gpu))
    assert (after(report, "web-5d9c"), report["summary"]["unknown"]) == (("1", "0"), [])


def test_a_node_selector_that_all_pods_of_a_namespace_have_is_from_admission() -> None:
    selecting = {"disk": "ssd"}
    other = pod("other", "b1", template("other", nodeSelector=selecting))
    report = without("nodeSelector", node("b1"), other, nodeSelector=selecting)
    assert (after(report, "web-5d9c"), report["summary"]["unknown"]) == (("0", "1"), [])


def test_what_may_be_from_admission_or_an_earlier_template_is_not_known() -> None:
    report = without("tolerations", GPU, **tolerating("gpu"))
    text = "whether admission, or an earlier template, gave pods of rs/web-5d9c more"
    assert report["summary"]["unknown"] == [text]


def test_requests_that_a_replica_set_no_longer_has_are_gone() -> None:
    """Another pod of the namespace requests nothing, so no LimitRange has added them."""
    web = [each for each in deployment("web", ["a1"]) if each["kind"] != "Deployment"]
    del web[0]["metadata"]["ownerReferences"]
    web[0]["spec"]["template"]["spec"]["containers"] = [{"name": "app", "image": "app"}]
    idle = template("idle")
    idle["spec"]["containers"] = [{"name": "app", "image": "app"}]
    small = node("b1")
    small["status"]["allocatable"]["cpu"] = "500m"
    report = simulated([*nodes("a1"), small, *web, pod("idle", "b1", idle)], "--delete", "a1")
    assert (after(report, "web-5d9c"), report["summary"]["unknown"]) == (("1", "0"), [])


def limited(on: list[str], *, written: Json | None = None, cpu: str = "3") -> list[Json]:
    """Return a Deployment whose pods got their request of cpu by default, with a rollout of one more pod at a time."""
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    containers = [{"name": "app", "image": "app", "resources": written or {}}]
    web = deployment("web", on, strategy=strategy, containers=containers)
    for each in web[2:]:
        each["spec"]["containers"] = [{"name": "app", "image": "app", "resources": {"requests": {"cpu": cpu}}}]
    return web


SMALL = [*nodes("a1", cpu=4), *nodes("b1", cpu=4)]


def test_a_rollout_keeps_the_requests_that_a_limit_range_gave_to_pods(tmp_path: Path) -> None:
    web = limited(["a1", "b1"])
    assert after(simulated([*SMALL, *web], "--restart", "deploy/web"), "web") == ("2", "1")
    manifest = copied(web[0])
    manifest["spec"]["template"]["metadata"]["labels"]["version"] = "2"
    assert after(applied([*SMALL, *web], manifest, tmp_path), "web") == ("2", "1")
    manifest["spec"]["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "500m"}}
    assert after(applied([*SMALL, *web], manifest, tmp_path), "web") == ("2", "0")


def test_a_rollout_keeps_the_requests_that_a_vertical_pod_autoscaler_gave_to_pods(tmp_path: Path) -> None:
    web = limited(["a1", "b1"], written={"requests": {"cpu": "1"}})
    assert after(simulated([*SMALL, *web], "--restart", "deploy/web"), "web") == ("2", "1")
    manifest = copied(web[0])
    manifest["spec"]["template"]["metadata"]["labels"]["version"] = "2"
    manifest["spec"]["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "2"}}
    assert after(applied([*SMALL, *web], manifest, tmp_path), "web") == ("2", "1")
    more = [*SMALL, *nodes("c1", cpu=2)]
    assert after(applied([*more, *web], manifest, tmp_path), "web") == ("2", "0")


def test_a_rollout_has_other_requests_where_limits_change(tmp_path: Path) -> None:
    """A limit without a request is the request, too."""
    web = limited(["a1", "b1"], written={"limits": {"cpu": "3"}})
    manifest = copied(web[0])
    manifest["spec"]["template"]["spec"]["containers"][0]["resources"] = {"limits": {"cpu": "1"}}
    assert after(applied([*SMALL, *web], manifest, tmp_path), "web") == ("2", "0")


def test_a_rollout_keeps_the_node_selector_and_the_overhead_that_admission_gave_to_pods() -> None:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    web = deployment("web", ["a1"], strategy=strategy)
    web[-1]["spec"] |= {"nodeSelector": {HOSTNAME: "a1"}, "overhead": {"cpu": "5"}}
    assert after(simulated([*nodes("a1", "b1"), *web], "--restart", "deploy/web"), "web") == ("1", "1")
    web[-1]["spec"] |= {"nodeSelector": {}, "overhead": {}}
    assert after(simulated([*nodes("a1", "b1"), *web], "--restart", "deploy/web"), "web") == ("1", "0")


def test_what_admission_gives_to_the_pods_of_a_new_workload_is_not_known(tmp_path: Path) -> None:
    new = deployment("new", ["a1", "b1"], containers=[{"name": "other", "image": "app"}])[0]
    report = applied([*SMALL, *limited(["a1"])], new, tmp_path)
    (text,) = report["summary"]["unknown"]
    assert text.startswith("what admission gives the pods of deploy/new (others of its namespace got requests that ")
    new["spec"]["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1", "memory": "1Gi"}}
    assert applied([*SMALL, *limited(["a1"])], new, tmp_path)["summary"]["unknown"] == []


@pytest.mark.parametrize(("kind", "status"), [("Recreate", 1), ("RollingUpdate", 0)])
def test_finalizers_of_pods_that_a_rollout_waits_for_are_named(kind: str, status: int) -> None:
    web = deployment("web", ["a1"], strategy={"type": kind})
    web[-1]["metadata"]["finalizers"] = ["example.com/f"]
    report = simulated([*nodes("a1", "b1"), *web], "--restart", "deploy/web")
    text = "when finalizers of pods of deploy/web are removed, which its new pods wait for"
    assert report["summary"]["unknown"] == [text] * status


def test_finalizers_of_the_pods_of_a_stateful_set_are_named() -> None:
    db = stateful_set("db", ["a1"])
    db[-1]["metadata"]["finalizers"] = ["example.com/f"]
    report = simulated([*nodes("a1", "b1"), *db], "--drain", "a1")
    assert report["summary"]["unknown"] == [
        "when finalizers of pods of sts/db are removed, which its new pods wait for"
    ]
    assert simulated([*nodes("a1", "b1"), *db], "--restart", "sts/db")["summary"]["unknown"]
    assert not simulated([*nodes("a1", "b1"), *db], "--delete", "b1")["summary"]["unknown"]


def unfinished(report: Any) -> list[str]:
    return [each["message"] for each in report["findings"] if "rollout" in each["message"]]


def test_a_rollout_that_does_not_end_says_so() -> None:
    """A pod that was not ready stays so: it may hold up a rollout in which no pod waits."""
    db = stateful_set("db", ["a1", "b1"])
    db[-1]["status"]["conditions"] = [{"type": "Ready", "status": "False"}]
    db[-2]["status"]["conditions"] = [{"type": "Ready", "status": "False"}]
    report = simulated([*nodes("a1", "b1"), *db], "--restart", "sts/db", "--server-version", "1.36")
    assert unfinished(report) == ["The rollout of sts/db would not end: 2 pods are not replaced."]
    full = [*nodes("a1", cpu=1), *deployment("web", ["a1"], strategy={"rollingUpdate": {"maxUnavailable": 0}})]
    report = simulated(full, "--restart", "deploy/web")
    assert unfinished(report) == ["The rollout of deploy/web would not end: 1 pod is not replaced."]
    agents = daemon_set({"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}, cpu="8")
    report = simulated([*nodes("a1", "b1", "c1"), *agents], "--restart", "ds/agent")
    assert unfinished(report) == ["The rollout of ds/agent would not end: 3 pods are not replaced."]
    assert unfinished(simulated([*nodes("a1", "b1"), *deployment("web", ["a1"])], "--restart", "deploy/web")) == []


@pytest.mark.parametrize(
    ("event", "numbers"), [(("--restart", "sts/db"), ("2", "1")), (("--scale", "sts/db=4"), ("3", "1"))]
)
def test_pods_that_the_api_server_refuses_never_run(event: tuple[str, str], numbers: tuple[str, str]) -> None:
    """It accepts the template, and refuses its pods: their label is required once and merged again."""
    cluster = [*nodes("a1", "b1", "c1"), *stateful_set("db", ("a1", "b1", "c1"))]
    stored = copied(cluster)
    labelled = stored[3]["spec"]["template"]
    labelled["metadata"]["labels"]["rev"] = "1"
    twice = constraint(selects=selector({"app": "db", "rev": "1"}), match=("rev",))
    labelled["spec"]["topologySpreadConstraints"] = [twice]
    report = simulated(stored, *event)
    assert after(report, "db") == numbers
    assert all("the API server refuses pods of its template" in reason for reason in reasons(report, "db"))
    assert "pods of its template" in report["findings"][0]["message"]
    assert command(stored, *event).exit_code == 1
    assert command(cluster, *event).exit_code == 0


def test_a_rollout_that_does_not_end_continues_with_another_strategy() -> None:
    """Each of the two nodes has a pod that repels new ones until one may go first."""
    term = {"topologyKey": HOSTNAME, "labelSelector": selector({"app": "web"})}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}}
    cluster = [*nodes("a1", "b1"), *deployment("web", ("a1", "b1"), strategy=strategy, affinity=apart)]
    (finding, _) = simulated(cluster, "--restart", "deploy/web")["findings"]
    assert finding["fix"] == "set maxUnavailable: 1 in its strategy, so that an old pod may go before a new one runs"
