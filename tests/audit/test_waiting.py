"""Pending pods: the filters that refuse nodes, in the scheduler's order, and the nodes for the next pod."""

from __future__ import annotations

from typing import Any

import pytest

from kubectl_spread.audit.snapshot.scope import Scope
from tests.audits import audit, explained
from tests.builders import HOSTNAME, ZONE, Json, affinity, constraint, node_json, pod_json, requirement, selector, term

WEB = {"app": "web"}
DB = selector({"app": "db"})
HERE = "spec.topologySpreadConstraints[0]"
TAINT = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}
NEEDS: Json = {"containers": [{"name": "app", "resources": {"requests": {"cpu": "2"}}}]}
TEAM = selector({"team": "x"})


def node(name: str, *, cpu: str = "", cordoned: bool = False, **more: Any) -> Json:
    actual_node = node_json(name, **more)
    if cordoned:
        actual_node["spec"]["unschedulable"] = True
    return {**actual_node, "status": {"allocatable": {"cpu": cpu, "pods": "110"}}} if cpu else actual_node


def pending(name: str = "web-9", **more: Any) -> Json:
    return pod_json(name, **more)


def db(place: str, *, namespace: str = "default", gone: bool = False, **more: Any) -> Json:
    metadata = {"deletionTimestamp": "2026-09-01T11:00:00Z"} if gone else {}
    return pod_json(f"db-{place}", node=place, labels={"app": "db"}, namespace=namespace, metadata=metadata, **more)


def namespace(name: str, **labels: str) -> Json:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


def failed(pod: str, message: str, *, count: int = 1, **fields: object) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{pod}.{count}", "namespace": "default"},
        "involvedObject": {"kind": "Pod", "name": pod, "namespace": "default"},
        "reason": "FailedScheduling",
        "message": message,
        "count": count,
        **fields,
    }


def waiting(*objects: Json) -> list[Any]:
    actual_waiting = explained(audit(*objects, scope=Scope(namespace="default")))["waiting"]
    assert isinstance(actual_waiting, list)
    return actual_waiting


def refusals(*objects: Json) -> list[tuple[str, str, list[str]]]:
    (only,) = waiting(*objects)
    return [(node["filter"], node["reason"], node["nodes"]) for node in only["refused"]]


ANTI_DB = affinity("podAntiAffinity", term(selects=DB))
WITH_DB = affinity("podAffinity", term(key=ZONE, selects=DB))
ANTI_WEB = affinity("podAntiAffinity", term())
ANTI_TEAM = affinity("podAntiAffinity", term(selects=DB, namespaceSelector=TEAM))
ANTI_EVERYWHERE = affinity("podAntiAffinity", term(selects=DB, namespaceSelector={}))
ANTI_WEB_TEAM = affinity("podAntiAffinity", term(namespaceSelector=TEAM))

NO_AFFINITY = "its required affinity on zone finds no pod that it selects there"
ANTI = "its required anti-affinity on hostname excludes a pod of po/db-a1 that is there"
EXISTING = "required anti-affinity of po/db-a1 on hostname keeps it away"

FILTERS: dict[str, tuple[list[Json], list[tuple[str, str, list[str]]]]] = {
    "a cordon before a taint": (
        [node("a1", cordoned=True, taints=[TAINT]), pending()],
        [("cordon", "cordoned", ["a1"])],
    ),
    "a taint before affinity": (
        [node("a1", taints=[TAINT]), pending(nodeSelector={"disk": "ssd"})],
        [("taints", "untolerated taint gpu=yes:NoSchedule", ["a1"])],
    ),
    "affinity before resources": (
        [node("a1", cpu="1"), pending(nodeSelector={"disk": "ssd"}, **NEEDS)],
        [("nodeAffinity", "node affinity or nodeSelector does not match", ["a1"])],
    ),
    "resources before spread": (
        [node("a1", cpu="1"), node("b1"), pod_json(node="a1"), pending(constraints=[constraint()], **NEEDS)],
        [("resources", "Insufficient cpu", ["a1"])],
    ),
    "spread before pod affinity": (
        [node("a1"), node("b1"), pod_json(node="a1"), pending(constraints=[constraint()], affinity=WITH_DB), db("b1")],
        [("spread", "their constraint on zone (maxSkew 1) allows no more, because zone b has none", ["a1"])],
    ),
    "a key that a node lacks": (
        [node("a1"), node("x1", without=[ZONE]), pending(constraints=[constraint()])],
        [("spread", f"no label {ZONE}", ["x1"])],
    ),
    "a pod that is wanted": (
        [node("a1"), node("b1"), db("b1"), pending(affinity=WITH_DB)],
        [("podAffinity", NO_AFFINITY, ["a1"])],
    ),
    "a pod that is not wanted": ([node("a1"), db("a1"), pending(affinity=ANTI_DB)], [("podAffinity", ANTI, ["a1"])]),
    "one that is leaving": (
        [node("a1"), db("a1", gone=True), pending(affinity=ANTI_DB)],
        [("podAffinity", ANTI, ["a1"])],
    ),
    "one in another namespace": ([node("a1"), db("a1", namespace="data"), pending(affinity=ANTI_DB)], []),
    "one in any namespace": (
        [node("a1"), db("a1", namespace="data"), pending(affinity=ANTI_EVERYWHERE)],
        [("podAffinity", ANTI, ["a1"])],
    ),
    "one in a namespace of a team": (
        [node("a1"), db("a1", namespace="data"), namespace("data", team="x"), pending(affinity=ANTI_TEAM)],
        [("podAffinity", ANTI, ["a1"])],
    ),
    "one in a namespace of another team": (
        [node("a1"), db("a1", namespace="data"), namespace("data", team="y"), pending(affinity=ANTI_TEAM)],
        [],
    ),
    "a pod that keeps others away": (
        [node("a1"), db("a1", affinity=ANTI_WEB), pending()],
        [("podAffinity", EXISTING, ["a1"])],
    ),
    "one that does so from another namespace": (
        [node("a1"), db("a1", namespace="data", affinity=ANTI_WEB_TEAM), namespace("default", team="x"), pending()],
        [("podAffinity", EXISTING, ["a1"])],
    ),
    "one that keeps those of another team away": (
        [node("a1"), db("a1", namespace="data", affinity=ANTI_WEB_TEAM), namespace("default", team="y"), pending()],
        [],
    ),
    "nothing": ([node("a1", cpu="4"), pending(**NEEDS)], []),
}


