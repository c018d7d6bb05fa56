"""Next pods are placed where the filter allows them."""

from __future__ import annotations

import pytest

from tests.audits import audit, explained
from tests.builders import HOSTNAME, Json, constraint, node_json, pod_json

NODES = [node_json(name) for name in ("a1", "b1", "c1")]


def web(name: str, node: str, *constraints: Json) -> Json:
    return pod_json(name, node=node, owner="Deployment/web", constraints=constraints or [constraint()])


@pytest.mark.parametrize(
    ("objects", "steps"),
    [
        pytest.param(
            [web("w1", "a1"), *NODES],
            [(["b", "c"], "b"), (["c"], "c"), (["a", "b", "c"], "a")],
            id="each placement changes what is next",
        ),
        pytest.param(
            [web("w1", "a1", constraint(minDomains=4)), *NODES],
            [(["b", "c"], "b"), (["c"], "c"), ([], "")],
            id="below minDomains there is an end",
        ),
        pytest.param(
            [web("w1", "a1", constraint(), constraint(key=HOSTNAME)), *NODES],
            [(["b / b1", "c / c1"], "b / b1"), (["c / c1"], "c / c1"), (["a / a1", "b / b1", "c / c1"], "a / a1")],
            id="two constraints decide together",
        ),
        pytest.param(
            [web("w1", "a1", constraint(selects={}, minDomains=4)), *NODES],
            [(["a", "b", "c"], "a")] * 3,
            id="an empty selector counts none of the pods that are placed",
        ),
        pytest.param(
            [web("w1", "a1", constraint(hard=False)), *NODES],
            [(["a", "b", "c"], "b"), (["a", "b", "c"], "c"), (["a", "b", "c"], "a")],
            id="a soft constraint allows every node",
        ),
        pytest.param(
            [
                web("w1", "a1"),
                *NODES[:2],
                node_json("c1", taints=[{"key": "gpu", "effect": "NoSchedule"}]),
            ],
            [(["b"], "b"), ([], "")],
            id="a tainted domain takes none and holds the minimum",
        ),
    ],
)
def test_next_pods_are_placed_where_the_filter_allows(objects: list[Json], steps: list[tuple[list[str], str]]) -> None:
    (next_pods,) = explained(audit(*objects), replicas=3)["nextPods"]
    assert [(step["allowed"], step["assumed"]) for step in next_pods["steps"]] == steps


def test_without_nodes_no_next_pod_is_placed() -> None:
    assert explained(audit(web("w1", "a1")), replicas=3)["nextPods"] == []
