"""The feature gates of each minor, and the behaviour that follows from them."""

from __future__ import annotations

import pytest

from kubectl_spread.kube.features import (
    NEWEST_MINOR,
    NEWEST_RELEASED_MINOR,
    OLDEST_MINOR,
    PRE_RELEASES,
    Gate,
    behaviour,
    gates,
    merge_gates,
    merges,
    takes,
)

MINORS = range(27, 39)
DEFAULTS = {
    Gate.MATCH_LABEL_KEYS: "111111111111",
    Gate.SELECTOR_MERGE: "-------11111",
    Gate.AFFINITY_KEYS: "--001111111-",
    Gate.MIN_DOMAINS: "11111-------",
    Gate.NODE_INCLUSION_POLICY: "111111111111",
    Gate.TOPOLOGY_LABELS: "------001111",
    Gate.TOLERATION_COMPARISON: "--------0000",
    Gate.STATEFUL_SET_RECREATE: "----------01",
}


@pytest.mark.parametrize("gate", DEFAULTS)
def test_gates_have_the_default_of_the_minor(gate: Gate) -> None:
    """Each minor from 1.27 to 1.38 has a character: - for no such gate, 0 for off, 1 for on."""
    text = "".join({None: "-", False: "0", True: "1"}[gates(minor, {}).get(gate)] for minor in MINORS)
    assert text == DEFAULTS[gate]


def test_min_domains_is_read_by_every_known_minor() -> None:
    assert all(behaviour(minor, gates(minor, {})).min_domains for minor in MINORS)


@pytest.mark.parametrize("minor", MINORS)
def test_an_empty_selector_counts_nothing_before_1_38(minor: int) -> None:
    assert behaviour(minor, gates(minor, {})).empty_selector_counts_nothing is (minor < 38)


def test_a_gate_that_was_removed_is_on() -> None:
    assert gates(37, {})[Gate.AFFINITY_KEYS] is True
    assert Gate.AFFINITY_KEYS not in gates(38, {})
    assert behaviour(38, gates(38, {})).merges_affinity_selectors
    assert behaviour(38, {}).merges_affinity_selectors


@pytest.mark.parametrize(
    ("minor", "gate", "why"),
    [
        pytest.param(38, Gate.AFFINITY_KEYS, "removed in 1.38: always on", id="removed in this minor"),
        pytest.param(37, Gate.MIN_DOMAINS, "removed in 1.32: always on", id="removed earlier"),
        pytest.param(28, Gate.AFFINITY_KEYS, "known in 1.28: Match", id="added later"),
    ],
)
@pytest.mark.parametrize("value", [True, False])
def test_the_error_on_an_unknown_gate_says_whether_it_was_removed(
    minor: int, gate: Gate, why: str, value: bool
) -> None:
    with pytest.raises(ValueError, match=f"unrecognized feature gate: {gate} \\({why}"):
        gates(minor, {gate: value})


def test_only_the_newest_minors_are_pre_releases() -> None:
    assert sorted(PRE_RELEASES) == list(range(NEWEST_RELEASED_MINOR + 1, NEWEST_MINOR + 1))


def test_gates_are_sorted_and_overridden() -> None:
    gate_values = gates(34, {Gate.SELECTOR_MERGE: False, Gate.TOPOLOGY_LABELS: True})
    assert list(gate_values) == sorted(gate_values)
    assert gate_values[Gate.SELECTOR_MERGE] is False
    assert gate_values[Gate.TOPOLOGY_LABELS] is True


