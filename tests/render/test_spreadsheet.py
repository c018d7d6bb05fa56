"""CSV has a line for each row, and no cell that a spreadsheet would run as a formula."""

from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubectl_spread.render import spreadsheet, words
from kubectl_spread.render.spreadsheet import COLUMNS
from kubectl_spread.report.model import Report
from tests.audits import audit, deployment, reported
from tests.builders import constraint, pod_json
from tests.conftest import Golden
from tests.render.test_openmetrics import with_findings
from tests.render.test_openreports import only_finding
from tests.render.test_render import GOLDEN, REPORTS, hostile


def lines(report: Report) -> list[dict[str, str]]:
    """Return the lines of a report as a reader of CSV parses them."""
    return list(csv.DictReader(io.StringIO(spreadsheet.csv(report), newline=""), strict=True))


@pytest.mark.parametrize("cluster", REPORTS)
def test_reports_match_their_golden_files(cluster: str, golden: Golden) -> None:
    report = reported(REPORTS[cluster]())
    golden(GOLDEN / f"{cluster}.csv", spreadsheet.csv(report).replace("\r\n", "\n"))
    assert all(tuple(line) == COLUMNS and None not in line.values() for line in lines(report))


@pytest.mark.parametrize("cluster", REPORTS)
def test_lines_end_as_the_standard_says(cluster: str) -> None:
    text = spreadsheet.csv(reported(REPORTS[cluster]()))
    assert text.endswith("\r\n")
    assert text.count("\n") == text.count("\r") == text.count("\r\n")


def test_each_row_has_its_numbers_and_the_worst_finding() -> None:
    stale, merged, soft, bare, anti = lines(with_findings())
    assert (stale["verdict"], merged["verdict"], soft["verdict"]) == ("stale-label", "merged", "")
    assert [merged[name] for name in ("pods", "pending", "skew", "max_skew", "domains", "min_match")] == list("512121")
    assert (merged["severity"], merged["code"]) == ("error", "SPR303")
    assert merged["codes"] == "SPR301 SPR303"
    assert (stale["codes"], stale["skew"], stale["min_match"]) == ("SPR101 SPR305", "", "")
    assert anti["when_unsatisfiable"] == anti["skew"] == ""
    assert (bare["findings"], bare["code"], bare["message"]) == ("0", "", "")


def test_findings_on_templates_have_lines_of_their_own() -> None:
    csv_lines = lines(reported(audit(deployment(constraints=[constraint(match=["app"])]))))
    (line,) = csv_lines
    assert (line["workload"], line["code"], line["pods"], line["skew"]) == ("web", "SPR202", "", "")
    assert line["path"] == "spec.template.spec.topologySpreadConstraints[0]"


@pytest.mark.parametrize("sign", ["=", "+", "-", "@", "\uff1d"])
def test_no_cell_is_a_formula(sign: str) -> None:
    formula = f"{sign}cmd|' C'!A1"
    pod = pod_json("p", constraints=[constraint()], owner=f"{formula}/{formula}", namespace=formula)
    (line,) = lines(reported(audit(pod)))
    assert [line[name] for name in ("namespace", "kind", "workload")] == [f"'{formula}"] * 3


@given(st.text())
def test_texts_arrive_in_one_cell(message: str) -> None:
    (line,) = lines(only_finding(with_findings(), message=message))
    assert line["message"] in (words.safe(message), f"'{words.safe(message)}")


def test_names_of_a_hostile_cluster_are_escaped() -> None:
    text = spreadsheet.csv(reported(hostile()))
    assert all(char.isprintable() or char in "\r\n" for char in text)
    assert words.safe("\x1b") in text
