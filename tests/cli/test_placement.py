"""Captures whose nodes are not those of the pods: nothing is claimed about placement, and that is not a success."""

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


def report(result: Result) -> Any:
    return contract.loaded(result.stdout)


def test_none_of_the_pods_nodes_was_read() -> None:
    """Issue 13, section 8: the skew was 0 and nothing was found."""
    result = check(*PODS, *OTHER, arguments=("-o", "json", "--fail-on", "never"))
    assert result.exit_code == 2
    read = "5 bound pods run on nodes not among the 2 nodes that were read (n0, n1, n2 and 2 more)"
    assert f"{read}: placement is not evaluated" in result.stderr
    reported = report(result)
    assert reported["cluster"]["nodes"] == "none"
    assert all("domains" not in row and "skew" not in row for row in reported["constraints"])
    assert reported["summary"]["pods"] == 5


def test_one_pod_on_a_node_that_was_not_read() -> None:
    result = check(PODS[0], *OTHER)
    assert result.exit_code == 2
    assert (
        "1 bound pod runs on a node not among the 2 nodes that were read (n0): placement is not evaluated"
        in result.stderr
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
def test_what_says_nothing_about_the_list_of_nodes(objects: list[Json]) -> None:
    result = check(*objects)
    assert "placement is not evaluated" not in result.stderr
    assert result.exit_code != 2


def test_pods_that_are_not_judged_show_that_nodes_are_missing_too() -> None:
    """Counts use all pods, whatever the selector of the command says."""
    pending = pod_json("web-9", node="", labels={"app": "other"}, constraints=[constraint()])
    assert check(pending, *PODS, *OTHER, arguments=("-l", "app=other")).exit_code == 2