@pytest.mark.parametrize(
    ("minor", "gate", "value", "problem"),
    [
        pytest.param(33, Gate.SELECTOR_MERGE, True, "unrecognized feature gate", id="added later"),
        pytest.param(37, "Nonsense", True, "unrecognized feature gate", id="in no minor"),
        pytest.param(33, Gate.AFFINITY_KEYS, False, "locked to true", id="locked"),
        pytest.param(30, Gate.MIN_DOMAINS, False, "locked to true", id="locked from 1.30"),
    ],
)
def test_overrides_that_a_server_refuses_are_errors(minor: int, gate: str, value: bool, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        gates(minor, {gate: value})


@pytest.mark.parametrize(("minor", "gate", "value"), [(33, Gate.AFFINITY_KEYS, True), (32, Gate.AFFINITY_KEYS, False)])
def test_a_locked_gate_may_be_set_to_its_value(minor: int, gate: Gate, value: bool) -> None:
    assert gates(minor, {gate: value})[gate] is value


@pytest.mark.parametrize(
    ("minor", "overrides", "merges", "could", "adds"),
    [
        pytest.param(33, {}, False, False, True, id="1.33 leaves the merge to the scheduler"),
        pytest.param(34, {}, True, True, True, id="1.34 merges, and the scheduler still adds keys"),
        pytest.param(37, {}, True, True, True, id="so does 1.37"),
        pytest.param(34, {Gate.SELECTOR_MERGE: False}, False, True, True, id="the merge switched off"),
        pytest.param(34, {Gate.MATCH_LABEL_KEYS: False}, False, True, False, id="the merge needs the base gate"),
    ],
)
def test_the_merge_needs_both_gates(
    minor: int, overrides: dict[str, bool], merges: bool, could: bool, adds: bool
) -> None:
    behaviours = behaviour(minor, gates(minor, overrides))
    assert behaviours.merges_spread_selectors is merges
    assert behaviours.could_merge_spread_selectors is could
    assert behaviours.scheduler_adds_match_label_keys is adds


def test_a_missing_gate_is_off() -> None:
    behaviours = behaviour(37, {})
    assert not behaviours.merges_spread_selectors
    assert not behaviours.merges_affinity_selectors
    assert not behaviours.node_inclusion_policies
    assert list(MINORS) == list(range(OLDEST_MINOR, NEWEST_MINOR + 1))


@pytest.mark.parametrize("minor", [34, 35])
def test_the_merge_gate_needs_its_base_gate(minor: int) -> None:
    """From 1.35 on an apiserver does not start with the base gate off alone; 1.34 does, and merges nothing."""
    off = {"MatchLabelKeysInPodTopologySpread": False}
    if minor < 35:
        assert not behaviour(minor, gates(minor, off)).merges_spread_selectors
        return
    with pytest.raises(ValueError, match="depends on features that are disabled"):
        gates(minor, off)


@pytest.mark.parametrize(
    ("minor", "name", "value", "taken"),
    [
        pytest.param(33, Gate.SELECTOR_MERGE, False, False, id="added later"),
        pytest.param(34, Gate.SELECTOR_MERGE, False, True, id="known"),
        pytest.param(32, Gate.NODE_INCLUSION_POLICY, False, True, id="not locked yet"),
        pytest.param(33, Gate.NODE_INCLUSION_POLICY, False, False, id="locked to true"),
        pytest.param(33, Gate.NODE_INCLUSION_POLICY, True, True, id="locked to this value"),
        pytest.param(38, Gate.AFFINITY_KEYS, True, False, id="removed"),
        pytest.param(37, "Nonsense", True, False, id="in no minor"),
    ],
)
def test_a_minor_takes_the_gates_that_it_starts_with(minor: int, name: str, value: bool, taken: bool) -> None:
    assert takes(minor, name, value=value) is taken
    if not taken:
        with pytest.raises(ValueError, match=r"unrecognized|locked"):
            gates(minor, {name: value})


def test_gates_may_switch_the_merge_off_alone_or_with_match_label_keys() -> None:
    merging, without_merge, without_keys = merges(behaviour(37, gates(37, {})))
    assert merging == behaviour(37, gates(37, {}))
    assert without_merge == behaviour(37, gates(37, {Gate.SELECTOR_MERGE: False}))
    assert without_keys == behaviour(37, gates(37, {Gate.SELECTOR_MERGE: False, Gate.MATCH_LABEL_KEYS: False}))
    assert merges(without_keys) == merges(merging)


def test_before_the_merge_the_only_gate_is_that_of_match_label_keys() -> None:
    with_keys, without_keys = merges(behaviour(33, gates(33, {})))
    assert with_keys == behaviour(33, gates(33, {}))
    assert without_keys == behaviour(33, gates(33, {Gate.MATCH_LABEL_KEYS: False}))


def test_the_merge_has_two_gates_from_1_34() -> None:
    assert merge_gates(33) == (Gate.MATCH_LABEL_KEYS,)
    assert merge_gates(34) == (Gate.MATCH_LABEL_KEYS, Gate.SELECTOR_MERGE)
