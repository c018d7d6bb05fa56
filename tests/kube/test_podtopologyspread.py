"""Constraints, domains, counts and the Filter by themselves; tests/audit/test_counting.py has whole questions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
import pytest

from kubectl_spread.kube.api.labels import Labels, matches
from kubectl_spread.kube.api.types import Affinity, NodeInclusionPolicy, Toleration
from kubectl_spread.kube.features import Behaviour, Gate, behaviour, gates
from kubectl_spread.kube.scheduler.podtopologyspread.constraints import (
    Constraint,
    counts_nothing,
    effective_selector,
    working_constraint,
)
from kubectl_spread.kube.scheduler.podtopologyspread.domains import Domains, NodeSets, Placement
from kubectl_spread.kube.scheduler.podtopologyspread.spread import (
    FilterAnswer,
    Spread,
    count_answers,
    feasible_nodes,
    pods_per_domain,
)
from tests.builders import (
    HOSTNAME,
    ZONE,
    Json,
    constraint,
    decode_node,
    decode_pod,
    decode_selector,
    node_json,
    pod_json,
    requirement,
    selector,
)

SERVED = behaviour(37, gates(37, {}))
ANYWHERE = Placement({}, None, ())
R1 = {"app": "web", "rev": "r1"}
REV_IN_R1 = requirement("rev", "In", "r1")
REV_IN_R2 = requirement("rev", "In", "r2")
GPU = {"key": "gpu", "effect": "NoSchedule"}


@pytest.mark.parametrize(
    ("stored", "match", "labels", "effective"),
    [
        pytest.param(None, ["rev"], R1, None, id="a nil selector stays nil"),
        pytest.param({}, [], R1, {}, id="without keys nothing is added"),
        pytest.param({}, ["rev"], R1, selector(None, REV_IN_R1), id="the pod's value is added"),
        pytest.param(
            selector(None, REV_IN_R1),
            ["rev"],
            R1,
            selector(None, REV_IN_R1),
            id="a merged requirement is not added again",
        ),
        pytest.param(
            selector(None, REV_IN_R1),
            ["rev"],
            {"rev": "r2"},
            selector(None, REV_IN_R1, REV_IN_R2),
            id="the value is added next to a stale one",
        ),
        pytest.param(
            selector(None, REV_IN_R1), ["rev"], {}, selector(None, REV_IN_R1), id="a key that the pod lacks is skipped"
        ),
        pytest.param(
            selector({"rev": "r1"}),
            ["rev"],
            R1,
            selector({"rev": "r1"}),
            id="a requirement of matchLabels is not added again",
        ),
        pytest.param(
            selector(None, REV_IN_R1, REV_IN_R1),
            [],
            R1,
            selector(None, REV_IN_R1),
            id="a duplicated requirement is removed",
        ),
        pytest.param({}, ["rev", "rev"], R1, selector(None, REV_IN_R1), id="a duplicated key is added once"),
        pytest.param(
            {}, ["rev"], {"rev": ""}, selector(None, requirement("rev", "In", "")), id="an empty label value is a value"
        ),
    ],
)
def test_the_effective_selector_adds_the_labels_of_match_label_keys_once(
    stored: Json | None, match: Sequence[str], labels: Mapping[str, str], effective: Json | None
) -> None:
    assert effective_selector(decode_selector(stored), match, labels) == decode_selector(effective)


def working(manifest: Json, served: Behaviour = SERVED) -> Constraint:
    (decoded,) = decode_pod(pod_json(constraints=[manifest])).spec.topology_spread_constraints
    return working_constraint(decoded, decoded.label_selector, served)


HONOR, IGNORE = NodeInclusionPolicy.HONOR, NodeInclusionPolicy.IGNORE


@pytest.mark.parametrize(
    ("manifest", "overrides", "affinity", "taints"),
    [
        pytest.param({}, {}, HONOR, IGNORE, id="by default affinity is honoured and taints are ignored"),
        pytest.param(
            {"nodeAffinityPolicy": "Ignore", "nodeTaintsPolicy": "Honor"},
            {},
            IGNORE,
            HONOR,
            id="the value of the constraint",
        ),
        pytest.param(
            {"nodeAffinityPolicy": "Ignore", "nodeTaintsPolicy": "Honor"},
            {Gate.NODE_INCLUSION_POLICY: False},
            HONOR,
            IGNORE,
            id="with the gate off the defaults apply",
        ),
    ],
)
def test_the_node_inclusion_policies_are_read_where_the_gate_is_on(
    manifest: Json, overrides: Mapping[str, bool], affinity: NodeInclusionPolicy, taints: NodeInclusionPolicy
) -> None:
    decoded = working(constraint(**manifest), behaviour(30, gates(30, overrides)))
    assert (decoded.node_affinity_policy, decoded.node_taints_policy) == (affinity, taints)


@pytest.mark.parametrize(
    ("manifest", "overrides", "min_domains"),
    [
        pytest.param(constraint(), {}, 1, id="the default is 1"),
        pytest.param(constraint(minDomains=3), {}, 3, id="the value of the constraint"),
        pytest.param(constraint(minDomains=3, hard=False), {}, 1, id="that of a soft constraint is ignored"),
        pytest.param(constraint(minDomains=3), {Gate.MIN_DOMAINS: False}, 1, id="with the gate off it is ignored"),
    ],
)
def test_min_domains_of_hard_constraints_are_read_where_the_gate_is_on(
    manifest: Json, overrides: Mapping[str, bool], min_domains: int
) -> None:
    assert working(manifest, behaviour(29, gates(29, overrides))).min_domains == min_domains


def cluster(*manifests: Json) -> NodeSets:
    return NodeSets([decode_node(manifest) for manifest in manifests], SERVED)


def eligible(nodes: NodeSets, manifest: Json, *other_keys: str, placement: Placement = ANYWHERE) -> Domains:
    decoded = working(manifest)
    return nodes.eligible_domains(decoded, nodes.carrying([decoded.topology_key, *other_keys]), nodes.usable(placement))


def spread(manifest: Json, nodes: NodeSets, matching: Mapping[str, int], labels: Mapping[str, str]) -> Spread:
    return count_pods(working(manifest), eligible(nodes, manifest), matching, labels)


def count_pods(constraint: Constraint, domains: Domains, matching: Mapping[str, int], labels: Labels) -> Spread:
    """Return the count of a constraint; ``matching`` maps the names of nodes to their numbers of matching pods."""
    return Spread(constraint, domains, pods_per_domain(domains, matching), int(matches(constraint.selector, labels)))


WEB = {"app": "web"}
THREE = [node_json("a1"), node_json("b1"), node_json("c1")]


@pytest.mark.parametrize(
    ("matching", "fields", "counts", "minimum", "skew"),
    [
        pytest.param(
            {"a1": 2, "b1": 1}, {}, {"a": 2, "b": 1, "c": 0}, 0, 2, id="an empty domain sets the minimum to 0"
        ),
        pytest.param({"a1": 2, "b1": 2, "c1": 2}, {}, {"a": 2, "b": 2, "c": 2}, 2, 0, id="equal domains have no skew"),
        pytest.param(
            {"a1": 2, "b1": 2, "c1": 2},
            {"minDomains": 4},
            {"a": 2, "b": 2, "c": 2},
            0,
            2,
            id="below minDomains the minimum is 0",
        ),
        pytest.param(
            {"gone": 5}, {}, {"a": 0, "b": 0, "c": 0}, 0, 0, id="90: pods of a node that does not exist are not counted"
        ),
    ],
)
def test_skew_is_the_fullest_domain_above_the_minimum(
    matching: Mapping[str, int], fields: Json, counts: Mapping[str, int], minimum: int, skew: int
) -> None:
    counted = spread(constraint(**fields), cluster(*THREE), matching, WEB)
    assert dict(counted.match_num) == counts
    assert (counted.min_match_num, counted.skew, counted.self_match_num) == (minimum, skew, 1)


def test_without_domains_there_is_no_skew() -> None:
    counted = spread(constraint(key="rack", minDomains=2), cluster(*THREE), {"a1": 2}, {})
    assert (dict(counted.match_num), counted.min_match_num, counted.skew, counted.self_match_num) == ({}, 0, 0, 0)


@pytest.mark.parametrize(
    ("max_skew", "hard", "labels", "allowed"),
    [
        pytest.param(1, True, WEB, ["c"], id="the skew with one more pod is at most maxSkew"),
        pytest.param(2, True, WEB, ["b", "c"], id="a larger maxSkew allows another domain"),
        pytest.param(1, True, {}, ["b", "c"], id="a pod that does not match itself adds nothing"),
        pytest.param(1, False, WEB, ["a", "b", "c"], id="a soft constraint allows all"),
    ],
)
def test_a_hard_constraint_allows_domains_within_max_skew(
    max_skew: int, hard: bool, labels: Mapping[str, str], allowed: list[str]
) -> None:
    counted = spread(constraint(max_skew=max_skew, hard=hard), cluster(*THREE), {"a1": 2, "b1": 1}, labels)
    assert [value for value in "abc" if counted.allows(value)] == allowed


def test_equal_sets_of_nodes_share_their_domains() -> None:
    nodes = cluster(*THREE, node_json("a2"), node_json("x1", without=[ZONE]))
    domains = eligible(nodes, constraint())
    assert dict(domains.nodes) == {"a": 2, "b": 1, "c": 1}
    assert "x1" not in domains.value_of
    assert eligible(nodes, constraint(), ZONE, placement=Placement({}, None, ())) is domains
    assert eligible(nodes, constraint(), "rack").nodes == {}


def test_domains_without_a_few_nodes_have_only_the_others() -> None:
    """Such domains share the mappings of all nodes."""
    nodes = cluster(*(node_json(f"{zone}{number}", labels={"n": str(number)}) for zone in "ab" for number in range(9)))
    zones = eligible(nodes, constraint(), placement=placed_by("n", "NotIn", "8"))
    assert dict(zones.nodes) == {"a": 8, "b": 8}
    assert sorted(zones.value_of.values()) == [*"aaaaaaaa", *"bbbbbbbb"]
    assert ("a8" in zones.value_of, len(zones.value_of)) == (False, 16)
    assert ("" in zones.nodes, "c" in zones.nodes) == (False, False)
    hosts = eligible(nodes, constraint(key=HOSTNAME), placement=placed_by("n", "NotIn", "8"))
    assert ("a8" in hosts.nodes, len(hosts.nodes)) == (False, 16)


def placed_by(key: str, operator: str, *values: str) -> Placement:
    terms = [{"matchExpressions": [requirement(key, operator, *values)]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    return Placement({}, msgspec.convert({"nodeAffinity": required}, Affinity), ())


@pytest.mark.parametrize(
    ("manifest", "placement", "restricts"),
    [
        pytest.param({}, ANYWHERE, False, id="a pod that may use every node"),
        pytest.param({}, Placement({"disk": "ssd"}, None, ()), True, id="a nodeSelector"),
        pytest.param(
            {"nodeAffinityPolicy": "Ignore"},
            Placement({"disk": "ssd"}, None, ()),
            False,
            id="a nodeSelector that the policy ignores",
        ),
        pytest.param({"nodeTaintsPolicy": "Honor"}, ANYWHERE, True, id="taints that the policy honours"),
    ],
)
def test_a_placement_restricts_the_constraints_that_honour_it(
    manifest: Json, placement: Placement, restricts: bool
) -> None:
    assert placement.restricts(working(constraint(**manifest))) is restricts


@pytest.mark.parametrize(
    ("manifest", "minor", "nothing"),
    [
        pytest.param(None, 37, True, id="82: a nil selector"),
        pytest.param(None, 38, True, id="82: a nil selector in 1.38"),
        pytest.param({}, 37, True, id="81: the empty selector, up to 1.37"),
        pytest.param({}, 38, False, id="81: the empty selector, from 1.38 on"),
        pytest.param(selector(WEB), 37, False, id="a selector with requirements"),
    ],
)
def test_nil_and_empty_selectors_count_nothing(manifest: Json | None, minor: int, nothing: bool) -> None:
    assert counts_nothing(decode_selector(manifest), behaviour(minor, gates(minor, {}))) is nothing


def test_the_first_constraint_that_a_node_fails_decides() -> None:
    """Node a2 fails the zone constraint, so its missing hostname does not matter; c2 passes it and lacks a hostname."""
    nodes = cluster(*THREE, node_json("a2", without=[HOSTNAME]), node_json("c2", without=[HOSTNAME]))
    spreads = [spread(hard, nodes, {"a1": 2, "b1": 1}, WEB) for hard in (constraint(), constraint(key=HOSTNAME))]
    expected = {FilterAnswer.FEASIBLE: 1, FilterAnswer.NOT_MATCHING: 3, FilterAnswer.MISSING_LABEL: 1}
    assert count_answers(spreads, nodes) == expected
    assert [node.metadata.name for node in feasible_nodes(spreads, nodes)] == ["c1"]


def test_without_hard_constraints_all_nodes_are_feasible() -> None:
    nodes = cluster(*THREE)
    soft = spread(constraint(hard=False), nodes, {"a1": 5}, WEB)
    assert count_answers([soft], nodes) == {FilterAnswer.FEASIBLE: 3}


@pytest.mark.parametrize(
    ("tolerations", "tolerated"), [((), False), ((Toleration(key="gpu", operator="Exists"),), True)]
)
def test_node_affinity_and_taints_are_answered_separately(tolerations: tuple[Toleration, ...], tolerated: bool) -> None:
    nodes = cluster(node_json("a1", labels={"disk": "ssd"}, taints=[GPU]), node_json("b1"))
    usable = nodes.usable(Placement({"disk": "ssd"}, None, tolerations))
    assert dict(usable) == {"a1": (True, tolerated, True), "b1": (False, True, True)}


def test_a_cordoned_node_is_not_schedulable() -> None:
    """A cordon keeps pods away before its taint exists, and the node still counts for spreading."""
    cordoned = {**node_json("a1"), "spec": {"unschedulable": True}}
    usable = cluster(cordoned).usable(Placement({}, None, ()))["a1"]
    assert (usable.fits, usable.tolerated, usable.schedulable) == (True, True, False)
