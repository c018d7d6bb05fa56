"""``kubectl spread explain``, ``rules`` and the command line itself."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner, Result

from kubectl_spread import __version__
from kubectl_spread.cli import cli
from kubectl_spread.rules import RULES
from tests.audits import deployment
from tests.builders import Json, constraint, node_json, pod_json, requirement, selector
from tests.cli.test_check import MALFORMED, run

WEB = {"app": "web"}
STALE = pod_json(
    "web-1",
    node="a1",
    labels={**WEB, "rev": "r2"},
    constraints=[constraint(match=["rev"], selects=selector(WEB, requirement("rev", "In", "r1")))],
    owner="ReplicaSet/web-7",
)
REPLICA_SET = deployment("web-7", kind="ReplicaSet", owner="Deployment/web")


def explain(*objects: Json, arguments: tuple[str, ...]) -> Result:
    return run("explain", "-f", "-", *arguments, stdin="\n".join(json.dumps(one) for one in objects))


@pytest.mark.parametrize(
    "arguments", [("web-1",), ("pod/web-1",), ("po", "web-1"), ("rs/web-7",), ("deploy", "web"), ("deployments/web",)]
)
def test_explain_finds_its_object(arguments: tuple[str, ...]) -> None:
    result = explain(STALE, REPLICA_SET, node_json("a1"), arguments=arguments)
    assert result.exit_code == 0
    assert "rev stored r1, label r2: stale-label (certain)" in result.stdout
    assert "-matchExpressions[0].values[0]: r1" in result.stdout


def test_explain_answers_whatever_it_finds() -> None:
    """Findings do not change its exit status."""
    pending = {**STALE, "spec": {key: value for key, value in STALE["spec"].items() if key != "nodeName"}}
    assert explain(pending, arguments=("web-1",)).exit_code == 0


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_explain_for_programs(form: str) -> None:
    result = explain(STALE, REPLICA_SET, node_json("a1"), arguments=("deploy/web", "-o", form))
    assert result.exit_code == 0
    assert "SpreadExplanation" in result.stdout
    if form == "json":
        found = json.loads(result.stdout)
        assert found["object"] == {"kind": "Deployment", "name": "web"}
        assert found["placing"] == [{"pods": ["web-1"], "allowed": ["a1"], "refused": []}]


@pytest.mark.parametrize(
    ("objects", "arguments"),
    [
        pytest.param([STALE], ("gone",), id="no such pod"),
        pytest.param([STALE, REPLICA_SET], ("deploy/gone",), id="no such workload"),
        pytest.param([REPLICA_SET], ("rs/web-7",), id="a workload without pods"),
        pytest.param([STALE], ("web-1", "web-2"), id="two objects"),
        pytest.param([STALE], ("pods",), id="a type without a name"),
        pytest.param([STALE], ("SPR999",), id="no such rule"),
        pytest.param([STALE, MALFORMED], ("web-1",), id="something could not be read"),
    ],
)
def test_explain_that_cannot_answer_is_2(objects: list[Json], arguments: tuple[str, ...]) -> None:
    result = explain(*objects, arguments=arguments)
    assert result.exit_code == 2
    assert result.stderr


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_explain_a_rule_reads_nothing(rule: object) -> None:
    code = rule.code  # type: ignore[attr-defined]
    result = run("explain", code)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.startswith(f"{code} ")


def test_rules_lists_the_catalogue() -> None:
    result = run("rules")
    assert (result.exit_code, result.stderr) == (0, "")
    assert all(rule.code in result.stdout and rule.name in result.stdout for rule in RULES)


@pytest.mark.parametrize("arguments", [("--help",), ("check", "-h"), ("explain", "--help"), ("rules", "--help")])
def test_help(arguments: tuple[str, ...]) -> None:
    result = CliRunner().invoke(cli, arguments, prog_name="kubectl spread")
    assert result.exit_code == 0
    assert result.stdout.startswith("Usage: kubectl spread")


def test_version() -> None:
    result = run("--version")
    assert result.stdout == f"kubectl-spread {__version__} (Kubernetes 1.27 to 1.37)\n"


def test_explain_needs_an_argument() -> None:
    assert run("explain").exit_code == 2
