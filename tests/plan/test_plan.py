"""Which pods a plan evicts, in which waves, and why it leaves workloads as they are."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from click.testing import Result

from tests import contract
from tests.builders import HOSTNAME, Json, node_pool_json, selector
from tests.cli.test_check import run
from tests.simulate.clusters import (
    budget,
    deployment,
    node,
    nodes,
    pod,
    stateful_set,
    template,
    workload,
    zone_constraint,
)

SIX = nodes("a1", "a2", "b1", "b2", "c1", "c2")


def hard(name: str = "web", **fields: Any) -> dict[str, Any]:
    """Return a hard constraint on the zone, for a pod template."""
    return {"topologySpreadConstraints": [zone_constraint(name, **fields)]}


def soft(name: str = "web") -> dict[str, Any]:
    """Return a soft constraint on the zone, for a pod template."""
    return hard(name, whenUnsatisfiable="ScheduleAnyway")


def command(objects: Sequence[Json], *arguments: str) -> Result:
    """Run ``plan`` on objects."""
    return run("plan", *arguments, "-f", "-", stdin="\n".join(map(json.dumps, objects)))


def planned(objects: Sequence[Json], *arguments: str) -> Any:
    """Return the report of ``plan -o json``, which the schema allows."""
    answer = command(objects, *arguments, "-o", "json")
    assert answer.stdout, answer.stderr
    return contract.loaded(answer.stdout)


def waves(report: Any) -> list[list[str]]:
    """Return the pods of each wave."""
    return [[eviction["pod"] for eviction in wave["evictions"]] for wave in report["waves"]]


def steps(report: Any) -> list[Any]:
    """Return the evictions of all waves."""
    return [eviction for wave in report["waves"] for eviction in wave["evictions"]]


def reasons(report: Any) -> list[str]:
    """Return why workloads cannot be corrected."""
    return [left["why"] for left in report["notCorrectable"]]


def test_a_pod_of_the_fullest_zone_is_evicted_and_can_only_go_to_the_emptiest() -> None:
    cluster = [*SIX, *deployment("web", ["a1", "a2", "b1"], **hard())]
    report = planned(cluster)
    (step,) = steps(report)
    assert (step["namespace"], step["workload"]) == ("shop", {"kind": "Deployment", "name": "web"})
    assert step["domain"] == {"topologyKey": "topology.kubernetes.io/zone", "value": "a"}
    assert (step["to"], step["why"]) == (["c"], "zone skew 2 to 0 (maxSkew 1)")
    assert (step["uid"], step["node"], step["replicas"]) == (f"uid-{step['pod']}", "a1", 3)
    assert step["owner"] == {"kind": "ReplicaSet", "name": "web-5d9c"}
    assert report["summary"]["uneven"] == report["summary"]["corrected"] == 1
    assert command(cluster).exit_code == 1
    assert command(cluster, "--fail-on", "never").exit_code == command(cluster, "--fail-on", "error").exit_code == 0


def test_an_even_cluster_has_nothing_to_correct() -> None:
    cluster = [*SIX, *deployment("web", ["a1", "b1", "c1"], **hard()), budget("web")]
    answer = command(cluster)
    assert answer.exit_code == 0
    assert "Nothing to correct." in answer.stdout
    assert command(cluster, "-o", "script").stdout.endswith("echo 'nothing to evict'\n")


def test_waves_evict_one_pod_of_a_workload_unless_more_are_allowed() -> None:
    cluster = [*SIX, *deployment("web", ["a1", "a1", "a1", "a1", "a1", "b1"], **hard())]
    assert [len(wave) for wave in waves(planned(cluster))] == [1, 1, 1]
    assert [len(wave) for wave in waves(planned(cluster, "--max-per-workload", "2"))] == [2, 1]


def test_workloads_are_corrected_in_the_same_wave() -> None:
    web, api = (deployment(name, ["a1", "a2", "b1"], **hard(name)) for name in ("web", "api"))
    assert waves(planned([*SIX, *web, *api])) == [["api-5d9c-0", "web-5d9c-0"]]


def test_the_sum_of_skews_falls_where_two_zones_are_too_full() -> None:
    report = planned([*nodes("a1", "b1", "c1", "d1"), *deployment("web", ["a1"] * 5 + ["b1"] * 5, **hard())])
    assert reasons(report) == []
    assert [step["domain"]["value"] for step in steps(report)] == ["a", "b", "a", "b"]


def test_pods_with_a_low_deletion_cost_go_first_then_the_youngest() -> None:
    web = deployment("web", ["a1", "a2", "a2", "b1"], **hard())
    web[3]["metadata"]["creationTimestamp"] = "2026-09-01T10:05:00Z"
    assert waves(planned([*SIX, *web])) == [["web-5d9c-1"]]
    web[4]["metadata"]["annotations"] = {"controller.kubernetes.io/pod-deletion-cost": "-1"}
    assert waves(planned([*SIX, *web])) == [["web-5d9c-2"]]


def test_of_several_constraints_the_pod_is_evicted_that_makes_most_skews() -> None:
    both = [zone_constraint("web"), zone_constraint("web", topologyKey=HOSTNAME)]
    web = deployment("web", ["a1", "a2", "a2", "b1", "b2"], topologySpreadConstraints=both)
    report = planned([*SIX, *web])
    (step,) = steps(report)
    assert step["node"] == "a2"
    assert step["domain"]["value"] == "a"
    assert reasons(report) == []


def test_soft_constraints_are_corrected_on_request() -> None:
    cluster = [*SIX, *deployment("web", ["a1", "a2", "a2"], **soft())]
    assert planned(cluster)["waves"] == []
    report = planned(cluster, "--soft")
    assert [step["domain"]["value"] for step in steps(report)] == ["a", "a"]
    assert all("a" not in step["to"] for step in steps(report))
    assert reasons(report) == []


def test_a_soft_skew_stays_where_the_scheduler_prefers_the_fullest_zone() -> None:
    preferred = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [_prefers("a")]}}
    web = deployment("web", ["a1", "a2", "a2"], affinity=preferred, **soft())
    assert reasons(planned([*SIX, *web], "--soft")) == ["its replacement may go back to zone a"]


def _prefers(zone: str) -> Json:
    expression = {"key": "topology.kubernetes.io/zone", "operator": "In", "values": [zone]}
    return {"weight": 100, "preference": {"matchExpressions": [expression]}}


def _relabelled(pods: list[Json]) -> list[Json]:
    """Change a label of the first pod after its value was merged into the selector."""
    pods[2]["metadata"]["labels"]["rev"] = "r2"
    return pods


def _merged(name: str, on: Sequence[str]) -> list[Json]:
    merged = selector({"app": name}, {"key": "rev", "operator": "In", "values": ["r1"]})
    stored = zone_constraint(name, match=["rev"])
    made = deployment(name, on, topologySpreadConstraints=[{**stored, "labelSelector": merged}])
    for each in made:
        labels = each["spec"]["template"]["metadata"]["labels"] if "template" in each["spec"] else None
        (each["metadata"]["labels"] if labels is None else labels)["rev"] = "r1"
        if labels is not None:
            each["spec"]["template"]["spec"]["topologySpreadConstraints"] = [stored]
    return made


def test_a_stale_pod_is_evicted_because_its_siblings_do_not_count_it() -> None:
    report = planned([*SIX, *_relabelled(_merged("web", ["a1", "b1", "c1"]))])
    (step,) = steps(report)
    assert (step["pod"], step["why"]) == ("web-5d9c-0", "stale-label: its siblings do not count it")
    assert step["to"] == ["a"]
    assert reasons(report) == []


@pytest.mark.parametrize(
    ("objects", "why"),
    [
        pytest.param(
            [*SIX, *deployment("web", ["a1", "a2", "b1"], **hard()), budget("web", minAvailable=3)],
            "budget web allows no eviction now",
            id="budget",
        ),
        pytest.param(
            [
                *SIX,
                *deployment("web", ["a1", "a2", "b1"], **hard()),
                budget("web", minAvailable=1),
                {**budget("web", minAvailable=1), "metadata": {"name": "all", "namespace": "shop", "uid": "all"}},
            ],
            "budgets all, web select its pods together, so the API server evicts none of them",
            id="budgets",
        ),
        pytest.param(
            [*SIX[:4], node("c1", cordoned=True), *deployment("web", ["a1", "a2", "b1"], **hard())],
            "its replacement would stay pending: their constraint on zone (maxSkew 1) allows no more, because zone c "
            "has none and no node there takes one; 1 node: cordoned",
            id="cordoned",
        ),
        pytest.param(
            [*nodes("a1", "a2", "b1"), node("c1", cpu=0), *deployment("web", ["a1", "a2", "b1"], **hard())],
            "its replacement would stay pending: their constraint on zone (maxSkew 1) allows no more, because zone c "
            "has none and no node there takes one; 1 node: Insufficient cpu",
            id="capacity",
        ),
        pytest.param(
            [*SIX, pod("web", "a1", {**template("web"), "spec": {**template("web")["spec"], **hard()}}),
             pod("web-2", "a1", {**template("web"), "spec": {**template("web")["spec"], **hard()}})],
            "nothing replaces its pod, which has no owner",
            id="bare",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_corrected_has_a_reason(objects: list[Json], why: str) -> None:
    report = planned(objects)
    assert report["waves"] == []
    assert set(reasons(report)) == {why}
    assert report["summary"]["corrected"] == 0
    assert command(objects).exit_code == 1


@pytest.mark.parametrize(
    ("start", "partition", "reason"),
    [
        pytest.param(0, 0, ["it is rolling out"], id="rolls out"),
        pytest.param(5, 0, ["it is rolling out"], id="begins at another ordinal"),
        pytest.param(5, 3, [], id="ends at its partition"),
    ],
)
def test_a_stateful_set_that_rolls_out_is_left_alone(start: int, partition: int, reason: list[str]) -> None:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": partition}}
    db = stateful_set("db", ["a1", "a2", "a1", "b1"], updateStrategy=strategy, ordinals={"start": start})
    for number, each in enumerate(db[1:], start):
        each["metadata"]["name"] = f"db-{number}"
        each["metadata"]["labels"]["controller-revision-hash"] = "2" if number == start + 3 else "1"
    for spec in (db[0]["spec"]["template"]["spec"], *(each["spec"] for each in db[1:])):
        spec.update(hard("db"))
    report = planned([*SIX, *db])
    assert reasons(report) == reason
    assert bool(steps(report)) is not bool(reason)


def test_pods_of_a_stateful_set_stay_with_their_volumes() -> None:
    db = stateful_set("db", ["a1", "a2", "b1"], claims=True)
    for each in db:
        spec = each["spec"].get("template", each).get("spec", {})
        if "containers" in spec:
            spec.update(hard("db"))
    assert reasons(planned([*SIX, *db])) == ["its volume is in zone a"]


def test_pods_of_a_job_are_left_to_end() -> None:
    batch = template("batch", restartPolicy="Never", **hard("batch"))
    job = workload("Job", "batch", {"template": batch}, version="batch/v1")
    pods = [pod(f"batch-{number}", place, batch, "Job/batch") for number, place in enumerate(["a1", "a2"])]
    assert reasons(planned([*SIX, job, *pods])) == ["a Job counts a deleted pod as failed"]


def test_workloads_that_are_not_ready_or_roll_out_are_left_alone() -> None:
    web = deployment("web", ["a1", "a2", "b1"], **hard())
    web[-1]["status"]["conditions"] = [{"type": "Ready", "status": "False"}]
    assert reasons(planned([*SIX, *web])) == ["1 of 3 pods is not ready"]
    web = deployment("web", ["a1", "a2", "b1"], **hard())
    web[0]["spec"]["replicas"] = web[1]["spec"]["replicas"] = 2
    assert reasons(planned([*SIX, *web])) == ["it has 3 pods and asks for 2"]
    web = deployment("web", ["a1", "a2", "b1"], **hard())
    web[-1]["metadata"]["deletionTimestamp"] = "2026-09-01T10:10:00Z"
    assert reasons(planned([*SIX, *web])) == ["1 pod is terminating"]
    web = deployment("web", ["a1", "a2", "b1"], **hard())
    other = json.loads(json.dumps(web[1]).replace("web-5d9c", "web-77aa"))
    web[-1]["metadata"]["ownerReferences"][0] |= {"name": "web-77aa", "uid": "uid-ReplicaSet-web-77aa"}
    assert reasons(planned([*SIX, *web, other])) == ["it is rolling out"]


def test_a_replacement_must_not_raise_the_skew_of_another_workload() -> None:
    """The constraint of api counts the pods of web, whose replacement can only go to zone c."""
    counting_both = {**zone_constraint("api"), "labelSelector": selector({"team": "shop"})}
    web, api = (
        deployment("web", ["a1", "a2", "b1"], **hard()),
        deployment("api", ["c1", "c2"], topologySpreadConstraints=[counting_both]),
    )
    for each in (*web, *api):
        template_or_pod = each["spec"].get("template", each)
        template_or_pod["metadata"]["labels"]["team"] = "shop"
    report = planned([*SIX, *web, *api])
    assert report["waves"] == []
    assert reasons(report) == ["its replacement may raise the skew of deploy/api on zone"]


def test_a_pod_of_another_workload_makes_room() -> None:
    """Zone c has room for one pod, which a pod of api takes although it could run anywhere."""
    cluster = [*nodes("a1", "a2", "b1"), node("c1", cpu=1)]
    report = planned([*cluster, *deployment("web", ["a1", "a2", "b1"], **hard()), *deployment("api", ["c1"])])
    assert [[step["why"] for step in wave["evictions"]] for wave in report["waves"]] == [
        ["makes room for deploy/web", "zone skew 2 to 0 (maxSkew 1)"]
    ]
    assert [step["to"] for step in steps(report)] == [["a", "b"], ["c"]]


@pytest.mark.parametrize(
    ("places", "line"),
    [
        pytest.param(["a1", "a2", "b1"], "", id="one eviction"),
        pytest.param(["a1", "a2", "a1", "a2"], "kubectl spread plan -n shop", id="several"),
    ],
)
def test_check_and_its_page_name_the_command_where_several_evictions_are_needed(places: list[str], line: str) -> None:
    objects = "\n".join(map(json.dumps, [*SIX, *deployment("web", places, **hard())]))
    for form in ("table", "json", "html"):
        text = run("check", "-f", "-", "--server-version", "1.37", "-o", form, stdin=objects).stdout
        assert "web" in text
        assert ("kubectl spread plan" in text) is bool(line)
        assert line in text


def test_names_and_labels_choose_workloads() -> None:
    web, api = (deployment(name, ["a1", "a2", "b1"], **hard(name)) for name in ("web", "api"))
    cluster = [*SIX, *web, *api]
    assert waves(planned(cluster, "deploy/web")) == [["web-5d9c-0"]]
    assert waves(planned(cluster, "-l", "app=api")) == [["api-5d9c-0"]]
    other = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}}
    assert waves(planned([*cluster, other], "-n", "other")) == []
    answer = command(cluster, "deploy/webb")
    assert (answer.exit_code, "did you mean deploy/web?" in answer.stderr) == (2, True)


def test_the_same_input_gives_the_same_bytes() -> None:
    cluster = [
        *SIX,
        *deployment("web", ["a1", "a2", "a1", "b1"], **hard()),
        *deployment("api", ["a1", "a2"], **hard("api")),
    ]
    assert command(cluster, "-o", "json").stdout == command(cluster, "-o", "json").stdout


@pytest.mark.parametrize("form", ["table", "wide", "markdown", "html", "yaml", "script"])
def test_each_format_names_the_pod_and_what_is_not_correctable(form: str) -> None:
    db = deployment("db", ["a1", "a2"], **hard("db"))
    cluster = [*SIX, *deployment("web", ["a1", "a2", "b1"], **hard()), *db, budget("db", minAvailable=2)]
    text = command(cluster, "-o", form).stdout
    assert "web-5d9c-0" in text
    assert "budget db allows no eviction now" in text


def test_a_plan_names_the_cluster_of_a_capture_that_has_kube_system() -> None:
    cluster = [*SIX, *deployment("web", ["a1", "a2", "b1"], **hard())]
    assert "uid" not in planned(cluster)["cluster"]
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-system", "uid": "41c7"}}
    other = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop", "uid": "9a0b"}}
    assert planned([*cluster, namespace, other])["cluster"]["uid"] == "41c7"
    assert "same_cluster 41c7 plan\n" in command([*cluster, namespace, other], "-o", "script").stdout


def test_captures_of_two_clusters_are_an_error() -> None:
    cluster = [*SIX, *deployment("web", ["a1", "a2", "b1"], **hard())]
    both = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-system", "uid": uid}} for uid in ("1", "2")
    ]
    answer = command([*cluster, *both], "-o", "script")
    assert (answer.exit_code, "a cluster has only one" in answer.stderr) == (2, True)


@pytest.mark.parametrize("waits", [False, True])
def test_the_first_line_says_that_no_nodes_are_added_for_pods_that_wait(*, waits: bool) -> None:
    large = deployment("large", [""], containers=[{"name": "app", "resources": {"requests": {"cpu": "99"}}}])
    cluster = [*SIX, *deployment("web", ["a1", "a2", "b1"], **hard()), node_pool_json(), *(large if waits else ())]
    first = command(cluster).stdout.partition("\n\n")[0]
    assert ("cluster autoscalers not simulated" in first) is waits