@pytest.mark.parametrize("name", FILTERS)
def test_each_node_is_refused_by_the_first_filter(name: str) -> None:
    objects, expected = FILTERS[name]
    assert refusals(*objects) == expected


@pytest.mark.parametrize(
    "objects",
    [
        pytest.param([db("a1", namespace="data"), pending(affinity=ANTI_TEAM)], id="own term"),
        pytest.param([db("a1", affinity=ANTI_WEB_TEAM), pending()], id="term of another pod"),
        pytest.param([db("a1", affinity=ANTI_WEB_TEAM), namespace("data", team="x"), pending()], id="own namespace"),
    ],
)
def test_affinity_is_unknown_without_the_labels_of_namespaces(objects: list[Json]) -> None:
    """The report makes no statement about pod affinity."""
    (only,) = waiting(node("a1"), *objects)
    assert only["refused"] == []
    assert only["unknown"] == [
        "pod affinity: the labels of namespaces, which a namespaceSelector asks for, were not read"
    ]


def test_pods_of_other_namespaces_use_capacity() -> None:
    there = pod_json("there", node="a1", namespace="other", **NEEDS)
    assert refusals(node("a1", cpu="3"), there, pending(**NEEDS)) == [("resources", "Insufficient cpu", ["a1"])]


def test_pods_that_wait_for_the_same_reasons_are_reported_together() -> None:
    small = [pending(f"web-{number}", constraints=[constraint()]) for number in (2, 1)]
    large = pending("web-3", constraints=[constraint()], **NEEDS)
    waiting_pods = waiting(node("a1", cpu="1"), *small, large)
    assert [(waiting_pod["pods"], waiting_pod["allowed"]) for waiting_pod in waiting_pods] == [
        (["web-1", "web-2"], ["a1"]),
        (["web-3"], []),
    ]


@pytest.mark.parametrize(
    "pod",
    [
        pytest.param(pod_json(node="a1"), id="bound"),
        pytest.param(pending(schedulerName="other"), id="another scheduler"),
        pytest.param(pending(phase="Succeeded"), id="finished"),
        pytest.param(pending(metadata={"deletionTimestamp": "2026-09-01T11:00:00Z"}), id="terminating"),
    ],
)
def test_pods_that_wait_for_no_node_of_this_scheduler(pod: Json) -> None:
    assert waiting(node("a1"), pod) == []


def test_without_nodes_no_reason_is_reported() -> None:
    assert waiting(pending()) == []


def test_gates_are_named() -> None:
    (only,) = waiting(node("a1"), pending(schedulingGates=[{"name": "example.com/wait"}]))
    assert only["gates"] == ["example.com/wait"]


def test_the_newest_event_is_quoted() -> None:
    (only,) = waiting(
        node("a1"),
        pending("web-1"),
        pending("web-2"),
        failed("web-1", "0/1 nodes are available: older", lastTimestamp="2026-09-01T10:00:00Z"),
        failed("web-1", "0/1 nodes are available: old", count=4, lastTimestamp="2026-09-01T10:05:00Z"),
        failed("web-2", "new", count=2, series={"count": 7, "lastObservedTime": "2026-09-01T10:06:00.000000Z"}),
        failed("web-3", "of another pod", lastTimestamp="2026-09-01T10:09:00Z"),
    )
    assert only["pods"] == ["web-1", "web-2"]
    assert only["event"] == {"pod": "web-2", "message": "new", "count": 7, "last": "2026-09-01T10:06:00Z"}


