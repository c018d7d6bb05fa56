"""Each rule fires on its bad cases, is silent on its good ones, and says what its golden file holds.

A case is a file of manifests; its first line may hold options after ``# options:``.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kubectl_spread.audit.evaluation.evaluate import Audit
from kubectl_spread.cli import cli
from kubectl_spread.report.severity import Severity
from kubectl_spread.rules import RULES, engine
from kubectl_spread.rules.inputs import rule_inputs
from kubectl_spread.rules.model import Rule
from kubectl_spread.rules.rule_input import InputPart, RuleInput
from tests import contract
from tests.conftest import Golden

HERE = Path(__file__).parent
BAD = sorted(HERE.glob("SPR*/bad-*.yaml"))
GOOD = sorted(HERE.glob("SPR*/good-*.yaml"))
OPTIONS = re.compile(r"# options: (.*)\n")


def name(path: Path) -> str:
    return f"{path.parent.name} {path.stem}"


def findings(path: Path) -> Any:
    options = OPTIONS.match(path.read_text(encoding="utf-8"))
    arguments = ["check", "-f", str(path), "-o", "json", "--fail-on", "never", *(options[1].split() if options else [])]
    result = CliRunner().invoke(cli, arguments)
    assert result.exit_code == 0, result.output
    return contract.loaded(result.stdout)["findings"]


def told(finding: Any) -> str:
    place = f"{finding['object']['kind']} {finding['namespace']}/{finding['object']['name']} {finding['path']}"
    pods = ", ".join(finding["pods"]) or "no pods"
    return (
        f"{finding['severity']} {finding['code']} {finding['name']}: {place}\n"
        f"  {pods}\n  {finding['message']}\n  fix: {finding['fix']}\n"
    )


@pytest.mark.parametrize("path", BAD, ids=name)
def test_bad_cases_fire_their_rule_and_no_other_error(path: Path, golden: Golden) -> None:
    own_findings = findings(path)
    code = path.parent.name
    assert code in {finding["code"] for finding in own_findings}
    assert {finding["code"] for finding in own_findings if finding["severity"] == "error"} <= {code}
    golden(path.with_suffix(".txt"), "".join(told(finding) for finding in own_findings))


@pytest.mark.parametrize("path", GOOD, ids=name)
def test_good_cases_do_not_fire_their_rule(path: Path) -> None:
    own_findings = findings(path)
    assert path.parent.name not in {finding["code"] for finding in own_findings}
    assert [finding for finding in own_findings if finding["severity"] == "error"] == []


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_every_rule_has_cases(rule: Rule) -> None:
    codes = [{path.parent.name for path in paths} for paths in (BAD, GOOD)]
    assert all(rule.code in actual_code for actual_code in codes)


def test_every_case_has_a_rule() -> None:
    assert {path.name for path in HERE.glob("SPR*")} == {rule.code for rule in RULES}
    assert {path.stem for path in HERE.glob("SPR*/*.txt")} <= {path.stem for path in BAD}


def test_codes_and_names_are_unique_and_codes_sorted() -> None:
    codes = [rule.code for rule in RULES]
    assert codes == sorted(set(codes))
    assert len({rule.name for rule in RULES}) == len(RULES)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_every_rule_is_complete(rule: Rule) -> None:
    assert re.fullmatch(r"SPR[1-4]\d\d", rule.code)
    assert re.fullmatch(r"[a-z]+(-[a-z]+)*", rule.name)
    assert rule.source.startswith("https://")
    assert all((rule.summary, rule.message, rule.why, rule.fix))
    assert not rule.summary.endswith(".")
    assert isinstance(rule.severity, Severity)
    assert rule.needs_nodes is (rule.code.startswith("SPR3") or rule.code == "SPR406")


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_templates_name_values_that_every_piece_of_evidence_holds(rule: Rule) -> None:
    """What the bad cases yield is enough for message and fix."""
    fields = {field for _, field, _, _ in string.Formatter().parse(rule.message + rule.fix) if field} - {"restart"}
    for path in (path for path in BAD if path.parent.name == rule.code):
        own_findings = [finding for finding in findings(path) if finding["code"] == rule.code]
        assert all(fields <= finding["values"].keys() for finding in own_findings)
        assert all(
            "{" not in finding["message"].replace("{topologyKey, whenUnsatisfiable}", "") for finding in own_findings
        )


def test_rules_are_asked_where_they_have_something_to_say(monkeypatch: pytest.MonkeyPatch) -> None:
    """A rule that is wrongly not asked would be silent, and nobody would see why."""
    spoken: dict[str, set[InputPart]] = {rule.code: set() for rule in RULES}

    def watched(audit: Audit) -> Iterator[RuleInput]:
        for rule_input in rule_inputs(audit):
            for rule in RULES:
                if any(rule.check(rule_input)):
                    spoken[rule.code].add(rule_input.parts)
            yield rule_input

    monkeypatch.setattr(engine, "rule_inputs", watched)
    for path in (*BAD, *GOOD):
        findings(path)
    for rule in RULES:
        assert all(rule.of & parts for parts in spoken[rule.code]), rule.code
        assert (InputPart.TEMPLATE in rule.of) is (InputPart.TEMPLATE in spoken[rule.code]), rule.code
