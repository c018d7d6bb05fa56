"""Each rule fires on its bad cases with the findings in its golden files, and is silent on its good cases.

A case is a file of manifests; its first line may have options after ``# options:``.
"""

from __future__ import annotations

import json
import re
import string
import tomllib
from collections.abc import Container, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kubectl_spread.audit.evaluation.evaluate import Audit
from kubectl_spread.cli import cli
from kubectl_spread.engine.engine import Engine
from kubectl_spread.kube.api.objects import ObjectRef
from kubectl_spread.report.model import Severity
from kubectl_spread.rules import RULES, engine
from kubectl_spread.rules.inputs import PodsInput, RuleInput, TemplateInput, rule_inputs
from kubectl_spread.rules.model import Rule
from tests import contract
from tests.conftest import Golden

HERE = Path(__file__).parent
BAD = sorted(HERE.glob("SPR*/bad-*.yaml"))
GOOD = sorted(HERE.glob("SPR*/good-*.yaml"))
CATALOGUE = Path(engine.__file__).with_name("catalogue.toml")
OPTIONS = re.compile(r"# options: (.*)\n")


def name(path: Path) -> str:
    return f"{path.parent.name} {path.stem}"


def findings(path: Path) -> Any:
    options = OPTIONS.match(path.read_text(encoding="utf-8"))
    arguments = ["check", "-f", str(path), "-o", "json", "--fail-on", "never", *(options[1].split() if options else [])]
    result = CliRunner().invoke(cli, arguments)
    assert result.exit_code == 0, result.output
    return contract.loaded(result.stdout)["findings"]


def text(finding: Any) -> str:
    subject = f"{finding['object']['kind']} {finding['namespace']}/{finding['object']['name']} {finding['path']}"
    pods = ", ".join(finding["pods"]) or "no pods"
    operations = finding.get("patch", {}).get("operations", [])
    return (
        f"{finding['severity']} {finding['code']} {finding['name']}: {subject}\n"
        f"  {pods}\n  {finding['message']}\n  fix: {finding['fix']}\n"
        + "".join(f"  $ {command.replace(f'{HERE}/', '')}\n" for command in finding.get("commands", []))
        + "".join(f"  patch: {json.dumps(operation)}\n" for operation in operations)
    )


def kinds_of_remedies(finding: Any) -> set[str]:
    return {kind for kind, field in (("command", "commands"), ("patch", "patch")) if field in finding}


def remedies_of(code: str) -> set[str]:
    """Return the kinds of remedies that the findings of a rule have in its golden files."""
    goldens = "".join(path.with_suffix(".txt").read_text(encoding="utf-8") for path in BAD if path.parent.name == code)
    own = [finding for finding in re.split(r"^(?=\w)", goldens, flags=re.MULTILINE) if f" {code} " in finding]
    signs = {"command": "\n  $ ", "patch": "\n  patch: "}
    return {kind for kind, sign in signs.items() if any(sign in finding for finding in own)}


@pytest.mark.parametrize("path", BAD, ids=name)
def test_bad_cases_fire_their_rule_and_no_other_error(path: Path, golden: Golden) -> None:
    case_findings = findings(path)
    code = path.parent.name
    assert code in {finding["code"] for finding in case_findings}
    assert {finding["code"] for finding in case_findings if finding["severity"] == "error"} <= {code}
    golden(path.with_suffix(".txt"), "".join(text(finding) for finding in case_findings))


@pytest.mark.parametrize("path", BAD, ids=name)
def test_no_fix_sends_the_reader_of_explain_to_explain(path: Path) -> None:
    assert not [finding for finding in findings(path) if "kubectl spread explain" in finding["fix"]]


@pytest.mark.parametrize("path", GOOD, ids=name)
def test_good_cases_do_not_fire_their_rule(path: Path) -> None:
    case_findings = findings(path)
    assert path.parent.name not in {finding["code"] for finding in case_findings}
    assert [finding for finding in case_findings if finding["severity"] == "error"] == []


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_every_rule_has_bad_and_good_cases(rule: Rule) -> None:
    assert rule.code in {path.parent.name for path in BAD}
    assert rule.code in {path.parent.name for path in GOOD}


def test_every_case_has_a_rule() -> None:
    assert {path.name for path in HERE.glob("SPR*")} == {rule.code for rule in RULES}
    assert {path.stem for path in HERE.glob("SPR*/*.txt")} <= {path.stem for path in BAD}


