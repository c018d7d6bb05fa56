"""Exposure: is all of a workload lost with one node or zone, and could a node elsewhere take one of its pods?"""

from __future__ import annotations

from typing import Any

import pytest

from kubectl_spread.audit.snapshot.scope import FieldRequirement, Scope, Target
from kubectl_spread.kube.api.types import LabelSelectorRequirement
from kubectl_spread.rules.model import Selection
from tests.audits import as_json, audit, deployment, reported
from tests.builders import HOSTNAME, ZONE, Json, affinity, constraint, node_json, pod_json, selector, term


def full_node(name: str, cpu: str) -> Json:
    return {**node_json(name), "status": {"allocatable": {"cpu": cpu, "pods": "110"}}}


def cordoned(name: str) -> Json:
    return {**node_json(name), "spec": {"unschedulable": True}}


def containers(cpu: str) -> list[Json]:
    return [{"name": "web", "resources": {"requests": {"cpu": cpu}}}]


def web(*nodes: str, owner: str = "Deployment/web", **fields: Any) -> list[Json]:
    """Return a pod of one workload on each node."""
    return [pod_json(f"web-{number}", node=node, owner=owner, **fields) for number, node in enumerate(nodes)]


def findings(*objects: Json, scope: Scope | None = None) -> list[Json]:
    evaluation = audit(*objects, scope=scope or Scope())
    return [each for each in as_json(evaluation)["findings"] if each["code"].startswith("SPR50")]


def answers(*objects: Json, scope: Scope | None = None) -> list[tuple[str, str, str]]:
    """Return code, severity and last sentence of each finding about exposure but SPR504."""
    return [
        (each["code"], each["severity"], each["message"].partition("stops them all. ")[2])
        for each in findings(*objects, scope=scope)
        if each["code"] != "SPR504"
    ]


def test_a_free_node_elsewhere_makes_a_warning() -> None:
    nodes = [node_json("a1"), node_json("a2"), node_json("b1")]
    assert answers(*web("a1", "a1"), *nodes) == [("SPR501", "warning", "Node a2 could take one.")]
    assert answers(*web("a1", "a2"), *nodes) == [("SPR502", "warning", "Node b1 in zone b could take one.")]
    assert answers(*web("a1", "b1"), *nodes) == []


OBSTACLES: dict[str, tuple[list[Json], list[Json], str]] = {
    "cordon": (web("a1", "a1"), [node_json("a1"), cordoned("b1")], "1 node: cordoned"),
    "taint": (
        web("a1", "a1"),
        [node_json("a1"), node_json("b1", taints=[{"key": "gpu", "effect": "NoSchedule"}])],
        "1 node: untolerated taint gpu:NoSchedule",
    ),
    "resources": (
        web("a1", "a1", containers=containers("1")),
        [full_node("a1", "4"), full_node("b1", "0.5")],
        "1 node: Insufficient cpu",
    ),
    "hard constraint": (
        web("a1", "a1", constraints=[constraint(key="rack")]),
        [node_json("a1", labels={"rack": "r"}), node_json("b1")],
        "1 node: their constraint on rack allows no more",
    ),
    "required anti-affinity": (
        [
            *web("a1", "a1"),
            pod_json("lonely", node="b1", labels={"app": "x"}, affinity=affinity("podAntiAffinity", term())),
        ],
        [node_json("a1"), node_json("b1")],
        "1 node: required anti-affinity of a pod in the domain",
    ),
    "required affinity": (
        [
            *web("a1", "a1", affinity=affinity("podAffinity", term(selects=selector({"app": "cache"})))),
            pod_json("cache", node="a1", labels={"app": "cache"}),
        ],
        [node_json("a1"), node_json("b1")],
        "1 node: required pod affinity: no such pod in the domain",
    ),
    "unknown scheduler": (
        web("a1", "a1", schedulerName="volcano"),
        [node_json("a1"), node_json("b1")],
        "it is unknown how the scheduler volcano places pods",
    ),
}


@pytest.mark.parametrize("obstacle", OBSTACLES)
def test_each_obstacle_makes_a_note_that_names_it(obstacle: str) -> None:
    pods, nodes, reason = OBSTACLES[obstacle]
    text = f"No other node is known to take one ({reason})."
    assert answers(*pods, *nodes) == [("SPR501", "info", text)]


