"""Whether nodes could be made for the pods that would wait after an event."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kubectl_spread.kube.nodeautoscaling import NODE_POOL_LABEL
from tests.builders import HOSTNAME, ZONE, Json, constraint, node_class_json, node_group, node_pool_json, requirement
from tests.simulate.clusters import (
    command,
    deployment,
    nodes,
    pod,
    simulated,
    stateful_set,
    template,
    workload,
    zone_constraint,
)

HARD: dict[str, Any] = {"topologySpreadConstraints": [zone_constraint("web")]}
CLUSTER = [*nodes("a1", "b1", "c1"), *deployment("web", ["a1", "b1", "c1"], **HARD)]


def message(*pools: Json, events: tuple[str, ...]) -> str:
    """Return the message of the only finding."""
    (finding,) = simulated([*CLUSTER, *pools], *events)["findings"]
    assert finding["severity"] == "error"
    return str(finding["message"])


def pool(*zones: str) -> Json:
    return node_pool_json("default", requirement(ZONE, "In", *zones))


def test_a_lost_zone_counts_so_only_there_a_node_may_be_made() -> None:
    end = "NodePool default may make a node only in zone a, if an instance type fits and is available there."
    assert message(pool("a", "b", "c"), events=("--lose", "zone=a")).endswith(f" {end}")


def test_no_node_is_made_where_the_pool_has_no_such_zone() -> None:
    text = message(pool("b", "c"), events=("--lose", "zone=a"))
    assert " No NodePool can make a node: NodePool default refuses because the constraint on zone (maxSkew 1) " in text


def test_without_node_pools_nothing_is_said() -> None:
    assert "NodePool" not in message(events=("--lose", "zone=a"))


def test_nothing_is_said_where_no_pod_waits() -> None:
    assert simulated([*CLUSTER, pool("a")], "--scale", "deploy/web=2")["findings"] == []


def test_nothing_is_said_of_all_pods_that_is_true_of_some() -> None:
    """The pod that waits already tolerates the taint of the NodePool; the template no longer does."""
    cluster = [*nodes("a1", "b1", "c1"), *deployment("web", ["b1", "c1", ""], **HARD)]
    cluster[0]["spec"] = {"unschedulable": True}
    cluster[-1]["metadata"]["creationTimestamp"] = "2026-08-01T10:00:00Z"
    cluster[-1]["spec"]["tolerations"] = [{"key": "gpu", "operator": "Exists"}]
    tainted = node_pool_json("default", taints=[{"key": "gpu", "value": "yes", "effect": "NoSchedule"}])
    (finding,) = simulated([*cluster, tainted], "--drain", "zone=b")["findings"]
    assert finding["message"].endswith(" is not the same for all of them, or in all runs.")


def labelled(*names: str, key: str = "karpenter.sh/nodepool", value: str = "default", cpu: int = 2) -> list[Json]:
    """Return nodes with room for two pods, which belong to a NodePool or a node group."""
    made = nodes(*names, cpu=cpu)
    for each in made:
        each["metadata"]["labels"][key] = value
    return made


FULL = [*labelled("a1", "b1", "c1"), *deployment("web", ["a1", "b1", "c1", "a1", "b1", "c1"], **HARD)]
"""Six pods, with which three nodes are full."""
ONE_MORE = {"min": 1, "max": 1}


def grown(objects: list[Json], *arguments: str, replicas: int = 9) -> Any:
    """Return what new nodes would change if the Deployment were scaled."""
    return simulated(objects, "--scale", f"deploy/web={replicas}", *arguments)["withNewNodes"]


def places(made: Any) -> dict[tuple[str, str], tuple[int, int]]:
    """Return the number of new nodes by what makes them and their zone."""
    return {(each["maker"], each["zone"]): (each["nodes"]["min"], each["nodes"]["max"]) for each in made["nodes"]}


def numbers(made: Any) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return the number of new nodes, and that of the pods that wait in spite of them."""
    total, pending = made["total"], made["pending"]
    return (total["min"], total["max"]), (pending["min"], pending["max"])


