"""The descheduler's count; the real one's answers are held against it in tests/conformance/descheduler."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from kubectl_spread.kube.descheduler import topologyspread
from kubectl_spread.kube.descheduler.defaultevictor import EvictionObstacle
from kubectl_spread.kube.descheduler.topologyspread import Bearer, Count, CountingRule, PodCounts, PodGroup
from kubectl_spread.kube.features import Gate, behaviour, gates
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
def test_a_node_is_ready_unless_it_says_that_it_is_not(conditions: list[tuple[str, str]], ready: bool) -> None:
    assert topologyspread.is_ready(conditions) is ready


def on(node: str, number: int = 1, **fields: object) -> PodGroup:
    """Return evictable pods of a web application."""
    alike = {"namespace": "default", "labels": WEB, "evictable": True, **fields}
    return msgspec.convert({"node": node, "number": number, **alike}, PodGroup)


def cluster(*groups: PodGroup, nodes: Sequence[Json] = (A, B, C), not_ready: Sequence[str] = ()) -> PodCounts:
    return PodCounts([decode_node(node) for node in nodes], not_ready, groups)


def bearer(*constraints: Json, **fields: Any) -> Bearer:
    return ours.bearer(decode_pod(pod_json(constraints=constraints, **fields)))


def counted(bearer: Bearer, on_cluster: PodCounts) -> Count:
    return topologyspread.count(bearer.constraints[0], bearer, on_cluster)


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
        pytest.param(bearer(SPREAD), WITH_PODS_ELSEWHERE, {"a": 2, "b": 1, "c": 0}, id="bound pods of the namespace"),
        pytest.param(bearer(SPREAD), UNLIKE_PODS, {"a": 2, "b": 1, "c": 0}, id="evictable, standing, selected"),
        pytest.param(
            bearer(SPREAD), cluster(on("a1"), on("c1"), not_ready=["c1"]), {"a": 1, "b": 0}, id="on ready nodes"
        ),
        pytest.param(
            bearer(SPREAD, constraint(key=HOSTNAME)),
            cluster(on("b1"), on("c1"), nodes=B_LESS_NODES),
            {"a": 0, "b": 1},
            id="that have its own topology key",
        ),
        pytest.param(
            bearer(SPREAD, nodeSelector={ZONE: "a"}), cluster(on("b1")), {"a": 0, "b": 1}, id="where they do stand"
        ),
        pytest.param(
            bearer(constraint(nodeTaintsPolicy="Honor")),
            cluster(on("a1"), nodes=[A, node_json("b1", taints=[GPU])]),
            {"a": 1},
            id="or could",
        ),
        pytest.param(
            bearer(constraint(selects={})), cluster(on("a1", labels={})), {"a": 1, "b": 0, "c": 0}, id="empty selector"
        ),
        pytest.param(bearer(SPREAD), cluster(nodes=[]), {}, id="no nodes"),
        pytest.param(
            bearer(constraint(match=["rev"]), metadata={"labels": {**WEB, "rev": "r2"}}),
            cluster(on("a1"), on("b1", labels={**WEB, "rev": "r2"})),
            {"a": 0, "b": 1, "c": 0},
            id="keys to match hold",
        ),
    ],
)
def test_count(of: Bearer, on_cluster: PodCounts, domains: dict[str, int]) -> None:
    assert counted(of, on_cluster).domains == domains


@pytest.mark.parametrize(
    ("numbers", "max_skew", "skew", "violated"),
    [((1, 1, 0), 1, 1, False), ((2, 1, 0), 1, 2, True), ((2, 1, 0), 2, 2, False), ((5, 5, 5), 1, 0, False)],
)
def test_skew_is_the_fullest_above_the_emptiest(
    numbers: tuple[int, int, int], max_skew: int, skew: int, violated: bool
) -> None:
    pods = (on(node, number) for node, number in zip(("a1", "b1", "c1"), numbers, strict=True) if number)
    count = counted(bearer(constraint(max_skew=max_skew)), cluster(*pods))
    assert (count.skew, count.violated) == (skew, violated)


def test_without_a_domain_nothing_is_skewed() -> None:
    assert counted(bearer(SPREAD), cluster(nodes=[])) == Count({}, 1)
    assert Count({}, 1).skew == 0


@pytest.mark.parametrize(
    ("pod", "listed"),
    [
        pytest.param(on("a1"), True, id="evictable"),
        pytest.param(on("a1", evictable=False), False, id="not evictable"),
        pytest.param(on("c1"), False, id="on a node that is not ready"),
        pytest.param(on(""), False, id="pending"),
        pytest.param(on("gone"), False, id="on no node that exists"),
        pytest.param(on("a1", phase="Failed"), False, id="finished"),
        pytest.param(on("a1", terminating=True), True, id="terminating, but annotated: read, not counted"),
    ],
)
def test_the_pods_whose_constraints_are_read(pod: PodGroup, listed: bool) -> None:
    assert cluster(pod, not_ready=["c1"]).lists(pod) is listed


@pytest.mark.parametrize(
    ("of", "on_cluster", "rules"),
    [
        pytest.param(bearer(SPREAD), cluster(on("a1", 3)), (), id="none"),
        pytest.param(bearer(constraint(hard=False)), cluster(on("a1", 3)), (CountingRule.SOFT,), id="soft"),
        pytest.param(
            bearer(constraint(minDomains=4)),
            cluster(on("a1"), on("b1"), on("c1")),
            (CountingRule.MIN_DOMAINS,),
            id="minDomains",
        ),
        pytest.param(
            bearer(constraint(minDomains=4)), cluster(on("a1")), (), id="minDomains, but the minimum is 0 anyway"
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
            id="of another kind, which the scheduler does not read together",
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
            bearer(SPREAD), cluster(on("a1"), not_ready=["b1"]), (CountingRule.READY_NODES,), id="a node not ready"
        ),
        pytest.param(
            bearer(SPREAD), cluster(on("a1", evictable=False)), (CountingRule.EVICTABLE_PODS,), id="not evictable"
        ),
        pytest.param(
            bearer(SPREAD),
            cluster(on("a1", evictable=False), on("b1"), on("c1"), not_ready=["c1"]),
            (CountingRule.READY_NODES, CountingRule.EVICTABLE_PODS),
            id="two",
        ),
        pytest.param(
            bearer(SPREAD),
            cluster(on("a1"), on("c1", evictable=False), not_ready=["c1"], nodes=[A, C, node_json("c2")]),
            (CountingRule.EVICTABLE_PODS,),
            id="one of two that come to the same",
        ),
        pytest.param(
            bearer(constraint(nodeTaintsPolicy="Honor"), tolerations=[{"key": "gpu", "operator": "Gt", "value": "5"}]),
            cluster(on("a1"), nodes=[A, node_json("b1", taints=[{**GPU, "value": "7"}])]),
            (CountingRule.GATES,),
            id="a comparison that the scheduler does not make",
        ),
    ],
)
def test_differences(of: Bearer, on_cluster: PodCounts, rules: tuple[CountingRule, ...]) -> None:
    assert topologyspread.differences(of.constraints[0], of, on_cluster, SERVED) == rules


def test_match_label_keys_hold_whatever_the_scheduler_does_with_them() -> None:
    of = bearer(constraint(match=["rev"]), metadata={"labels": {**WEB, "rev": "r2"}})
    on_cluster = cluster(on("a1"))
    assert topologyspread.differences(of.constraints[0], of, on_cluster, SERVED) == ()
    assert topologyspread.differences(of.constraints[0], of, on_cluster, WITHOUT_KEYS) == (CountingRule.GATES,)


def test_every_word_has_a_clause_of_its_own() -> None:
    clauses = [item.clause for item in (*CountingRule, *EvictionObstacle)]
    assert all(clauses)
    assert len(set(clauses)) == len(clauses)
    assert str(CountingRule.READY_NODES) == "not-ready-nodes-out"
