"""Default constraints: the constraints that the scheduler adds to pods that have none, put into their pod classes.

Pod classes are made while pods are read. Services and owners are read later, so this is done before the evaluation.
"""

from __future__ import annotations

from collections.abc import Container

import msgspec

from kubectl_spread.audit.snapshot.records import PodClass
from kubectl_spread.audit.snapshot.scope import Target
from kubectl_spread.audit.snapshot.snapshot import Snapshot
from kubectl_spread.audit.snapshot.tails import SelectorParts
from kubectl_spread.audit.snapshot.terms import TopologyTerm
from kubectl_spread.kube.api import labels as labelselectors
from kubectl_spread.kube.api.fieldpath import FieldPath
from kubectl_spread.kube.api.types import LabelSelector, TopologySpreadConstraint
from kubectl_spread.kube.scheduler.podtopologyspread import WhenUnsatisfiable, effective_selector


def apply(snapshot: Snapshot, unread: Container[str] = ()) -> list[Target]:
    """Give the pods of a snapshot the default constraints of their schedulers, after everything is read.

    Args:
        snapshot: The snapshot, whose pods get other classes.
        unread: The kinds of owners that could not be read.

    Returns:
        The owners whose selectors are missing; their pods get no default constraints.
    """
    deduction = snapshot.deduction
    if not deduction.keeps:
        return []
    derived: dict[PodClass, PodClass] = {}
    missing: set[Target] = set()
    for shape in dict.fromkeys(pod.shape for pod in snapshot.pods if _lacks_defaults(pod.shape)):
        if shape.owner is not None and shape.owner.kind in unread and not deduction.knows(shape):
            missing.add(Target(shape.owner.kind, shape.owner.name))
        elif not labelselectors.is_empty(selector := deduction.of(shape)):
            derived[shape] = with_defaults(shape, selector)
    snapshot.pods = [
        msgspec.structs.replace(pod, shape=derived[pod.shape]) if pod.shape in derived else pod for pod in snapshot.pods
    ]
    return sorted(missing, key=lambda target: (target.kind, target.name))


def may_have_defaults(shape: PodClass) -> bool:
    """Tell whether the scheduler may add default constraints: only to pods without constraints of their own."""
    own = shape.spec.topology_spread_constraints
    return not own and shape.profile is not None and bool(shape.profile.defaults)


def _lacks_defaults(shape: PodClass) -> bool:
    return may_have_defaults(shape) and not any(clause.default for clause in shape.clauses)


def with_defaults(shape: PodClass, deduced: LabelSelector) -> PodClass:
    """Return a class with its scheduler's default constraints before its affinity terms.

    Default constraints that the scheduler ignores, because its plugin is off, are left out.
    """
    defaults = () if shape.profile is None else shape.profile.defaults
    # Every effective selector has each requirement once.
    selector = effective_selector(deduced, (), {}) or deduced
    terms = tuple(
        _clause(index, default, selector)
        for index, default in enumerate(defaults)
        if shape.profile is not None and shape.profile.respects(hard=_is_hard(default))
    )
    splits = tuple(SelectorParts(selector, {}, frozenset()) for _ in terms)
    return msgspec.structs.replace(shape, clauses=(*terms, *shape.clauses), splits=(*splits, *shape.splits))


def _is_hard(constraint: TopologySpreadConstraint) -> bool:
    return constraint.when_unsatisfiable == WhenUnsatisfiable.DO_NOT_SCHEDULE


def _clause(index: int, default: TopologySpreadConstraint, selector: LabelSelector) -> TopologyTerm:
    """Return a default constraint as a term; its matchLabelKeys have no effect."""
    constraint = msgspec.structs.replace(default, label_selector=selector, match_label_keys=())
    return TopologyTerm(
        path=FieldPath(("defaultConstraints", index)),
        topology_key=constraint.topology_key,
        selector=selector,
        match_label_keys=(),
        mismatch_label_keys=(),
        required=_is_hard(default),
        constraint=constraint,
        default=True,
    )
