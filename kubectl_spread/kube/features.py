"""Features: how does the behaviour of Kubernetes differ by minor and feature gate?

Source: kubernetes pkg/features/kube_features.go of v1.27 to v1.37.1; for 1.38, CHANGELOG-1.38.md and v1.38.0-beta.0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Final

import msgspec

OLDEST_MINOR: Final = 27
NEWEST_MINOR: Final = 38
PRE_RELEASES: Final[Mapping[int, str]] = {38: "v1.38.0-beta.0"}
"""Maps an unreleased minor to the pre-release that it is modelled on; it may change until its release."""
NEWEST_RELEASED_MINOR: Final = min(PRE_RELEASES, default=NEWEST_MINOR + 1) - 1
_WARNS_OF_NULL_SELECTORS: Final = 28
_VALIDATES_STATEFUL_SETS: Final = 34
COUNTS_EMPTY_SELECTORS: Final = 38
"""From this minor on, an empty spread selector counts all pods of the namespace."""


class Gate(StrEnum):
    """The feature gates that change an answer of ours."""

    MATCH_LABEL_KEYS = "MatchLabelKeysInPodTopologySpread"
    SELECTOR_MERGE = "MatchLabelKeysInPodTopologySpreadSelectorMerge"
    AFFINITY_KEYS = "MatchLabelKeysInPodAffinity"
    MIN_DOMAINS = "MinDomainsInPodTopologySpread"
    NODE_INCLUSION_POLICY = "NodeInclusionPolicyInPodTopologySpread"
    TOPOLOGY_LABELS = "PodTopologyLabelsAdmission"
    TOLERATION_COMPARISON = "TaintTolerationComparisonOperators"
    STATEFUL_SET_RECREATE = "StatefulSetRecreateStrategy"


class _History(msgspec.Struct, frozen=True):
    """The minors from which a gate exists, is on by default, is locked on, and is removed, which means always on."""

    since: int
    on: int | None
    locked: int | None = None
    removed: int | None = None

    def exists(self, minor: int) -> bool:
        """Tell whether a server of ``minor`` has the gate."""
        return self.since <= minor and not self.is_removed(minor)

    def is_removed(self, minor: int) -> bool:
        """Tell whether the gate was removed in ``minor`` or earlier."""
        return self.removed is not None and minor >= self.removed


_HISTORY: Final[Mapping[str, _History]] = {
    Gate.MATCH_LABEL_KEYS: _History(since=25, on=27),
    Gate.SELECTOR_MERGE: _History(since=34, on=34),
    Gate.AFFINITY_KEYS: _History(since=29, on=31, locked=33, removed=38),
    Gate.MIN_DOMAINS: _History(since=24, on=27, locked=30, removed=32),
    Gate.NODE_INCLUSION_POLICY: _History(since=25, on=26, locked=33),
    Gate.TOPOLOGY_LABELS: _History(since=33, on=35),
    Gate.TOLERATION_COMPARISON: _History(since=35, on=None),
    Gate.STATEFUL_SET_RECREATE: _History(since=37, on=38),
}


_NAMESPACE_SELECTORS_TWICE: Final = range(34, 37)
_LABEL_KEY_TEXTS: Final = 35
_DEPENDENCIES: Final = 35
"""From this minor on, a gate cannot be on while a gate that it depends on is off."""


class Behaviour(msgspec.Struct, frozen=True):
    """The behaviour of the API server and the scheduler of one minor with certain gates."""

    minor: int
    merges_spread_selectors: bool
    """The API server writes matchLabelKeys into spread selectors (KEP-3243)."""
    could_merge_spread_selectors: bool
    """The same minor with default gates writes them."""
    merges_affinity_selectors: bool
    """The API server writes matchLabelKeys and mismatchLabelKeys into affinity terms (KEP-3633)."""
    scheduler_adds_match_label_keys: bool
    """The scheduler adds the incoming pod's current label values to a spread selector."""
    node_inclusion_policies: bool
    """nodeAffinityPolicy and nodeTaintsPolicy are read (KEP-3094); otherwise they are Honor and Ignore."""
    min_domains: bool
    """minDomains is read."""
    toleration_comparison: bool
    """Tolerations may use Lt and Gt."""
    binding_writes_topology_labels: bool
    """A pod gets its node's zone and region labels when it is bound."""
    empty_selector_counts_nothing: bool
    """A spread selector without requirements counts no pods, although it selects all (issue 141339).

    No known patch release of 1.27 to 1.37 differs (docs/upgrades.md).
    """
    matches_namespace_selectors_twice: bool
    """An incoming pod's namespaceSelector selects all namespaces if it selects empty labels."""
    label_key_texts: bool
    """Validation errors name label keys and bytes, and not qualified names and characters."""
    warns_of_null_selectors: bool
    """The API server warns about a spread constraint or affinity term without a labelSelector."""
    validates_stateful_sets: bool
    """The API server validates the pod spec in a StatefulSet; before, it refuses only the pods (issue 60619)."""
    recreates_stateful_sets: bool
    """A StatefulSet may have the strategy Recreate (KEP-3541)."""