def test_codes_and_names_are_unique_and_codes_sorted() -> None:
    codes = [rule.code for rule in RULES]
    assert codes == sorted(set(codes))
    assert codes == list(tomllib.loads(CATALOGUE.read_text(encoding="utf-8")))
    assert len({rule.name for rule in RULES}) == len(RULES)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_every_rule_is_complete(rule: Rule) -> None:
    assert re.fullmatch(r"SPR[1-5]\d\d", rule.code)
    assert re.fullmatch(r"[a-z]+(-[a-z]+)*", rule.name)
    assert rule.documentation.source.startswith("https://")
    assert all((rule.summary, rule.message, rule.documentation.why, rule.fix))
    assert not rule.summary.endswith(".")
    assert isinstance(rule.severity, Severity)
    of_nodes = rule.code.startswith(("SPR3", "SPR5")) or rule.code in ("SPR217", "SPR218", "SPR406")
    assert rule.needs_nodes is (of_nodes and rule.code != "SPR504")


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_the_evidence_of_every_bad_case_has_all_values_of_message_and_fix(rule: Rule) -> None:
    fields = {field for _, field, _, _ in string.Formatter().parse(rule.message + rule.fix) if field} - {"restart"}
    for path in (path for path in BAD if path.parent.name == rule.code):
        case_findings = [finding for finding in findings(path) if finding["code"] == rule.code]
        assert all(fields <= finding["values"].keys() for finding in case_findings)
        assert all(
            "{" not in finding["message"].replace("{topologyKey, whenUnsatisfiable}", "") for finding in case_findings
        )


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_the_findings_of_a_rule_have_the_severities_and_remedies_of_its_page(rule: Rule) -> None:
    cases = [path for path in BAD if path.parent.name == rule.code]
    own = [finding for path in cases for finding in findings(path) if finding["code"] == rule.code]
    severities = list(rule.severities)
    assert severities == sorted(set(severities), reverse=True)
    assert rule.severity in severities
    assert len(severities) > 1 or not rule.documentation.cases
    assert {finding["severity"] for finding in own} == set(map(str, severities))
    remedies = [kinds_of_remedies(finding) for finding in own]
    assert set().union(*remedies) == remedies_of(rule.code)
    assert (set() in remedies) is bool(rule.documentation.no_remedy)


@pytest.mark.parametrize("path", BAD, ids=name)
def test_messages_and_fixes_are_sentences_and_a_message_has_one_group(path: Path) -> None:
    groups: dict[str, set[str]] = {}
    for finding in findings(path):
        assert re.search(r"[.?]$", finding["message"]), finding["message"]
        assert re.search(r"^[A-Z].*[.?]$", finding["fix"]), finding["fix"]
        groups.setdefault(finding["message"], set()).add(finding["group"])
    assert {message for message, of_message in groups.items() if len(of_message) > 1} == set()


@pytest.mark.parametrize(
    ("case", "options", "expected"),
    [
        ("SPR303/bad-pending", (), {"SPR303": "error"}),
        ("SPR303/bad-pending", ("--ignore", "SPR303"), {"SPR307": "error"}),
        ("SPR303/bad-pending", ("--select", "SPR307"), {"SPR307": "error"}),
        ("SPR309/bad-uneven-after-the-rollout", (), {"SPR309": "info"}),
        ("SPR309/bad-uneven-after-the-rollout", ("--ignore", "SPR309"), {"SPR208": "info"}),
    ],
)
def test_a_fact_is_one_finding_and_another_rule_has_it_if_its_rule_is_silenced(
    case: str, options: tuple[str, ...], expected: dict[str, str]
) -> None:
    arguments = ["check", "-f", str(HERE / f"{case}.yaml"), "-o", "json", "--fail-on", "never", *options]
    report = contract.loaded(CliRunner().invoke(cli, arguments).stdout)
    assert {finding["code"]: finding["severity"] for finding in report["findings"]} == expected


def test_no_rule_is_skipped_on_an_input_on_which_it_would_fire(monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine skips checks of members and of counts on pods without any."""
    of_template, skipped = set[str](), set[str]()

    def with_every_rule(audit: Audit, model: Engine, reported: Container[ObjectRef]) -> Iterator[RuleInput]:
        for rule_input in rule_inputs(audit, model, reported):
            for rule in RULES:
                of_pods = rule.of_members or rule.of_counts
                if isinstance(rule_input, PodsInput) and of_pods is not None and rule.check(rule_input) is None:
                    skipped.update(rule.code for _ in of_pods(rule_input))
                if isinstance(rule_input, TemplateInput) and rule.of_template and any(rule.of_template(rule_input)):
                    of_template.add(rule.code)
            yield rule_input

    monkeypatch.setattr(engine, "rule_inputs", with_every_rule)
    for path in (*BAD, *GOOD):
        findings(path)
    assert not skipped
    assert of_template == {rule.code for rule in RULES if rule.of_template is not None}
