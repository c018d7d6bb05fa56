"""The merged tail: which requirements of a stored selector did the apiserver append?

A merged selector ends in ``key In [value]`` for a subsequence of matchLabelKeys, then ``key NotIn [value]`` for one of
mismatchLabelKeys. The longest such end is the tail, unless another clause of the same pod proves that a
requirement was written by hand: one creation merges a key into every clause that names it, or into none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from kubectl_spread.audit.snapshot.terms import TopologyTerm
from kubectl_spread.kube.api.labels import Operator
from kubectl_spread.kube.api.types import LabelSelector, LabelSelectorRequirement

Key = tuple[Operator, str]
"""The operator that the merge writes, and the label key."""


class SelectorParts(msgspec.Struct, frozen=True):
    """A stored selector in two parts: what the author wrote, and the tail that the merge appended.

    ``handwritten`` holds keys that look merged here but cannot be, as the pod's other clauses show.
    """

    authored: LabelSelector | None
    tail: Mapping[Key, str]
    handwritten: frozenset[Key]


def keys_of(clause: TopologyTerm) -> tuple[Key, ...]:
    """Return the keys to merge, in the order of the merge, each once."""
    matched = ((Operator.IN, key) for key in clause.match_label_keys)
    mismatched = ((Operator.NOT_IN, key) for key in clause.mismatch_label_keys)
    return tuple(dict.fromkeys((*matched, *mismatched)))


def split(clauses: Sequence[TopologyTerm]) -> tuple[SelectorParts, ...]:
    """Split the selectors of all clauses of one pod, in the order given."""
    handwritten: dict[bool, frozenset[Key]] = {True: frozenset(), False: frozenset()}
    while True:
        tails = [_tail(clause, handwritten[clause.spread]) for clause in clauses]
        found = {kind: handwritten[kind] | _contradicted(clauses, tails, spread=kind) for kind in (True, False)}
        if found == handwritten:
            break
        handwritten = found
    return tuple(
        SelectorParts(
            authored=_without_tail(clause.selector, len(tail)),
            tail={(Operator(item.operator), item.key): item.values[0] for item in tail},
            handwritten=handwritten[clause.spread],
        )
        for clause, tail in zip(clauses, tails, strict=True)
    )


def _tail(clause: TopologyTerm, handwritten: frozenset[Key]) -> tuple[LabelSelectorRequirement, ...]:
    """Walk back from the end: NotIn over mismatchLabelKeys, then In over matchLabelKeys, each key once."""
    if clause.selector is None:
        return ()
    remaining = [key for key in keys_of(clause) if key not in handwritten]
    expressions = clause.selector.match_expressions
    length = 0
    for requirement in reversed(expressions):
        if len(requirement.values) != 1 or requirement.operator not in (Operator.IN, Operator.NOT_IN):
            break
        key = (Operator(requirement.operator), requirement.key)
        if key not in remaining:
            break
        del remaining[remaining.index(key) :]
        length += 1
    return expressions[len(expressions) - length :]


def _contradicted(
    clauses: Sequence[TopologyTerm], tails: Sequence[tuple[LabelSelectorRequirement, ...]], *, spread: bool
) -> frozenset[Key]:
    """Return the keys that are in the tail of one clause and missing from that of another that names them."""
    present: set[Key] = set()
    missing: set[Key] = set()
    for clause, tail in zip(clauses, tails, strict=True):
        if clause.spread is spread and clause.selector is not None:
            merged = {(Operator(item.operator), item.key) for item in tail}
            present |= merged
            missing |= set(keys_of(clause)) - merged
    return frozenset(present & missing)


def _without_tail(selector: LabelSelector | None, length: int) -> LabelSelector | None:
    if selector is None or not length:
        return selector
    return msgspec.structs.replace(selector, match_expressions=selector.match_expressions[:-length])
