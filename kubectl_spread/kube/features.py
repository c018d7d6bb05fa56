"""What differs between Kubernetes minors and feature gates, gathered in one Behaviour.

Source: kubernetes pkg/features/kube_features.go of v1.27 to v1.37.1.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

import msgspec

OLDEST_MINOR: Final = 27
NEWEST_MINOR: Final = 37
_WARNS_OF_NULL_SELECTORS: Final = 28


class Gate(StrEnum):
    """The feature gates that change what we compute."""

    MATCH_LABEL_KEYS = "MatchLabelKeysInPodTopologySpread"
    SELECTOR_MERGE = "MatchLabelKeysInPodTopologySpreadSelectorMerge"
    AFFINITY_KEYS = "MatchLabelKeysInPodAffinity"
    MIN_DOMAINS = "MinDomainsInPodTopologySpread"
    NODE_INCLUSION_POLICY = "NodeInclusionPolicyInPodTopologySpread"
    TOPOLOGY_LABELS = "PodTopologyLabelsAdmission"
    TOLERATION_COMPARISON = "TaintTolerationComparisonOperators"


class _History(msgspec.Struct, frozen=True):
    """The minors from which a gate exists, is on by default, and can no longer be turned off."""

    since: int
    on: int | None
    locked: int | None = None


_HISTORY: Final[dict[Gate, _History]] = {
    Gate.MATCH_LABEL_KEYS: _History(since=25, on=27),
    Gate.SELECTOR_MERGE: _History(since=34, on=34),
    Gate.AFFINITY_KEYS: _History(since=29, on=31, locked=33),
    Gate.MIN_DOMAINS: _History(since=24, on=27, locked=30),
    Gate.NODE_INCLUSION_POLICY: _History(since=25, on=26, locked=33),
    Gate.TOPOLOGY_LABELS: _History(since=33, on=35),
    Gate.TOLERATION_COMPARISON: _History(since=35, on=None),
}


_NAMESPACE_SELECTORS_TWICE: Final = range(34, 37)
_LABEL_KEY_TEXTS: Final = 35
_DEPENDENCIES: Final = 35
"""From this minor on, a gate cannot be on while one that it needs is off."""


class Behaviour(msgspec.Struct, frozen=True):
    """How the apiserver and the scheduler of one minor with given gates behave."""

    minor: int
    merges_spread_selectors: bool
    """The apiserver writes matchLabelKeys into spread selectors (KEP-3243)."""
    could_merge_spread_selectors: bool
    """The same minor with default gates does."""
    merges_affinity_selectors: bool
    """The apiserver writes matchLabelKeys and mismatchLabelKeys into affinity terms (KEP-3633)."""
    scheduler_adds_match_label_keys: bool
    """The scheduler adds the incoming pod's current label values to a spread selector."""
    node_inclusion_policies: bool
    """nodeAffinityPolicy and nodeTaintsPolicy are read (KEP-3094); else Honor and Ignore hold for all."""
    min_domains: bool
    """minDomains is read."""
    toleration_comparison: bool
    """Tolerations may use Lt and Gt."""
    binding_writes_topology_labels: bool
    """A pod gets its node's zone and region labels when it is bound."""
    empty_selector_counts_nothing: bool
    """A spread selector without any requirement counts no pod, although it selects all (issue 141339)."""
    matches_namespace_selectors_twice: bool
    """An incoming pod's namespaceSelector, its namespaces listed, also selects all if it selects empty labels."""
    label_key_texts: bool
    """Validation speaks of label keys and of bytes, not of qualified names and of characters."""
    warns_of_null_selectors: bool
    """The apiserver warns of a spread constraint or affinity term without a labelSelector."""


def gates(minor: int, overrides: Mapping[str, bool]) -> dict[str, bool]:
    """Return every gate that ``minor`` knows with its value: the default, unless overridden.

    Raises:
        ValueError: an override names a gate that this minor does not know or has locked, or leaves a gate on
            without one that it needs; a server would not start.
    """
    known = {gate: history for gate, history in _HISTORY.items() if history.since <= minor}
    for name, value in overrides.items():
        if name not in known:
            raise ValueError(f"unrecognized feature gate: {name} (known in 1.{minor}: {', '.join(sorted(known))})")
        locked = known[Gate(name)].locked
        if locked is not None and minor >= locked and not value:
            raise ValueError(f"cannot set feature gate {name} to false, feature is locked to true")
    defaults = {gate: history.on is not None and minor >= history.on for gate, history in known.items()}
    values = {str(gate): overrides.get(gate, default) for gate, default in sorted(defaults.items())}
    if minor >= _DEPENDENCIES and values[Gate.SELECTOR_MERGE] and not values[Gate.MATCH_LABEL_KEYS]:
        needs = f"depends on features that are disabled: [{Gate.MATCH_LABEL_KEYS}]"
        raise ValueError(f"{Gate.SELECTOR_MERGE} is enabled, but {needs}")
    return values


def merge_gates(minor: int) -> tuple[Gate, ...]:
    """Return the gates of ``minor`` that decide whether spread selectors are merged."""
    return tuple(gate for gate in (Gate.MATCH_LABEL_KEYS, Gate.SELECTOR_MERGE) if _HISTORY[gate].since <= minor)


def other_merges(minor: int, gate_values: Mapping[str, bool]) -> tuple[Behaviour, ...]:
    """Return how a server of ``minor`` behaves with ``gate_values`` where it does not merge spread selectors."""
    switched = merge_gates(minor)
    return tuple(
        behaviour(minor, {**gate_values, **dict.fromkeys(switched[index:], False)})
        for index in reversed(range(len(switched)))
    )


def takes(minor: int, name: str, *, value: bool) -> bool:
    """Tell whether a server of ``minor`` knows a gate and lets it have a value."""
    history = next((history for gate, history in _HISTORY.items() if gate == name), None)
    if history is None or minor < history.since:
        return False
    return value or history.locked is None or minor < history.locked


def behaviour(minor: int, gate_values: Mapping[str, bool]) -> Behaviour:
    """Return how a cluster of ``minor`` behaves with ``gate_values``; a gate that is missing is off."""

    def enabled(gate: Gate) -> bool:
        return gate_values.get(gate, False)

    keys = enabled(Gate.MATCH_LABEL_KEYS)
    return Behaviour(
        minor=minor,
        merges_spread_selectors=keys and enabled(Gate.SELECTOR_MERGE),
        could_merge_spread_selectors=minor >= _HISTORY[Gate.SELECTOR_MERGE].since,
        merges_affinity_selectors=enabled(Gate.AFFINITY_KEYS),
        scheduler_adds_match_label_keys=keys,
        node_inclusion_policies=enabled(Gate.NODE_INCLUSION_POLICY),
        min_domains=enabled(Gate.MIN_DOMAINS),
        toleration_comparison=enabled(Gate.TOLERATION_COMPARISON),
        binding_writes_topology_labels=enabled(Gate.TOPOLOGY_LABELS),
        empty_selector_counts_nothing=True,
        matches_namespace_selectors_twice=minor in _NAMESPACE_SELECTORS_TWICE,
        label_key_texts=minor >= _LABEL_KEY_TEXTS,
        warns_of_null_selectors=minor >= _WARNS_OF_NULL_SELECTORS,
    )
