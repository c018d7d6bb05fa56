"""Changes that would be refused, would not end, or would help the wrong workload; and clusters that allow none."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from tests.builders import HOSTNAME, ZONE, Json, constraint, node_pool_json, requirement, selector
from tests.recommend.asked import NINE, RUNS, SPREAD, changes, command, failing, recommended, spread
from tests.simulate.clusters import budget, deployment, node, nodes, stateful_set, template, workload

HONOR = "nodeTaintsPolicy: Honor in the constraint on zone"
ROOM = "maxUnavailable: 1 in the strategy"
API = selector({"app": "api"})


def web(*constraints: Json, on: Any = SPREAD, **fields: Any) -> list[Json]:
    return deployment("web", on, **{"topologySpreadConstraints": list(constraints), **fields})


def test_an_older_cluster_has_neither_the_policy_nor_the_keys() -> None:
    """Below 1.26 and 1.27 a soft constraint is what is left."""
    cluster = [*NINE, *web(spread())]
    report = recommended(cluster, "deploy/web", "--feature-gates", _OLD, "--server-version", "1.32")
    assert changes(report) == [
        "whenUnsatisfiable: ScheduleAnyway in the constraint on zone",
        "a constraint on hostname (ScheduleAnyway)",
    ]


_OLD = "MatchLabelKeysInPodTopologySpread=false,NodeInclusionPolicyInPodTopologySpread=false"


def test_a_hash_that_the_selector_has_already_is_not_listed() -> None:
    made = spread(honor=True)
    made["labelSelector"] = selector({"app": "web"}, requirement("pod-template-hash", "In", "5d9c"))
    report = recommended([*NINE, *web(made, on=("a1", "a2", "a3", "b1", "b2", "b3"))])
    assert not any("matchLabelKeys: [pod" in text for each in report["tried"] for text in each["changes"])


def test_a_stateful_set_has_its_own_hash() -> None:
    cluster = [*NINE, *stateful_set("db", SPREAD[:3], podManagementPolicy="Parallel")]
    own = {**spread(), "labelSelector": selector({"app": "db"})}
    for each in cluster[len(NINE) :]:
        each["spec"].get("template", each)["spec"]["topologySpreadConstraints"] = [own]
    report = recommended(cluster, "sts/db", "--survive", "drain,restart")
    assert failing(report) == ["drain any zone", "restart, zone closed"]
    assert changes(report)[0] == HONOR
    texts = " ".join(text for each in report["tried"] for text in each["changes"])
    assert "pod-template-hash" not in texts


def test_a_rollout_that_cannot_end_makes_room_first() -> None:
    """With a hard constraint, maxUnavailable 0 and as many replicas as nodes no new pod finds a node."""
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    apart = {"podAntiAffinity": {_REQUIRED: [{"labelSelector": selector({"app": "web"}), "topologyKey": HOSTNAME}]}}
    three = nodes("a1", "b1", "c1")
    cluster = [*three, *deployment("web", ("a1", "b1", "c1"), strategy=strategy, affinity=apart)]
    report = recommended(cluster, "deploy/web", "--survive", "restart", "--keep", "1")
    assert failing(report) == ["restart", "restart, zone closed"]
    assert changes(report) == [ROOM]
    assert report["change"]["patch"]["operations"] == [
        {"op": "test", "path": "/spec/strategy/rollingUpdate/maxUnavailable", "value": 0},
        {"op": "replace", "path": "/spec/strategy/rollingUpdate/maxUnavailable", "value": 1},
    ]
    assert [each["event"] for each in report["notReachable"]] == ["restart, zone closed"]


_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def test_a_hostname_constraint_switches_off_the_default_for_zones() -> None:
    """All pods on the nodes of one zone: a constraint on the zone is added next to it."""
    report = recommended([*NINE, *web(spread(HOSTNAME, hard=False), on=("a1", "a2", "a3"))])
    assert failing(report) != []
    assert changes(report)
    assert failing(report, "patched") == []


def test_a_budget_that_stops_each_drain_is_changed() -> None:
    cluster = [*NINE, *web(), budget("web", minAvailable=6)]
    report = recommended(cluster)
    assert failing(report) == ["drain any zone", "drain any node"]
    assert report["events"][2]["now"]["budget"] == "web"
    assert changes(report) == ["maxUnavailable: 1 in place of the limit of PodDisruptionBudget web"]
    text = (
        '[{"op":"test","path":"/spec/minAvailable","value":6},{"op":"remove","path":"/spec/minAvailable"},'
        '{"op":"add","path":"/spec/maxUnavailable","value":1}]'
    )
    assert report["change"]["commands"] == [f"kubectl patch poddisruptionbudget/web -n shop --type=json -p '{text}'"]


def test_a_drain_that_takes_too_many_gets_a_budget() -> None:
    cluster = [*nodes("a1", "b1", "c1"), *web(spread(hard=False, hashed=True), on=("a1", "a1", "b1", "b1", "c1", "c1"))]
    report = recommended(cluster, "deploy/web", "--survive", "drain", "--keep", "5")
    assert changes(report) == ["a PodDisruptionBudget with maxUnavailable: 1"]
    (line,) = report["change"]["commands"]
    assert line.startswith("echo ")
    assert line.endswith(" | kubectl create -f -")
    assert '"maxUnavailable":1' in line


def test_one_replica_cannot_survive() -> None:
    report = recommended([*NINE, *web(on=("a1",))])
    assert [(each["event"], each["why"]) for each in report["notReachable"]] == [
        ("lose any zone", "its only replica is lost with its zone"),
        ("lose any node", "its only replica is lost with its node"),
        ("drain any zone", "a drain evicts its only replica"),
        ("drain any node", "a drain evicts its only replica"),
        ("restart, then lose a zone", "its only replica is lost with its zone"),
    ]
    assert changes(report) == []
    assert report["remarks"] == ["One replica cannot survive the loss of its node. With two or more, some are left."]
    assert command([*NINE, *web(on=("a1",))], "deploy/web", "--runs", "1").exit_code == 1


def test_one_zone_cannot_be_survived() -> None:
    report = recommended([*nodes("a1", "a2", "a3"), *web(on=("a1", "a2", "a3"))])
    assert [event["event"] for event in report["events"]] == [
        "lose any zone",
        "lose any node",
        "drain any node",
        "restart",
    ]
    assert report["notReachable"] == [
        {"event": "lose any zone", "why": "all nodes that its pods can use are in zone a"}
    ]


def test_nodes_without_zones_are_named() -> None:
    cluster = nodes("a1", "a2", "a3")
    for each in cluster:
        del each["metadata"]["labels"]["topology.kubernetes.io/zone"]
    report = recommended([*cluster, *web(on=("a1", "a2", "a3"))])
    assert [event["survive"] for event in report["events"]] == ["node", "drain", "restart"]
    assert report["remarks"][0].startswith("The nodes have no label topology.kubernetes.io/zone")


def test_a_lack_of_room_is_why_nothing_helps() -> None:
    cluster = [*(node(name, cpu=2) for name in ("a1", "b1", "c1")), *web(on=("a1", "a1", "b1", "b1", "c1", "c1"))]
    report = recommended(cluster, "deploy/web", "--survive", "zone")
    assert changes(report) == []
    assert all("Insufficient cpu" in event["why"] for event in report["notReachable"])
    assert report["notReachable"]


def test_a_change_may_not_harm_another_workload() -> None:
    """A pod of web would take the room in zone c that db needs while zone b is lost."""
    cluster = [*nodes("a1", "a2", "b1", "c1", cpu=4), *web(on=("a1", "a2"), cpu="2")]
    cluster += deployment("db", ("b1",), cpu="4", affinity=_not_in_a())
    report = recommended(cluster, "deploy/web", "--survive", "zone")
    assert "lose any zone" in failing(report)
    assert changes(report) == []
    assert {each["why"] for each in report["tried"]} >= {"1 more pod of deploy/db would wait"}


def _not_in_a() -> Json:
    terms = [{"matchExpressions": [requirement("topology.kubernetes.io/zone", "NotIn", "a")]}]
    return {"nodeAffinity": {_REQUIRED: {"nodeSelectorTerms": terms}}}


def test_the_fewest_replicas_of_an_autoscaler_count() -> None:
    autoscaler = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web", "namespace": "shop", "uid": "uid-hpa"},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "minReplicas": 2,
            "maxReplicas": 9,
        },
    }
    report = recommended([*NINE, *web(), autoscaler])
    assert report["summary"]["replicas"] == 2
    assert report["summary"]["autoscaler"] == "web"
    assert report["remarks"][0] == "HorizontalPodAutoscaler web may set 2 replicas, its minReplicas."


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("deploy/wbe",), 'deployments "wbe" not found in what was read; did you mean deploy/web?'),
        (("ds/agent",), "ds/agent: its pods belong to their nodes"),
        (("job/once",), "job/once: its pods end by themselves. Name a Deployment or StatefulSet"),
        (("pod/bare",), "po/bare: nothing replaces a pod without an owner"),
        (("rollout/canary",), "rollout/canary: the steps of Argo Rollouts are not modelled"),
        ((), "name a workload (deploy/web), or give its manifest with -f"),
        (("deploy/web", "deploy/idle"), "recommend is for one workload at a time: choose one of shop/deploy/idle and"),
        (("deploy/idle",), "deploy/idle has no replicas, so there is nothing to lose"),
        (("deploy/web", "--keep", "x"), '--keep: "x" is neither a number of pods nor a percentage'),
        (("deploy/web", "--keep", "7"), "--keep 7: deploy/web has 6 replicas"),
        (
            ("deploy/web", "--survive", "zome"),
            '--survive: "zome" is not one of zone, node, drain, restart; did you mean',
        ),
        (("deploy/web", "-o", "yaml"), "-o yaml reads the manifest again, which standard input does not allow"),
    ],
)
def test_errors(arguments: tuple[str, ...], message: str) -> None:
    idle = deployment("idle", ())
    daemon = workload("DaemonSet", "agent", {"selector": selector({"app": "agent"}), "template": template("agent")})
    job = workload("Job", "once", {"template": template("once")}, version="batch/v1")
    rollout = {**deployment("canary", ("n-a0",))[0], "apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout"}
    bare = {**deepcopy(web()[-1]), "metadata": {"name": "bare", "namespace": "shop", "uid": "bare"}}
    answer = command([*NINE, *web(), *idle, daemon, job, rollout, bare], *arguments, "--runs", "1")
    assert answer.exit_code == 2
    assert message in answer.stderr


def test_a_template_whose_pods_are_refused_has_to_be_corrected_first() -> None:
    """Its selector has the label already that matchLabelKeys lists."""
    twice = constraint(selects=selector({"app": "web", "rev": "1"}), match=("rev",))
    refused = deployment("web", SPREAD, topologySpreadConstraints=[twice])
    for each in refused[:2]:
        each["spec"]["template"]["metadata"]["labels"]["rev"] = "1"
    answer = command([*NINE, *refused], "deploy/web", *RUNS)
    assert answer.exit_code == 2
    assert "the API server would refuse the pods of deploy/web" in answer.stderr


@pytest.mark.parametrize("limit", [{"minAvailable": 6}, {"maxUnavailable": 0}])
def test_a_budget_that_stops_drains_is_changed_next_to_three_other_changes(limit: Json) -> None:
    report = recommended([*NINE, *web(spread()), budget("web", **limit)], "deploy/web", "--runs", "5")
    assert len(changes(report)) == 4
    assert failing(report, "patched") == []


def test_a_change_does_not_give_up_an_event_that_is_survived_now() -> None:
    """No change of a workload lets the API server evict pods that two budgets select. The others have to be reached."""
    other = budget("web", maxUnavailable=1)
    other["metadata"]["name"] = "web-2"
    report = recommended([*NINE, *web(spread()), budget("web", maxUnavailable=1), other])
    assert failing(report, "patched") == ["drain any zone", "drain any node"]
    for each in report["notReachable"]:
        assert each["why"].startswith("the API server evicts no pod that several PodDisruptionBudgets select (web and ")


def test_the_change_that_misses_least_is_one_that_harms_no_other_workload() -> None:
    """With another limit of the budget of both, drains would evict pods of the other one, which then wait."""
    both = [*web(spread()), *deployment("api", SPREAD, topologySpreadConstraints=[constraint(selects=API)])]
    both = deepcopy(both)
    for each in both:
        pod = each if each["kind"] == "Pod" else each["spec"]["template"]
        pod["metadata"]["labels"]["tier"] = "front"
    shared = budget("web", minAvailable=12)
    shared["spec"]["selector"] = selector({"tier": "front"})
    report = recommended([*NINE, *both, shared])
    assert failing(report, "patched") == ["drain any zone", "drain any node"]


def full(*, taints: Any = ()) -> list[Json]:
    """Return six pods, with which the three nodes of a NodePool are full."""
    made = nodes("a1", "b1", "c1", cpu=2)
    for each in made:
        each["metadata"]["labels"]["karpenter.sh/nodepool"] = "default"
    zones = requirement(ZONE, "In", "a", "b", "c")
    pods = web(spread(), on=("a1", "a1", "b1", "b1", "c1", "c1"))
    return [*made, *pods, node_pool_json("default", zones, taints=taints)]


def test_new_nodes_help_where_pods_have_no_room() -> None:
    """Not after the loss of a zone: Karpenter chooses that zone, which has the fewest pods and does not answer."""
    report = recommended(full(), "deploy/web", "--survive", "zone,drain")
    assert report["remarks"] == [
        'If new nodes can be had, no pod waits after "drain any zone" and "drain any node".',
        'With new nodes, pods still wait after "lose any zone" and "restart, then lose a zone".',
    ]
    header = command(full(), "deploy/web", "--survive", "drain", *RUNS).stdout.partition("\n\n")[0]
    assert "without and with new nodes" in header


def test_new_nodes_that_no_pool_makes_do_not_help() -> None:
    taint = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}
    report = recommended(full(taints=[taint]), "deploy/web", "--survive", "drain")
    assert report["remarks"] == ['With new nodes, pods still wait after "drain any zone" and "drain any node".']
