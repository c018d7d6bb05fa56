"""Counting, in its parts; whole scheduling questions are in tests/audit/test_counting.py."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
import pytest

from kubectl_spread.kube.api.types import Affinity, NodeInclusionPolicy, Toleration
from kubectl_spread.kube.features import Behaviour, Gate, behaviour, gates
from kubectl_spread.kube.scheduler.podtopologyspread.constraints import (
    Constraint,
    counts_nothing,
    effective_selector,
    working_constraint,
)
from kubectl_spread.kube.scheduler.podtopologyspread.domains import NodeSets, Placement
from kubectl_spread.kube.scheduler.podtopologyspread.filtering import filter_nodes
from kubectl_spread.kube.scheduler.podtopologyspread.spread import Spread, count_pods
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
    ("stored", "match", "own", "effective"),
    [
        pytest.param(None, ["rev"], R1, None, id="no selector stays none"),
        pytest.param({}, [], R1, {}, id="no keys, nothing added"),
        pytest.param({}, ["rev"], R1, selector(None, REV_IN_R1), id="the current value is added"),
        pytest.param(
            selector(None, REV_IN_R1), ["rev"], R1, selector(None, REV_IN_R1), id="once, where merged already"
        ),
        pytest.param(
            selector(None, REV_IN_R1),
            ["rev"],
            {"rev": "r2"},
            selector(None, REV_IN_R1, REV_IN_R2),
            id="next to the stale one, which together select nothing",
        ),
        pytest.param(
            selector(None, REV_IN_R1), ["rev"], {}, selector(None, REV_IN_R1), id="not where the label is gone"
        ),
        pytest.param(selector({"rev": "r1"}), ["rev"], R1, selector({"rev": "r1"}), id="matchLabels say it already"),
        pytest.param(selector(None, REV_IN_R1, REV_IN_R1), [], R1, selector(None, REV_IN_R1), id="each once"),
        pytest.param({}, ["rev", "rev"], R1, selector(None, REV_IN_R1), id="a key twice is added once"),
        pytest.param({}, ["rev"], {"rev": ""}, selector(None, requirement("rev", "In", "")), id='"" is a value'),
    ],
)
def test_effective_selector(
    stored: Json | None, match: Sequence[str], own: Mapping[str, str], effective: Json | None
) -> None:
    assert effective_selector(decode_selector(stored), match, own) == decode_selector(effective)


def working(manifest: Json, served: Behaviour = SERVED) -> Constraint:
    (decoded,) = decode_pod(pod_json(constraints=[manifest])).spec.topology_spread_constraints
    return working_constraint(decoded, decoded.label_selector, served)


HONOR, IGNORE = NodeInclusionPolicy.HONOR, NodeInclusionPolicy.IGNORE


@pytest.mark.parametrize(
    ("manifest", "overrides", "affinity", "taints"),
    [
        pytest.param({}, {}, HONOR, IGNORE, id="affinity is honoured and taints are not"),
        pytest.param({"nodeAffinityPolicy": "Ignore", "nodeTaintsPolicy": "Honor"}, {}, IGNORE, HONOR, id="as written"),
        pytest.param(
            {"nodeAffinityPolicy": "Ignore", "nodeTaintsPolicy": "Honor"},
            {Gate.NODE_INCLUSION_POLICY: False},
            HONOR,
            IGNORE,
            id="with the gate off the defaults hold for all",
        ),
    ],
)
def test_working_constraint_policies(
    manifest: Json, overrides: Mapping[str, bool], affinity: NodeInclusionPolicy, taints: NodeInclusionPolicy
) -> None:
    result = working(constraint(**manifest), behaviour(30, gates(30, overrides)))
    assert (result.node_affinity_policy, result.node_taints_policy) == (affinity, taints)


@pytest.mark.parametrize(
    ("manifest", "overrides", "min_domains"),
    [
        pytest.param(constraint(), {}, 1, id="none is 1"),
        pytest.param(constraint(minDomains=3), {}, 3, id="as written"),
        pytest.param(constraint(minDomains=3, hard=False), {}, 1, id="a soft constraint has none"),
        pytest.param(constraint(minDomains=3), {Gate.MIN_DOMAINS: False}, 1, id="not read with the gate off"),
    ],
)
def test_working_constraint_min_domains(manifest: Json, overrides: Mapping[str, bool], min_domains: int) -> None:
    assert working(manifest, behaviour(29, gates(29, overrides))).min_domains == min_domains


def nodes(*manifest: Json) -> NodeSets:
    return NodeSets([decode_node(item) for item in manifest], SERVED)


def spread(
    manifest: Json, over: NodeSets, matching: Mapping[str, int], own: Mapping[str, str], placement: Placement = ANYWHERE
) -> Spread:
    made = working(manifest)
    return count_pods(made, over.domains(made, [made.topology_key], placement), matching, own)


WEB = {"app": "web"}
THREE = [node_json("a1"), node_json("b1"), node_json("c1")]


@pytest.mark.parametrize(
    ("matching", "fields", "counts", "minimum", "skew"),
    [
        pytest.param(
            {"a1": 2, "b1": 1}, {}, {"a": 2, "b": 1, "c": 0}, 0, 2, id="an empty domain sets the minimum to 0"
        ),
        pytest.param({"a1": 2, "b1": 2, "c1": 2}, {}, {"a": 2, "b": 2, "c": 2}, 2, 0, id="even"),
        pytest.param(
            {"a1": 2, "b1": 2, "c1": 2}, {"minDomains": 4}, {"a": 2, "b": 2, "c": 2}, 0, 2, id="below minDomains"
        ),
        pytest.param({"gone": 5}, {}, {"a": 0, "b": 0, "c": 0}, 0, 0, id="90: a node that does not exist"),
    ],
)
def test_count(matching: Mapping[str, int], fields: Json, counts: Mapping[str, int], minimum: int, skew: int) -> None:
    spread_count = spread(constraint(**fields), nodes(*THREE), matching, WEB)
    assert dict(spread_count.match_num) == counts
    assert (spread_count.min_match_num, spread_count.skew, spread_count.self_match_num) == (minimum, skew, 1)


def test_count_without_any_domain_has_no_skew() -> None:
    spread_count = spread(constraint(key="rack", minDomains=2), nodes(*THREE), {"a1": 2}, {})
    assert (
        dict(spread_count.match_num),
        spread_count.min_match_num,
        spread_count.skew,
        spread_count.self_match_num,
    ) == ({}, 0, 0, 0)


@pytest.mark.parametrize(
    ("max_skew", "hard", "own", "allowed"),
    [
        pytest.param(1, True, WEB, ["c"], id="one more pod may go where skew stays within maxSkew"),
        pytest.param(2, True, WEB, ["b", "c"], id="maxSkew 2"),
        pytest.param(1, True, {}, ["b", "c"], id="a pod that does not match itself adds nothing"),
        pytest.param(1, False, WEB, ["a", "b", "c"], id="a soft constraint allows all"),
    ],
)
def test_allows(max_skew: int, hard: bool, own: Mapping[str, str], allowed: list[str]) -> None:
    spread_count = spread(constraint(max_skew=max_skew, hard=hard), nodes(*THREE), {"a1": 2, "b1": 1}, own)
    assert [value for value in "abc" if spread_count.allows(value)] == allowed


def test_domains_hold_their_nodes_and_are_found_once() -> None:
    over = nodes(*THREE, node_json("a2"), node_json("x1", without=[ZONE]))
    made = working(constraint())
    domain_values = over.domains(made, [ZONE], ANYWHERE)
    assert dict(domain_values.nodes) == {"a": 2, "b": 1, "c": 1}
    assert "x1" not in domain_values.value_of
    assert over.domains(made, [ZONE, ZONE], Placement({}, None, ())) is domain_values
    assert over.domains(made, [ZONE, "rack"], ANYWHERE).nodes == {}


def test_domains_without_a_few_nodes_hold_nothing_else() -> None:
    """Sets of nodes that differ by a few share most of what is kept of them."""
    over = nodes(*(node_json(f"{zone}{number}", labels={"n": str(number)}) for zone in "ab" for number in range(9)))
    one_less = over.domains(working(constraint()), [ZONE], placed_by("n", "NotIn", "8"))
    assert dict(one_less.nodes) == {"a": 8, "b": 8}
    assert sorted(one_less.value_of.values()) == [*"aaaaaaaa", *"bbbbbbbb"]
    assert ("a8" in one_less.value_of, len(one_less.value_of)) == (False, 16)
    assert ("" in one_less.nodes, "c" in one_less.nodes) == (False, False)
    of_hosts = over.domains(working(constraint(key=HOSTNAME)), [HOSTNAME], placed_by("n", "NotIn", "8"))
    assert ("a8" in of_hosts.nodes, len(of_hosts.nodes)) == (False, 16)


def placed_by(key: str, operator: str, *values: str) -> Placement:
    terms = [{"matchExpressions": [requirement(key, operator, *values)]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    return Placement({}, msgspec.convert({"nodeAffinity": required}, Affinity), ())


@pytest.mark.parametrize(
    ("manifest", "placement", "restricts"),
    [
        pytest.param({}, ANYWHERE, False, id="a pod that may go anywhere"),
        pytest.param({}, Placement({"disk": "ssd"}, None, ()), True, id="nodeSelector"),
        pytest.param({"nodeAffinityPolicy": "Ignore"}, Placement({"disk": "ssd"}, None, ()), False, id="ignored"),
        pytest.param({"nodeTaintsPolicy": "Honor"}, ANYWHERE, True, id="taints honoured"),
    ],
)
def test_restricts(manifest: Json, placement: Placement, restricts: bool) -> None:
    assert placement.restricts(working(constraint(**manifest))) is restricts


@pytest.mark.parametrize(
    ("manifest", "minor", "nothing"),
    [
        pytest.param(None, 37, True, id="82: no selector"),
        pytest.param(None, 38, True, id="82: no selector, in 1.38"),
        pytest.param({}, 37, True, id="81: the empty selector, up to 1.37"),
        pytest.param({}, 38, False, id="81: the empty selector, from 1.38 on"),
        pytest.param(selector(WEB), 37, False, id="any other"),
    ],
)
def test_counts_nothing(manifest: Json | None, minor: int, nothing: bool) -> None:
    assert counts_nothing(decode_selector(manifest), behaviour(minor, gates(minor, {}))) is nothing


def test_filter_nodes_first_failure_decides() -> None:
    """Zone stands first: a2 exceeds its skew, so that its missing hostname is not looked at; d1 lacks a zone."""
    over = nodes(*THREE, node_json("a2", without=[HOSTNAME]), node_json("c2", without=[HOSTNAME]))
    hard = [constraint(), constraint(key=HOSTNAME)]
    spread_counts = [spread(spread_count, over, {"a1": 2, "b1": 1}, WEB) for spread_count in hard]
    answer = filter_nodes(spread_counts, over)
    assert (answer.total, answer.feasible, answer.not_matching, answer.missing_label) == (5, 1, 3, 1)


def test_filter_nodes_without_hard_constraints_takes_all() -> None:
    over = nodes(*THREE)
    answer = filter_nodes([spread(constraint(hard=False), over, {"a1": 5}, WEB)], over)
    assert (answer.total, answer.feasible, answer.not_matching, answer.missing_label) == (3, 3, 0, 0)


@pytest.mark.parametrize(
    ("tolerations", "tolerated"), [((), False), ((Toleration(key="gpu", operator="Exists"),), True)]
)
def test_usable_says_affinity_and_taints_apart(tolerations: tuple[Toleration, ...], tolerated: bool) -> None:
    over = nodes(node_json("a1", labels={"disk": "ssd"}, taints=[GPU]), node_json("b1"))
    usable = over.usable(Placement({"disk": "ssd"}, None, tolerations))
    assert dict(usable) == {"a1": (True, tolerated, True), "b1": (False, True, True)}


def test_a_cordoned_node_is_not_schedulable() -> None:
    """A cordon without its taint yet stops the scheduler all the same, and still counts for spreading."""
    cordoned = {**node_json("a1"), "spec": {"unschedulable": True}}
    usable = nodes(cordoned).usable(Placement({}, None, ()))["a1"]
    assert (usable.fits, usable.tolerated, usable.schedulable) == (True, True, False)
