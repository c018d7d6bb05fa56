"""Default constraints: the constraints that the scheduler adds to pods that have none, put into their pod classes.

Pod classes are made while pods are read. Services and owners are read later, so this is done before the evaluation.
"""

from __future__ import annotations

from collections.abc import Container

import msgspec

from kubectl_spread.audit.snapshot.records import PodClass
from kubectl_spread.audit.snapshot.scope import Target
from kubectl_spread.audit.snapshot.snapshot import Snapshot
from kubectl_spread.audit.snapshot.terms import SelectorParts, TopologyTerm
from kubectl_spread.kube.api import labels as labelselectors
from kubectl_spread.kube.api.field import FieldPath
from kubectl_spread.kube.api.types import LabelSelector, TopologySpreadConstraint, WhenUnsatisfiable
from kubectl_spread.kube.scheduler.podtopologyspread.constraints import effective_selector


def apply(snapshot: Snapshot, unread: Container[str] = ()) -> list[Target]:
    """Give the pods of a snapshot the default constraints of their schedulers, once everything is read.

    Args:
        snapshot: The snapshot, whose pods get new classes.
        unread: The kinds of owners that could not be read.

    Returns:
        The owners whose selectors are missing; their pods get no default constraints.
    """
    default_selectors = snapshot.default_selectors
    if not default_selectors.enabled:
        return []
    derived: dict[PodClass, PodClass] = {}
    missing: set[Target] = set()
    for pod_class in dict.fromkeys(pod.pod_class for pod in snapshot.pods if _lacks_defaults(pod.pod_class)):
        if pod_class.owner is not None and pod_class.owner.kind in unread and not default_selectors.knows(pod_class):
            missing.add(Target(pod_class.owner.kind, pod_class.owner.name))
        elif not labelselectors.is_empty(selector := default_selectors.of(pod_class)):
            derived[pod_class] = with_defaults(pod_class, selector)
    snapshot.pods = [
        msgspec.structs.replace(pod, pod_class=derived[pod.pod_class]) if pod.pod_class in derived else pod
        for pod in snapshot.pods
    ]
    return sorted(missing, key=lambda target: (target.kind, target.name))


def may_have_defaults(pod_class: PodClass) -> bool:
    """Tell whether the scheduler may add default constraints: only to pods without constraints of their own."""
    own = pod_class.spec.topology_spread_constraints
    return not own and pod_class.profile is not None and bool(pod_class.profile.defaults)


def _lacks_defaults(pod_class: PodClass) -> bool:
    return may_have_defaults(pod_class) and not any(term.default for term in pod_class.terms)


def with_defaults(pod_class: PodClass, deduced_selector: LabelSelector) -> PodClass:
    """Return a class with its scheduler's default constraints before its affinity terms.

    Default constraints that the scheduler ignores, because its plugin is off, are left out.
    """
    defaults = () if pod_class.profile is None else pod_class.profile.defaults
    # Every effective selector has each requirement once.
    selector = effective_selector(deduced_selector, (), {}) or deduced_selector
    terms = tuple(
        _term(index, default, selector)
        for index, default in enumerate(defaults)
        if pod_class.profile is not None and pod_class.profile.respects(hard=_is_hard(default))
    )
    splits = tuple(SelectorParts(selector, {}, frozenset()) for _ in terms)
    return msgspec.structs.replace(pod_class, terms=(*terms, *pod_class.terms), splits=(*splits, *pod_class.splits))


def _is_hard(constraint: TopologySpreadConstraint) -> bool:
    return constraint.when_unsatisfiable == WhenUnsatisfiable.DO_NOT_SCHEDULE


def _term(index: int, default: TopologySpreadConstraint, selector: LabelSelector) -> TopologyTerm:
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
