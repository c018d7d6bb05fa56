"""What kube-apiserver writes into a pod's selectors (the merge), and its errors and warnings in its own words.

Source: kubernetes v1.37.1 pkg/registry/core/pod/strategy.go, PrepareForCreate and applyLabelKeysToLabelSelector;
pkg/apis/core/validation/validation.go, validateTopologySpreadConstraints and validatePodAffinityTerm.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

import msgspec

from kubectl_spread.kube.api import content, field
from kubectl_spread.kube.api import labels as labelselectors
from kubectl_spread.kube.api.field import POD_SPEC, FieldError, FieldPath
from kubectl_spread.kube.api.labels import BETA_REGION, BETA_ZONE, REGION, ZONE, Labels, Operator
from kubectl_spread.kube.api.types import (
    LabelSelector,
    LabelSelectorRequirement,
    NodeInclusionPolicy,
    PodAffinity,
    PodAffinityTerm,
    PodSpec,
    TopologySpreadConstraint,
    WhenUnsatisfiable,
    affinity_terms,
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


_WEIGHTS: Final = range(1, 101)
_BYTES: Final = " bytes"
_CHARACTERS: Final = " characters"
NO_SELECTOR: Final = "must not be specified when labelSelector is not set"
"""The error on matchLabelKeys and mismatchLabelKeys without labelSelector."""
_MATCH_OVERLAP: Final = "exists in both matchLabelKeys and labelSelector"


class _Rules(msgspec.Struct, frozen=True):
    """The rules that a spec must obey.

    Attributes:
        merged_keys: Whether matchLabelKeys of spread constraints are compared with a merged selector.
        spread_selectors: Whether the selectors of spread constraints are validated.
        affinity_values: Whether the values in the expressions of affinity terms are validated.
    """

    merged_keys: bool
    spread_selectors: bool = True
    affinity_values: bool = True


def pod_errors(spec: PodSpec, behaviour: Behaviour, path: FieldPath = POD_SPEC) -> tuple[FieldError, ...]:
    """Return the API's errors on the affinity terms and spread constraints of a new pod or template.

    Args:
        spec: The spec that PrepareForCreate returns; for a template, the spec in the manifest.
        behaviour: The behaviour of the API server.
        path: The path of the spec: ``spec``, or ``spec.template.spec``.
    """
    rules = _Rules(merged_keys=behaviour.merges_spread_selectors)
    return tuple(_worded(error, behaviour) for error in _spec_errors(spec, rules, path))


def pod_update_errors(new: PodSpec, old: PodSpec, behaviour: Behaviour) -> tuple[FieldError, ...]:
    """Return the API's errors on the affinity terms and spread constraints of a stored pod that is updated.

    A rule that the stored pod already breaks is not applied to any constraint or term of the new one. The immutability
    of the spec is not checked here.

    Source: kubernetes v1.37.1 pkg/api/pod/util.go, GetValidationOptionsFromPodSpecAndMeta, and
    pkg/apis/core/validation/validation.go, validateTopologySpreadConstraints.
    """
    strict = _Rules(merged_keys=True)
    rules = _Rules(
        merged_keys=_compares_merged_keys(old, behaviour),
        spread_selectors=not any(
            any(selector_errors(constraint.label_selector, POD_SPEC)) for constraint in old.topology_spread_constraints
        ),
        affinity_values=not any(
            any(_term_selector_errors(term, term_path, strict)) for term_path, term, _ in affinity_terms(old)
        ),
    )
    errors = _spec_errors(drop_disabled_fields(new, behaviour, old), rules, POD_SPEC)
    return tuple(_worded(error, behaviour) for error in errors)


def _worded(error: FieldError, behaviour: Behaviour) -> FieldError:
    """Return an error as this minor words it."""
    if behaviour.label_key_texts:
        return error
    for new, old in ((_BYTES, _CHARACTERS), (content.LABEL_KEY_HELP, content.QUALIFIED_NAME_HELP)):
        if error.message.endswith(new):
            return FieldError(error.path, error.message.removesuffix(new) + old)
    return error


def _compares_merged_keys(old: PodSpec, behaviour: Behaviour) -> bool:
    """Tell whether matchLabelKeys of a stored pod are compared with merged selectors.

    A pod that breaks the current rule must obey the other one, if the API server has both.
    """
    if not behaviour.scheduler_adds_match_label_keys or not behaviour.could_merge_spread_selectors:
        return False
    constraints = old.topology_spread_constraints
    if behaviour.merges_spread_selectors:
        return not any(
            any(_merged_key_errors(constraint.match_label_keys, (), constraint.label_selector, POD_SPEC))
            for constraint in constraints
        )
    return any(
        any(_legacy_key_errors(constraint.match_label_keys, constraint.label_selector, POD_SPEC))
        for constraint in constraints
    )


def _spec_errors(spec: PodSpec, rules: _Rules, path: FieldPath) -> Iterator[FieldError]:
    for term_path, term, weight in affinity_terms(spec, path):
        if weight is not None and weight not in _WEIGHTS:
            yield field.invalid(FieldPath(term_path[:-1]) / "weight", weight, "must be in the range 1-100")
        yield from _term_errors(term, term_path, rules)
    constraints = spec.topology_spread_constraints
    last_index = {_pair(constraint): index for index, constraint in enumerate(constraints)}
    for index, constraint in enumerate(constraints):
        repeated = last_index[_pair(constraint)] > index
        yield from _constraint_errors(constraint, path / "topologySpreadConstraints" / index, rules, repeated=repeated)


def _pair(constraint: TopologySpreadConstraint) -> tuple[str, str]:
    """Return the fields of which no two constraints of a pod may have the same values."""
    return constraint.topology_key, constraint.when_unsatisfiable


def _constraint_errors(
    constraint: TopologySpreadConstraint, path: FieldPath, rules: _Rules, *, repeated: bool
) -> Iterator[FieldError]:
    action = constraint.when_unsatisfiable
    if constraint.max_skew <= 0:
        yield field.invalid(path / "maxSkew", constraint.max_skew, "must be greater than zero")
    if not constraint.topology_key:
        yield field.required(path / "topologyKey", "can not be empty")
    if action not in tuple(WhenUnsatisfiable):
        yield field.unsupported(path / "whenUnsatisfiable", action, WhenUnsatisfiable)
    if repeated:
        pair = f"{{{constraint.topology_key}, {action}}}"
        yield field.duplicate(path / "{topologyKey, whenUnsatisfiable}", pair)
    if constraint.min_domains is not None:
        yield from _min_domains_errors(constraint.min_domains, action, path / "minDomains")
    for name, policy in (
        ("nodeAffinityPolicy", constraint.node_affinity_policy),
        ("nodeTaintsPolicy", constraint.node_taints_policy),
    ):
        if policy not in tuple(NodeInclusionPolicy):
            yield field.unsupported(path / name, policy, NodeInclusionPolicy)
    keys, selector = constraint.match_label_keys, constraint.label_selector
    if rules.merged_keys:
        yield from _merged_key_errors(keys, (), selector, path)
    else:
        yield from _legacy_key_errors(keys, selector, path / "matchLabelKeys")
    if rules.spread_selectors:
        yield from selector_errors(selector, path / "labelSelector")


def _min_domains_errors(min_domains: int, action: str, path: FieldPath) -> Iterator[FieldError]:
    if min_domains <= 0:
        yield field.invalid(path, min_domains, "must be greater than zero")
    if action != WhenUnsatisfiable.DO_NOT_SCHEDULE:
        detail = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
        yield field.invalid(path, min_domains, detail)


def _legacy_key_errors(keys: tuple[str, ...], selector: LabelSelector | None, path: FieldPath) -> Iterator[FieldError]:
    """Yield the errors of an API server without the merge: the selector must not have any of the keys."""
    if keys and selector is None:
        yield field.forbidden(path, NO_SELECTOR)
    selector_keys = frozenset[str]() if selector is None else labelselectors.keys(selector)
    for index, key in enumerate(keys):
        yield from _name_errors(key, path / index)
        if key in selector_keys:
            yield field.invalid(path / index, key, _MATCH_OVERLAP)


def _merged_key_errors(
    match: tuple[str, ...], mismatch: tuple[str, ...], selector: LabelSelector | None, path: FieldPath
) -> Iterator[FieldError]:
    """Yield an error for each key to match that the merged selector has twice; upstream's path lacks the field."""
    for name, keys in (("matchLabelKeys", match), ("mismatchLabelKeys", mismatch)):
        if keys and selector is None:
            yield field.forbidden(path / name, NO_SELECTOR)
        elif selector is not None:
            for index, key in enumerate(keys):
                yield from _name_errors(key, path / name / index)
    if selector is not None:
        last_index = {key: index for index, key in enumerate(match)}
        seen = set(selector.match_labels)
        for requirement in selector.match_expressions:
            if requirement.key in seen and requirement.key in last_index:
                yield field.invalid(path / last_index[requirement.key], requirement.key, _MATCH_OVERLAP)
            seen.add(requirement.key)
    mismatched = frozenset(mismatch)
    for index, key in enumerate(match):
        if key in mismatched:
            detail = "exists in both matchLabelKeys and mismatchLabelKeys"
            yield field.invalid(path / "matchLabelKeys" / index, key, detail)


