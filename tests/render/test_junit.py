"""JUnit reports are valid for Jenkins' schema, and another program reads the findings from them."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree as ET

import msgspec
import pytest
import xmlschema
from junit2htmlreport import parser

from kubectl_spread.render.ci.junit import junit
from kubectl_spread.report.model import Report, Severity
from tests.audits import audit, deployment, reported
from tests.builders import constraint
from tests.conftest import Golden
from tests.render import locations
from tests.render.test_render import REPORTS

HERE = Path(__file__).parent
GOLDEN = HERE / "golden"
SCHEMA = xmlschema.XMLSchema10(HERE / "schemas" / "junit-10.xsd")
PLACE = ("file", "line")
"""Attributes of a case that Jenkins' schema lacks; GitLab and others read them."""


def parsed(report: Report) -> parser.Junit:
    """Validate a document, and return it as junit2html reads it."""
    text = junit(report)
    root = ET.fromstring(text)
    for case in root.iter("testcase"):
        for attribute in PLACE:
            case.attrib.pop(attribute, None)
    SCHEMA.validate(root)
    return parser.Junit(xmlstring=text)


def cases(report: Report) -> list[tuple[str, str, str, parser.Case]]:
    """Return suite, class, name and case."""
    return [
        (suite.name, name, case.name or "", case)
        for suite in parsed(report)
        for name, pod_class in suite.classes.items()
        for case in pod_class.cases
    ]


@pytest.mark.parametrize("cluster", REPORTS)
def test_reports_match_their_golden_files(cluster: str, golden: Golden) -> None:
    # Up to 3.12 Python writes a quote in text as an entity.
    text = junit(reported(REPORTS[cluster]())).replace("&quot;", '"')
    golden(GOLDEN / f"{cluster}.junit.xml", text)


def test_cases_have_positions_in_files(golden: Golden) -> None:
    # Before Python 3.13 quotes are escaped outside attributes too.
    golden(GOLDEN / "located.junit.xml", junit(locations.several()).replace("&quot;", '"'))


@pytest.mark.parametrize("cluster", REPORTS)
def test_each_workload_and_constraint_is_a_case(cluster: str) -> None:
    report = reported(REPORTS[cluster]())
    test_cases = cases(report)
    failed = {(name, case_name.split(" ")[0]) for _, name, case_name, case in test_cases if case.failed()}
    rows = {(row.namespace, row.workload.kind, row.workload.name, row.path) for row in report.constraints}
    about = {(finding.namespace, finding.object.kind, finding.object.name, finding.path) for finding in report.findings}
    assert len(test_cases) == len(rows | about)
    assert len({(name, case_name) for _, name, case_name, _ in test_cases}) == len(test_cases)
    wrong = {(finding.object, finding.path) for finding in report.findings if finding.severity is not Severity.INFO}
    assert len(failed) == len(wrong)


def test_infos_do_not_fail_a_case() -> None:
    report = reported(REPORTS["several"]())
    infos = [msgspec.structs.replace(finding, severity=Severity.INFO) for finding in report.findings]
    test_cases = cases(locations.with_findings(report, infos))
    assert not any(case.failed() for *_, case in test_cases)
    outputs = "\n".join(case.stdout for *_, case in test_cases if case.stdout)
    assert all(f"info {finding.code} {finding.name}: {finding.message}" in outputs for finding in report.findings)


def test_the_worst_finding_names_the_failure() -> None:
    report = reported(REPORTS["several"]())
    first = report.findings[0]
    warning, error = (
        msgspec.structs.replace(first, severity=severity, code=code, source=place)
        for severity, code, place in (
            (Severity.WARNING, "SPR998", locations.PLACES[0]),
            (Severity.ERROR, "SPR999", locations.PLACES[1]),
        )
    )
    text = junit(locations.with_findings(report, [warning, error]))
    (case,) = (element for element in ET.fromstring(text).iter("testcase") if element.find("failure") is not None)
    failure = case.find("failure")
    assert failure is not None
    assert failure.attrib["type"] == "error"
    assert failure.attrib["message"] == f"SPR999 {first.name}: {first.message} (and 1 more finding)"
    assert [case.attrib[attribute] for attribute in PLACE] == ["a b/100%,ö:#1?.yaml", "3"]
    lines = (failure.text or "").splitlines()
    assert lines[0].startswith("error SPR999 ")
    assert "manifests/web.yaml:12:9" in lines


def test_templates_have_cases_of_their_own() -> None:
    test_cases = cases(reported(audit(deployment(constraints=[constraint(max_skew=0)]))))
    assert [(suite, name, case, test_case.failed()) for suite, name, case, test_case in test_cases] == [
        ("default", "default/Deployment/web", "spec.template.spec.topologySpreadConstraints[0]", True)
    ]


def test_cases_of_two_namespaces_have_different_classes() -> None:
    """GitLab compares class and name only."""
    deployments = [deployment(constraints=[constraint(max_skew=0)], namespace=namespace) for namespace in ("b", "a")]
    test_cases = cases(reported(audit(*deployments)))
    assert [(suite, name) for suite, name, _, _ in test_cases] == [("a", "a/Deployment/web"), ("b", "b/Deployment/web")]


def test_characters_that_xml_cannot_hold_are_escaped() -> None:
    report = reported(REPORTS["several"]())
    evil = "\x00\x1b\x0b\ufffe\uffff\u202e]]><!-- & \"'"
    finding = msgspec.structs.replace(report.findings[0], message=evil, namespace=evil, path=evil, fix=evil)
    test_cases = cases(locations.with_findings(report, [finding]))
    escaped = "\\x00\\x1b\\x0b\\ufffe\\uffff\\u202e]]><!-- & \"'"
    (case,) = (case for suite, _, _, case in test_cases if suite == escaped)
    assert case.name == escaped
    assert case.failure_msg is not None
    assert case.failure_msg.endswith(f": {escaped}")


def test_unevaluated_objects_are_errors() -> None:
    text = junit(locations.unanswered(reported(REPORTS["nothing"]())))
    root = ET.fromstring(text)
    assert root.attrib["errors"] == "2"
    assert [error.attrib["message"] for error in root.iter("error")] == [
        "could not be checked: 2 malformed",
        "could not be checked: 1 unreadable",
    ]