def test_each_zone_gets_the_node_that_its_pod_needs() -> None:
    """Three pods more have no room, and the constraint allows one of them in each zone."""
    made = grown([*FULL, pool("a", "b", "c")])
    assert places(made) == {("NodePool default", zone): (1, 1) for zone in "abc"}
    assert numbers(made) == ((3, 3), (0, 0))


def test_a_new_node_takes_all_pods_that_have_room_there() -> None:
    made = grown([*FULL[:3], *deployment("web", ["a1", "b1", "c1", "a1", "b1", "c1"]), pool("b")], replicas=8)
    assert places(made) == {("NodePool default", "b"): (1, 1)}
    assert numbers(made) == ((1, 1), (0, 0))


def test_the_findings_and_the_status_are_those_without_new_nodes() -> None:
    """A node that could be made may not be had."""
    result = command([*FULL, pool("a", "b", "c")], "--scale", "deploy/web=9")
    assert result.exit_code == 1
    text = " ".join(result.stdout.split())
    assert "3 pods of 1 workload would wait. If 3 new nodes can be had (NodePool default: 1 in zone a, 1 in" in text
    assert "no pod would wait." in text
    assert "without and with new nodes" in text
    assert "Not simulated: what autoscalers do with nodes later, such as consolidation" in text


def test_new_nodes_can_be_left_out() -> None:
    result = command([*FULL, pool("a", "b", "c")], "--scale", "deploy/web=9", "--no-autoscale")
    assert "new node" not in result.stdout
    assert "cluster autoscalers not simulated" in result.stdout
    assert "withNewNodes" not in simulated([*FULL, pool("a")], "--scale", "deploy/web=9", "--no-autoscale")


def test_where_no_pod_waits_no_node_is_made() -> None:
    assert "withNewNodes" not in simulated([*FULL, pool("a", "b", "c")], "--scale", "deploy/web=5")


def test_a_domain_that_only_karpenter_counts_gets_the_node() -> None:
    """Zone d has no node, so the scheduler does not count it; Karpenter allows a pod only there."""
    made = grown([*FULL, pool("a", "b", "c", "d")], replicas=7)
    assert places(made) == {("NodePool default", "d"): (1, 1)}
    assert numbers(made) == ((1, 1), (0, 0))


def test_no_node_is_made_in_a_zone_that_does_not_answer() -> None:
    """Karpenter chooses zone a, as it has the fewest pods: its NodePool names it, and the lost node still counts."""
    report = simulated([*FULL, pool("a", "b", "c")], "--lose", "zone=a")
    made = report["withNewNodes"]
    assert (numbers(made), made["missed"]) == (((0, 0), (2, 2)), ["a"])
    text = " ".join(command([*FULL, pool("a", "b", "c")], "--lose", "zone=a", "--fail-on", "never").stdout.split())
    assert "No new node is made for them. None is made in zone a, which does not answer." in text


def test_a_pool_makes_nodes_where_its_class_has_subnets() -> None:
    soft: dict[str, Any] = {"topologySpreadConstraints": [zone_constraint("web", hard=False)]}
    full = [*FULL[:3], *deployment("web", ["a1", "b1", "c1", "a1", "b1", "c1"], **soft)]
    made = grown([*full, node_pool_json("default"), node_class_json("c")], replicas=7)
    assert places(made) == {("NodePool default", "c"): (1, 1)}


@pytest.mark.parametrize(
    ("limits", "used", "made"),
    [
        ({"cpu": "10"}, {"cpu": "6"}, 2),
        ({"nodes": "4"}, {"nodes": "3"}, 1),
        ({"memory": "128Gi"}, {"memory": "96Gi"}, 1),
        ({"cpu": "100"}, {"cpu": "6"}, 3),
    ],
)
def test_no_node_exceeds_the_limits_of_its_pool(limits: dict[str, str], used: dict[str, str], made: int) -> None:
    limited = node_pool_json("default", requirement(ZONE, "In", "a", "b", "c"), limits=limits, used=used)
    assert numbers(grown([*FULL, limited])) == ((made, made), (3 - made, 3 - made))


