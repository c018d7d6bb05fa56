"""Captures without the nodes of their pods: placement is not evaluated, and the exit status is 2."""

from __future__ import annotations

import json
from typing import Any

import pytest
from click.testing import CliRunner, Result

from kubectl_spread.cli import cli
from tests import contract
from tests.builders import Json, constraint, node_json, pod_json

PODS = [pod_json(f"web-{number}", node=f"n{number}", constraints=[constraint()]) for number in range(5)]
OTHER = [node_json("a1"), node_json("b1", zone="b")]


def check(*objects: Json, arguments: tuple[str, ...] = ()) -> Result:
    captured = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)})
    return CliRunner().invoke(cli, ["check", "-f", "-", *arguments], input=captured)


def report(outcome: Result) -> Any:
    return contract.loaded(outcome.stdout)


def test_placement_is_not_claimed_if_no_node_of_the_pods_was_read() -> None:
    """The skew would be 0 without any finding."""
    outcome = check(*PODS, *OTHER, arguments=("-o", "json", "--fail-on", "never"))
    assert outcome.exit_code == 2
    unread_nodes = "5 bound pods run on nodes not among the 2 nodes that were read (n0, n1, n2 and 2 more)"
    assert f"{unread_nodes}: placement is not evaluated" in outcome.stderr
    reported = report(outcome)
    assert reported["cluster"]["nodes"] == "none"
    assert all("domains" not in row and "skew" not in row for row in reported["constraints"])
    assert reported["summary"]["pods"] == 5


def test_placement_is_not_claimed_for_one_pod_on_an_unread_node() -> None:
    outcome = check(PODS[0], *OTHER)
    assert outcome.exit_code == 2
    assert (
        "1 bound pod runs on a node not among the 2 nodes that were read (n0): placement is not evaluated"
        in outcome.stderr
    )


@pytest.mark.parametrize(
    "objects",
    [
        pytest.param([*PODS, node_json("n0")], id="one node was read"),
        pytest.param([pod_json("web-0", node="", constraints=[constraint()]), *OTHER], id="no pod is bound"),
        pytest.param(PODS, id="no nodes were captured"),
        pytest.param(OTHER, id="no pods"),
    ],
)
def test_nodes_are_not_missing_if_one_was_read_or_no_pod_is_bound(objects: list[Json]) -> None:
    outcome = check(*objects)
    assert "placement is not evaluated" not in outcome.stderr
    assert outcome.exit_code != 2


def test_pods_out_of_scope_prove_missing_nodes_too() -> None:
    """Counts include pods that the selector of the command leaves out."""
    pending = pod_json("web-9", node="", labels={"app": "other"}, constraints=[constraint()])
    assert check(pending, *PODS, *OTHER, arguments=("-l", "app=other")).exit_code == 2
