"""SARIF logs are valid for their schema, and have the fields that GitHub code scanning requires."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import jsonschema
import msgspec
import pytest

from kubectl_spread import __version__
from kubectl_spread.render import ci
from kubectl_spread.render.ci.sarif import MOST_RESULTS, sarif
from kubectl_spread.report.model import Operation, Patch, Report, Severity, Source
from kubectl_spread.rules import RULES
from tests.audits import reported
from tests.conftest import Golden
from tests.render import locations
from tests.render.test_render import EVIL, REPORTS

HERE = Path(__file__).parent
GOLDEN = HERE / "golden"
SCHEMA = json.loads((HERE / "schemas" / "sarif-2.1.0-rtm.5.json").read_text(encoding="utf-8"))
VALIDATOR = jsonschema.Draft4Validator(SCHEMA, format_checker=jsonschema.FormatChecker())


def run(report: Report) -> Any:
    """Return the only run of a report's log, which is valid."""
    log = json.loads(sarif(report))
    VALIDATOR.validate(log)
    (only,) = log["runs"]
    return only


def test_the_schema_refuses_an_invalid_log() -> None:
    VALIDATOR.check_schema(SCHEMA)
    log = json.loads(sarif(locations.several()))
    log["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["region"]["startLine"] = 0
    with pytest.raises(jsonschema.ValidationError, match="less than the minimum"):
        VALIDATOR.validate(log)


@pytest.mark.parametrize("cluster", REPORTS)
def test_reports_match_their_golden_files(cluster: str, golden: Golden) -> None:
    """The rules are the same in every log and have a golden file of their own."""
    sarif_run = run(reported(REPORTS[cluster]()))
    del sarif_run["tool"]
    golden(GOLDEN / f"{cluster}.sarif.json", json.dumps(sarif_run, indent=2) + "\n")


def test_the_driver_has_all_rules(golden: Golden) -> None:
    driver = run(reported(REPORTS["nothing"]()))["tool"]["driver"]
    assert (driver["name"], driver["version"]) == ("kubectl-spread", __version__)
    assert [rule["id"] for rule in driver["rules"]] == [rule.code for rule in RULES]
    for rule in driver["rules"]:
        texts = (rule["shortDescription"]["text"], rule["fullDescription"]["text"])
        assert all(0 < len(text) <= 1024 for text in texts), rule["id"]
        assert len(rule["properties"]["tags"]) <= 10
    first = json.dumps(driver["rules"][0], indent=2) + "\n"
    golden(GOLDEN / "rule.sarif.json", first.replace(f"v{__version__}", "vVERSION"))


def test_results_have_positions_in_files(golden: Golden) -> None:
    sarif_run = run(locations.several())
    places = [result["locations"][0].get("physicalLocation") for result in sarif_run["results"]]
    assert [place and (place["artifactLocation"]["uri"], place["region"]) for place in places] == [
        ("manifests/web.yaml", {"startLine": 12, "startColumn": 9}),
        ("a%20b/100%25%2C%C3%B6%3A%231%3F.yaml", {"startLine": 3}),
        ("file:///srv/web.yaml", {"startLine": 4, "startColumn": 1}),
        None,
        ("STDIN", {"startLine": 7}),
        ("file:///dev/fd/63", {"startLine": 8}),
    ]
    del sarif_run["tool"]
    golden(GOLDEN / "located.sarif.json", json.dumps(sarif_run, indent=2) + "\n")


@pytest.mark.parametrize(
    ("file", "uri"),
    [
        ("../web.yaml", "../web.yaml"),
        ("a:b/c.yaml", "a%3Ab/c.yaml"),
        ("C:/work/a b.yaml", "file:///C:/work/a%20b.yaml"),
        ("//server/share/a.yaml", "file://server/share/a.yaml"),
    ],
)
def test_paths_become_uris(file: str, uri: str) -> None:
    report = reported(REPORTS["several"]())
    finding = locations.moved(report.findings[0], Source(file=file, line=1))
    (result,) = run(locations.with_findings(report, [finding]))["results"]
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == uri
    assert unquote(urlsplit(uri).path) in f"/{file}"


@pytest.mark.parametrize("cluster", REPORTS)
def test_results_have_the_values_of_findings(cluster: str) -> None:
    report = reported(REPORTS[cluster]())
    sarif_run = run(report)
    rules = sarif_run["tool"]["driver"]["rules"]
    for finding, result in zip(report.findings, sarif_run["results"], strict=True):
        assert result["ruleId"] == finding.code == rules[result["ruleIndex"]]["id"]
        assert result["level"] == {"info": "note"}.get(str(finding.severity), str(finding.severity))
        properties = {key: value for key, value in result["properties"].items() if key != "patch"}
        assert properties == {"podCount": finding.pod_count, "values": finding.values}
        assert ("patch" in result["properties"]) is (finding.patch is not msgspec.UNSET)
        assert result["locations"][0]["logicalLocations"]
    assert sarif_run["invocations"] == [{"executionSuccessful": True, "toolExecutionNotifications": []}]


def test_fingerprints_stay_when_lines_move() -> None:
    report = locations.several()
    moved = [
        locations.moved(finding, Source(file="other.yaml", line=1000 + number))
        for number, finding in enumerate(report.findings)
    ]
    before, after = run(report)["results"], run(locations.with_findings(report, moved))["results"]
    fingerprints = [json.dumps(result["partialFingerprints"]) for result in before]
    assert fingerprints == [json.dumps(result["partialFingerprints"]) for result in after]
    assert len(set(fingerprints)) == len(fingerprints)


def test_a_result_has_the_patch_of_its_finding() -> None:
    path = "/spec/template/spec/topologySpreadConstraints/0"
    operations = [{"op": "test", "path": f"{path}/maxSkew", "value": 1}, {"op": "remove", "path": path}]
    report = reported(REPORTS["several"]())
    patch = Patch(operations=msgspec.convert(operations, list[Operation]))
    findings = [msgspec.structs.replace(report.findings[0], patch=patch)]
    (result,) = run(msgspec.structs.replace(report, findings=findings))["results"]
    assert json.loads(result["properties"]["patch"]) == operations


def test_texts_hold_no_placeholders_and_no_links() -> None:
    report = reported(REPORTS["several"]())
    finding = msgspec.structs.replace(report.findings[0], message=f"{{0}} [x](http://evil) [y\\](1) {EVIL}")
    (result,) = run(locations.with_findings(report, [finding]))["results"]
    text = result["message"]["text"]
    assert "{{0}} [x] (http://evil) [y\\] (1) " in text
    assert all(char.isprintable() or char == "\n" for char in text)
    assert text.count("\n") == len(ci.advice(finding))


def test_a_log_has_the_severest_results_if_there_are_too_many() -> None:
    """GitHub refuses a log with more results."""
    report = reported(REPORTS["several"]())
    severest = max(report.findings, key=lambda finding: finding.severity is Severity.ERROR)
    least = next(finding for finding in report.findings if finding.severity is not Severity.ERROR)
    log = json.loads(sarif(locations.with_findings(report, [*[least] * MOST_RESULTS, severest])))
    (only,) = log["runs"]
    assert len(only["results"]) == MOST_RESULTS
    assert only["results"][0]["ruleId"] == severest.code
    (output,) = only["invocations"][0]["toolExecutionNotifications"]
    assert output == {"level": "warning", "message": {"text": "1 finding left out: no log may have more results"}}


def test_unevaluated_objects_are_notifications() -> None:
    (invocation,) = run(locations.unanswered(reported(REPORTS["nothing"]())))["invocations"]
    assert invocation == {
        "executionSuccessful": False,
        "toolExecutionNotifications": [
            {"level": "error", "message": {"text": "could not be checked: 2 malformed"}},
            {"level": "error", "message": {"text": "could not be checked: 1 unreadable"}},
        ],
    }
