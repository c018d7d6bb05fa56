"""Parsers of both text formats read the metrics, which have the values for alerts."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from kubectl_spread.render import words
from kubectl_spread.render.openmetrics import MOST_DOMAINS, openmetrics
from kubectl_spread.report.model import Report
from tests.audits import audit, reported
from tests.builders import ZONE, constraint, node_json, pod_json
from tests.conftest import Golden
from tests.render.test_render import GOLDEN, REPORTS, hostile, several, without_nodes

Labels = frozenset[tuple[str, str]]
Series = dict[tuple[str, Labels], float]
PARSERS: list[Callable[[str], Iterable[Metric]]] = [parse_text, parse_openmetrics]
WEB_ZONE = {
    "namespace": "default",
    "workload_kind": "Deployment",
    "workload": "web",
    "path": "spec.topologySpreadConstraints[0]",
    "topology_key": ZONE,
    "when_unsatisfiable": "DoNotSchedule",
}


def parsed(text: str, parse: Callable[[str], Iterable[Metric]] = parse_openmetrics) -> Series:
    """Return the series of a text, none of which is duplicated."""
    samples = [sample for family in parse(text) for sample in family.samples]
    series = {(sample.name, frozenset(sample.labels.items())): float(sample.value) for sample in samples}
    assert len(series) == len(samples)
    assert all(sample.timestamp is None for sample in samples)
    return series


def of(report: Report, name: str, /, **labels: str) -> float | None:
    """Return the value of one series of a report."""
    return parsed(openmetrics(report)).get((f"kube_spread_{name}", frozenset(labels.items())))


def by(report: Report, name: str, label: str, /, **labels: str) -> dict[str, float]:
    """Return the values of the series with these labels, by one further label."""
    values: dict[str, float] = {}
    for (metric, having), value in parsed(openmetrics(report)).items():
        if metric == f"kube_spread_{name}" and having >= frozenset(labels.items()):
            values[dict(having)[label]] = value
    return values


@cache
def with_findings() -> Report:
    """Return the report with several findings."""
    return reported(several())


@pytest.mark.parametrize("cluster", REPORTS)
def test_reports_match_their_golden_files(cluster: str, golden: Golden) -> None:
    text = openmetrics(reported(REPORTS[cluster]()))
    golden(GOLDEN / f"{cluster}.prom", text)
    by_text, by_openmetrics = (parsed(text, parse) for parse in PARSERS)
    assert by_text == by_openmetrics
    assert {line.split()[3] for line in text.splitlines() if line.startswith("# TYPE")} == {"gauge"}


def test_rows_of_one_constraint_share_their_series() -> None:
    """The counts are those of the row furthest above its maxSkew, so that a rollout begins no new series."""
    report = with_findings()
    counted = {name: of(report, name, **WEB_ZONE) for name in ("skew", "max_skew", "domains", "min_match", "max_match")}
    assert counted == {"skew": 2, "max_skew": 1, "domains": 2, "min_match": 1, "max_match": 3}
    assert (of(report, "pods", **WEB_ZONE), of(report, "pending_pods", **WEB_ZONE)) == (6, 1)
    assert by(report, "domain_pods", "domain", **WEB_ZONE) == {"a": 3, "b": 1}
    assert by(report, "verdict_pods", "verdict", **WEB_ZONE) == {"stale-label": 1, "merged": 5}


def test_findings_and_totals_have_series() -> None:
    report = with_findings()
    assert by(report, "findings", "code", severity="error", namespace="default", name="blocked") == {"SPR303": 1}
    assert by(report, "severity_findings", "severity") == {"error": 1, "warning": 3, "info": 2}
    assert by(report, "skipped_objects", "reason") == {"finished": 1}
    assert (of(report, "judged_pods"), of(report, "constraint_rows"), of(report, "nodes")) == (9, 5, 4)


def test_counts_that_do_not_apply_have_no_series() -> None:
    """Affinity terms have only pods and verdicts. Without nodes, a constraint has its maxSkew."""
    anti = by(with_findings(), "verdict_pods", "verdict", workload="api")
    assert anti == {"late-label": 2}
    assert by(with_findings(), "max_skew", "path", workload="api") == {}
    report = reported(without_nodes())
    assert (of(report, "skew", **WEB_ZONE), of(report, "domains", **WEB_ZONE)) == (None, None)
    assert of(report, "max_skew", **WEB_ZONE) == 1


def test_inferred_skew_is_marked() -> None:
    labels = {"app": "web", ZONE: "a"}
    pod = pod_json("web-0", node="n", labels=labels, constraints=[constraint()], owner="Deployment/web")
    report = reported(audit(pod, nodes="inferred"))
    assert (of(report, "lower_bound", **WEB_ZONE), of(report, "skew", **WEB_ZONE)) == (1, 0)
    assert of(with_findings(), "lower_bound", **WEB_ZONE) is None


@pytest.mark.parametrize("number", [MOST_DOMAINS, MOST_DOMAINS + 1])
def test_constraints_with_many_domains_have_no_series_for_them(number: int) -> None:
    nodes = [node_json(f"n{index}", labels={ZONE: f"z{index}"}) for index in range(number)]
    pod = pod_json("web-0", node="n0", constraints=[constraint()], owner="Deployment/web")
    report = reported(audit(pod, *nodes))
    assert of(report, "domains", **WEB_ZONE) == number
    assert (of(report, "min_match", **WEB_ZONE), of(report, "max_match", **WEB_ZONE)) == (0, 1)
    assert len(by(report, "domain_pods", "domain", **WEB_ZONE)) == (number if number == MOST_DOMAINS else 0)


@given(st.text())
def test_label_values_arrive_escaped(value: str) -> None:
    row = msgspec.structs.replace(with_findings().constraints[0], topology_key=value)
    text = openmetrics(msgspec.structs.replace(with_findings(), constraints=[row]))
    for parse in PARSERS:
        keys = {dict(labels)["topology_key"] for name, labels in parsed(text, parse) if name == "kube_spread_pods"}
        assert keys == {words.safe(value)}


def test_texts_that_become_alike_share_a_series() -> None:
    pods = [pod_json(f"p-{node}", node=node, constraints=[constraint()], owner="Deployment/web") for node in "ab"]
    nodes = [node_json("a", labels={ZONE: "\x07"}), node_json("b", labels={ZONE: "\\x07"})]
    assert by(reported(audit(*pods, *nodes)), "domain_pods", "domain", **WEB_ZONE) == {"\\x07": 2}


def test_names_of_a_hostile_cluster_are_escaped() -> None:
    text = openmetrics(reported(hostile()))
    assert all(char.isprintable() or char == "\n" for char in text)
    assert "\\\\x1b" in text
