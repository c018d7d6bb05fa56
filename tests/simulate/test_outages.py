"""What an outage does to pods, what is there at once, and which pods have waited before."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from tests.builders import HOSTNAME, ZONE, Json, selector
from tests.simulate.clusters import (
    after,
    budget,
    command,
    deployment,
    node,
    nodes,
    pod,
    reasons,
    simulated,
    stateful_set,
    template,
    workload,
    zone_constraint,
)
from tests.simulate.test_simulate import HARD, SIX, anti_affinity

ENDLESS: Json = {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute"}
SILENT: Sequence[Json] = [
    {"key": "node.kubernetes.io/unreachable", "effect": effect} for effect in ("NoSchedule", "NoExecute")
]
FIVE = [*nodes("a1", "a2", "a3", "a4", "a5"), *nodes("b1")]


def row(report: Any, name: str) -> Any:
    (found,) = [each for each in report["workloads"] if each["workload"]["name"] == name]
    return found


def not_replaced(report: Any, name: str) -> tuple[int, int]:
    number = row(report, name)["after"]["notReplaced"]
    return number["min"], number["max"]


def least(report: Any, name: str) -> tuple[int, int]:
    number = row(report, name)["least"]
    return number["min"], number["max"]


def messages(report: Any, severity: str = "error") -> list[str]:
    return [each["message"] for each in report["findings"] if each["severity"] == severity]


def daemon_set(*on: str, tolerations: Sequence[Json] = (ENDLESS,), **fields: object) -> list[Json]:
    agent = template("agent", tolerations=list(tolerations))
    spec = {"selector": selector({"app": "agent"}), "template": agent, **fields}
    return [
        workload("DaemonSet", "agent", spec),
        *(pod(f"agent-{each}", each, agent, "DaemonSet/agent") for each in on),
    ]


def job(*on: str, **fields: object) -> list[Json]:
    batch = template("batch", restartPolicy="Never")
    spec = {"parallelism": len(on), "completions": len(on), "template": batch, **fields}
    made = workload("Job", "batch", spec, version="batch/v1")
    return [made, *(pod(f"batch-{each}", each, batch, "Job/batch") for each in on)]


def test_a_lost_zone_still_counts_and_holds_the_minimum() -> None:
    cluster = [*SIX, *deployment("web", ["a1", "b1", "c1"], **HARD), *deployment("cart", ["a1", "a1"])]
    report = simulated(cluster, "--lose", "zone=a")
    assert report["events"] == ["lose zone a: 2 of 6 nodes, 3 of 5 pods, as of 6 minutes later"]
    assert (after(report, "web"), after(report, "cart")) == (("2", "1"), ("2", "0"))
    assert (row(report, "web")["lost"], row(report, "cart")["lost"]) == (1, 2)
    (finding,) = [each for each in report["findings"] if each["severity"] == "error"]
    assert finding == report["findings"][0]
    assert finding["message"] == (
        "1 pod of deploy/web would stay pending: zone a is unreachable, still counts, and holds the minimum of their "
        "constraint on zone at 0."
    )
    assert finding["fix"] == "set nodeTaintsPolicy: Honor in their constraint on zone"
    (patch,) = finding["commands"]
    assert patch.startswith("kubectl patch deploy/web -n shop --type=json -p ")
    assert '"path":"/spec/template/spec/topologySpreadConstraints/0/nodeTaintsPolicy","value":"Honor"' in patch
    (other,) = finding["alternatives"]
    assert other["fix"].startswith("delete nodes a1 and a2, if their machines are off (")
    assert "StatefulSets create them again, and volumes are detached by force" in other["fix"]
    assert other["commands"] == ["kubectl delete node a1 a2"]
    text = command(cluster, "--lose", "zone=a", "--runs", "1").stdout
    assert (
        text.index("error 1 pod of deploy/web") < text.index("Or, tried as well: delete nodes") < text.index("RUNNING")
    )


def test_of_many_patches_the_screen_has_the_number() -> None:
    names = ["api", "cart", "mail", "web"]
    hard: dict[str, Any] = {name: {"topologySpreadConstraints": [zone_constraint(name)]} for name in names}
    cluster = [*SIX, *(each for name in names for each in deployment(name, ["a1", "b1", "c1"], **hard[name]))]
    short, wide = (command(cluster, "--lose", "zone=a", "--runs", "2", *more).stdout for more in ([], ["-o", "wide"]))
    number = "(4 commands: -o wide; -o script runs patches a few at a time)."
    assert f"set nodeTaintsPolicy: Honor in their constraint on zone {number}" in " ".join(short.split())
    assert (short.count("kubectl patch deploy/"), wide.count("kubectl patch deploy/")) == (0, 4)


def test_with_honor_the_pods_of_a_lost_zone_run_elsewhere() -> None:
    honors: dict[str, Any] = {"topologySpreadConstraints": [zone_constraint("web", nodeTaintsPolicy="Honor")]}
    report = simulated([*SIX, *deployment("web", ["a1", "b1", "c1"], **honors)], "--lose", "zone=a")
    assert after(report, "web") == ("3", "0")
    assert messages(report) == []


def test_a_stateful_set_does_not_replace_terminating_pods() -> None:
    cluster = [*SIX, *stateful_set("db", ["a1", "b1", "a2"])]
    report = simulated(cluster, "--lose", "zone=a")
    assert (after(report, "db"), not_replaced(report, "db")) == (("1", "0"), (2, 2))
    (finding,) = report["findings"]
    assert finding["message"].startswith(
        "2 pods of sts/db are not replaced: a StatefulSet replaces a pod only when it "
    )
    assert finding["commands"] == ["kubectl delete node a1 a2"]
    deleted = simulated(cluster, "--lose", "zone=a", "--delete", "zone=a")
    assert (after(deleted, "db"), not_replaced(deleted, "db")) == (("3", "0"), (0, 0))
    assert row(deleted, "db")["lost"] == 2, "each pod once"


def test_deleting_nodes_is_no_fix_where_the_volume_is_in_their_zone() -> None:
    report = simulated([*SIX, *stateful_set("db", ["a1", "b1"], claims=True)], "--lose", "zone=a")
    assert "fix" not in report["findings"][0]


@pytest.mark.parametrize(
    ("policy", "scaled", "running"),
    [
        pytest.param("OrderedReady", 4, "1", id="a terminating pod blocks the later ones"),
        pytest.param("Parallel", 4, "3", id="but not in parallel"),
        pytest.param("OrderedReady", 1, "1", id="and keeps others from being deleted"),
        pytest.param("Parallel", 1, "0", id="the others are deleted"),
    ],
)
def test_a_stateful_set_is_scaled_with_terminating_pods(policy: str, scaled: int, running: str) -> None:
    db = stateful_set("db", ["a1", "b1"], podManagementPolicy=policy)
    report = simulated([*SIX, *db], "--lose", "zone=a", "--scale", f"sts/db={scaled}")
    assert after(report, "db")[0] == running


@pytest.mark.parametrize(
    ("on", "lost", "scaled", "number"),
    [
        pytest.param(["b1", "c1", "a1"], "a1", 2, 0, id="the lost pod is not wanted"),
        pytest.param(["b1", "a1", "c1"], "a1", 2, 1, id="the lost pod is wanted"),
        pytest.param(["b1", "a1", "a2"], "zone=a", 2, 1, id="one of two is wanted"),
        pytest.param(["b1", "a1", "a2"], "zone=a", 3, 2, id="all are wanted"),
    ],
)
def test_a_pod_that_a_scale_down_makes_superfluous_is_not_missed(
    on: list[str], lost: str, scaled: int, number: int
) -> None:
    report = simulated([*SIX, *stateful_set("db", on)], "--lose", lost, "--scale", f"sts/db={scaled}")
    assert not_replaced(report, "db") == (number, number)
    assert len([text for text in messages(report) if "not replaced" in text]) == bool(number)


def test_a_bare_pod_is_not_replaced_and_one_of_a_daemon_set_stays() -> None:
    cluster = [*nodes("a1", "b1"), *daemon_set("a1", "b1", tolerations=()), pod("bare", "a1", template("bare"))]
    report = simulated(cluster, "--lose", "a1")
    assert (after(report, "agent"), not_replaced(report, "agent")) == (("1", "0"), (1, 1))
    assert (after(report, "bare"), not_replaced(report, "bare")) == (("0", "0"), (1, 1))
    assert messages(report) == ["1 workload would have no running pod: po/bare."]
    assert report["summary"]["notReplaced"] == {"min": 0, "max": 0}


@pytest.mark.parametrize(
    ("fields", "numbers", "why"),
    [
        pytest.param({}, ("2", "0"), "", id="at once"),
        pytest.param({"podReplacementPolicy": "TerminatingOrFailed"}, ("2", "0"), "", id="written"),
        pytest.param(
            {"podReplacementPolicy": "Failed", "backoffLimit": 0}, ("1", "0"), "podReplacementPolicy", id="late"
        ),
        pytest.param(
            {"podFailurePolicy": {"rules": [{"action": "Count"}]}}, ("1", "0"), "podReplacement", id="default"
        ),
        pytest.param({"backoffLimit": 0}, ("0", "0"), "", id="a terminating pod is a failure"),
    ],
)
def test_a_job_replaces_terminating_pods_by_its_policy(fields: Json, numbers: tuple[str, str], why: str) -> None:
    report = simulated([*nodes("a1", "b1"), *job("a1", "b1", **fields)], "--lose", "a1")
    assert after(report, "batch") == numbers
    assert any("not replaced" in each and why in each for each in messages(report)) is bool(why)


def test_a_deleted_node_ends_the_pods_for_which_a_job_waits() -> None:
    late = job("a1", "b1", podReplacementPolicy="Failed")
    report = simulated([*nodes("a1", "b1"), *late], "--lose", "a1", "--delete", "a1")
    assert (after(report, "batch"), not_replaced(report, "batch")) == (("2", "0"), (0, 0))


def test_pods_that_tolerate_an_outage_without_end_stay() -> None:
    cluster = [*nodes("a1", "b1"), *deployment("web", ["a1", "b1"], tolerations=[{"operator": "Exists"}])]
    report = simulated(cluster, "--lose", "a1")
    assert (after(report, "web"), not_replaced(report, "web")) == (("1", "0"), (1, 1))
    assert "they tolerate node.kubernetes.io/unreachable" in messages(report)[0]
    assert simulated(cluster, "--lose", "a1", "--scale", "deploy/web=9")["summary"]["pending"]["max"] == 0


def test_a_pod_that_is_placed_on_a_lost_node_does_not_start() -> None:
    only_there: dict[str, Any] = {"tolerations": [{"operator": "Exists"}], "nodeSelector": {HOSTNAME: "a1"}}
    report = simulated(
        [*nodes("a1", "b1"), *deployment("web", ["a1"], **only_there)], "--lose", "a1", "--scale", "deploy/web=3"
    )
    assert (after(report, "web"), not_replaced(report, "web")) == (("0", "0"), (3, 3))


def test_where_most_of_a_zone_fails_its_pods_stay() -> None:
    """Up to two nodes are seen to fail before the third."""
    web = deployment("web", ["a1", "a2", "a3", "a4", "b1"])
    cluster = [*FIVE, *web]
    report = simulated(cluster, "--lose", "a1,a2,a3,a4", "--runs", "50")
    assert after(report, "web") == ("1..3", "0")
    assert not_replaced(report, "web") == (2, 4)
    assert (
        "no pod is evicted while 4 of 5 nodes of zone a are NotReady (at least 55%, but not all, of at most 50)"
        in messages(report)[0]
    )
    assert after(simulated(cluster, "--lose", "a1,a2"), "web") == ("5", "0")
    assert after(simulated(cluster, "--lose", "zone=a"), "web") == ("5", "0")


def test_later_events_change_the_state_of_a_zone() -> None:
    cluster = [*FIVE, *deployment("web", ["a1", "a2", "a3", "b1"])]
    some = ("--lose", "a1,a2,a3", "--runs", "20")
    assert after(simulated(cluster, *some), "web") == ("1..3", "0")
    assert after(simulated(cluster, *some, "--restart", "deploy/web"), "web") == ("4", "0")
    assert after(simulated(cluster, *some, "--lose", "a4,a5"), "web") == ("4", "0")
    assert after(simulated(cluster, *some, "--delete", "a3"), "web") == ("4", "0"), "two of four are left"
    assert after(simulated(cluster, *some, "--add", "zone=a:4"), "web") == ("4", "0"), "three of nine"
    # The limiter stops at the first event, so that nothing more is seen before.
    assert not_replaced(simulated(cluster, *some, "--lose", "a4"), "web")[1] == 3


def test_nodes_that_do_not_count_for_a_zone() -> None:
    cluster = [*nodes("a1", "a2", "a3", "a4"), *nodes("b1"), *deployment("web", ["a1", "a2", "a3"])]
    for each in cluster[:3]:
        each["metadata"]["labels"]["node.kubernetes.io/exclude-disruption"] = ""
    assert after(simulated(cluster, "--lose", "a1,a2,a3"), "web") == ("3", "0")


def test_most_of_a_large_zone_is_evicted_slowly() -> None:
    many = [node(f"n{number}", zone="a") for number in range(60)]
    lost = ",".join(f"n{number}" for number in range(40))
    report = simulated([*many, *deployment("web", [f"n{number}" for number in range(40)])], "--lose", lost)
    assert after(report, "web") == ("40", "0")
    assert report["events"][0].endswith("as of 71 minutes later")


def test_no_pod_is_evicted_while_all_nodes_fail() -> None:
    report = simulated([*nodes("a1", "b1"), *deployment("web", ["a1", "b1"])], "--lose", "a1,b1")
    assert (after(report, "web"), not_replaced(report, "web")) == (("0", "0"), (2, 2))
    assert "all nodes of the cluster are NotReady" in messages(report)[0]
    assert messages(report)[1] == "1 workload would have no running pod: deploy/web."


def test_pods_are_evicted_by_their_own_tolerations() -> None:
    """The pod that leaves first gets the only room; otherwise either of the two would."""
    soon = {**ENDLESS, "tolerationSeconds": 30}
    cluster = [
        *nodes("a1"),
        node("b1", cpu=1),
        *deployment("late", ["a1"]),
        *deployment("soon", ["a1"], tolerations=[soon]),
    ]
    report = simulated(cluster, "--lose", "a1", "--runs", "20")
    assert (after(report, "soon"), after(report, "late")) == (("1", "0"), ("0", "1"))


def test_terminating_pods_repel_others_but_do_not_count_for_constraints() -> None:
    zonal = json.loads(json.dumps(anti_affinity("web")).replace(HOSTNAME, ZONE))
    report = simulated([*nodes("a1", "a2", "b1"), *deployment("web", ["a1", "b1"], affinity=zonal)], "--lose", "a1")
    assert after(report, "web") == ("1", "1")
    assert "required anti-affinity" in reasons(report, "web")[0]
    spread = [*nodes("a1", "a2"), node("b1", cpu=64), *deployment("web", ["a1", "b1"], **HARD)]
    domains = row(simulated(spread, "--lose", "a1"), "web")["domains"]
    assert [each["pods"]["min"] for each in domains] == [1, 1], "zone a has none, so that zone b takes no other one"


def _with_claim(modes: Sequence[str]) -> list[Json]:
    """Return a Deployment of one pod on node a1, which has a claim."""
    web = deployment("web", ["a1"])
    for each in (web[0], web[1]):
        each["spec"]["template"]["spec"]["volumes"] = [{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}]
    web[2]["spec"]["volumes"] = [{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}]
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", "namespace": "shop", "uid": "data"},
        "spec": {"volumeName": "pv", "accessModes": list(modes)},
    }
    volume = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "pv", "uid": "pv"}, "spec": {}}
    return [*web, claim, volume]


def test_a_claim_of_one_pod_is_used_until_its_pod_is_gone() -> None:
    cluster = [*nodes("a1", "b1"), *_with_claim(["ReadWriteOncePod"])]
    assert reasons(simulated(cluster, "--lose", "a1"), "web") == [
        "its claim data is ReadWriteOncePod, and pod web-5d9c-0 uses it"
    ]
    assert after(simulated(cluster, "--lose", "a1", "--delete", "a1"), "web") == ("1", "0")


@pytest.mark.parametrize(
    ("modes", "starts"), [(["ReadWriteOnce"], False), (["ReadWriteOnce", "ReadWriteMany"], True), ([], True)]
)
def test_a_volume_stays_attached_to_the_node_of_a_terminating_pod(modes: list[str], *, starts: bool) -> None:
    cluster = [*nodes("a1", "b1"), *_with_claim(modes)]
    report = simulated(cluster, "--lose", "a1")
    assert (after(report, "web"), not_replaced(report, "web")) == (
        (("1", "0"), (0, 0)) if starts else (("0", "0"), (1, 1))
    )
    assert any("a volume is attached to a node that does not answer" in each for each in messages(report)) is not starts
    deleted = simulated(cluster, "--lose", "a1", "--delete", "a1")
    assert (after(deleted, "web"), least(deleted, "web")) == (("1", "0"), (0, 0))


def test_budgets_count_pods_on_lost_nodes_as_unhealthy() -> None:
    spread: dict[str, Any] = {"topologySpreadConstraints": [zone_constraint("web")]}
    cluster = [
        *nodes("a1", "b1", "c1"),
        *deployment("web", ["a1", "b1", "c1"], **spread),
        budget("web", minAvailable=2),
    ]
    assert simulated(cluster, "--drain", "b1")["refusedEvictions"] == []
    assert [each["pod"] for each in simulated(cluster, "--lose", "a1", "--drain", "b1")["refusedEvictions"]] == [
        "web-5d9c-1"
    ]


def test_recreate_waits_for_terminating_pods() -> None:
    cluster = [*nodes("a1", "b1"), *deployment("web", ["a1", "b1"], strategy={"type": "Recreate"})]
    assert after(simulated(cluster, "--lose", "a1", "--restart", "deploy/web"), "web") == ("0", "0")
    assert after(simulated(cluster, "--lose", "a1", "--restart", "deploy/web", "--delete", "a1"), "web") == ("2", "0")
    rolling = [*nodes("a1", "b1"), *deployment("web", ["a1", "b1"])]
    assert after(simulated(rolling, "--lose", "a1", "--restart", "deploy/web"), "web") == ("2", "0")


@pytest.mark.parametrize(
    ("pace", "replaced"),
    [
        pytest.param({"maxUnavailable": 1}, 0, id="a terminating pod is unavailable"),
        pytest.param({"maxUnavailable": 2}, 2, id="one more may be"),
        pytest.param({"maxUnavailable": 0, "maxSurge": 1}, 2, id="surge"),
    ],
)
def test_a_rollout_of_a_daemon_set_counts_lost_nodes(pace: Json, replaced: int) -> None:
    strategy = {"type": "RollingUpdate", "rollingUpdate": pace}
    cluster = [*nodes("a1", "b1", "c1"), *daemon_set("a1", "b1", "c1", updateStrategy=strategy)]
    report = simulated(cluster, "--lose", "a1", "--restart", "ds/agent")
    assert (after(report, "agent"), not_replaced(report, "agent")) == (("2", "0"), (1, 1))
    assert least(report, "agent") == ((1, 1) if replaced and not pace.get("maxSurge") else (2, 2))


@pytest.mark.parametrize("version", ["1.36", "1.37"])
@pytest.mark.parametrize(("policy", "least_ready"), [("OrderedReady", (2, 2)), ("Parallel", (2, 2))])
def test_a_rollout_of_a_stateful_set_waits_for_terminating_pods(
    policy: str, least_ready: tuple[int, int], version: str
) -> None:
    db = stateful_set("db", ["b1", "c1", "a1"], podManagementPolicy=policy)
    events = ("--lose", "zone=a", "--restart", "sts/db", "--server-version", version)
    report = simulated([*SIX, *db], *events)
    assert (after(report, "db"), least(report, "db")) == (("2", "0"), least_ready)


@pytest.mark.parametrize("version", ["1.36", "1.37"])
@pytest.mark.parametrize(("policy", "least_ready"), [("OrderedReady", (2, 2)), ("Parallel", (1, 1))])
def test_a_terminating_pod_that_is_too_many_stops_a_rollout_in_order_alone(
    policy: str, least_ready: tuple[int, int], version: str
) -> None:
    db = stateful_set("db", ["b1", "c1", "a1"], podManagementPolicy=policy)
    events = ("--lose", "zone=a", "--scale", "sts/db=2", "--restart", "sts/db", "--server-version", version)
    report = simulated([*SIX, *db], *events)
    assert (after(report, "db"), least(report, "db")) == (("2", "0"), least_ready)
    stuck = any("rollout of sts/db would not end" in message for message in messages(report))
    assert stuck is (policy == "OrderedReady")


def test_an_outage_that_was_there_when_the_cluster_was_read() -> None:
    """One pod is terminating already; the other one follows."""
    db = stateful_set("db", ["a1", "b1"])
    db[1]["metadata"]["deletionTimestamp"] = "2026-09-01T11:00:00Z"
    cluster = [node("a1", taints=SILENT), *nodes("a2", "b1"), *db, *deployment("web", ["a1", "b1"])]
    report = simulated(cluster, "--restart", "deploy/web")
    assert (after(report, "db"), not_replaced(report, "db")) == (("1", "0"), (1, 1))
    assert row(report, "web")["before"] == {"running": 1, "ready": 1, "pending": 0}
    assert after(report, "web") == ("2", "0")
    assert after(simulated(cluster, "--delete", "a1"), "db") == ("2", "0")


def test_pods_that_were_not_replaced_before_are_no_error() -> None:
    db = stateful_set("db", ["a1", "b1"])
    db[1]["metadata"]["deletionTimestamp"] = "2026-09-01T11:00:00Z"
    cluster = [node("a1", taints=SILENT), *nodes("b1"), *db, *deployment("web", ["b1"])]
    answer = command(cluster, "--restart", "deploy/web", "--runs", "2")
    assert "info 1 pod of sts/db is not replaced, as before: " in answer.stdout
    assert answer.exit_code == 0


def test_what_is_lost_at_once() -> None:
    cluster = [*SIX, *deployment("both", ["a1", "a2"]), *deployment("one", ["a1"]), *deployment("web", ["a1", "b1"])]
    for event in ("--lose", "--delete"):
        report = simulated(cluster, event, "zone=a")
        assert (least(report, "both"), least(report, "one"), least(report, "web")) == ((0, 0), (0, 0), (1, 1))
        assert messages(report, "warning") == [
            "1 workload with several pods would have none that is ready for a time: deploy/both."
        ]
        assert messages(report, "info") == [
            "1 workload with one pod would have none that is ready for a time: deploy/one."
        ]
        assert report["summary"]["interrupted"] == {"min": 2, "max": 2}
    answer = command(cluster, "--delete", "zone=a", "--runs", "1")
    assert "AT ONCE  2 workloads have no ready pod for a time." in answer.stdout
    assert "1 simulated run; others may end differently." in answer.stdout
    assert answer.exit_code == 0
    assert command(cluster, "--delete", "zone=a", "--runs", "2", "--fail-on", "warning").exit_code == 1


@pytest.mark.parametrize(
    ("strategy", "fewest"),
    [
        ({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}, 3),
        ({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}, 2),
        ({"type": "Recreate"}, 0),
    ],
)
def test_the_fewest_pods_of_a_rollout(strategy: Json, fewest: int) -> None:
    report = simulated([*SIX, *deployment("web", ["a1", "b1", "c1"], strategy=strategy)], "--restart", "deploy/web")
    assert least(report, "web") == (fewest, fewest)
    assert after(report, "web") == ("3", "0")


def test_the_fewest_pods_of_a_drain_and_of_a_stateful_set() -> None:
    cluster = [
        *SIX,
        *deployment("web", ["a1", "a1", "b1"]),
        budget("web", maxUnavailable=1),
        *stateful_set("db", ["b1", "b2"]),
    ]
    report = simulated(cluster, "--drain", "a1", "--restart", "sts/db")
    assert (least(report, "web"), least(report, "db")) == ((2, 2), (1, 1))


def test_pods_that_have_waited_before_are_no_error() -> None:
    waits = deployment("big", ["b1", ""], cpu="7")
    cluster = [*nodes("a1", "b1"), *waits, *deployment("web", ["a1"], cpu="2")]
    report = simulated(cluster, "--restart", "deploy/web")
    assert row(report, "big")["after"]["new"] == {"min": 0, "max": 0}
    assert messages(report) == []
    assert messages(report, "info")[0].startswith("1 pod of deploy/big waits as before: ")
    answer = command(cluster, "--restart", "deploy/web", "--runs", "2")
    assert answer.exit_code == 0
    assert "AFTER    1 pod of 1 workload would wait as before." in answer.stdout


def test_new_pods_are_told_from_those_that_have_waited_before() -> None:
    cluster = [*nodes("a1", cpu=2), *deployment("web", ["a1", ""], cpu="2")]
    report = simulated(cluster, "--scale", "deploy/web=4")
    assert row(report, "web")["after"]["new"] == {"min": 2, "max": 2}
    assert messages(report)[0].startswith("2 pods of deploy/web would stay pending (1 other waited before): ")
    answer = command(cluster, "--scale", "deploy/web=4", "--runs", "1")
    assert "AFTER    3 pods of 1 workload would wait (2 new, 1 waited before)." in answer.stdout
    assert answer.exit_code == 1


def test_a_drain_does_not_wait_for_replacements() -> None:
    """Kubectl continues with the next node as soon as the pods of one are gone; a budget is what makes it wait."""
    cluster = [*SIX, *deployment("web", ["a1", "b1", "c1"])]
    assert least(simulated(cluster, "--drain", "a1,b1", "--runs", "30"), "web") == (1, 2)
    guarded = simulated([*cluster, budget("web", maxUnavailable=1)], "--drain", "a1,b1", "--runs", "30")
    assert least(guarded, "web") == (2, 2)


def test_a_node_without_pods_is_lost_after_a_minute() -> None:
    """Nothing has to be evicted after the grace period of its lease."""
    report = simulated([*FIVE, *deployment("web", ["b1"])], "--lose", "a1")
    assert report["events"] == ["lose node a1: 1 of 6 nodes, 0 of 1 pod, as of 1 minute later"]
