"""Half-done rollouts: old pods of a corrected template have a fix that says so, and no patch is printed again."""

from __future__ import annotations

import json
from typing import Any

import pytest
from click.testing import CliRunner

from kubectl_spread.cli import cli
from tests.audits import deployment
from tests.builders import HOSTNAME, Json, constraint, node_json, pod_json, selector

TAINT = {"key": "gpu", "effect": "NoSchedule"}
CLOSED = [node_json("a1"), node_json("b1"), node_json("c1", taints=[TAINT])]
CORRECTED = "Corrected in the template; the rollout replaces this pod."


def stored(workload: Json) -> Json:
    workload["metadata"]["uid"] = workload["metadata"]["name"]
    return workload


def revision(number: int, nodes: list[str], *, kind: str = "ReplicaSet", **fields: Any) -> list[Json]:
    """Return the pods of one revision, "" standing for a pending one, and the ReplicaSet of a Deployment."""
    name = f"web-{number}" if kind == "ReplicaSet" else "web"
    labels = {"app": "web", "pod-template-hash": str(number)}
    pods = [
        pod_json(f"web-{number}-{index}", node=node, owner=f"{kind}/{name}", labels=labels, **fields)
        for index, node in enumerate(nodes)
    ]
    annotations = {"deployment.kubernetes.io/revision": str(number)}
    owner = stored(deployment(name, kind="ReplicaSet", owner="Deployment/web", annotations=annotations))
    return [owner, *pods] if kind == "ReplicaSet" else pods


def finding(code: str, *objects: Json) -> Any:
    """Return the only finding of a rule."""
    text = "\n".join(json.dumps(each) for each in objects)
    outcome = CliRunner().invoke(cli, ["check", "-f", "-", "-o", "json", "--fail-on", "never"], input=text)
    assert outcome.exit_code == 0, outcome.output
    (only,) = (finding for finding in json.loads(outcome.stdout)["findings"] if finding["code"] == code)
    return only


def web(*constraints: Json, kind: str = "Deployment", **spec: Any) -> Json:
    """Return the workload, with the selector of its pods."""
    workload = stored(deployment(constraints=constraints, kind=kind, **spec))
    workload["spec"]["selector"] = selector({"app": "web"})
    return workload


HONORED = constraint(nodeTaintsPolicy="Honor")


def test_a_patch_that_the_template_lacks_is_printed() -> None:
    blocked = finding("SPR303", *CLOSED, web(constraint()), *revision(1, ["a1", "b1", ""], constraints=[constraint()]))
    assert blocked["patch"]["operations"][-1]["value"] == "Honor"


@pytest.mark.parametrize(
    "template",
    [
        pytest.param([HONORED], id="the patch was applied"),
        pytest.param([constraint(max_skew=3)], id="another change lets the pods in"),
        pytest.param([], id="the constraint was removed"),
    ],
)
def test_a_pending_pod_of_a_corrected_template_has_no_patch(template: list[Json]) -> None:
    old = revision(1, ["a1", "b1", ""], constraints=[constraint()])
    blocked = finding("SPR303", *CLOSED, web(*template), *old, *revision(2, ["a1"], constraints=template))
    assert (blocked["fix"], blocked["pods"]) == (CORRECTED, ["web-1-2"])
    assert not blocked.keys() & {"patch", "commands"}


def test_a_patch_that_was_applied_before_any_new_pod_is_not_printed_again() -> None:
    blocked = finding("SPR303", *CLOSED, web(HONORED), *revision(1, ["a1", "b1", ""], constraints=[constraint()]))
    assert blocked["fix"] == CORRECTED
    assert not blocked.keys() & {"patch", "commands"}


def test_a_pending_pod_of_a_corrected_stateful_set_has_to_be_deleted() -> None:
    pods = revision(1, ["a1", "b1", ""], kind="StatefulSet", constraints=[constraint()])
    blocked = finding("SPR303", *CLOSED, web(HONORED, kind="StatefulSet"), *pods)
    assert blocked["commands"] == ["kubectl delete pod --ignore-not-found --wait=false -n default web-1-2"]
    assert blocked["fix"].endswith("so delete them.")
    assert "patch" not in blocked


def test_running_pods_of_a_corrected_template_are_counted() -> None:
    pods = revision(1, ["a1", "b1"], constraints=[constraint(selects=selector({"app": "wbe"}))])
    mismatched = finding("SPR206", *CLOSED, web(constraint()), *pods)
    assert mismatched["fix"] == "Corrected in the template; the rollout replaces these 2 pods."
    assert not mismatched.keys() & {"patch", "commands"}


def test_a_patch_is_not_printed_for_a_template_that_would_refuse_it() -> None:
    """The patch lowers the minDomains of the old pods, and the template asks for more than they."""
    pods = revision(1, ["a1", "b1", "c1", ""], constraints=[constraint(minDomains=4)])
    nodes = [node_json(name) for name in ("a1", "b1", "c1")]
    blocked = finding("SPR303", *nodes, web(constraint(minDomains=5)), *pods)
    assert not blocked.keys() & {"patch", "commands"}
    assert "The template is not like these pods at this place" in blocked["fix"]


def test_pods_on_one_node_whose_template_spreads_them_are_replaced() -> None:
    exposed = finding("SPR501", *CLOSED, web(constraint(key=HOSTNAME, hard=False)), *revision(1, ["a1", "a1"]))
    assert exposed["fix"] == "Corrected in the template; the rollout replaces these 2 pods."


def test_the_pods_of_a_replica_set_are_not_replaced_by_a_rollout() -> None:
    pods = revision(1, ["a1", "b1", ""], constraints=[constraint()])[1:]
    only = stored(deployment("web-1", kind="ReplicaSet", constraints=[HONORED]))
    blocked = finding("SPR303", *CLOSED, only, *pods)
    assert blocked["fix"].startswith("Corrected in the template, which only new pods have.")
    assert blocked["commands"] == ["kubectl delete pod -n default web-1-2"]


def test_a_patch_that_tests_a_list_is_printed_for_stored_pods() -> None:
    twice = constraint(match=["rev", "rev"])
    repeated = finding("SPR203", *CLOSED, web(twice), *revision(1, ["a1", "b1"], constraints=[twice]))
    assert repeated["patch"]["operations"][-1]["value"] == ["rev"]