def test_a_template_that_pins_its_pods_is_a_warning() -> None:
    """Only the author of the template can change it, so there is something to do."""
    pods, nodes = web("a1", "a1", nodeSelector={HOSTNAME: "a1"}), [node_json("a1"), node_json("b1")]
    text = "It is the only node that nodeSelector or node affinity in the pod template allows."
    assert answers(*pods, *nodes) == [("SPR501", "warning", text)]


def test_a_pod_that_moves_makes_room_in_its_own_counts() -> None:
    """With maxSkew 2 the next pod is refused in zone b, but one of the two in a could move there."""
    spread = [constraint(max_skew=2)]
    nodes = [node_json("a1"), node_json("b1")]
    assert answers(*web("a1", "a1", constraints=spread), *nodes) == [("SPR501", "warning", "Node b1 could take one.")]


def test_labels_of_namespaces_that_were_not_read_make_a_note() -> None:
    anywhere = term(namespaceSelector={"matchLabels": {"team": "a"}})
    pods = web("a1", "a1", affinity=affinity("podAntiAffinity", anywhere))
    ((code, severity, text),) = answers(*pods, node_json("a1"), node_json("b1"))
    assert (code, severity) == ("SPR501", "info")
    assert "labels of namespaces" in text


def test_one_of_the_pods_that_fits_elsewhere_is_enough() -> None:
    small = pod_json("web-9", node="a1", owner="Deployment/web", containers=containers("1"))
    large = web("a1", containers=containers("3"))
    nodes = [full_node("a1", "8"), full_node("b1", "2")]
    assert answers(*large, small, *nodes) == [("SPR501", "warning", "Node b1 could take one.")]


def test_only_running_pods_count() -> None:
    nodes = [node_json("a1"), node_json("b1")]
    gone = pod_json("web-8", node="b1", owner="Deployment/web", metadata={"deletionTimestamp": "2026-09-01T10:00:00Z"})
    finished = pod_json("web-7", node="b1", owner="Deployment/web", phase="Failed")
    pending = pod_json("web-6", owner="Deployment/web")
    lost = pod_json("web-5", node="deleted", owner="Deployment/web")
    pods = [*web("a1", "a1"), gone, finished, pending, lost]
    assert answers(*pods, *nodes) == [("SPR501", "warning", "Node b1 could take one.")]
    assert answers(*web("a1"), gone, finished, pending, lost, *nodes) == []


def test_pods_of_superseded_revisions_count() -> None:
    nodes = [node_json("a1"), node_json("b1")]
    old = pod_json("old", node="b1", owner="Deployment/web", labels={"app": "web", "pod-template-hash": "1"})
    assert answers(*web("a1", "a1"), old, *nodes) == []


@pytest.mark.parametrize("owner", ["DaemonSet/web", "Job/web", ""])
def test_pods_that_do_not_stand_in_for_each_other_are_left_out(owner: str) -> None:
    assert findings(*web("a1", "a1", owner=owner), node_json("a1"), node_json("b1")) == []


def test_pods_that_run_to_completion_are_left_out_under_any_owner() -> None:
    pods = web("a1", "a1", owner="Workflow/etl", restartPolicy="Never")
    assert findings(*pods, node_json("a1"), node_json("b1")) == []


@pytest.mark.parametrize("owner", ["CloneSet/web", "Rollout/web", "ReplicationController/web"])
def test_unknown_owners_count(owner: str) -> None:
    ((code, severity, _),) = answers(*web("a1", "a1", owner=owner), node_json("a1"), node_json("b1"))
    assert (code, severity) == ("SPR501", "warning")


def test_a_cluster_of_one_node_has_no_finding() -> None:
    assert answers(*web("a1", "a1"), node_json("a1")) == []


def test_one_zone_is_a_note_that_is_the_same_for_all_workloads() -> None:
    pods = [*web("a1", "a2"), *web("a1", "a2", "a1", owner="StatefulSet/db")]
    assert {(each["severity"], each["group"]) for each in findings(*pods, node_json("a1"), node_json("a2"))} == {
        ("info", findings(*pods, node_json("a1"), node_json("a2"))[0]["group"])
    }


def test_nodes_without_zones_are_in_no_zone() -> None:
    nodes = [node_json(name, without=[ZONE]) for name in ("a1", "a2")]
    assert answers(*web("a1", "a2"), *nodes) == []
    assert answers(*web("a1", "a2", "b1"), node_json("a1"), node_json("b1", without=[ZONE]), node_json("a2")) == []


def test_without_nodes_only_the_template_is_judged() -> None:
    assert [each["code"] for each in findings(*web("a1", "a1"))] == ["SPR504"]


