"""An unexpected error in one rule on one workload costs the findings of that rule there, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NoReturn

import msgspec
import pytest
from click.testing import CliRunner, Result

from kubectl_spread.cli import cli, formats
from kubectl_spread.explain import explanation
from kubectl_spread.rules import RULES
from kubectl_spread.rules.inputs import PodsInput
from kubectl_spread.rules.model import Evidence
from kubectl_spread.run import run
from tests import contract
from tests.builders import constraint, node_json, pod_json

FAILS = "SPR205"
LINE = (
    "error: SPR205 could not check spec.topologySpreadConstraints[0] of po/web in namespace default, so its findings "
    "there are missing: unexpected ZeroDivisionError"
)


def capture() -> str:
    empty = constraint(selects={})
    pods = [pod_json(name, constraints=[empty], node="a1") for name in ("api", "web")]
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": [node_json("a1", zone="a"), *pods]})


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let one rule fail on one workload."""
    rule = next(rule for rule in RULES if rule.code == FAILS)

    def check(rule_input: PodsInput) -> Iterator[Evidence]:
        if rule_input.workload.name == "web":
            raise ZeroDivisionError("secret")
        assert rule.of_pods is not None
        yield from rule.of_pods(rule_input)

    failing = msgspec.structs.replace(rule, of_pods=check)
    monkeypatch.setattr(run, "RULES", tuple(failing if each is rule else each for each in RULES))


def invoke(*arguments: str) -> Result:
    result = CliRunner().invoke(cli, [*arguments, "-f", "-"], input=capture())
    assert result.exception is None or isinstance(result.exception, SystemExit)
    assert "secret" not in result.output or "-v" in arguments
    return result


@pytest.mark.usefixtures("failing")
@pytest.mark.parametrize("form", formats.names("check"))
def test_every_format_says_that_a_rule_failed_and_has_the_other_findings(form: str) -> None:
    result = invoke("check", "-o", form)
    assert result.exit_code == 2
    (line,) = (line for line in result.stderr.splitlines() if line.startswith("error: "))
    assert line.startswith(LINE)
    assert "test_faults.py" not in line
    found, missing = {
        "table": ("po/api", "Failed because of a bug: 1 check."),
        "wide": ("po/api", "Failed because of a bug: 1 check."),
        "name": ("po/api", "po/web"),
        "openmetrics": (f'code="{FAILS}"', 'kube_spread_skipped_objects{reason="failed"} 1'),
    }.get(form, (FAILS, "SPR205 could not check"))
    assert found in result.stdout
    assert missing in result.stdout.replace("&quot;", '"')


@pytest.mark.usefixtures("failing")
def test_the_report_names_the_rule_the_workload_and_the_path() -> None:
    report = contract.loaded(invoke("check", "-o", "json").stdout)
    assert report["unchecked"] == [
        {
            "reason": "failed",
            "namespace": "default",
            "object": {"kind": "Pod", "name": "web"},
            "path": "spec.topologySpreadConstraints[0]",
            "message": report["unchecked"][0]["message"],
        }
    ]
    assert report["summary"]["skipped"] == {"failed": 1}
    assert {finding["object"]["name"] for finding in report["findings"] if finding["code"] == FAILS} == {"api"}


@pytest.mark.usefixtures("failing")
def test_verbose_prints_the_traceback() -> None:
    assert "Traceback" not in invoke("check").stderr
    assert "ZeroDivisionError" in invoke("check", "-v").stderr.partition("Traceback")[2]


@pytest.mark.usefixtures("failing")
def test_no_finding_of_a_baseline_is_gone_because_a_rule_failed(tmp_path: Any) -> None:
    before = tmp_path / "before.json"
    before.write_text(invoke("check", "-o", "json").stdout.replace('"api"', '"web"'))
    assert "gone" not in json.loads(invoke("check", "-o", "json", "--baseline", str(before)).stdout)["summary"]


@pytest.mark.usefixtures("failing")
def test_explain_names_a_rule_that_failed() -> None:
    result = invoke("explain", "pod/web")
    assert result.exit_code == 2
    assert LINE in result.stderr
    assert "Failed because of a bug: 1 check." in result.stdout


def test_explain_names_a_section_that_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    def causes(*_: object) -> NoReturn:
        raise ZeroDivisionError("secret")

    monkeypatch.setattr(explanation, "causes", causes)
    result = invoke("explain", "pod/web")
    assert result.exit_code == 2
    assert "error: the section causes of po/web is missing: unexpected ZeroDivisionError" in result.stderr
    assert "Failed because of a bug: 1 check." in result.stdout
    document = contract.loaded(invoke("explain", "pod/web", "-o", "json").stdout)
    assert document["summary"]["skipped"] == {"failed": 1}
    assert document["causes"] == []


def test_a_lack_of_memory_ends_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    def check(_: PodsInput) -> NoReturn:
        raise MemoryError

    rules = (msgspec.structs.replace(rule, of_pods=check) for rule in RULES if rule.code == FAILS)
    monkeypatch.setattr(run, "RULES", tuple(rules))
    assert "there is not enough memory" in invoke("check").stderr