def _term_errors(term: PodAffinityTerm, path: FieldPath, rules: _Rules) -> Iterator[FieldError]:
    yield from _term_selector_errors(term, path, rules)
    for namespace in term.namespaces:
        for detail in content.dns_label_problems(namespace):
            yield field.invalid(path / "namespace", namespace, detail)
    yield from _merged_key_errors(term.match_label_keys, term.mismatch_label_keys, term.label_selector, path)
    if not term.topology_key:
        yield field.required(path / "topologyKey", "can not be empty")
    yield from _name_errors(term.topology_key, path / "topologyKey")


def _term_selector_errors(term: PodAffinityTerm, path: FieldPath, rules: _Rules) -> Iterator[FieldError]:
    yield from selector_errors(term.label_selector, path / "labelSelector", values=rules.affinity_values)
    yield from selector_errors(term.namespace_selector, path / "namespaceSelector", values=rules.affinity_values)


def selector_errors(selector: LabelSelector | None, path: FieldPath, *, values: bool = True) -> Iterator[FieldError]:
    """Yield the errors on a selector, without those on the values of its expressions where they are not validated."""
    if selector is None:
        return
    for key, value in sorted(selector.match_labels.items()):
        yield from _name_errors(key, path / "matchLabels")
        for detail in content.label_value_problems(value):
            yield field.invalid(path / "matchLabels", value, detail)
    for index, requirement in enumerate(selector.match_expressions):
        yield from _requirement_errors(requirement, path / "matchExpressions" / index, values=values)