def test_no_node_is_made_whose_taint_the_pods_do_not_tolerate() -> None:
    tainted = node_pool_json("default", taints=[{"key": "gpu", "value": "yes", "effect": "NoSchedule"}])
    assert numbers(grown([*FULL, tainted])) == ((0, 0), (3, 3))
    text = command([*FULL, tainted], "--scale", "deploy/web=9").stdout
    assert "No new node is made for them." in " ".join(text.split())


def test_no_node_is_made_for_pods_that_the_scheduler_cannot_place() -> None:
    constraint = zone_constraint("web")
    constraint["labelSelector"] = {"matchExpressions": [{"key": "app", "operator": "Like", "values": ["web"]}]}
    broken = deployment("web", ["a1", "b1"], topologySpreadConstraints=[constraint])
    assert numbers(grown([*FULL[:3], *broken, pool("a", "b", "c")], replicas=3)) == ((0, 0), (1, 1))


def test_no_node_is_made_that_is_too_small() -> None:
    large = [*nodes("a2", cpu=4), *labelled("a1"), *deployment("web", ["a2"], containers=[container("3")])]
    assert numbers(grown([*large, pool("a")], replicas=2)) == ((0, 0), (1, 1))


def container(cpu: str) -> Json:
    return {"name": "app", "image": "app", "resources": {"requests": {"cpu": cpu}}}


def test_pods_that_belong_to_a_node_take_room_on_the_new_one() -> None:
    of_nodes = template("agent", cpu="1")
    agents = [pod(f"agent-{node}", node, of_nodes, "DaemonSet/agent") for node in ("a1", "b1", "c1")]
    daemon = workload("DaemonSet", "agent", {"selector": {"matchLabels": {"app": "agent"}}, "template": of_nodes})
    full = [*labelled("a1", "b1", "c1"), *deployment("web", ["a1", "b1", "c1"]), daemon, *agents]
    assert numbers(grown([*full, pool("a")], replicas=5)) == ((2, 2), (0, 0))


def test_the_pool_with_the_largest_weight_is_the_first() -> None:
    others = labelled("a2", "b2", "c2", value="spare")
    full = [*FULL, *others, *deployment("batch", ["a2", "b2", "c2", "a2", "b2", "c2"])]
    spare = node_pool_json("spare", requirement(ZONE, "In", "a", "b", "c"), weight=10)
    assert {maker for maker, _ in places(grown([*full, pool("a", "b", "c"), spare]))} == {"NodePool spare"}


def test_the_size_of_the_first_node_of_a_pool_is_not_known() -> None:
    made = grown([*FULL, node_pool_json("empty")])
    assert (numbers(made), made["unsized"]) == (((0, 0), (3, 3)), ["NodePool empty"])
    text = command([*FULL, node_pool_json("empty")], "--scale", "deploy/web=9").stdout
    said = "No new node is made for them. NodePool empty has no node whose size they could have."
    assert said in " ".join(text.split())


def status(*groups: Json) -> Json:
    """Return the ConfigMap with the status of cluster-autoscaler."""
    metadata = {"name": "cluster-autoscaler-status", "namespace": "kube-system", "uid": "uid-status"}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata,
        "data": {"status": json.dumps({"nodeGroups": list(groups)})},
    }


def test_a_node_group_grows_up_to_its_maximum() -> None:
    of_groups = [
        *labelled("a1", key="eks.amazonaws.com/nodegroup", value="of-a"),
        *labelled("b1", key="eks.amazonaws.com/nodegroup", value="of-b"),
        *deployment("web", ["a1", "b1", "a1", "b1"], topologySpreadConstraints=[zone_constraint("web", maxSkew=3)]),
    ]
    groups = status(node_group("eks-of-a-1", 1, 2), node_group("eks-of-b-2", 1, 1), node_group("eks-of-c-3", 0, 5))
    made = grown([*of_groups, groups], replicas=9)
    assert places(made) == {("node group eks-of-a-1", "a"): (1, 1)}
    assert (numbers(made), made["unsized"]) == (((1, 1), (3, 3)), ["node group eks-of-c-3"])


