"""The counts of other engines; tests/conformance compares the descheduler's count with its code."""

from __future__ import annotations

from typing import Any

import pytest

from tests.audits import audit, explained
from tests.builders import HOSTNAME, Json, constraint, node_json, pod_json, requirement, selector

A, B = node_json("a1"), node_json("b1")


def web(name: str, node: str, **fields: Any) -> Json:
    return pod_json(name, node=node, owner="ReplicaSet/web", **{"constraints": [constraint()], **fields})


def made_by_karpenter(name: str, **labels: str) -> Json:
    return node_json(name, labels={"karpenter.sh/nodepool": "default", **labels})


def of(engine: str, *objects: Json) -> Any:
    return [
        other_engine for other_engine in explained(audit(*objects))["otherEngines"] if other_engine["engine"] == engine
    ]


def rules(value: Any) -> list[str]:
    return [difference["rule"] for difference in value["differences"]]


@pytest.mark.parametrize(
    ("objects", "domains", "differences"),
    [
        pytest.param([web("w1", "a1"), web("w2", "a1"), A, B], {"a": 2, "b": 0}, [], id="the same count"),
        pytest.param(
            [web("w1", "a1"), web("w2", "a1", volumes=[{"name": "c", "emptyDir": {}}]), A, B],
            {"a": 1, "b": 0},
            ["only-evictable-pods-count"],
            id="a pod with local storage",
        ),
        pytest.param(
            [web("w1", "a1", constraints=[constraint(minDomains=3)]), A, B],
            {"a": 1, "b": 0},
            [],
            id="minDomains without effect",
        ),
        pytest.param(
            [web("w1", "a1"), A, {**B, "status": {"conditions": [{"type": "Ready", "status": "False"}]}}],
            {"a": 1},
            ["not-ready-nodes-out"],
            id="a dead zone",
        ),
        pytest.param(
            [web("w1", "a1", volumes=[{"name": "c", "hostPath": {"path": "/x"}}]), A],
            None,
            ["no-evictable-pod"],
            id="none that it could evict",
        ),
        pytest.param(
            [web("w1", "a1", constraints=[constraint(hard=False)]), A],
            None,
            ["soft-constraints-not-looked-at"],
            id="a soft constraint",
        ),
    ],
)
def test_the_descheduler_counts_differently_for_the_reported_reasons(
    objects: list[Json], domains: dict[str, int] | None, differences: list[str]
) -> None:
    (answer,) = of("descheduler", *objects)
    assert answer.get("domains") == domains
    assert rules(answer) == differences


def test_the_descheduler_is_compared_for_every_class_of_a_row() -> None:
    """A row's worst pod may be one that the descheduler does not list, and the row is looked at all the same."""
    gone = web("w1", "a1", metadata={"deletionTimestamp": "2026-09-01T10:00:00Z"})
    (answer,) = of("descheduler", gone, web("w2", "a1", labels={"app": "web", "rev": "2"}), A, B)
    assert answer["domains"] == {"a": 1, "b": 0}


@pytest.mark.parametrize(
    ("pod_constraint", "differences"),
    [
        pytest.param(constraint(), [], id="a plain constraint"),
        pytest.param(constraint(key=HOSTNAME), ["hostname-minimum-is-zero"], id="by host"),
        pytest.param(
            constraint(match=["rev"], selects=selector({"app": "web"}, requirement("rev", "In", "r1"))),
            ["keys-added-again"],
            id="merged keys",
        ),
    ],
)
def test_karpenter_counts_differently_for_the_reported_reasons(pod_constraint: Json, differences: list[str]) -> None:
    pod = web("w1", "a1", constraints=[pod_constraint], labels={"app": "web", "rev": "r1"})
    (answer,) = of("karpenter", pod, made_by_karpenter("a1"))
    assert rules(answer) == ["domains-of-node-pools", *differences]
    assert "skew" not in answer


def test_karpenter_is_not_reported_without_its_nodes() -> None:
    assert of("karpenter", web("w1", "a1"), A, B) == []
