"""One workload is counted and spelt in one way, wherever it is printed, and what was not evaluated is unknown."""

from __future__ import annotations

import json

import msgspec
import pytest
from click.testing import CliRunner

from kubectl_spread.cli import cli
from kubectl_spread.render import structured
from tests.audits import audit, deployment, reported
from tests.builders import Json, constraint, node_json, pod_json

NODES = [node_json("a1"), node_json("b1")]


def checked(*objects: Json, arguments: tuple[str, ...] = ()) -> str:
    text = "\n".join(json.dumps(each) for each in objects)
    outcome = CliRunner().invoke(cli, ["check", "-f", "-", "--fail-on", "never", *arguments], input=text)
    assert outcome.exit_code == 0, outcome.output
    return outcome.stdout


def test_all_formats_count_the_same_workloads() -> None:
    """Two Deployments have pods, and three have only a pod template."""
    with_pods = [
        pod_json(f"{name}-1", node="a1", constraints=[constraint()], owner=f"Deployment/{name}") for name in ("a", "b")
    ]
    workloads = [deployment(name, constraints=[constraint(match=["rev"])]) for name in "abcde"]
    objects = (*NODES, *with_pods, *workloads)
    table = checked(*objects)
    assert "2 pods in 2 workloads, 3 workloads without pods" in table.splitlines()[0]
    assert " of 5 workloads." in table
    assert " of 5 workloads" in checked(*objects, arguments=("-o", "html"))
    summary = json.loads(checked(*objects, arguments=("-o", "json")))["summary"]
    assert (summary["workloads"], summary["withoutPods"], summary["templates"]) == (2, 3, 5)


@pytest.mark.parametrize(
    ("objects", "status"),
    [
        pytest.param([pod_json(constraints=[constraint()])], "unknown", id="no nodes and no keys"),
        pytest.param(
            [pod_json(constraints=[constraint(match=["app"])])], "unknown", id="only the selector was evaluated"
        ),
        pytest.param([*NODES, pod_json(node="a1", constraints=[constraint()])], "ok", id="the pods were counted"),
        pytest.param(
            [*NODES, pod_json(node="a1", constraints=[constraint()], schedulerName="other")],
            "unknown",
            id="another scheduler",
        ),
    ],
)
def test_a_row_without_any_evaluation_is_not_ok(objects: list[Json], status: str) -> None:
    table = checked(*objects, arguments=("--select", "SPR101,SPR301", "--show", "all"))
    (row,) = (line for line in table.splitlines() if line.startswith("po/web-1"))
    assert row.split()[-1] == status


def test_names_of_a_cluster_depend_on_the_scope_and_not_on_the_findings() -> None:
    report = reported(audit(*NODES, pod_json(constraints=[constraint(key="rack")])))
    live = msgspec.structs.replace(report.cluster, server_version="1.37.1")
    everywhere = msgspec.structs.replace(report, cluster=live)
    one = msgspec.structs.replace(report, cluster=msgspec.structs.replace(live, namespace="default"))
    assert structured.names(everywhere).splitlines()[0] == "default/po/web-1"
    assert structured.names(one).splitlines()[0] == "po/web-1"
