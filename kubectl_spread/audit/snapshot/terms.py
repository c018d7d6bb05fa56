"""Terms: every topology spread constraint and affinity term of a pod, with its field path."""

from __future__ import annotations

from collections import Counter
from functools import cached_property
from typing import Final

import msgspec

from kubectl_spread.kube.api import labels as labelselectors
from kubectl_spread.kube.api.affinity import affinity_terms
from kubectl_spread.kube.api.field import POD_SPEC, FieldPath
from kubectl_spread.kube.api.types import LabelSelector, PodAffinityTerm, PodSpec, TopologySpreadConstraint

_NO_KEYS: Final = frozenset[str]()
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
        namespace_selector=term.namespace_selector,
    )
