"""OpenReports manifests have the findings, in objects that an API server accepts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import msgspec
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from kubectl_spread.render import words
from kubectl_spread.render.ci.openreports import MOST_BYTES, openreports
from kubectl_spread.report.model import Finding, Report
from tests import openreports as api
from tests.audits import audit, reported
from tests.builders import Json, constraint, pod_json
from tests.conftest import Golden
from tests.render.test_openmetrics import with_findings
from tests.render.test_render import GOLDEN, REPORTS, hostile, nothing, without_nodes


def documents(text: str) -> list[Json]:
    """Return the documents of a text, which are valid for the schema."""
    manifests = list(yaml.load_all(text, Loader=yaml.CSafeLoader))
    for document in manifests:
        api.validate(document)
        outcomes = Counter(result["result"] for result in document["results"])
        assert document["summary"] == {
            outcome: outcomes[outcome] for outcome in ("pass", "fail", "warn", "error", "skip")
        }
    return manifests


def results(manifests: Iterable[Json], outcome: str) -> list[tuple[str, str]]:
    """Return the policy and rule of all results with one outcome."""
    every = (result for document in manifests for result in document["results"])
    return [(result["policy"], result["rule"]) for result in every if result["result"] == outcome]


def changed(report: Report, **fields: object) -> Report:
    """Return a report whose first finding has other fields."""
    first, *rest = report.findings
    return msgspec.structs.replace(report, findings=[msgspec.structs.replace(first, **fields), *rest])


def only_finding(report: Report, **fields: object) -> Report:
    """Return a report with its first finding alone, which has other fields."""
    return msgspec.structs.replace(report, constraints=[], findings=changed(report, **fields).findings[:1])


@pytest.mark.parametrize("cluster", REPORTS)
def test_reports_match_their_golden_files(cluster: str, golden: Golden) -> None:
    text = openreports(reported(REPORTS[cluster]()))
    documents(text)
    golden(GOLDEN / f"{cluster}.openreports.yaml", text)


def test_findings_fail_or_warn_and_other_constraints_pass() -> None:
    report, cluster = documents(openreports(with_findings()))
    assert (report["kind"], report["metadata"]["namespace"]) == ("Report", "default")
    assert (cluster["kind"], cluster["metadata"].get("namespace")) == ("ClusterReport", None)
    assert results([report], "fail") == [("SPR303", "blocked")]
    assert len(results([report], "warn")) == 5
    passed = [result for result in report["results"] if result["result"] == "pass"]
    assert [result["resources"] for result in passed] == [
        [{"apiVersion": "v1", "kind": "Pod", "namespace": "default", "name": "bare"}]
    ]
    assert results([cluster], "skip") == [("kubectl-spread", "finished")]


def test_unevaluated_objects_are_errors() -> None:
    report = reported(without_nodes())
    summary = msgspec.structs.replace(report.summary, skipped={"forbidden": 2, "mirror": 1})
    yaml_documents = documents(openreports(msgspec.structs.replace(report, summary=summary)))
    assert results(yaml_documents, "error") == [("kubectl-spread", "forbidden")]
    assert results(yaml_documents, "skip") == [("kubectl-spread", "mirror"), ("kubectl-spread", "no-nodes")]


def test_an_empty_report_has_no_documents() -> None:
    assert openreports(reported(nothing())) == ""


def test_custom_kinds_have_no_api_version() -> None:
    pod = pod_json("p", constraints=[constraint()], owner="Rollout/web")
    (result,) = documents(openreports(reported(audit(pod))))[0]["results"]
    assert result["resources"] == [{"kind": "Rollout", "namespace": "default", "name": "web"}]


@given(st.text())
def test_texts_of_objects_arrive_escaped(message: str) -> None:
    text = openreports(changed(with_findings(), message=message))
    assert text.isascii()
    assert documents(text)[0]["results"][0]["message"] == words.safe(message)


def test_names_of_a_hostile_cluster_are_escaped() -> None:
    text = openreports(reported(hostile()))
    assert all(char.isprintable() or char == "\n" for char in text)
    assert words.safe("\x1b") in str(documents(text))


def test_many_results_are_several_objects() -> None:
    """The limit of etcd is 1.5 MiB, that of an API server 3 MiB."""
    report = with_findings()
    findings = [_repeated(report.findings[0], number) for number in range(3000)]
    printed = documents(openreports(msgspec.structs.replace(report, findings=findings)))
    reports = [document for document in printed if document["kind"] == "Report"]
    names = [document["metadata"]["name"] for document in reports]
    assert names == ["kubectl-spread", "kubectl-spread-2", "kubectl-spread-3"]
    assert all(len(msgspec.json.encode(document)) < MOST_BYTES * 1.1 for document in reports)
    assert sum(document["summary"]["warn"] for document in reports) == 3000


def _repeated(finding: Finding, number: int) -> Finding:
    return msgspec.structs.replace(finding, message=f"{number} {'x' * 300}")


def test_goldens_hold_every_field_of_the_schema() -> None:
    """Otherwise no test would cover a field of the schema that is not printed."""
    text = "".join(path.read_text(encoding="utf-8") for path in Path(GOLDEN).glob("*.openreports.yaml"))
    for field in ("scored", "severity", "resources", "properties", "category"):
        assert f"  {field}:" in text