def test_a_group_that_has_no_node_begins_the_sentence() -> None:
    objects = [*nodes("a1"), *deployment("web", ["a1"]), status(node_group("workers", 0, 5))]
    text = " ".join(command(objects, "--delete", "a1", "--fail-on", "never").stdout.split())
    assert "No new node is made for them. Node group workers has no node whose size they could have." in text


def test_no_node_is_made_where_only_pods_of_other_namespaces_wait() -> None:
    """The answer is about one namespace, of which no pod waits."""
    report = simulated([*FULL, pool("a", "b", "c")], "--scale", "deploy/web=9", "-n", "shop")
    assert "withNewNodes" in report
    other = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}}
    report = simulated([*FULL, pool("a", "b", "c"), other], "--lose", "zone=a", "-n", "other")
    assert report["workloads"] == []
    assert "withNewNodes" not in report


def test_a_new_node_has_no_label_of_another_zone() -> None:
    """The pod needs a node in zone b by another label of it, and the only node of the pool is in zone a."""
    (model,) = labelled("a1")
    old = "failure-domain.beta.kubernetes.io/zone"
    model["metadata"]["labels"] |= {old: "a"}
    selected: dict[str, Any] = {"nodeSelector": {old: "b"}}
    cluster = [model, *deployment("web", [""], **selected), pool("a", "b")]
    made = simulated(cluster, "--scale", "deploy/web=1")["withNewNodes"]
    assert places(made) == {("NodePool default", "b"): (1, 1)}


def test_an_unfinished_rollout_ends_on_a_new_node() -> None:
    """The surge of a rollout has no room, and the new pods repel each other on each node."""
    term = {"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": {"app": "web"}}}
    repelling: dict[str, Any] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    surge = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    full = [*labelled("a1", "b1"), *deployment("web", ["a1", "b1"], strategy=surge, affinity=repelling)]
    report = simulated([*full, pool("a", "b")], "--restart", "deploy/web")
    assert report["summary"]["pending"] == ONE_MORE
    assert numbers(report["withNewNodes"]) == ((1, 1), (0, 0))


@pytest.mark.parametrize(("pools", "made"), [(("a", "b", "c"), {("NodePool default", "a"): (1, 1)}), (("b", "c"), {})])
def test_a_pod_with_a_volume_gets_a_node_in_its_zone_alone(
    pools: tuple[str, ...], made: dict[tuple[str, str], tuple[int, int]]
) -> None:
    """Node a1 is drained, and the volume of its pod is in zone a."""
    objects = [*labelled("a1", "b1", "c1"), *stateful_set("db", ["a1", "b1", "c1"], claims=True)]
    with_nodes = simulated([*objects, pool(*pools)], "--drain", "a1")["withNewNodes"]
    assert places(with_nodes) == made
    assert numbers(with_nodes) == (((1, 1), (0, 0)) if made else ((0, 0), (1, 1)))


def test_no_node_is_made_for_a_volume_in_a_zone_that_is_too_full_for_the_constraint() -> None:
    """The volume leaves zone a alone; the constraint counts zones b and c as well, which have no pods."""
    spread = zone_constraint("db")
    objects = [*labelled("a1", "a2", "b1", "c1", cpu=1), *stateful_set("db", ["a1", "a2"], claims=True)]
    for each in objects:
        if each["kind"] in {"StatefulSet", "Pod"}:
            spec = each["spec"]["template"]["spec"] if each["kind"] == "StatefulSet" else each["spec"]
            spec["topologySpreadConstraints"] = [spread]
    with_nodes = simulated([*objects, pool("a", "b", "c")], "--drain", "a1")["withNewNodes"]
    assert numbers(with_nodes) == ((0, 0), (1, 1))