def majority(*nodes: str, zones: str, **fields: Any) -> list[str]:
    pods = web(*nodes, owner="StatefulSet/db", **fields)
    cluster = [node_json(name) for name in sorted({*nodes, *(f"{zone}1" for zone in zones)})]
    return [each["message"] for each in findings(*pods, *cluster) if each["code"] == "SPR503"]


def test_the_majority_in_one_zone_is_reported_where_it_could_be_otherwise() -> None:
    message = (
        "2 of 3 running pods are in zone a, so the StatefulSet loses its majority with this zone. "
        "Node c1 in zone c could take one."
    )
    assert majority("a1", "a2", "b1", zones="abc") == [message]
    assert majority("a1", "a2", "b1", zones="ab") == []
    assert majority("a1", "b1", "c1", zones="abc") == []
    assert majority("a1", "a2", "b1", "b2", zones="abc") == []
    assert len(majority("a1", "a2", "a3", "b1", zones="ab")) == 1
    assert majority("a1", "a2", "a3", "a4", "b1", zones="ab") == []
    assert len(majority("a1", "a2", "a3", "a4", "b1", zones="abcd")) == 1


def test_a_hard_skew_on_the_same_key_takes_precedence_if_it_is_reported() -> None:
    spread = [constraint()]
    objects = [*web("a1", "a2", constraints=spread), *[node_json(name) for name in ("a1", "a2", "b1")]]

    def codes(selection: Selection) -> list[str]:
        return [finding.code for finding in reported(audit(*objects), selection).findings]

    assert codes(Selection()) == ["SPR301"]
    assert codes(Selection(select=("SPR5",))) == ["SPR502"]
    assert codes(Selection(ignore=("SPR301",))) == ["SPR502"]
    assert codes(Selection(ignore=("SPR5",))) == ["SPR301"]


def test_the_zone_is_reported_where_the_node_is_ignored() -> None:
    objects = [*web("a1", "a1"), node_json("a1"), node_json("b1")]

    def codes(*ignored: str) -> list[str]:
        return [finding.code for finding in reported(audit(*objects), Selection(ignore=ignored)).findings]

    assert codes() == ["SPR501"]
    assert codes("SPR501") == ["SPR502"]
    assert codes("SPR501", "SPR502") == ["SPR504"]


def test_an_annotation_on_all_pods_ignores_the_findings() -> None:
    ignoring = {"annotations": {"kubectl-spread/ignore": "SPR5"}}
    objects = [node_json("a1"), node_json("b1")]
    assert findings(*web("a1", "a1", metadata=ignoring), *objects) == []
    half = [*web("a1", metadata=ignoring), pod_json("web-9", node="a1", owner="Deployment/web")]
    assert [each["code"] for each in findings(*half, *objects)] == ["SPR501"]


def test_selectors_that_may_leave_out_pods_leave_nothing_to_say() -> None:
    nodes = [node_json("a1"), node_json("b1")]
    on_node = Scope(fields=(FieldRequirement("spec.nodeName", "a1", equal=True),))
    assert findings(*web("a1", "a1", "b1"), *nodes, scope=on_node) == []
    by_label = Scope(labels=(LabelSelectorRequirement(key="app", operator="In", values=("web",)),))
    assert answers(*web("a1", "a1"), *nodes, scope=by_label) == []


def test_one_named_pod_is_judged_with_all_pods_of_its_workload() -> None:
    nodes = [node_json("a1"), node_json("b1")]
    scope = Scope(namespace="default", targets=(Target("Pod", "web-0"),))
    assert answers(*web("a1", "a1", "b1"), *nodes, scope=scope) == []
    ((code, _, _),) = answers(*web("a1", "a1"), *nodes, scope=scope)
    assert code == "SPR501"


@pytest.mark.parametrize(("without", "keys"), [((), [ZONE, HOSTNAME]), ((ZONE,), [HOSTNAME])])
def test_the_patch_has_only_keys_that_all_nodes_have(without: tuple[str, ...], keys: list[str]) -> None:
    """With a soft constraint whose key a node lacks, the scheduler does not rank that node by any constraint."""
    nodes = [node_json("a1"), node_json("b1", without=without)]
    template = deployment()
    template["spec"] |= {"replicas": 2, "selector": selector({"app": "web"})}
    (finding,) = findings(template, *web("a1", "b1"), *nodes)
    (*_, addition) = finding["patch"]["operations"]
    assert [each["topologyKey"] for each in addition["value"]] == keys
    assert [each["whenUnsatisfiable"] for each in addition["value"]] == ["ScheduleAnyway"] * len(keys)
