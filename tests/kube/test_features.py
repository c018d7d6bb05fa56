"""Gates by minor, and what follows from them."""

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
    other_merges,
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
}


@pytest.mark.parametrize("gate", DEFAULTS)
def test_gates_have_the_default_of_the_minor(gate: Gate) -> None:
    """One character a minor from 1.27 to 1.38: unknown or removed, off or on."""
    text = "".join({None: "-", False: "0", True: "1"}[gates(minor, {}).get(gate)] for minor in MINORS)
    assert text == DEFAULTS[gate]


def test_min_domains_is_read_by_every_known_minor() -> None:
    assert all(behaviour(minor, gates(minor, {})).min_domains for minor in MINORS)


@pytest.mark.parametrize("minor", MINORS)
def test_what_an_empty_selector_counts(minor: int) -> None:
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
        pytest.param(28, Gate.AFFINITY_KEYS, "known in 1.28: Match", id="not known yet"),
    ],
)
@pytest.mark.parametrize("value", [True, False])
def test_why_a_gate_is_not_recognized(minor: int, gate: Gate, why: str, value: bool) -> None:
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
        pytest.param(33, Gate.SELECTOR_MERGE, True, "unrecognized feature gate", id="not known yet"),
        pytest.param(37, "Nonsense", True, "unrecognized feature gate", id="never known"),
        pytest.param(33, Gate.AFFINITY_KEYS, False, "locked to true", id="locked"),
        pytest.param(30, Gate.MIN_DOMAINS, False, "locked to true", id="locked from 1.30"),
    ],
)
def test_gates_refuse(minor: int, gate: str, value: bool, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        gates(minor, {gate: value})


@pytest.mark.parametrize(("minor", "gate", "value"), [(33, Gate.AFFINITY_KEYS, True), (32, Gate.AFFINITY_KEYS, False)])
def test_gates_take_what_is_locked_to_the_same_value_or_not_locked_yet(minor: int, gate: Gate, value: bool) -> None:
    assert gates(minor, {gate: value})[gate] is value


@pytest.mark.parametrize(
    ("minor", "overrides", "merges", "could", "adds"),
    [
        pytest.param(33, {}, False, False, True, id="1.33 leaves the merge to the scheduler"),
        pytest.param(34, {}, True, True, True, id="1.34 merges, and the scheduler adds keys still"),
        pytest.param(37, {}, True, True, True, id="so does 1.37"),
        pytest.param(34, {Gate.SELECTOR_MERGE: False}, False, True, True, id="the merge switched off"),
        pytest.param(34, {Gate.MATCH_LABEL_KEYS: False}, False, True, False, id="the merge needs the base gate"),
    ],
)
def test_behaviour(minor: int, overrides: dict[str, bool], merges: bool, could: bool, adds: bool) -> None:
    behaviours = behaviour(minor, gates(minor, overrides))
    assert behaviours.merges_spread_selectors is merges
    assert behaviours.could_merge_spread_selectors is could
    assert behaviours.scheduler_adds_match_label_keys is adds


def test_behaviour_a_gate_that_is_missing_is_off() -> None:
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
        pytest.param(33, Gate.SELECTOR_MERGE, False, False, id="not known yet"),
        pytest.param(34, Gate.SELECTOR_MERGE, False, True, id="known"),
        pytest.param(32, Gate.NODE_INCLUSION_POLICY, False, True, id="not locked yet"),
        pytest.param(33, Gate.NODE_INCLUSION_POLICY, False, False, id="locked to true"),
        pytest.param(33, Gate.NODE_INCLUSION_POLICY, True, True, id="locked to what is asked"),
        pytest.param(38, Gate.AFFINITY_KEYS, True, False, id="removed"),
        pytest.param(37, "Nonsense", True, False, id="nobody's"),
    ],
)
def test_which_gates_a_minor_takes(minor: int, name: str, value: bool, taken: bool) -> None:
    """What it takes is what it starts with."""
    assert takes(minor, name, value=value) is taken
    if not taken:
        with pytest.raises(ValueError, match=r"unrecognized|locked"):
            gates(minor, {name: value})


def test_other_merges_are_how_a_server_behaves_that_does_not_merge() -> None:
    """First without the merge alone, then without matchLabelKeys in spread constraints at all."""
    without_merge, without_keys = other_merges(37, gates(37, {}))
    assert not without_merge.merges_spread_selectors
    assert without_merge.scheduler_adds_match_label_keys
    assert not without_keys.scheduler_adds_match_label_keys
    assert [other.scheduler_adds_match_label_keys for other in other_merges(33, gates(33, {}))] == [False]


def test_the_gates_of_the_merge() -> None:
    assert merge_gates(33) == (Gate.MATCH_LABEL_KEYS,)
    assert merge_gates(34) == (Gate.MATCH_LABEL_KEYS, Gate.SELECTOR_MERGE)