def terms(field: str, name: str, key: str = ZONE) -> Json:
    """Return a required term that selects the pods of a workload."""
    term = {"topologyKey": key, "labelSelector": {"matchLabels": {"app": name}}}
    return {field: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


APART = terms("podAntiAffinity", "web")
BUSY = deployment("busy", ["a1", "b1", "c1", "a1", "b1", "c1"])
"""Pods that fill three nodes."""


def test_pods_that_repel_each_other_get_a_node_in_each_zone() -> None:
    """Karpenter orders one node at a time, as it may be in any zone until it is there."""
    full = [*labelled("a1", "b1", "c1"), *BUSY, *deployment("web", [""], affinity=APART)]
    made = grown([*full, pool("a", "b", "c")], replicas=4)
    assert places(made) == {("NodePool default", zone): (1, 1) for zone in "abc"}
    assert numbers(made) == ((3, 3), (1, 1))


def test_pods_that_others_repel_get_no_node_in_their_zones() -> None:
    """The pods that fill zones a and b have anti-affinity to those of the workload, which has none itself."""
    guards = [*deployment("busy", ["a1", "b1"], affinity=APART, cpu="2"), *deployment("calm", ["c1"], cpu="2")]
    full = [*labelled("a1", "b1", "c1"), *guards, *deployment("web", [""])]
    assert places(grown([*full, pool("a", "b", "c")], replicas=2)) == {("NodePool default", "c"): (1, 1)}
    assert numbers(grown([*full, pool("a", "b")], replicas=2)) == ((0, 0), (2, 2))
    text = " ".join(command([*full, pool("a", "b")], "--scale", "deploy/web=2", "--fail-on", "never").stdout.split())
    assert (
        "No NodePool can make a node: NodePool default refuses because anti-affinity of other pods on zone allows no "
        "pod in zones a and b, where its nodes can be."
    ) in text


def test_pods_get_a_node_in_the_zone_of_those_that_they_want() -> None:
    """The node of zone b is full, and has the only pod that the term selects."""
    wanted = [*deployment("db", ["b1"], cpu="2"), *deployment("busy", ["a1", "c1"], cpu="2")]
    full = [*labelled("a1", "b1", "c1"), *wanted, *deployment("web", [""], affinity=terms("podAffinity", "db"))]
    made = grown([*full, pool("a", "b", "c")], replicas=3)
    assert places(made) == {("NodePool default", "b"): (2, 2)}
    assert numbers(made)[1] == (0, 0)
    assert numbers(grown([*full, pool("a", "c")], replicas=3)) == ((0, 0), (3, 3))


def test_no_new_node_has_the_pods_that_others_want_on_their_host() -> None:
    wanted = [*deployment("db", ["b1"], cpu="2"), *deployment("busy", ["a1"], cpu="2")]
    beside = terms("podAffinity", "db", HOSTNAME)
    full = [*labelled("a1", "b1"), *wanted, *deployment("web", [""], affinity=beside)]
    assert numbers(grown([*full, pool("a", "b")], replicas=1)) == ((0, 0), (1, 1))


def test_pods_that_want_each_other_wait_for_nodes_in_one_zone() -> None:
    """The first pod may be in any zone, and the others have to follow it there."""
    full = [*labelled("a1", "b1", "c1"), *BUSY, *deployment("web", [""], affinity=terms("podAffinity", "web"))]
    made = grown([*full, pool("a", "b", "c")], replicas=2)
    assert numbers(made) == ((1, 1), (0, 0))
    assert {count for _, count in places(made).items()} <= {(0, 1), (1, 1)}


def test_a_pod_joins_the_one_that_it_wants_on_a_node_with_room() -> None:
    """Both wait. The large one needs a new node, in zone a alone, whose old node then has room for the small one."""
    large = deployment("web", [""], cpu="3", nodeSelector={ZONE: "a"})
    small = deployment("sidecar", [""], affinity=terms("podAffinity", "web"))
    full = [*labelled("a1", "b1", cpu=4), *deployment("busy", ["a1", "b1"], cpu="2"), *large, *small]
    made = grown([*full, pool("a", "b")], replicas=1)
    assert places(made) == {("NodePool default", "a"): (1, 1)}
    assert numbers(made) == ((1, 1), (0, 0))


@pytest.mark.parametrize(("field", "zone"), [("podAffinity", "b"), ("podAntiAffinity", "a")])
def test_a_node_group_grows_where_pod_affinity_allows_it(field: str, zone: str) -> None:
    of_groups = [
        *labelled("a1", key="eks.amazonaws.com/nodegroup", value="of-a"),
        *labelled("b1", key="eks.amazonaws.com/nodegroup", value="of-b"),
        *deployment("busy", ["a1"], cpu="2"),
        *deployment("db", ["b1"], cpu="2"),
        *deployment("web", [""], affinity=terms(field, "db")),
    ]
    groups = status(node_group("eks-of-a-1", 1, 5), node_group("eks-of-b-2", 1, 5))
    made = grown([*of_groups, groups], replicas=2)
    assert places(made) == {(f"node group eks-of-{zone}-{'ab'.index(zone) + 1}", zone): (1, 1)}
    assert numbers(made)[1] == (0, 0)


def test_a_node_is_made_where_the_pods_prefer_to_be() -> None:
    """Karpenter takes preferences as requirements first."""
    preferred = [{"weight": 1, "preference": {"matchExpressions": [requirement(ZONE, "In", "b")]}}]
    wish = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}
    full = [*labelled("a1", "b1", "c1"), *BUSY, *deployment("web", [""], affinity=wish)]
    assert places(grown([*full, pool("a", "b", "c")], replicas=1)) == {("NodePool default", "b"): (1, 1)}
    assert numbers(grown([*full, pool("a", "c")], replicas=1)) == ((1, 1), (0, 0))


