"""Terms: every topology spread constraint and affinity term of a pod, its field path and the parts of its selector."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Final, Never

import msgspec

from kubectl_spread.kube.api import labels as labelselectors
from kubectl_spread.kube.api.field import POD_SPEC, FieldPath
from kubectl_spread.kube.api.labels import Operator
from kubectl_spread.kube.api.types import (
    LabelSelector,
    PodAffinityTerm,
    PodSpec,
    TopologySpreadConstraint,
    affinity_terms,
)

_NO_KEYS: Final = frozenset[Never]()
"""Used wherever there are none: each new set takes 216 bytes."""


class TopologyTerm(msgspec.Struct, frozen=True, dict=True):
    """A spread constraint or affinity term; ``constraint`` is None for an affinity term.

    ``required`` tells whether the scheduler filters by it: a DoNotSchedule constraint or a required term. A ``default``
    constraint is the scheduler's, for pods without spread constraints.
    """

    path: FieldPath
    topology_key: str
    selector: LabelSelector | None
    match_label_keys: tuple[str, ...]
    mismatch_label_keys: tuple[str, ...]
    required: bool
    constraint: TopologySpreadConstraint | None
    default: bool = False
    namespaces: tuple[str, ...] = ()
    namespace_selector: LabelSelector | None = None

    @property
    def place(self) -> FieldPath:
        """The path of the item in its list; the item of a preferred term has a weight and the term."""
        return FieldPath(self.path[:-1]) if self.path[-1:] == ("podAffinityTerm",) else self.path

    @property
    def spread(self) -> bool:
        """Whether this is a topology spread constraint."""
        return self.constraint is not None

    @property
    def anti(self) -> bool:
        """Whether this is a term of pod anti-affinity."""
        return "podAntiAffinity" in self.path

    @property
    def keyed(self) -> bool:
        """Whether the API server has keys to merge into the selector."""
        return bool(self.match_label_keys or self.mismatch_label_keys)

    @cached_property
    def mentions(self) -> Counter[str]:
        """How often the stored selector names each key, in matchLabels and matchExpressions."""
        if self.selector is None:
            return Counter()
        return Counter(
            (*self.selector.match_labels, *(requirement.key for requirement in self.selector.match_expressions))
        )

    @cached_property
    def parse_error(self) -> tuple[str, str] | None:
        """The field and the error of the first selector that the scheduler cannot parse; None if it parses all.

        The API accepted such selectors in spread constraints before 1.27, and stored ones remain.
        """
        selectors = (("labelSelector", self.selector), ("namespaceSelector", self.namespace_selector))
        errors = ((name, labelselectors.parse_error(selector)) for name, selector in selectors)
        return next(((name, error) for name, error in errors if error), None)


def topology_terms(spec: PodSpec, path: FieldPath = POD_SPEC) -> tuple[TopologyTerm, ...]:
    """Return the spread constraints of a pod, then its affinity and anti-affinity terms, in the API's order.

    Args:
        spec: The pod's spec, or a template's.
        path: The path of the spec in its object.
    """
    constraints = tuple(
        _constraint_term(path / "topologySpreadConstraints" / index, constraint)
        for index, constraint in enumerate(spec.topology_spread_constraints)
    )
    affinities = (
        _affinity_term(term_path, term, required=weight is None)
        for term_path, term, weight in affinity_terms(spec, path)
    )
    return (*constraints, *affinities)


def authored_keys(spec: PodSpec) -> frozenset[str]:
    """Return the keys of matchLabelKeys that the selector of the same term names as well."""
    return frozenset(key for term in topology_terms(spec) for key in term.match_label_keys if term.mentions[key]) or (
        _NO_KEYS
    )


def _constraint_term(path: FieldPath, constraint: TopologySpreadConstraint) -> TopologyTerm:
    return TopologyTerm(
        path=path,
        topology_key=constraint.topology_key,
        selector=constraint.label_selector,
        match_label_keys=constraint.match_label_keys,
        mismatch_label_keys=(),
        required=constraint.when_unsatisfiable == "DoNotSchedule",
        constraint=constraint,
    )


def _affinity_term(path: FieldPath, term: PodAffinityTerm, *, required: bool) -> TopologyTerm:
    return TopologyTerm(
        path=path,
        topology_key=term.topology_key,
        selector=term.label_selector,
        match_label_keys=term.match_label_keys,
        mismatch_label_keys=term.mismatch_label_keys,
        required=required,
        constraint=None,
        namespaces=term.namespaces,
        namespace_selector=term.namespace_selector,
    )


Key = tuple[Operator, str]
"""The operator that the merge writes, and the label key."""

_NumberedKey = tuple[Key, int]
"""A key with the number of times that its term names it before."""


class SelectorParts(msgspec.Struct, frozen=True):
    """A stored selector in two parts: the author's, and the tail that the merge appended.

    A merged selector ends in ``key In [value]`` for a subsequence of matchLabelKeys, then ``key NotIn [value]`` for a
    subsequence of mismatchLabelKeys. The longest such end is the tail, unless another term of the same pod proves that
    a requirement was written by hand: a creation merges a key into every term that names it, or into none. A manifest
    was never merged, so its author wrote all of its selector.

    ``handwritten`` holds keys that look merged here but cannot be, as the pod's other terms prove.
    """

    authored: LabelSelector | None
    tail: Mapping[Key, str]
    handwritten: frozenset[Key]


def keys_of(term: TopologyTerm) -> tuple[Key, ...]:
    """Return the keys to merge, in the order of the merge, each once."""
    matched = ((Operator.IN, key) for key in term.match_label_keys)
    mismatched = ((Operator.NOT_IN, key) for key in term.mismatch_label_keys)
    return tuple(dict.fromkeys((*matched, *mismatched)))


def split(terms: Sequence[TopologyTerm]) -> tuple[SelectorParts, ...]:
    """Split the selectors of all terms of one pod, in their order."""
    tails = [_tail(term) for term in terms]
    handwritten = _handwritten(terms, tails)
    return tuple(
        SelectorParts(
            authored=_without_tail(term.selector, len(tail)),
            tail={key: value for (key, _), value in reversed(tail.items())},
            handwritten=frozenset(handwritten[term.spread]) or _NO_KEYS,
        )
        for term, tail in zip(terms, tails, strict=True)
    )


def split_manifest(written: Sequence[TopologyTerm], merged: Sequence[TopologyTerm]) -> tuple[SelectorParts, ...]:
    """Split the selectors of all terms of a manifest: the author wrote everything that the merge does not append."""
    return tuple(
        SelectorParts(before.selector, _appended(before.selector, after.selector), _NO_KEYS)
        for before, after in zip(written, merged, strict=True)
    )


def _appended(written: LabelSelector | None, merged: LabelSelector | None) -> Mapping[Key, str]:
    if written is None or merged is None:
        return {}
    requirements = merged.match_expressions[len(written.match_expressions) :]
    return {(Operator(requirement.operator), requirement.key): requirement.values[0] for requirement in requirements}


def _numbered(term: TopologyTerm) -> list[_NumberedKey]:
    """Return the keys of a term with selector in the order of the merge, which writes a key as often as it is named."""
    if term.selector is None:
        return []
    times = Counter[Key]()
    numbered = []
    for operator, keys in ((Operator.IN, term.match_label_keys), (Operator.NOT_IN, term.mismatch_label_keys)):
        for key in keys:
            numbered.append(((operator, key), times[operator, key]))
            times[operator, key] += 1
    return numbered


def _tail(term: TopologyTerm) -> dict[_NumberedKey, str]:
    """Walk back from the end: NotIn over mismatchLabelKeys, then In over matchLabelKeys; a key has one value."""
    tail: dict[_NumberedKey, str] = {}
    if term.selector is None:
        return tail
    values: dict[Key, str] = {}
    keys = _numbered(term)
    for requirement in reversed(term.selector.match_expressions):
        if len(requirement.values) != 1 or requirement.operator not in (Operator.IN, Operator.NOT_IN):
            break
        key, (value,) = (Operator(requirement.operator), requirement.key), requirement.values
        while keys and keys[-1][0] != key:
            keys.pop()
        if not keys or values.setdefault(key, value) != value:
            break
        tail[keys.pop()] = value
    return tail


def _handwritten(terms: Sequence[TopologyTerm], tails: Sequence[dict[_NumberedKey, str]]) -> Mapping[bool, set[Key]]:
    """Return the keys of spread constraints and of terms that no merge wrote, and take them out of the tails.

    Such a key is in the tail of one term and missing from the tail of another term that names it. A tail ends at such
    a key, which may show that further keys were written by hand.
    """
    handwritten: dict[bool, set[Key]] = {True: set(), False: set()}
    naming: dict[tuple[bool, _NumberedKey], list[dict[_NumberedKey, str]]] = {}
    for term, tail in zip(terms, tails, strict=True):
        for key in _numbered(term):
            naming.setdefault((term.spread, key), []).append(tail)
    present = Counter((term.spread, key) for term, tail in zip(terms, tails, strict=True) for key in tail)
    suspects: Iterable[tuple[bool, _NumberedKey]] = naming
    while contradicted := [place for place in suspects if 0 < present[place] < len(naming[place])]:
        shortened: dict[tuple[bool, _NumberedKey], None] = {}
        for spread, key in contradicted:
            handwritten[spread].add(key[0])
            for tail in naming[spread, key]:
                while key in tail:
                    place = (spread, tail.popitem()[0])
                    present[place] -= 1
                    shortened[place] = None
        suspects = shortened
    return handwritten


def _without_tail(selector: LabelSelector | None, length: int) -> LabelSelector | None:
    if selector is None or not length:
        return selector
    return msgspec.structs.replace(selector, match_expressions=selector.match_expressions[:-length])
