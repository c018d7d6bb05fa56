"""Quantities that cannot be read never mean that any amount fits: where they decide, they are named, with status 2."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest
from click.testing import CliRunner, Result

from kubectl_spread.cli import cli
from tests import contract
from tests.builders import Json, constraint, node_json, pod_json

FOUR = {"cpu": "4", "pods": "110"}


def node(name: str, allocatable: Mapping[str, str] | None) -> Json:
    return {**node_json(name), "status": {} if allocatable is None else {"allocatable": allocatable}}


def pod(name: str, on: str, cpu: str | None) -> Json:
    resources = {} if cpu is None else {"requests": {"cpu": cpu}}
    containers = [{"name": "app", "image": "app", "resources": resources}]
    return pod_json(name, node=on, owner="web", constraints=[constraint()], containers=containers)


def check(*objects: Json, command: tuple[str, ...] = ("check",)) -> Result:
    capture = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
    return CliRunner().invoke(cli, [*command, "-f", "-"], input=capture)


@pytest.mark.parametrize("text", ["4 cores", "0x4", "${CPU}", "-1", ""])
def test_a_node_whose_room_is_unknown_is_named(text: str) -> None:
    objects = (node("a1", FOUR), node("b1", {**FOUR, "cpu": text}), pod("web-1", "a1", "1"), pod("web-2", "", "1"))
    for command in (("check",), ("explain", "pod/web-2")):
        result = check(*objects, command=command)
        assert result.exit_code == 2
        assert (
            "error: the room on node b1 is unknown, so pods may not fit there: status.allocatable[cpu]: "
            in result.stderr
        )
    report = contract.loaded(check(*objects, command=("check", "-o", "json")).stdout)
    assert "the room on node b1 is unknown" in report["cluster"]["warnings"][-1]


@pytest.mark.parametrize("text", ["4 cores", "0x4", "${CPU}", "-1", ""])
def test_a_pod_whose_requests_are_unknown_is_named(text: str) -> None:
    nodes = (node("a1", FOUR), node("b1", FOUR))
    waiting = check(*nodes, pod("web-1", "a1", "1"), pod("web-2", "", text))
    assert waiting.exit_code == 2
    assert (
        "error: the requests of web-2 are unknown, so no node is known to have room: spec.containers[0]"
        in waiting.stderr
    )
    running = check(*nodes, pod("web-1", "b1", text), pod("web-2", "", "1"))
    assert running.exit_code == 2
    assert "error: the room on node b1 is unknown, so pods may not fit there: spec.containers[0]" in running.stderr
    assert "in pod web-1" in running.stderr


def test_nodes_without_amounts_are_one_line() -> None:
    result = check(node("a1", None), node("b1", None), pod("web-1", "a1", "1"), pod("web-2", "", "1"))
    assert result.exit_code == 2
    (line,) = (line for line in result.stderr.splitlines() if line.startswith("error: "))
    assert (
        line
        == "error: the room on nodes a1 and b1 is unknown, so pods may not fit there: status.allocatable is missing"
    )


@pytest.mark.parametrize(
    "objects",
    [
        pytest.param((node("a1", None), pod("web-1", "a1", "1")), id="no pod is pending or uneven"),
        pytest.param((node("a1", None), pod("web-1", "", None)), id="the pending pod requests nothing"),
        pytest.param((pod("web-1", "", "${CPU}"),), id="no nodes were read"),
        pytest.param(
            (
                {**node("b1", None), "spec": {"unschedulable": True}},
                node("a1", FOUR),
                pod("web-1", "", "1"),
            ),
            id="the node takes no pods",
        ),
    ],
)
def test_quantities_that_decide_nothing_are_not_named(objects: tuple[Json, ...]) -> None:
    result = check(*objects)
    assert "unknown" not in result.stderr
    assert result.exit_code == 0
