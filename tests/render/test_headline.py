"""The headline of the page in words, for each kind of report."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from kubectl_spread.kube.api.types import LabelSelector
from kubectl_spread.render.headline import facts, losses
from kubectl_spread.render.table import page
from kubectl_spread.report.model import (
    Cluster,
    Domain,
    Finding,
    FindingCounts,
    Report,
    Row,
    Selectors,
    Severity,
    Summary,
    Workload,
)

ZONE = "topology.kubernetes.io/zone"
NODE = "kubernetes.io/hostname"
NO_SELECTOR = Selectors(authored=LabelSelector(), stored=LabelSelector(), effective=LabelSelector())


def row(name: str, counts: dict[str, int], *, key: str = ZONE, pods: int | None = None, max_skew: int = 1) -> Row:
    """Return a row with the number of matching pods in each domain."""
    least = min(counts.values())
    domains = [
        Domain(value=value, nodes=1, match_num=count, skew=count - least) for value, count in sorted(counts.items())
    ]
    return Row(
        namespace="shop",
        workload=Workload(kind="Deployment", name=name),
        pod_count=sum(counts.values()) if pods is None else pods,
        pending=0,
        path="spec.topologySpreadConstraints[0]",
        topology_key=key,
        when_unsatisfiable="DoNotSchedule",
        max_skew=max_skew,
        selector=NO_SELECTOR,
        verdicts={},
        domains=domains,
        min_match_num=least,
        self_match_num=1,
        skew=max(counts.values()) - least,
    )


def finding(name: str, severity: Severity = Severity.WARNING, rows: list[int] | None = None) -> Finding:
    return Finding(
        code="SPR301",
        name="hard-skew",
        severity=severity,
        namespace="shop",
        object=Workload(kind="Deployment", name=name),
        path="spec.topologySpreadConstraints[0]",
        pods=[],
        pod_count=1,
        message="",
        values={},
        fix="",
        group="",
        rows=msgspec.UNSET if rows is None else rows,
    )


def report(
    rows: list[Row], findings: list[Finding], *, nodes: Any = "listed", workloads: int = 33, **summary: Any
) -> Report:
    severities = [finding.severity for finding in findings]
    counts = FindingCounts(**{severity.value: severities.count(severity) for severity in Severity})
    totals = {"pods": 43, "constraints": 45, "silenced": 0, "skipped": {}, **summary}
    return Report(
        cluster=Cluster(
            evaluated_as="1.37",
            version_source="flag",
            gates={},
            gates_source="flag",
            nodes=nodes,
            resource_versions={},
        ),
        constraints=rows,
        groups=[],
        pods=[],
        findings=findings,
        summary=Summary(workloads=workloads, findings=counts, **totals),
    )


def test_the_headline_names_the_zone_that_takes_most_pods_with_it() -> None:
    answer = page(report([row("api", {"a": 2, "b": 1, "c": 0})], [finding("api", rows=[0])]))
    assert answer.headline == "1 of 33 workloads loses most of its pods with zone a."
    assert answer.facts == [("", "1 warning in 1 of 33 workloads.")]


@pytest.mark.parametrize(
    ("rows", "text"),
    [
        ([row("api", {"a": 3, "b": 0})], "1 of 33 workloads loses all of its pods with zone a"),
        (
            [row("api", {"a": 3, "b": 0}), row("web", {"a": 5, "b": 1})],
            "2 of 33 workloads lose most of their pods with zone a",
        ),
        (
            [row("api", {"a": 3, "b": 0}), row("web", {"a": 0, "b": 3})],
            "2 of 33 workloads lose all of their pods with one zone",
        ),
        ([row("api", {"n1": 3, "n2": 0}, key=NODE)], "1 of 33 workloads loses all of its pods with node n1"),
        ([row("api", {"r1": 3, "r2": 0}, key="rack")], "1 of 33 workloads loses all of its pods with domain rack=r1"),
        ([row("api", {"a": 3, "b": 3, "c": 1})], "1 of 33 workloads is spread less evenly than its constraint asks"),
        (
            [row("api", {"a": 3, "b": 3, "c": 1}), row("web", {"a": 3, "b": 3, "c": 1})],
            "2 of 33 workloads are spread less evenly than their constraints ask",
        ),
    ],
)
def test_uneven_workloads_are_told_by_what_they_lose(rows: list[Row], text: str) -> None:
    findings = [finding(row.workload.name, rows=[index]) for index, row in enumerate(rows)]
    assert facts(report(rows, findings)) == [f"{text}."]


def test_a_loss_that_the_constraint_allows_is_not_told() -> None:
    """Two of three pods are most of them, and all that maxSkew promises in two zones."""
    rows = [row("api", {"a": 2, "b": 1})]
    (fact,) = facts(report(rows, [finding("api", rows=[0])]))
    assert fact == "1 of 33 workloads has a constraint that does not do what it says."
    assert losses(report(rows, [finding("api", rows=[0])])) == {}


@pytest.mark.parametrize(
    "only",
    [
        row("api", {"a": 1, "b": 0}, max_skew=0),
        row("api", {"a": 6, "b": 1}, pods=3),
        row("api", {"a": 2, "b": 0}, pods=4),
        row("api", {"a": 3}),
    ],
    ids=["one-pod", "counts-other-workloads", "half-is-pending", "only-one-zone"],
)
def test_a_loss_is_not_told_without_proof(only: Row) -> None:
    assert losses(report([only], [finding("api", rows=[0])])) == {}


def test_the_revisions_of_a_workload_are_counted_together() -> None:
    rows = [row("api", {"a": 2, "b": 0}), row("api", {"a": 0, "b": 2})]
    assert losses(report(rows, [finding("api", rows=[0, 1])])) == {}


def test_notes_make_no_headline() -> None:
    notes = report([row("api", {"a": 3, "b": 0})], [finding("api", Severity.INFO, rows=[0])])
    assert facts(notes) == []
    answer = page(notes)
    assert answer.headline == "No errors or warnings in 33 workloads (43 pods, 45 constraints)."
    assert answer.facts == [("", "1 note in 1 of 33 workloads.")]


def test_errors_come_first_and_the_other_facts_follow() -> None:
    rows = [row("api", {"a": 2, "b": 1, "c": 0})]
    findings = [finding("web", Severity.ERROR), finding("api", rows=[0]), finding("mail"), finding("cart")]
    answer = page(report(rows, findings, silenced=1))
    assert answer.headline == "Pods of 1 of 33 workloads do not run or will be refused."
    assert [text for _, text in answer.facts] == [
        "1 of 33 workloads loses most of its pods with zone a.",
        "2 of 33 workloads have constraints that do not do what they say.",
        "1 error in 4 of 33 workloads. 1 finding silenced.",
    ]


def test_without_findings_the_page_says_what_was_checked() -> None:
    answer = page(report([], [], templates=34, without_pods=1))
    assert answer.headline == "No findings in 34 workloads (43 pods, 34 pod templates, 45 constraints)."
    assert answer.facts == []


@pytest.mark.parametrize(
    ("skipped", "sentence"),
    [
        ({"malformed": 1, "finished": 1}, "Not read: 1 malformed object."),
        (
            {"conflicting": 2, "forbidden": 1, "unreadable": 1},
            "Not read: 2 conflicting objects, 1 forbidden list, 1 unreadable file.",
        ),
        ({"unevaluated": 2}, "Not evaluated: 2 pod templates."),
    ],
)
def test_the_page_does_not_begin_with_no_findings_where_not_everything_was_checked(
    skipped: dict[str, int], sentence: str
) -> None:
    answer = page(report([], [], skipped=skipped))
    assert answer.headline == sentence
    assert answer.facts[0][1].startswith("No findings in 33 workloads ")


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"nodes": "none"}, "Placement was not evaluated: no nodes."),
        ({"skipped": {"finished": 2, "repeated": 1}}, "Skipped: 2 finished, 1 repeated."),
        ({"silenced": 2}, "2 findings silenced."),
        ({"known": 3}, "3 findings in the baseline."),
        ({"gone": 1}, "1 finding of the baseline gone."),
    ],
)
def test_without_findings_the_page_says_what_was_not_checked(settings: dict[str, Any], sentence: str) -> None:
    answer = page(report([], [], **settings))
    assert answer.headline.startswith("No ")
    assert sentence in [text for _, text in answer.facts]


def test_nothing_to_check_is_not_called_free_of_findings() -> None:
    def headline(**settings: Any) -> str:
        return page(report([], [], **settings)).headline

    assert headline(workloads=0, pods=0, constraints=0) == "Nothing was checked: no pods and no pod templates."
    without = "without spread constraints, and without affinity terms that have matchLabelKeys"
    assert headline(constraints=0) == f"No findings in 33 workloads (43 pods) {without}."
    assert headline(pods=33, constraints=0) == f"Nothing to check: 33 workloads (33 pods) {without}."
    assert headline(known=3) == "No new findings in 33 workloads (43 pods, 45 constraints)."
