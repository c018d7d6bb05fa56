"""The merge: what kube-apiserver writes into a pod's selectors when the pod is created.

Source: kubernetes v1.37.1 pkg/registry/core/pod/strategy.go, PrepareForCreate and
applyLabelKeysToLabelSelector.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from kubectl_spread.kube.api.labels import Labels, Operator
from kubectl_spread.kube.api.types import (
    LabelSelector,
    LabelSelectorRequirement,
    PodAffinity,
    PodAffinityTerm,
    PodSpec,
    TopologySpreadConstraint,
)
from kubectl_spread.kube.features import Behaviour


def merged_selector(
    selector: LabelSelector | None,
    labels: Labels,
    match_label_keys: Iterable[str],
    mismatch_label_keys: Iterable[str] = (),
) -> LabelSelector | None:
    """Append ``key In [value]`` for each key to match, then ``key NotIn [value]`` for each key to mismatch.

    A key that ``labels`` lack is skipped, and a duplicated key is appended twice. None stays None.
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
    """Return ``spec`` as an API server stores it: fields of disabled gates dropped, selectors merged."""
    dropped = drop_disabled_fields(spec, behaviour)

    def merged_constraint(constraint: TopologySpreadConstraint) -> TopologySpreadConstraint:
        if not behaviour.merges_spread_selectors:
            return constraint
        selector = merged_selector(constraint.label_selector, labels, constraint.match_label_keys)
        return msgspec.structs.replace(constraint, label_selector=selector)

    def merged_term(term: PodAffinityTerm) -> PodAffinityTerm:
        selector = merged_selector(term.label_selector, labels, term.match_label_keys, term.mismatch_label_keys)
        return msgspec.structs.replace(term, label_selector=selector)

    return _replaced(dropped, merged_constraint, merged_term)


def drop_disabled_fields(spec: PodSpec, behaviour: Behaviour, old: PodSpec | None = None) -> PodSpec:
    """Return ``spec``, of a pod or a template, without the fields of disabled gates.

    Args:
        spec: The spec in the request.
        behaviour: The behaviour of the API server.
        old: The stored spec that is updated; matchLabelKeys stay if any of its constraints has them.

    Source: kubernetes v1.37.1 pkg/api/pod/util.go, dropDisabledMatchLabelKeysFieldInTopologySpread and
    dropDisabledMatchLabelKeysFieldInPodAffinity.
    """
    in_use = old is not None and any(constraint.match_label_keys for constraint in old.topology_spread_constraints)

    def stored_constraint(constraint: TopologySpreadConstraint) -> TopologySpreadConstraint:
        if not behaviour.min_domains:
            constraint = msgspec.structs.replace(constraint, min_domains=None)
        if not behaviour.node_inclusion_policies:
            constraint = msgspec.structs.replace(constraint, node_affinity_policy="Honor", node_taints_policy="Ignore")
        if behaviour.scheduler_adds_match_label_keys or in_use:
            return constraint
        return msgspec.structs.replace(constraint, match_label_keys=())

    def stored_term(term: PodAffinityTerm) -> PodAffinityTerm:
        if behaviour.merges_affinity_selectors:
            return term
        return msgspec.structs.replace(term, match_label_keys=(), mismatch_label_keys=())

    return _replaced(spec, stored_constraint, stored_term)


def _requirements(labels: Labels, label_keys: Iterable[str], operator: Operator) -> Iterable[LabelSelectorRequirement]:
    for key in label_keys:
        if key in labels:
            yield LabelSelectorRequirement(key=key, operator=operator, values=(labels[key],))


def _replaced(
    spec: PodSpec,
    constraint: Callable[[TopologySpreadConstraint], TopologySpreadConstraint],
    term: Callable[[PodAffinityTerm], PodAffinityTerm],
) -> PodSpec:
    affinity = spec.affinity
    if affinity is not None:
        affinity = msgspec.structs.replace(
            affinity,
            pod_affinity=_replaced_terms(affinity.pod_affinity, term),
            pod_anti_affinity=_replaced_terms(affinity.pod_anti_affinity, term),
        )
    constraints = tuple(constraint(original) for original in spec.topology_spread_constraints)
    return msgspec.structs.replace(spec, topology_spread_constraints=constraints, affinity=affinity)


def _replaced_terms(
    affinity: PodAffinity | None, term: Callable[[PodAffinityTerm], PodAffinityTerm]
) -> PodAffinity | None:
    if affinity is None:
        return None
    return msgspec.structs.replace(
        affinity,
        required_during_scheduling_ignored_during_execution=tuple(
            term(original) for original in affinity.required_during_scheduling_ignored_during_execution
        ),
        preferred_during_scheduling_ignored_during_execution=tuple(
            msgspec.structs.replace(weighted, pod_affinity_term=term(weighted.pod_affinity_term))
            for weighted in affinity.preferred_during_scheduling_ignored_during_execution
        ),
    )
