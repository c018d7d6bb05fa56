"""The merged tail: the requirements of a stored selector that the API server appended.

A merged selector ends in ``key In [value]`` for a subsequence of matchLabelKeys, then ``key NotIn [value]`` for a
subsequence of mismatchLabelKeys. The longest such end is the tail, unless another term of the same pod proves that a
requirement was written by hand: a creation merges a key into every term that names it, or into none.
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
    """A stored selector in two parts: the author's, and the tail that the merge appended.

    ``handwritten`` holds keys that look merged here but cannot be, as the pod's other terms prove.
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
    """Split the selectors of all terms of one pod, in their order."""
    handwritten: dict[bool, frozenset[Key]] = {True: frozenset(), False: frozenset()}
    while True:
        tails = [_tail(clause, handwritten[clause.spread]) for clause in clauses]
        extended = {kind: handwritten[kind] | _contradicted(clauses, tails, spread=kind) for kind in (True, False)}
        if extended == handwritten:
            break
        handwritten = extended
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
    """Return the keys that are in the tail of one term and missing from the tail of another term that names them."""
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
