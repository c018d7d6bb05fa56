"""The sentence about workloads without pending pods whose minimum a closed domain holds down."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
from click.testing import CliRunner

from kubectl_spread.cli import cli
from tests.builders import Json, constraint, node_json, pod_json, selector

NODES = [
    node_json("a1"),
    node_json("b1"),
    {**node_json("c1"), "spec": {"unschedulable": True}},
]


def web(name: str, max_skew: int, nodes: Sequence[str]) -> list[Json]:
    """Return pods of a Deployment on these nodes; one without a node is pending."""
    labels = {"app": name}
    constraints = [constraint(max_skew=max_skew, selects=selector(labels))]
    return [
        pod_json(f"{name}-{number}", labels=labels, node=node, owner=f"Deployment/{name}", constraints=constraints)
        for number, node in enumerate(nodes)
    ]


BLOCKED = ["a1", "b1"]
"""With maxSkew 1 no zone takes another pod."""
REFUSED_IN_A = ["a1", "a1", "b1"]
"""With maxSkew 2 zone b takes another pod, and zone a does not."""


@pytest.mark.parametrize(
    ("pods", "sentence"),
    [
        ([*web("web", 1, BLOCKED), *web("api", 1, BLOCKED)], ": one more pod of any of 2 workloads would wait for it."),
        (
            [*web("web", 1, BLOCKED), *web("api", 2, REFUSED_IN_A)],
            ": one more pod of any of 2 workloads could wait for it.",
        ),
        (
            [*web("web", 1, [*BLOCKED, ""]), *web("api", 2, REFUSED_IN_A)],
            ": 1 pod of 1 workload waits for it. One more pod of another workload could wait, too.",
        ),
        (
            [*web("web", 1, [*BLOCKED, ""]), *web("api", 1, BLOCKED)],
            ": 1 pod of 1 workload waits for it. One more pod of another workload would wait, too.",
        ),
    ],
)
def test_one_more_pod_would_wait_only_where_no_domain_takes_it(pods: list[Json], sentence: str) -> None:
    stdin = "\n".join(map(json.dumps, [*NODES, *pods]))
    outcome = CliRunner().invoke(cli, ["check", "-f", "-", "--server-version", "1.37"], input=stdin)
    assert f"Zone c is cordoned (c1){sentence}" in " ".join(outcome.stdout.split())
