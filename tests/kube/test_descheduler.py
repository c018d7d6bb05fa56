"""The descheduler's count; tests/conformance/descheduler compares it with the real descheduler."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from kubectl_spread.kube import descheduler
from kubectl_spread.kube.api.types import Node, NodeCondition, NodeStatus
from kubectl_spread.kube.descheduler import Bearer, CountingRule, EvictionObstacle, PodCounts, PodGroup
from kubectl_spread.kube.features import Gate, behaviour, gates
from kubectl_spread.kube.scheduler.podtopologyspread.spread import Spread
from tests.builders import HOSTNAME, ZONE, Json, constraint, decode_node, decode_pod, node_json, pod_json
from tests.conformance.descheduler import ours

SERVED = behaviour(37, gates(37, {}))
WITHOUT_KEYS = behaviour(33, gates(33, {Gate.MATCH_LABEL_KEYS: False}))
WEB = {"app": "web"}
SPREAD = constraint()
GPU = {"key": "gpu", "effect": "NoSchedule"}
A, B, C = node_json("a1"), node_json("b1"), node_json("c1")


@pytest.mark.parametrize(
    ("conditions", "ready"),
    [
        ([], True),
        ([("Ready", "True")], True),
        ([("Ready", "False")], False),
        ([("MemoryPressure", "True"), ("Ready", "Unknown")], False),
        ([("MemoryPressure", "True")], True),
    ],
)
def test_a_node_is_ready_unless_its_condition_is_not_true(conditions: list[tuple[str, str]], ready: bool) -> None:
    node = Node(
        status=NodeStatus(conditions=tuple(NodeCondition(type=kind, status=status) for kind, status in conditions))
    )
    assert descheduler.is_ready(node) is ready


def on(node: str, number: int = 1, **fields: object) -> PodGroup:
    """Return evictable pods of a web application."""
    group = {"namespace": "default", "labels": WEB, "evictable": True, **fields}
    return msgspec.convert({"node": node, "number": number, **group}, PodGroup)


def cluster(*groups: PodGroup, nodes: Sequence[Json] = (A, B, C), not_ready: Sequence[str] = ()) -> PodCounts:
    unready = {"conditions": [{"type": "Ready", "status": "False"}]}
    return PodCounts(
        [decode_node({**node, "status": unready} if node["metadata"]["name"] in not_ready else node) for node in nodes],
        groups,
    )


def bearer(*constraints: Json, **fields: Any) -> Bearer:
    return ours.bearer(decode_pod(pod_json(constraints=constraints, **fields)))


def counted(bearer: Bearer, on_cluster: PodCounts) -> Spread:
    return descheduler.count(bearer.constraints[0], bearer, on_cluster)


WITH_PODS_ELSEWHERE = cluster(on("a1", 2), on("b1"), on("b1", namespace="other"), on("gone"), on(""))
UNLIKE_PODS = cluster(
    on("a1", 2),
    on("b1", 4, evictable=False),
    on("b1", terminating=True),
    on("b1", phase="Failed"),
    on("b1", phase="Succeeded"),
    on("b1", labels={"app": "db"}),
    on("b1", phase="Pending"),
)
B_LESS_NODES = [A, node_json("b1", without=[HOSTNAME]), node_json("c1", without=[ZONE])]


@pytest.mark.parametrize(
    ("of", "on_cluster", "domains"),
    [
        pytest.param(
            bearer(SPREAD), WITH_PODS_ELSEWHERE, {"a": 2, "b": 1, "c": 0}, id="bound pods of the namespace count"
        ),
        pytest.param(
            bearer(SPREAD),
            UNLIKE_PODS,
            {"a": 2, "b": 1, "c": 0},
            id="pods that are not evictable, terminating, finished or not selected do not count",
        ),
        pytest.param(
            bearer(SPREAD),
            cluster(on("a1"), on("c1"), not_ready=["c1"]),
            {"a": 1, "b": 0},
            id="nodes that are not ready are in no domain",
        ),
        pytest.param(
            bearer(SPREAD, constraint(key=HOSTNAME)),
            cluster(on("b1"), on("c1"), nodes=B_LESS_NODES),
            {"a": 0, "b": 1},
            id="nodes need the constraint's own topology key only",
        ),
        pytest.param(
            bearer(SPREAD, nodeSelector={ZONE: "a"}),
            cluster(on("b1")),
            {"a": 0, "b": 1},
            id="pods on excluded nodes count",
        ),
        pytest.param(
            bearer(constraint(nodeTaintsPolicy="Honor")),
            cluster(on("a1"), nodes=[A, node_json("b1", taints=[GPU])]),
            {"a": 1},
            id="domains with untolerated taints do not count",
        ),
        pytest.param(
            bearer(constraint(selects={})),
            cluster(on("a1", labels={})),
            {"a": 1, "b": 0, "c": 0},
            id="an empty selector selects all pods",
        ),
        pytest.param(bearer(SPREAD), cluster(nodes=[]), {}, id="without nodes there are no domains"),
        pytest.param(
            bearer(constraint(match=["rev"]), metadata={"labels": {**WEB, "rev": "r2"}}),
            cluster(on("a1"), on("b1", labels={**WEB, "rev": "r2"})),
            {"a": 0, "b": 1, "c": 0},
            id="matchLabelKeys are respected",
        ),
    ],
)
def test_evictable_pods_on_ready_nodes_are_counted(of: Bearer, on_cluster: PodCounts, domains: dict[str, int]) -> None:
    assert dict(counted(of, on_cluster).match_num) == domains


@pytest.mark.parametrize(
    ("numbers", "max_skew", "skew", "violated"),
    [((1, 1, 0), 1, 1, False), ((2, 1, 0), 1, 2, True), ((2, 1, 0), 2, 2, False), ((5, 5, 5), 1, 0, False)],
)
def test_skew_is_the_fullest_domain_above_the_emptiest(
    numbers: tuple[int, int, int], max_skew: int, skew: int, violated: bool
) -> None:
    pods = (on(node, number) for node, number in zip(("a1", "b1", "c1"), numbers, strict=True) if number)
    spread = counted(bearer(constraint(max_skew=max_skew)), cluster(*pods))
    assert (spread.skew, spread.exceeds_max_skew) == (skew, violated)


def test_without_domains_there_is_no_skew() -> None:
    spread = counted(bearer(SPREAD), cluster(nodes=[]))
    assert (dict(spread.match_num), spread.skew) == ({}, 0)


@pytest.mark.parametrize(
    ("pod", "listed"),
    [
        pytest.param(on("a1"), True, id="evictable"),
        pytest.param(on("a1", evictable=False), False, id="not evictable"),
        pytest.param(on("c1"), False, id="on a node that is not ready"),
        pytest.param(on(""), False, id="pending"),
        pytest.param(on("gone"), False, id="on a node that does not exist"),
        pytest.param(on("a1", phase="Failed"), False, id="finished"),
        pytest.param(on("a1", terminating=True), True, id="terminating and evictable by its annotation"),
    ],
)
def test_evictable_pods_on_ready_nodes_are_listed(pod: PodGroup, listed: bool) -> None:
    assert cluster(pod, not_ready=["c1"]).lists(pod) is listed


@pytest.mark.parametrize(
    ("of", "on_cluster", "rules"),
    [
        pytest.param(bearer(SPREAD), cluster(on("a1", 3)), (), id="equal counts"),
        pytest.param(
            bearer(constraint(hard=False)), cluster(on("a1", 3)), (CountingRule.SOFT,), id="a soft constraint"
        ),
        pytest.param(
            bearer(constraint(minDomains=4)),
            cluster(on("a1"), on("b1"), on("c1")),
            (CountingRule.MIN_DOMAINS,),
            id="minDomains is ignored",
        ),
        pytest.param(
            bearer(constraint(minDomains=4)),
            cluster(on("a1")),
            (),
            id="minDomains does not matter where the minimum is 0",
        ),
        pytest.param(
            bearer(SPREAD, constraint(key=HOSTNAME)),
            cluster(on("a1"), nodes=[A, node_json("b1", without=[HOSTNAME])]),
            (CountingRule.OWN_KEY,),
            id="a node lacks another constraint's key",
        ),
        pytest.param(
            bearer(SPREAD, constraint(key=HOSTNAME, hard=False)),
            cluster(on("a1"), nodes=[A, node_json("b1", without=[HOSTNAME])]),
            (),
            id="a node lacks the key of a constraint of the other kind",
        ),
        pytest.param(
            bearer(SPREAD, nodeSelector={ZONE: "a"}),
            cluster(on("a1"), on("b1")),
            (CountingRule.EXCLUDED_NODES,),
            id="a pod on an excluded node",
        ),
        pytest.param(
            bearer(constraint(selects={})),
            cluster(on("a1"), on("b1")),
            (CountingRule.EMPTY_SELECTOR,),
            id="empty selector",
        ),
        pytest.param(
            bearer(SPREAD),
            cluster(on("a1"), not_ready=["b1"]),
            (CountingRule.READY_NODES,),
            id="a node that is not ready",
        ),
        pytest.param(
            bearer(SPREAD),
            cluster(on("a1", evictable=False)),
            (CountingRule.EVICTABLE_PODS,),
            id="a pod that is not evictable",
        ),
        pytest.param(
            bearer(SPREAD),
            cluster(on("a1", evictable=False), on("b1"), on("c1"), not_ready=["c1"]),
            (CountingRule.READY_NODES, CountingRule.EVICTABLE_PODS),
            id="two rules together",
        ),
        pytest.param(
            bearer(SPREAD),
            cluster(on("a1"), on("c1", evictable=False), not_ready=["c1"], nodes=[A, C, node_json("c2")]),
            (CountingRule.EVICTABLE_PODS,),
            id="of two rules with the same effect the later one",
        ),
        pytest.param(
            bearer(constraint(nodeTaintsPolicy="Honor"), tolerations=[{"key": "gpu", "operator": "Gt", "value": "5"}]),
            cluster(on("a1"), nodes=[A, node_json("b1", taints=[{**GPU, "value": "7"}])]),
            (CountingRule.GATES,),
            id="a comparison that the scheduler does not make",
        ),
    ],
)
def test_differences_are_the_rules_that_change_the_count(
    of: Bearer, on_cluster: PodCounts, rules: tuple[CountingRule, ...]
) -> None:
    assert descheduler.differences(of.constraints[0], of, on_cluster, SERVED) == rules


def test_match_label_keys_differ_only_where_the_scheduler_ignores_them() -> None:
    of = bearer(constraint(match=["rev"]), metadata={"labels": {**WEB, "rev": "r2"}})
    on_cluster = cluster(on("a1"))
    assert descheduler.differences(of.constraints[0], of, on_cluster, SERVED) == ()
    assert descheduler.differences(of.constraints[0], of, on_cluster, WITHOUT_KEYS) == (CountingRule.GATES,)


def test_each_rule_and_obstacle_has_its_own_clause() -> None:
    clauses = [member.clause for member in (*CountingRule, *EvictionObstacle)]
    assert all(clauses)
    assert len(set(clauses)) == len(clauses)
    assert str(CountingRule.READY_NODES) == "not-ready-nodes-out"
