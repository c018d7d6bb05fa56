"""OpenReports manifests hold what was found, in objects that an apiserver takes."""

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
from tests.render.test_openmetrics import found
from tests.render.test_render import GOLDEN, REPORTS, hostile, nothing, without_nodes


def documents(text: str) -> list[Json]:
    """Return the documents of a text, each held to the schema."""
    actual_documents = list(yaml.load_all(text, Loader=yaml.CSafeLoader))
    for document in actual_documents:
        api.validate(document)
        outcomes = Counter(result["result"] for result in document["results"])
        assert document["summary"] == {
            outcome: outcomes[outcome] for outcome in ("pass", "fail", "warn", "error", "skip")
        }
    return actual_documents


def results(items: Iterable[Json], outcome: str) -> list[tuple[str, str]]:
    """Return the policy and rule of all results with one outcome."""
    every = (result for document in items for result in document["results"])
    return [(result["policy"], result["rule"]) for result in every if result["result"] == outcome]


def changed(report: Report, **fields: object) -> Report:
    """Return a report whose first finding has other fields."""
    first, *rest = report.findings
    return msgspec.structs.replace(report, findings=[msgspec.structs.replace(first, **fields), *rest])


def only_finding(report: Report, **fields: object) -> Report:
    """Return a report with nothing but its first finding, changed."""
    return msgspec.structs.replace(report, constraints=[], findings=changed(report, **fields).findings[:1])


@pytest.mark.parametrize("cluster", REPORTS)
def test_golden(cluster: str, golden: Golden) -> None:
    text = openreports(reported(REPORTS[cluster]()))
    documents(text)
    golden(GOLDEN / f"{cluster}.openreports.yaml", text)


def test_findings_fail_or_warn_and_the_rest_passes() -> None:
    report, cluster = documents(openreports(found()))
    assert (report["kind"], report["metadata"]["namespace"]) == ("Report", "default")
    assert (cluster["kind"], cluster["metadata"].get("namespace")) == ("ClusterReport", None)
    assert results([report], "fail") == [("SPR303", "blocked")]
    assert len(results([report], "warn")) == 6
    passed = [result for result in report["results"] if result["result"] == "pass"]
    assert [result["resources"] for result in passed] == [
        [{"apiVersion": "v1", "kind": "Pod", "namespace": "default", "name": "bare"}]
    ]
    assert results([cluster], "skip") == [("kubectl-spread", "finished")]


def test_what_could_not_be_judged_is_an_error() -> None:
    report = reported(without_nodes())
    summary = msgspec.structs.replace(report.summary, skipped={"forbidden": 2, "mirror": 1})
    yaml_documents = documents(openreports(msgspec.structs.replace(report, summary=summary)))
    assert results(yaml_documents, "error") == [("kubectl-spread", "forbidden")]
    assert results(yaml_documents, "skip") == [("kubectl-spread", "mirror"), ("kubectl-spread", "no-nodes")]


def test_nothing_judged_prints_nothing() -> None:
    assert openreports(reported(nothing())) == ""


def test_the_kinds_of_others_have_no_api_version() -> None:
    pod = pod_json("p", constraints=[constraint()], owner="Rollout/web")
    (result,) = documents(openreports(reported(audit(pod))))[0]["results"]
    assert result["resources"] == [{"kind": "Rollout", "namespace": "default", "name": "web"}]


@given(st.text())
def test_texts_of_objects_arrive_escaped(message: str) -> None:
    text = openreports(changed(found(), message=message))
    assert text.isascii()
    assert documents(text)[0]["results"][0]["message"] == words.safe(message)


def test_nothing_of_a_hostile_cluster_is_printed_raw() -> None:
    text = openreports(reported(hostile()))
    assert all(char.isprintable() or char == "\n" for char in text)
    assert words.safe("\x1b") in str(documents(text))


def test_many_results_are_several_objects() -> None:
    """An apiserver takes requests of 3 MiB, and etcd of 1.5."""
    report = found()
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
    """What the schema allows beyond what is printed would be tested by nothing."""
    text = "".join(path.read_text(encoding="utf-8") for path in Path(GOLDEN).glob("*.openreports.yaml"))
    for field in ("scored", "severity", "resources", "properties", "category"):
        assert f"  {field}:" in text
