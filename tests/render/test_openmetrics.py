"""Parsers of both text formats read the metrics, which have the values for alerts."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import Final

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from kubectl_spread.diagnosis.exposure import RunningPods
from kubectl_spread.kube.api.objects import ObjectRef
from kubectl_spread.render import openmetrics as exposition
from kubectl_spread.render.openmetrics import MOST_DOMAINS
from kubectl_spread.render.words import safe
from kubectl_spread.report.model import Next, Report
from tests.audits import audit, reported
from tests.builders import HOSTNAME, ZONE, constraint, node_json, pod_json
from tests.conftest import Golden
from tests.render.test_render import GOLDEN, REPORTS, hostile, several, without_nodes

Labels = frozenset[tuple[str, str]]
Series = dict[tuple[str, Labels], float]
PARSERS: list[Callable[[str], Iterable[Metric]]] = [parse_text, parse_openmetrics]
WEB: Final = {"namespace": "default", "workload": "web", "workload_type": "deployment"}
WEB_ZONE: Final = {**WEB, "path": "spec.topologySpreadConstraints[0]", "topology_key": ZONE}


def openmetrics(report: Report) -> str:
    """Return the metrics of a report, without those of running pods."""
    return exposition.text(report, ())


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
    names = ("skew", "max_skew", "eligible_domains", "global_minimum", "allowed_domains", "pods", "pending_pods")
    assert {name: of(report, f"constraint_{name}", **WEB_ZONE) for name in names} == {
        "skew": 2,
        "max_skew": 1,
        "eligible_domains": 2,
        "global_minimum": 1,
        "allowed_domains": 1,
        "pods": 6,
        "pending_pods": 1,
    }
    assert by(report, "constraint_domain_pods", "domain", **WEB_ZONE) == {"a": 3, "b": 1}
    assert by(report, "pods", "verdict", **WEB_ZONE) == {"stale-label": 1, "merged": 5}


def test_fields_of_a_constraint_are_labels_of_one_series() -> None:
    fields = {
        "when_unsatisfiable": "DoNotSchedule",
        "max_skew": "1",
        "min_domains": "1",
        "node_affinity_policy": "Honor",
        "node_taints_policy": "Ignore",
    }
    assert of(with_findings(), "constraint_info", **WEB_ZONE, **fields) == 1


def test_findings_and_totals_have_series() -> None:
    report = with_findings()
    assert by(report, "finding", "code", severity="error") == {"SPR303": 1}
    assert of(report, "finding", **WEB, code="SPR303", severity="error") == 1
    assert by(report, "findings", "severity") == {"error": 1, "warning": 3, "info": 2}
    assert by(report, "skipped_objects", "reason") == {"finished": 1}
    assert (of(report, "evaluated_pods"), of(report, "constraints"), of(report, "nodes")) == (9, 5, 4)


def test_counts_that_do_not_apply_have_no_series() -> None:
    """Affinity terms have only pods and verdicts. Without nodes, a constraint has its maxSkew."""
    anti = by(with_findings(), "pods", "verdict", workload="api")
    assert anti == {"late-label": 2}
    assert by(with_findings(), "constraint_max_skew", "path", workload="api") == {}
    report = reported(without_nodes())
    counts = ("constraint_skew", "constraint_eligible_domains", "constraint_allowed_domains")
    assert [of(report, name, **WEB_ZONE) for name in counts] == [None, None, None]
    assert of(report, "constraint_max_skew", **WEB_ZONE) == 1


def test_inferred_skew_is_marked() -> None:
    labels = {"app": "web", ZONE: "a"}
    pod = pod_json("web-0", node="n", labels=labels, constraints=[constraint()], owner="Deployment/web")
    report = reported(audit(pod, nodes="inferred"))
    assert (of(report, "constraint_lower_bound", **WEB_ZONE), of(report, "constraint_skew", **WEB_ZONE)) == (1, 0)
    assert of(with_findings(), "constraint_lower_bound", **WEB_ZONE) is None


@pytest.mark.parametrize("number", [MOST_DOMAINS, MOST_DOMAINS + 1])
def test_constraints_with_many_domains_have_no_series_for_them(number: int) -> None:
    nodes = [node_json(f"n{index}", labels={ZONE: f"z{index}"}) for index in range(number)]
    pod = pod_json("web-0", node="n0", constraints=[constraint()], owner="Deployment/web")
    report = reported(audit(pod, *nodes))
    assert of(report, "constraint_eligible_domains", **WEB_ZONE) == number
    assert len(by(report, "constraint_domain_pods", "domain", **WEB_ZONE)) == (number if number == MOST_DOMAINS else 0)


@given(st.text())
def test_label_values_arrive_escaped(value: str) -> None:
    row = msgspec.structs.replace(with_findings().constraints[0], topology_key=value)
    text = openmetrics(msgspec.structs.replace(with_findings(), constraints=[row]))
    for parse in PARSERS:
        keys = {
            dict(labels)["topology_key"]
            for name, labels in parsed(text, parse)
            if name == "kube_spread_constraint_pods"
        }
        assert keys == {safe(value)}


def test_allowed_domains_are_those_of_the_row_with_the_fewest() -> None:
    """So 0 means that the next pod of some revision is blocked, even if another revision has the larger skew."""
    row = with_findings().constraints[0]
    uneven = msgspec.structs.replace(row, skew=2, next=Next(allowed=["b"], blocked=["a"]))
    blocked = msgspec.structs.replace(row, skew=0, next=Next(allowed=[], blocked=["a", "b"]))
    report = msgspec.structs.replace(with_findings(), constraints=[uneven, blocked])
    assert (of(report, "constraint_skew", **WEB_ZONE), of(report, "constraint_allowed_domains", **WEB_ZONE)) == (2, 0)


def test_running_pods_are_counted_by_zone_and_their_largest_share_is_a_ratio() -> None:
    running = RunningPods(ObjectRef("default", "Deployment", "web"), 8, (("a", 5), ("b", 2)), 2)
    idle = RunningPods(ObjectRef("default", "Deployment", "idle"), 0, (), 0)
    values = parsed(exposition.text(reported(audit()), [running, idle]))
    labels = frozenset(WEB.items())
    domains = {dict(having)["domain"]: value for (_, having), value in values.items() if "domain" in dict(having)}
    ratios = {
        dict(having)["topology_key"]: value
        for (name, having), value in values.items()
        if name == "kube_spread_workload_largest_domain_ratio"
    }
    assert values["kube_spread_workload_pods", labels] == 8
    assert values["kube_spread_workload_pods", frozenset({**WEB, "workload": "idle"}.items())] == 0
    assert (domains, ratios) == ({"a": 5, "b": 2}, {ZONE: 0.625, HOSTNAME: 0.25})


@pytest.mark.parametrize("number", [MOST_DOMAINS, MOST_DOMAINS + 1])
def test_workloads_in_many_zones_have_no_series_for_them(number: int) -> None:
    zones = tuple((f"z{index:02}", 1) for index in range(number))
    running = RunningPods(ObjectRef("default", "Deployment", "web"), number, zones, 1)
    text = exposition.text(reported(audit()), [running])
    assert text.count("\nkube_spread_workload_domain_pods{") == (number if number == MOST_DOMAINS else 0)


def test_texts_that_become_alike_share_a_series() -> None:
    pods = [pod_json(f"p-{node}", node=node, constraints=[constraint()], owner="Deployment/web") for node in "ab"]
    nodes = [node_json("a", labels={ZONE: "\x07"}), node_json("b", labels={ZONE: "\\x07"})]
    assert by(reported(audit(*pods, *nodes)), "constraint_domain_pods", "domain", **WEB_ZONE) == {"\\x07": 2}


def test_names_of_a_hostile_cluster_are_escaped() -> None:
    text = openmetrics(reported(hostile()))
    assert all(char.isprintable() or char == "\n" for char in text)
    assert "\\\\x1b" in text
