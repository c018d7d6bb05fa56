"""Spread constraints as the scheduler works with them: effective selector, every default filled in.

Source: kubernetes v1.37.1 pkg/scheduler/framework/plugins/podtopologyspread/common.go, and
pkg/scheduler/framework/plugins/helper/spread.go, DefaultSelector.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

import msgspec

from kubectl_spread.kube.api import labels as labelselectors
from kubectl_spread.kube.api.labels import Labels
from kubectl_spread.kube.api.types import (
    LabelSelector,
    LabelSelectorRequirement,
    Message,
    NodeInclusionPolicy,
    Object,
    TopologySpreadConstraint,
    WhenUnsatisfiable,
)
from kubectl_spread.kube.features import Behaviour


class Constraint(msgspec.Struct, frozen=True):
    """A spread constraint as the scheduler works with it: effective selector, every default filled in.

    Attributes:
        counts: Whether the scheduler counts any pod for the selector.
        lenient: Whether this is one of the system's defaults, for which a node may lack a topology key.
    """

    topology_key: str
    hard: bool
    max_skew: int
    min_domains: int
    node_affinity_policy: NodeInclusionPolicy
    node_taints_policy: NodeInclusionPolicy
    selector: LabelSelector | None
    counts: bool = True
    lenient: bool = False

    def minimum(self, least: int, domains: int) -> int:
        """Return the global minimum over this number of eligible ``domains``, of which the emptiest has ``least`` pods.

        Source: kubernetes v1.37.1 pkg/scheduler/framework/plugins/podtopologyspread/filtering.go, minMatchNum.
        """
        return least if domains >= self.min_domains else 0

    def limit(self, minimum: int) -> int:
        """Return how many matching pods a domain may have once a pod has been placed there."""
        return minimum + self.max_skew


def effective_selector(
    selector: LabelSelector | None, match_label_keys: Iterable[str], labels: Labels
) -> LabelSelector | None:
    """Return ``selector`` with the pod's values of ``match_label_keys``, each requirement once; None stays None.

    Source: kubernetes v1.37.1 pkg/scheduler/framework/plugins/podtopologyspread/common.go, mergeLabelSetWithSelector.
    """
    if selector is None:
        return None
    added = tuple(
        LabelSelectorRequirement(key=key, operator="In", values=(labels[key],))
        for key in match_label_keys
        if key in labels
    )
    in_match_labels = {
        LabelSelectorRequirement(key=key, operator="In", values=(value,))
        for key, value in selector.match_labels.items()
    }
    distinct = dict.fromkeys((*selector.match_expressions, *added))
    expressions = tuple(requirement for requirement in distinct if requirement not in in_match_labels)
    if expressions == selector.match_expressions:
        return selector
    return msgspec.structs.replace(selector, match_expressions=expressions)


def working_constraint(
    constraint: TopologySpreadConstraint, selector: LabelSelector | None, behaviour: Behaviour, *, lenient: bool = False
) -> Constraint:
    """Return the scheduler's view of an API constraint whose effective selector is ``selector``."""
    hard = constraint.when_unsatisfiable == WhenUnsatisfiable.DO_NOT_SCHEDULE
    policies = behaviour.node_inclusion_policies
    honors_affinity = not policies or constraint.node_affinity_policy == NodeInclusionPolicy.HONOR
    honors_taints = policies and constraint.node_taints_policy == NodeInclusionPolicy.HONOR
    min_domains = constraint.min_domains if behaviour.min_domains and hard else None
    return Constraint(
        topology_key=constraint.topology_key,
        hard=hard,
        max_skew=constraint.max_skew,
        min_domains=1 if min_domains is None else min_domains,
        node_affinity_policy=NodeInclusionPolicy.HONOR if honors_affinity else NodeInclusionPolicy.IGNORE,
        node_taints_policy=NodeInclusionPolicy.HONOR if honors_taints else NodeInclusionPolicy.IGNORE,
        selector=selector,
        counts=not counts_nothing(selector, behaviour),
        lenient=lenient,
    )


def counts_nothing(selector: LabelSelector | None, behaviour: Behaviour) -> bool:
    """Tell whether the scheduler counts no pods for ``selector``: None, and before 1.38 an empty one."""
    if selector is None:
        return True
    return behaviour.empty_selector_counts_nothing and labelselectors.is_empty(selector)


class _ServiceSpec(Message, frozen=True):
    selector: Annotated[dict[str, str], 2] = msgspec.field(default_factory=dict)


class Service(Object, frozen=True):
    """A Service, which is read for its selector."""

    spec: Annotated[_ServiceSpec, 2] = _ServiceSpec()


def default_selector(
    labels: Labels, services: Iterable[Labels], *, controller: Labels | None = None, owner: LabelSelector | None = None
) -> LabelSelector:
    """Return the selector of default constraints: that of all Services that select a pod and of the pod's controller.

    A Service without a selector selects nothing.

    Args:
        labels: The pod's labels.
        services: The selectors of the Services of its namespace, as labels.
        controller: The selector of the pod's ReplicationController; its labels replace those of Services.
        owner: The selector of the pod's ReplicaSet or StatefulSet; a label of a Service may appear in it again.
    """
    match_labels: dict[str, str] = {}
    for service in services:
        if all(labels.get(key) == value for key, value in service.items()):
            match_labels |= service
    match_labels |= controller or {}
    if owner is None or not labelselectors.valid(owner):
        return LabelSelector(match_labels=match_labels)
    return LabelSelector(match_labels=match_labels, match_expressions=tuple(labelselectors.requirements(owner)))
