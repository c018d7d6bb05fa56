"""Which pods make a skew, how many have to be placed again, and which obstacles keep them where they are?"""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Any

import pytest

from kubectl_spread.audit.snapshot.scope import Scope, Target
from kubectl_spread.diagnosis.skew import fewest_moves
from kubectl_spread.report import model
from tests.audits import EVERYTHING, as_json, audit, explained
from tests.builders import HOSTNAME, ZONE, Json, affinity, constraint, node_json, pod_json, requirement, selector, term


@pytest.mark.parametrize(
    ("counts", "max_skew", "moves"),
    [
        pytest.param([2, 1, 0], 1, 1, id="2/1/0 -> 1/1/1"),
        pytest.param([5, 0, 0], 1, 3, id="5/0/0 -> 2/2/1"),
        pytest.param([2, 2, 0], 1, 1, id="2/2/0 -> 1/2/1"),
        pytest.param([7, 6, 0], 1, 4, id="7/6/0 -> 5/4/4"),
        pytest.param([5, 0, 0], 3, 2, id="5/0/0 -> 3/1/1 with maxSkew 3"),
    ],
)
def test_the_fewest_moves_end_a_skew(counts: list[int], max_skew: int, moves: int) -> None:
    assert fewest_moves(Counter(counts), max_skew=max_skew, highest=sum(counts) // len(counts)) == moves


def test_no_distribution_within_max_skew_takes_fewer_moves() -> None:
    for counts in itertools.product(range(5), repeat=3):
        total = sum(counts)
        for max_skew in (1, 2):
            if max(counts) - min(counts) <= max_skew:
                continue
            ends = (end for end in itertools.product(range(total + 1), repeat=3) if sum(end) == total)
            least = min(
                sum(max(0, before - after) for before, after in zip(counts, end, strict=True))
                for end in ends
                if max(end) - min(end) <= max_skew
            )
            assert fewest_moves(Counter(counts), max_skew=max_skew, highest=total // 3) == least, counts


def shared(name: str, owner: str, node: str, **fields: Any) -> Json:
    return pod_json(name, node=node, owner=owner, labels={"tier": "front"}, **fields)


UNREAD_BUDGETS = "Disruption budgets were not read, and kubectl delete ignores them."
FRONT = constraint(selects=selector({"tier": "front"}))
ABC = [node_json("a1"), node_json("b1"), node_json("c1")]


def findings(*objects: Json, code: str = "SPR301", scope: Scope = EVERYTHING) -> dict[str, Any]:
    """Return the findings of one rule by workload."""
    report = as_json(audit(*objects, scope=scope))
    return {
        f"{finding['object']['kind']}/{finding['object']['name']}": finding
        for finding in report["findings"]
        if finding["code"] == code
    }


def two_deployments() -> list[Json]:
    web = [shared(f"web-{index}", "Deployment/web", "a1", constraints=[FRONT]) for index in (1, 2)]
    return [*web, shared("api-1", "Deployment/api", "b1", constraints=[FRONT]), *ABC]


def test_only_the_workload_in_the_fullest_domain_has_a_finding() -> None:
    findings_by_workload = findings(*two_deployments())
    assert findings_by_workload.keys() == {"Deployment/web"}
    assert findings_by_workload["Deployment/web"]["pods"] == ["web-1", "web-2"]
    assert findings_by_workload["Deployment/web"]["values"]["must_go"] == 1


@pytest.mark.parametrize("name", ["web", "api"])
def test_the_finding_is_on_the_workload_in_the_fullest_domain(name: str) -> None:
    """The user may name either of the two workloads."""
    whole = findings(*two_deployments())["Deployment/web"]
    scope = Scope(targets=(Target("Deployment", name),))
    assert findings(*two_deployments(), scope=scope).keys() == ({"Deployment/web"} if name == "web" else set())
    assert whole["commands"] == ["kubectl delete pod -n default web-1"]
    assert whole["fix"] == f"Delete this pod: its replacement can go to zone c. {UNREAD_BUDGETS}"


def test_pods_of_all_workloads_suffice_where_those_of_one_do_not() -> None:
    """As many pods are named as have to move, each with the finding on its own workload."""
    shards = [shared(f"shard-{index}", f"StatefulSet/shard-{index}", "a1", constraints=[FRONT]) for index in "123"]
    by_workload = findings(*shards, *ABC)
    assert {name: finding["pods"] for name, finding in by_workload.items()} == {
        f"StatefulSet/shard-{index}": [f"shard-{index}"] for index in "123"
    }
    assert [finding.get("commands") for finding in by_workload.values()] == [
        ["kubectl delete pod -n default shard-1"],
        ["kubectl delete pod -n default shard-2"],
        None,
    ]
    assert by_workload["StatefulSet/shard-3"]["fix"] == (
        "Nothing more to do after the evictions of the other findings about these pods."
    )


def test_pending_and_terminating_pods_are_not_named() -> None:
    leaving = shared("web-3", "Deployment/web", "a1", constraints=[FRONT])
    leaving["metadata"]["deletionTimestamp"] = "2026-09-01T11:00:00Z"
    waiting = shared("web-4", "Deployment/web", "", constraints=[FRONT])
    assert findings(*two_deployments(), leaving, waiting)["Deployment/web"]["pods"] == ["web-1", "web-2"]


def test_each_bare_pod_has_a_finding() -> None:
    pods = [pod_json(f"web-{index}", node=node, constraints=[constraint()]) for index, node in enumerate("aab")]
    for pod in pods:
        pod["spec"]["nodeName"] += "1"
    assert findings(*pods, *ABC).keys() == {"Pod/web-0", "Pod/web-1"}
    assert findings(*pods, *ABC, code="SPR314") == {}


def test_a_skew_of_pods_without_constraint_is_a_warning_for_the_workload_with_it() -> None:
    """The pods that make the skew have no constraint, so that their workload has no finding."""
    strangers = [shared(f"batch-{index}", "Deployment/batch", "a1") for index in (1, 2)]
    objects = [*strangers, shared("web-1", "Deployment/web", "b1", constraints=[FRONT]), *ABC]
    assert findings(*objects) == {}
    (reported,) = findings(*objects, code="SPR314").values()
    assert (reported["severity"], reported["object"]["name"]) == ("warning", "web")
    assert "2 pods of deploy/batch" in reported["message"]


def test_descheduler_issue_1918_is_caused_by_the_other_constraint() -> None:
    """With zones of 5, 2 and 2 nodes, the free hosts are in a zone that the other constraint closes."""
    both = [constraint(), constraint(key=HOSTNAME, hard=False)]
    nodes = [node_json(name) for name in ("a1", "a2", "a3", "a4", "a5", "b1", "b2", "c1", "c2")]
    on = ("a1", "a2", "a3", "b1", "b1", "b2", "c1", "c1", "c2")
    pods = [
        pod_json(f"web-{index}", node=node, owner="Deployment/web", constraints=both) for index, node in enumerate(on)
    ]
    evaluation = audit(*nodes, *pods)
    (skew,) = [finding for finding in as_json(evaluation)["findings"] if finding["code"] == "SPR302"]
    why = f"their constraint on {ZONE} allows no more"
    assert f"No node of a lower domain takes a pod (2 nodes: {why})" in skew["message"]
    (cause,) = explained(evaluation)["causes"]
    assert cause["cause"] == "hard-constraint"
    assert cause["evidence"] == [
        f"Node {node} has no pods and cannot take one (1 node: {why})." for node in ("a4", "a5")
    ]


def test_a_skew_that_its_own_constraint_keeps_open_is_info() -> None:
    """The emptiest zone is closed, and the constraint keeps pods out of the next one."""
    nodes = [node_json("a1"), node_json("b1"), node_json("c1", taints=[{"key": "gpu", "effect": "NoSchedule"}])]
    pods = [
        pod_json(f"web-{index}", node=f"{zone}1", owner="Deployment/web", constraints=[constraint()])
        for index, zone in enumerate("aaaab")
    ]
    (finding,) = findings(*nodes, *pods).values()
    assert finding["severity"] == "info"


RACK = "rack"


def web_pod(name: str, node: str, *constraints: Json, labels: Json | None = None, **fields: Any) -> Json:
    spread = [constraint(), *constraints]
    labels = {"app": "web", **(labels or {})}
    return pod_json(name, node=node, owner="Deployment/web", constraints=spread, labels=labels, **fields)


def severity(*objects: Json) -> str:
    """Return the severity of the only hard skew: a warning where a node of a lower domain would take a pod."""
    (finding,) = findings(*objects).values()
    return str(finding["severity"])


def test_a_skew_is_a_warning_where_the_other_constraint_of_one_pod_alone_allows_a_lower_domain() -> None:
    database = selector({"app": "db"})
    lax, strict = (constraint(key=HOSTNAME, max_skew=skew, selects=database) for skew in (9, 1))
    databases = [pod_json(f"db-{index}", node="b1", labels={"app": "db"}) for index in range(3)]
    nodes = [node_json("a1"), node_json("b1")]
    assert severity(web_pod("w1", "a1", lax), web_pod("w2", "a1", strict), *databases, *nodes) == "warning"
    assert severity(web_pod("w1", "a1", strict), web_pod("w2", "a1", strict), *databases, *nodes) == "info"


def test_a_terminating_pod_does_not_open_a_lower_domain_by_leaving() -> None:
    """It is not counted, so its rack has no pod less without it."""
    rack = constraint(key=RACK, selects=selector({"tier": "x"}))
    nodes = [node_json(name, labels={RACK: of}) for name, of in (("a1", "r2"), ("a2", "r1"), ("b1", "r1"))]
    terminating = web_pod("w3", "a2", rack, labels={"tier": "x"})
    terminating["metadata"]["deletionTimestamp"] = "2026-09-01T11:00:00Z"
    tier = [pod_json(f"x-{index}", node="b1", labels={"tier": "x"}) for index in range(2)]
    assert severity(web_pod("w1", "a1", rack), web_pod("w2", "a1", rack), terminating, *tier, *nodes) == "info"


def test_a_constraint_with_an_empty_selector_keeps_no_pod_from_a_lower_domain() -> None:
    """Up to 1.37 it counts no pod, so that no domain has a pod less after a departure."""
    empty = constraint(key=HOSTNAME, selects={})
    nodes = [node_json("a1"), node_json("b1")]
    assert severity(web_pod("w1", "a1", empty), web_pod("w2", "a1", empty), *nodes) == "warning"


def test_a_closed_domain_keeps_the_minimum_low_for_the_number_of_pods_that_must_go() -> None:
    soft = constraint(hard=False)
    nodes = [node_json("a1"), node_json("b1"), node_json("c1", taints=[{"key": "gpu", "effect": "NoSchedule"}])]
    pods = [
        pod_json(f"web-{index}", node=f"{zone}1", owner="Deployment/web", constraints=[soft])
        for index, zone in enumerate("aaaab")
    ]
    (finding,) = findings(*nodes, *pods, code="SPR302").values()
    assert finding["values"]["must_go"] == 3


@pytest.mark.parametrize(("terminating", "expected"), [(False, "warning"), (True, "info")])
def test_the_pod_that_moves_repels_itself_no_longer_but_a_terminating_pod_like_it_does(
    terminating: bool, expected: str
) -> None:
    """The pod with role x repels all pods of the workload from the region of both zones."""
    repelling = affinity("podAntiAffinity", term(key="region", selects=selector({"role": "x"})))
    nodes = [node_json(name, labels={"region": "r"}) for name in ("a1", "b1")]
    pods = [
        web_pod("w1", "a1", labels={"role": "x"}, affinity=repelling),
        web_pod("w2", "a1", affinity=repelling),
    ]
    if terminating:
        leaving = web_pod("w3", "a1", labels={"role": "x"}, affinity=repelling)
        leaving["metadata"]["deletionTimestamp"] = "2026-09-01T11:00:00Z"
        pods.append(leaving)
    assert severity(*pods, *nodes) == expected


def test_nodes_are_not_counted_for_pods_with_a_hard_constraint_that_the_scheduler_cannot_parse() -> None:
    broken = constraint(key=HOSTNAME, selects=selector({}, requirement("app", "In", "not a value")))
    (group,) = as_json(audit(web_pod("w1", "a1", broken), node_json("a1")))["groups"]
    assert "nodes" not in group


@pytest.mark.parametrize(("nodes", "severity"), [("listed", "info"), ("inferred", "warning")])
def test_a_rollout_ends_a_skew_only_where_nodes_were_listed(nodes: model.NodesKnown, severity: str) -> None:
    """Without nodes there may be a domain without pods, so that the skew may stay."""
    pods = [
        web_pod(
            f"web-{index}",
            f"{zone}1",
            labels={ZONE: zone, "pod-template-hash": revision},
            metadata={"creationTimestamp": f"2026-09-01T{hour}:00:00Z"},
        )
        for index, (zone, revision, hour) in enumerate(
            [("a", "old", "09"), ("a", "old", "09"), ("a", "new", "10"), ("b", "new", "10")]
        )
    ]
    report = as_json(audit(*pods, node_json("a1"), node_json("b1"), nodes=nodes))
    assert [finding["severity"] for finding in report["findings"] if finding["code"] == "SPR301"] == [severity]