def test_a_node_gets_the_labels_that_all_of_its_pods_require() -> None:
    """The large pod may be on a node of any team; the small ones join it, as its NodePool may make nodes of theirs."""
    teams = node_pool_json("default", requirement(ZONE, "In", "a"), requirement("team", "In", "shop", "mail"))
    large = deployment("web", [""], cpu="1500m")
    small = deployment("mail", [""], cpu="200m", nodeSelector={"team": "mail"})
    full = [*labelled("a1"), *deployment("busy", ["a1"], cpu="2"), *large, *small]
    assert numbers(grown([*full, teams], replicas=1)) == ((1, 1), (0, 0))


def test_pods_spread_over_hosts_get_a_node_each() -> None:
    apart = zone_constraint("web", key=HOSTNAME)
    full = [*labelled("a1", "b1"), *deployment("busy", ["a1", "b1"], cpu="2")]
    full += deployment("web", [""], cpu="100m", topologySpreadConstraints=[apart])
    assert numbers(grown([*full, pool("a", "b")], replicas=3)) == ((3, 3), (0, 0))


def test_karpenter_drops_a_term_of_node_affinity_that_no_node_has() -> None:
    terms = [{"matchExpressions": [requirement(ZONE, "In", zone)]} for zone in ("d", "b")]
    required = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
    full = [*labelled("a1", "b1"), *deployment("busy", ["a1", "b1"], cpu="2")]
    full += deployment("web", [""], affinity=required)
    assert places(grown([*full, pool("a", "b")], replicas=1)) == {("NodePool default", "b"): (1, 1)}


@pytest.mark.parametrize(("policy", "replicas", "in_b"), [("Ignore", 3, 2), ("Honor", 2, 1)])
def test_a_pod_on_a_new_node_counts_as_the_policy_of_a_constraint_says(policy: str, replicas: int, in_b: int) -> None:
    """The large pod counts too, and needs a new node in zone a, whose taint the others do not tolerate."""
    taint = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}
    both = {"matchExpressions": [requirement("app", "In", "web", "large")]}
    apart = constraint(selects=both, nodeTaintsPolicy=policy)
    tolerations = [{"key": "gpu", "operator": "Exists"}]
    full = [*labelled("a1", "b1"), *labelled("a2", value="gpu"), *deployment("busy", ["a1", "b1", "a2"], cpu="2")]
    full += deployment("large", [""], cpu="2", tolerations=tolerations, nodeSelector={NODE_POOL_LABEL: "gpu"})
    full += deployment("web", [""], cpu="1900m", topologySpreadConstraints=[apart])
    pools = [pool("a", "b"), node_pool_json("gpu", requirement(ZONE, "In", "a"), taints=[taint])]
    made = places(grown([*full, *pools], replicas=replicas))
    assert made[("NodePool default", "b")] == (in_b, in_b)
    assert made[("NodePool gpu", "a")] == (1, 1)