def _requirement_errors(
    requirement: LabelSelectorRequirement, path: FieldPath, *, values: bool
) -> Iterator[FieldError]:
    match requirement.operator:
        case Operator.IN | Operator.NOT_IN:
            if not requirement.values:
                yield field.required(path / "values", "must be specified when `operator` is 'In' or 'NotIn'")
        case Operator.EXISTS | Operator.DOES_NOT_EXIST:
            if requirement.values:
                yield field.forbidden(
                    path / "values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
                )
        case _:
            yield field.invalid(path / "operator", requirement.operator, "not a valid selector operator")
    yield from _name_errors(requirement.key, path / "key")
    if not values:
        return
    for index, value in enumerate(requirement.values):
        for detail in content.label_value_problems(value):
            yield field.invalid(path / "values" / index, value, detail)


def _name_errors(name: str, path: FieldPath) -> Iterator[FieldError]:
    for detail in content.label_key_problems(name):
        yield field.invalid(path, name, detail)


CURRENT_KEYS: Final = {
    "beta.kubernetes.io/arch": ("1.14", "kubernetes.io/arch"),
    "beta.kubernetes.io/instance-type": ("1.17", "node.kubernetes.io/instance-type"),
    "beta.kubernetes.io/os": ("1.14", "kubernetes.io/os"),
    BETA_REGION: ("1.17", REGION),
    BETA_ZONE: ("1.17", ZONE),
}
"""Maps a deprecated node label to the minor that deprecated it and its successor."""
_DEPRECATED_KEYS: Final = {
    **{old: f'deprecated since v{minor}; use "{current}" instead' for old, (minor, current) in CURRENT_KEYS.items()},
    "app.kubernetes.io/created-by": "deprecated since v1.9",
    "scheduler.alpha.kubernetes.io/preferAvoidPods": "deprecated since v1.22; use Taints and Tolerations instead",
    "node-role.kubernetes.io/master": 'use "node-role.kubernetes.io/control-plane" instead',
}
_NULL: Final = "a null labelSelector results in matching no pod"


def pod_warnings(spec: PodSpec, behaviour: Behaviour, path: FieldPath = POD_SPEC) -> Iterator[str]:
    """Yield the API's warnings on a pod or template that it admits, in its order.

    Args:
        spec: The pod spec.
        behaviour: The behaviour of the API server.
        path: The path of the spec: ``spec``, or ``spec.template.spec``.
    """
    for index, constraint in enumerate(spec.topology_spread_constraints):
        constraint_path = path / "topologySpreadConstraints" / index
        key = constraint.topology_key
        if key in _DEPRECATED_KEYS:
            yield f"{constraint_path}.topologyKey: {key} is {_DEPRECATED_KEYS[key]}"
        if constraint.label_selector is None and behaviour.warns_of_null_selectors:
            yield f"{constraint_path}.labelSelector: {_NULL}"
    for term_path, term, _ in affinity_terms(spec, path) if behaviour.warns_of_null_selectors else ():
        if term.label_selector is None:
            yield f"{term_path}.labelSelector: {_NULL}"
