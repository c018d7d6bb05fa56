"""The merge: what kube-apiserver writes into a pod's selectors when the pod is created.

Source: kubernetes v1.37.1 pkg/registry/core/pod/strategy.go, PrepareForCreate and
applyLabelKeysToLabelSelector.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from kubectl_spread.kube.features import Behaviour
from kubectl_spread.kube.labels import Labels, Operator
from kubectl_spread.kube.model import (
    LabelSelector,
    LabelSelectorRequirement,
    PodAffinity,
    PodAffinityTerm,
    PodSpec,
    TopologySpreadConstraint,
)


def merged_selector(
    selector: LabelSelector | None,
    labels: Labels,
    match_label_keys: Iterable[str],
    mismatch_label_keys: Iterable[str] = (),
) -> LabelSelector | None:
    """Append ``key In [value]`` for each key to match, then ``key NotIn [value]`` for each key to mismatch.

    A key that ``labels`` lack is skipped, "" is a value, a key listed twice is appended twice, and None stays None.
    """
    if selector is None:
        return None
    appended = (
        *_requirements(labels, match_label_keys, Operator.IN),
        *_requirements(labels, mismatch_label_keys, Operator.NOT_IN),
    )
    if not appended:
        return selector
    return msgspec.structs.replace(selector, match_expressions=(*selector.match_expressions, *appended))


def prepare_for_create(spec: PodSpec, labels: Labels, behaviour: Behaviour) -> PodSpec:
    """Return ``spec`` as an apiserver of this behaviour stores it.

    Fields of disabled gates dropped, selectors merged.
    """
    constraints = tuple(
        _prepared_constraint(constraint, labels, behaviour) for constraint in spec.topology_spread_constraints
    )
    affinity = spec.affinity
    if affinity is not None:
        affinity = msgspec.structs.replace(
            affinity,
            pod_affinity=_prepared_affinity(affinity.pod_affinity, labels, behaviour),
            pod_anti_affinity=_prepared_affinity(affinity.pod_anti_affinity, labels, behaviour),
        )
    return msgspec.structs.replace(spec, topology_spread_constraints=constraints, affinity=affinity)


def _requirements(labels: Labels, label_keys: Iterable[str], operator: Operator) -> Iterable[LabelSelectorRequirement]:
    for key in label_keys:
        if key in labels:
            yield LabelSelectorRequirement(key=key, operator=operator, values=(labels[key],))


def _prepared_constraint(
    constraint: TopologySpreadConstraint, labels: Labels, behaviour: Behaviour
) -> TopologySpreadConstraint:
    if not behaviour.min_domains:
        constraint = msgspec.structs.replace(constraint, min_domains=None)
    if not behaviour.node_inclusion_policies:
        constraint = msgspec.structs.replace(constraint, node_affinity_policy="Honor", node_taints_policy="Ignore")
    if not behaviour.scheduler_adds_match_label_keys:
        return msgspec.structs.replace(constraint, match_label_keys=())
    if not behaviour.merges_spread_selectors:
        return constraint
    selector = merged_selector(constraint.label_selector, labels, constraint.match_label_keys)
    return msgspec.structs.replace(constraint, label_selector=selector)


def _prepared_affinity(affinity: PodAffinity | None, labels: Labels, behaviour: Behaviour) -> PodAffinity | None:
    if affinity is None:
        return None
    return msgspec.structs.replace(
        affinity,
        required_during_scheduling_ignored_during_execution=tuple(
            _prepared_term(term, labels, behaviour)
            for term in affinity.required_during_scheduling_ignored_during_execution
        ),
        preferred_during_scheduling_ignored_during_execution=tuple(
            msgspec.structs.replace(
                weighted, pod_affinity_term=_prepared_term(weighted.pod_affinity_term, labels, behaviour)
            )
            for weighted in affinity.preferred_during_scheduling_ignored_during_execution
        ),
    )


def _prepared_term(term: PodAffinityTerm, labels: Labels, behaviour: Behaviour) -> PodAffinityTerm:
    if not behaviour.merges_affinity_selectors:
        return msgspec.structs.replace(term, match_label_keys=(), mismatch_label_keys=())
    selector = merged_selector(term.label_selector, labels, term.match_label_keys, term.mismatch_label_keys)
    return msgspec.structs.replace(term, label_selector=selector)