def test_events_of_other_reasons_are_not_quoted() -> None:
    (only,) = waiting(node("a1"), pending("web-1"), {**failed("web-1", "no"), "reason": "NotTriggerScaleUp"})
    assert "event" not in only


def refused(pod: Json, **fields: str) -> Json:
    reported = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": "0/1 nodes are available",
    }
    return {
        **pod,
        "status": {**pod["status"], "conditions": [{"type": "Ready", "status": "False"}, {**reported, **fields}]},
    }


SINCE = {"lastTransitionTime": "2026-09-01T10:00:05Z"}


def test_the_status_is_quoted_where_no_event_was_read() -> None:
    (only,) = waiting(node("a1"), pending("web-1"), refused(pending("web-2"), **SINCE))
    assert only["condition"] == {
        "pod": "web-2",
        "reason": "Unschedulable",
        "message": "0/1 nodes are available",
        "since": "2026-09-01T10:00:05Z",
    }
    assert "event" not in only


@pytest.mark.parametrize(
    "objects",
    [
        pytest.param([refused(pending("web-1")), failed("web-1", "no")], id="an event was read"),
        pytest.param([refused(pending("web-1", schedulingGates=[{"name": "x"}]))], id="gates"),
        pytest.param([refused(pending("web-1"), type="ContainersReady")], id="another condition"),
        pytest.param([refused(pending("web-1"), status="True")], id="true"),
    ],
)
def test_the_status_is_not_quoted(objects: list[Json]) -> None:
    (only,) = waiting(node("a1"), *objects)
    assert "condition" not in only


BROKEN = selector({"a b": "x"})
NO_HARD = (
    "labelSelector of topologySpreadConstraints[0] cannot be parsed, so the scheduler fails before it looks at a node"
)
NO_SOFT = "labelSelector of topologySpreadConstraints[0] cannot be parsed, so the scheduler fails to choose a node"


def test_a_selector_that_cannot_be_parsed_keeps_a_pod_from_every_node() -> None:
    hard = pending(constraints=[constraint(selects=BROKEN)])
    assert refusals(node("a1"), node("a2", cordoned=True), hard) == [("spread", NO_HARD, ["a1", "a2"])]
    anti = affinity("podAntiAffinity", term(selects=BROKEN), required=False)
    ((name, reason, nodes),) = refusals(node("a1"), pending(affinity=anti))
    assert (name, nodes) == ("podAffinity", ["a1"])
    assert reason.startswith("labelSelector of affinity.podAntiAffinity.preferred")


def test_a_soft_constraint_that_cannot_be_parsed_fails_where_there_is_a_choice() -> None:
    soft = pending(constraints=[constraint(hard=False, selects=BROKEN)])
    assert refusals(node("a1"), node("a2"), node("a3", cordoned=True), soft) == [
        ("cordon", "cordoned", ["a3"]),
        ("spread", NO_SOFT, ["a1", "a2"]),
    ]
    (only,) = waiting(node("a1"), node("a2", cordoned=True), soft)
    assert only["allowed"] == ["a1"]


@pytest.mark.parametrize("hard", [True, False])
def test_there_is_no_next_pod_with_a_selector_that_cannot_be_parsed(*, hard: bool) -> None:
    explanation = explained(audit(node("a1"), pod_json(node="a1", constraints=[constraint(hard=hard, selects=BROKEN)])))
    assert explanation["placing"] == []
    assert "skew" not in explanation["constraints"][0]


STALE = [constraint(match=["rev"], selects=selector(WEB, requirement("rev", "In", "r1")))]


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ({"rev": "r2"}, [{"path": HERE, "key": "rev", "stored": "r1", "label": "r2"}]),
        ({"rev": "r1"}, None),
        ({}, None),
    ],
)
def test_a_constraint_that_selects_nothing_is_inert(labels: Json, expected: list[Json] | None) -> None:
    full = [pod_json(f"web-{rev}", node="a1", labels={**WEB, "rev": rev}) for rev in ("r1", "r2")]
    (only,) = waiting(node("a1"), node("b1"), *full, pending(labels={**WEB, **labels}, constraints=STALE))
    assert only.get("inert") == expected
    # Without the label the pod does not count itself, so it may go to any zone within maxSkew.
    assert only["allowed"] == (["b1"] if labels.get("rev") == "r1" else ["a1", "b1"])


def test_the_next_pod_is_held_against_the_same_filters() -> None:
    anti = affinity("podAntiAffinity", term(key=HOSTNAME))
    there = pod_json("web-1", node="a1", constraints=[constraint(hard=False)], affinity=anti, **NEEDS)
    (placing,) = explained(audit(there, node("a1"), node("b1", cpu="1"), node("c1", cpu="4")))["placing"]
    assert placing == {
        "pods": ["web-1"],
        "allowed": ["c1"],
        "refused": [
            {"filter": "resources", "reason": "Insufficient cpu", "nodes": ["b1"]},
            {
                "filter": "podAffinity",
                "reason": "its required anti-affinity on hostname excludes a pod of po/web-1 that is there",
                "nodes": ["a1"],
            },
        ],
    }
