"""What holds for every cluster, tried on many small ones."""

from __future__ import annotations

import random
from typing import Any

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kubectl_spread.audit.snapshot.terms import keys_of, split, topology_terms
from kubectl_spread.kube.api import labels as labelselectors
from kubectl_spread.kube.api.types import LabelSelector
from kubectl_spread.kube.apiserver import merged_selector, pod_errors, prepare_for_create
from kubectl_spread.kube.features import behaviour, gates
from kubectl_spread.kube.scheduler.podtopologyspread.constraints import effective_selector
from kubectl_spread.render import structured
from kubectl_spread.report import projections
from tests.audits import as_json, audit, deployment, reported
from tests.builders import (
    HOSTNAME,
    ZONE,
    Json,
    affinity,
    constraint,
    decode_pod,
    decode_selector,
    node_json,
    pod_json,
    requirement,
    term,
)

QUICK = settings(max_examples=60, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
SERVED = behaviour(37, gates(37, {}))
KEYS = ("rev", "app", "tenant")
VALUES = ("", "r1", "r2")

LABELS = st.dictionaries(st.sampled_from(KEYS), st.sampled_from(VALUES))
MATCH = st.lists(st.sampled_from(("rev", "tenant", "absent")), max_size=3)
VALUE_LISTS = st.lists(st.sampled_from(VALUES), min_size=1, max_size=2, unique=True)
EXPRESSIONS = st.one_of(
    st.builds(
        lambda key, operator, values: requirement(key, operator, *values),
        st.sampled_from(KEYS),
        st.sampled_from(("In", "NotIn")),
        VALUE_LISTS,
    ),
    st.builds(requirement, st.sampled_from(KEYS), st.sampled_from(("Exists", "DoesNotExist"))),
)
SELECTORS = st.fixed_dictionaries(
    {}, optional={"matchLabels": LABELS, "matchExpressions": st.lists(EXPRESSIONS, max_size=3)}
)
CONSTRAINTS = st.builds(
    lambda key, hard, actual_match, match, max_skew, fields: constraint(
        key=key, hard=hard, labelSelector=actual_match, match=match, max_skew=max_skew, **fields
    ),
    st.sampled_from((ZONE, HOSTNAME)),
    st.booleans(),
    st.one_of(st.none(), SELECTORS),
    MATCH,
    st.integers(1, 2),
    st.sampled_from(({}, {"nodeTaintsPolicy": "Honor"}, {"nodeAffinityPolicy": "Ignore"})),
)
TERMS = st.builds(
    lambda actual_match, match, mismatch: term(labelSelector=actual_match, match=match, mismatch=mismatch),
    st.one_of(st.none(), SELECTORS),
    MATCH,
    MATCH,
)
NODES = ("a1", "a2", "b1", "c1")


@st.composite
def pods(draw: st.DrawFn, name: str) -> Json:
    """Return a pod of one of two workloads, or of none, with one of few shapes."""
    extra: dict[str, Any] = {}
    if draw(st.booleans()):
        extra["affinity"] = affinity("podAntiAffinity", draw(TERMS), required=draw(st.booleans()))
    if draw(st.booleans()):
        extra["tolerations"] = [{"operator": "Exists"}]
    return pod_json(
        name,
        node=draw(st.sampled_from(("", "gone", *NODES))),
        labels={**draw(LABELS), **draw(st.sampled_from(({}, {ZONE: "a"}, {ZONE: "b"})))},
        constraints=draw(st.lists(CONSTRAINTS, max_size=2)),
        namespace=draw(st.sampled_from(("default", "other"))),
        owner=draw(st.sampled_from(("", "Deployment/web", "ReplicaSet/web-1"))),
        stored=draw(st.booleans()),
        **extra,
    )


@st.composite
def clusters(draw: st.DrawFn) -> list[Json]:
    """Return up to eight pods, many of them alike, on up to four nodes."""
    templates = [draw(pods("p")) for _ in range(draw(st.integers(1, 3)))]
    manifests = []
    for index in range(draw(st.integers(1, 8))):
        template = draw(st.sampled_from(templates))
        spec = {**template["spec"], "nodeName": draw(st.sampled_from(("", *NODES)))}
        labels = draw(st.one_of(st.just(template["metadata"]["labels"]), LABELS))
        metadata = {**template["metadata"], "name": f"p{index}", "labels": labels}
        manifests.append({**template, "metadata": metadata, "spec": spec})
    tainted = draw(st.sampled_from(NODES))
    taint = {"key": "gpu", "effect": "NoSchedule"}
    nodes = [node_json(name, taints=[taint] if name == tainted else []) for name in NODES]
    owners = [deployment(), deployment("web-1", kind="ReplicaSet", owner="Deployment/web")]
    return [*manifests, *nodes, *owners]


def shuffled(value: Any, chance: random.Random) -> Any:
    """Return JSON with the members of its objects in another order."""
    if isinstance(value, dict):
        members = [(key, shuffled(member, chance)) for key, member in value.items()]
        chance.shuffle(members)
        return dict(members)
    return [shuffled(element, chance) for element in value] if isinstance(value, list) else value


@QUICK
@given(clusters(), st.randoms(use_true_random=False), st.sampled_from(("listed", "inferred", "none")))
def test_the_order_of_input_makes_no_difference(cluster: list[Json], chance: random.Random, nodes: Any) -> None:
    """Pods, nodes, workloads and members of JSON objects may come in any order: the report has the same bytes."""
    reordered = [shuffled(manifest, chance) for manifest in cluster]
    chance.shuffle(reordered)
    before, after = (reported(audit(*objects, nodes=nodes)) for objects in (cluster, reordered))
    assert structured.json(before) == structured.json(after)
    assert structured.yaml(before) == structured.yaml(after)


@QUICK
@given(clusters())
def test_pods_of_another_namespace_change_nothing(cluster: list[Json]) -> None:
    stranger = pod_json("stranger", node="a1", labels={"app": "r1", "rev": "r1"}, namespace="elsewhere")
    report = as_json(audit(*cluster))
    beside = as_json(audit(*cluster, stranger))
    beside["summary"]["pods"] -= 1
    beside["summary"]["workloads"] -= 1
    assert beside == report


@QUICK
@given(clusters())
def test_skews_are_counted_from_the_least_full_domain(cluster: list[Json]) -> None:
    """Skew is never negative, and some domain has none once minDomains is met (it is 1 here)."""
    report = as_json(audit(*cluster))
    for row in report["constraints"]:
        if row.get("domains"):
            skews = [domain["skew"] for domain in row["domains"]]
            assert min(skews) == 0
            assert max(skews) == row["skew"]
            assert [domain["matchNum"] - row["minMatchNum"] for domain in row["domains"]] == skews
            assert sorted([*row["next"]["allowed"], *row["next"]["blocked"]]) == [
                domain["value"] for domain in row["domains"]
            ]


@QUICK
@given(clusters())
def test_each_pod_is_in_one_row_of_each_term(cluster: list[Json]) -> None:
    """Rows of spread constraints count every pod as often as it has constraints; verdicts count no pod twice."""
    report = as_json(audit(*cluster))
    manifests = [manifest for manifest in cluster if manifest["kind"] == "Pod"]
    constraints = sum(len(pod["spec"].get("topologySpreadConstraints", [])) for pod in manifests)
    spread = [row for row in report["constraints"] if "maxSkew" in row]
    assert sum(row["podCount"] for row in spread) == constraints
    assert all(sum(row["verdicts"].values()) in (0, row["podCount"]) for row in report["constraints"])
    grouped = [name for group in report["groups"] for name in group["pods"]]
    assert len(grouped) == len(set(grouped))


@QUICK
@given(SELECTORS, LABELS, MATCH, MATCH)
def test_a_merge_only_appends_and_never_selects_more(
    manifest: Json, own: dict[str, str], match: list[str], mismatch: list[str]
) -> None:
    before = decode_selector(manifest)
    after = merged_selector(before, own, match, mismatch)
    assert before is not None
    assert after is not None
    assert after.match_labels == before.match_labels
    assert after.match_expressions[: len(before.match_expressions)] == before.match_expressions
    assert labelselectors.matches(before, own) or not labelselectors.matches(after, own)
    added = [key for key in (*match, *mismatch) if key in own]
    assert [requirement.key for requirement in after.match_expressions[len(before.match_expressions) :]] == added


@QUICK
@given(SELECTORS, LABELS, MATCH)
def test_the_effective_selector_is_idempotent_and_ignores_the_merge(
    manifest: Json, own: dict[str, str], match: list[str]
) -> None:
    """Whether merged or not, the scheduler works with requirements that select the same pods."""
    stored = decode_selector(manifest)
    once = effective_selector(stored, match, own)
    merged = effective_selector(merged_selector(stored, own, match), match, own)
    assert effective_selector(once, match, own) == once
    for labels in ({}, own, {**own, "rev": "r1"}, {**own, "tenant": "r2"}):
        assert labelselectors.matches(once, labels) == labelselectors.matches(merged, labels)


@QUICK
@given(pods("p"))
def test_the_tail_of_an_admitted_pod_has_the_appended_requirements(pod: Json) -> None:
    """An admitted pod's verdicts are merged, absent-key or authored, never a fault; authored is what was written."""
    decoded = decode_pod(pod)
    stored = prepare_for_create(decoded.spec, decoded.metadata.labels, SERVED)
    if pod_errors(stored, SERVED):
        return
    labels = decoded.metadata.labels
    parts = zip(topology_terms(decoded.spec), topology_terms(stored), split(topology_terms(stored)), strict=True)
    for written, remaining, part in parts:
        present = {key for key in keys_of(remaining) if key[1] in labels and remaining.selector is not None}
        assert present <= part.tail.keys()
        assert all(part.tail[key] == labels[key[1]] for key in present)
        if part.tail.keys() == present:
            assert part.authored == written.selector


@QUICK
@given(SELECTORS, SELECTORS)
def test_differences_are_empty_exactly_for_equal_selectors(stored: Json, merged: Json) -> None:
    before, after = (msgspec.convert(selector_json, LabelSelector) for selector_json in (stored, merged))
    lines = projections.lines(before, after)
    assert bool(lines) is (before != after)
    assert all(line.startswith(("-", "+")) for line in lines)