def gates(minor: int, overrides: Mapping[str, bool]) -> dict[str, bool]:
    """Return every gate of ``minor`` with its value: the default, unless overridden.

    Raises:
        ValueError: A server would not start: it does not have the gate of an override, or has locked it, or a gate is
            on without a gate that it depends on.
    """
    histories = {gate: history for gate, history in _HISTORY.items() if history.exists(minor)}
    for name, value in overrides.items():
        if name not in histories:
            raise ValueError(f"unrecognized feature gate: {name} ({_why_unknown(minor, name, histories)})")
        locked = histories[name].locked
        if locked is not None and minor >= locked and not value:
            raise ValueError(f"cannot set feature gate {name} to false, feature is locked to true")
    defaults = {gate: history.on is not None and minor >= history.on for gate, history in histories.items()}
    values = {str(gate): overrides.get(gate, default) for gate, default in sorted(defaults.items())}
    if minor >= _DEPENDENCIES and values[Gate.SELECTOR_MERGE] and not values[Gate.MATCH_LABEL_KEYS]:
        problem = f"depends on features that are disabled: [{Gate.MATCH_LABEL_KEYS}]"
        raise ValueError(f"{Gate.SELECTOR_MERGE} is enabled, but {problem}")
    return values


def merge_gates(minor: int) -> tuple[Gate, ...]:
    """Return the gates of ``minor`` that decide whether spread selectors are merged."""
    return tuple(gate for gate in (Gate.MATCH_LABEL_KEYS, Gate.SELECTOR_MERGE) if _HISTORY[gate].exists(minor))


def merges(behaviour: Behaviour) -> tuple[Behaviour, ...]:
    """Return the behaviours that a server may have by the gates that decide whether spread selectors are merged."""
    by_gates = ((True, True), (False, True), (False, False))
    return tuple(
        msgspec.structs.replace(behaviour, merges_spread_selectors=merge, scheduler_adds_match_label_keys=keys)
        for merge, keys in by_gates
        if behaviour.could_merge_spread_selectors or not merge
    )


def _why_unknown(minor: int, name: str, gate_names: Iterable[str]) -> str:
    history = _HISTORY.get(name)
    if history is not None and history.is_removed(minor):
        return f"removed in 1.{history.removed}: always on"
    return f"known in 1.{minor}: {', '.join(sorted(gate_names))}"


def takes(minor: int, name: str, *, value: bool) -> bool:
    """Tell whether a server of ``minor`` accepts this value of a gate."""
    history = _HISTORY.get(name)
    if history is None or not history.exists(minor):
        return False
    return value or history.locked is None or minor < history.locked


def behaviour(minor: int, gate_values: Mapping[str, bool]) -> Behaviour:
    """Return the behaviour of a cluster of ``minor`` with ``gate_values``.

    A missing gate is off, or on where this minor has removed it.
    """

    def enabled(gate: Gate) -> bool:
        return gate_values.get(gate, False) or _HISTORY[gate].is_removed(minor)

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
        empty_selector_counts_nothing=minor < COUNTS_EMPTY_SELECTORS,
        matches_namespace_selectors_twice=minor in _NAMESPACE_SELECTORS_TWICE,
        label_key_texts=minor >= _LABEL_KEY_TEXTS,
        warns_of_null_selectors=minor >= _WARNS_OF_NULL_SELECTORS,
        validates_stateful_sets=minor >= _VALIDATES_STATEFUL_SETS,
        recreates_stateful_sets=enabled(Gate.STATEFUL_SET_RECREATE),
    )
