"""SPR210 to SPR213: kinds and fields of a workload that keep its constraints from having an effect."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kubectl_spread.audit.snapshot.records import DEFAULT_SCHEDULER
from kubectl_spread.kube.api.types import NodeInclusionPolicy
from kubectl_spread.kube.features import Behaviour
from kubectl_spread.kube.scheduler.podtopologyspread.constraints import working_constraint
from kubectl_spread.phrases import some
from kubectl_spread.report.severity import Severity
from kubectl_spread.rules.model import KUBERNETES, Evidence, Rule, Values, together
from kubectl_spread.rules.rule_input import RuleInput
from kubectl_spread.rules.variants import TermVariant

_CURRENT_KEYS: Final = {
    "beta.kubernetes.io/arch": ("1.14", "kubernetes.io/arch"),
    "beta.kubernetes.io/instance-type": ("1.17", "node.kubernetes.io/instance-type"),
    "beta.kubernetes.io/os": ("1.14", "kubernetes.io/os"),
    "failure-domain.beta.kubernetes.io/region": ("1.17", "topology.kubernetes.io/region"),
    "failure-domain.beta.kubernetes.io/zone": ("1.17", "topology.kubernetes.io/zone"),
}
"""Maps a deprecated node label to the minor that deprecated it and its successor."""


def _daemon_set_spread(rule_input: RuleInput) -> Iterator[Evidence]:
    variants = [variant for variant in rule_input.variants if variant.kind == "DaemonSet" and variant.term.spread]
    refusing = [variant for variant in variants if _may_refuse_only_node(variant, rule_input.behaviour)]
    effect = "the constraint can only keep one from its node" if refusing else "there is nothing to spread"
    yield from together(
        ((variant, {"effect": effect}) for variant in refusing or variants),
        Severity.WARNING if refusing else Severity.INFO,
    )


def _may_refuse_only_node(variant: TermVariant, behaviour: Behaviour) -> bool:
    """Tell whether a constraint may refuse the only node that a pod of a DaemonSet can use."""
    if variant.term.constraint is None:
        return False
    constraint = working_constraint(variant.term.constraint, variant.effective, behaviour)
    counts_all_nodes = constraint.node_affinity_policy is NodeInclusionPolicy.IGNORE
    return constraint.hard and (counts_all_nodes or constraint.min_domains > 1)


def _node_name(rule_input: RuleInput) -> Iterator[Evidence]:
    """Yield pods with a node in their manifest, once for each workload.

    The node of a stored pod is left out: the scheduler may have set it.
    """
    if rule_input.template is not None and rule_input.template.spec.node_name:
        values: Values = {"node": rule_input.template.spec.node_name}
        yield from together(((variant, values) for variant in rule_input.variants if variant.first), Severity.WARNING)
    yield from together(
        (variant, {"node": some(sorted({pod.node for pod in variant.pods}))})
        for variant in rule_input.variants
        if variant.first and not variant.stored and any(pod.node for pod in variant.pods)
    )


def _unknown_scheduler(rule_input: RuleInput) -> Iterator[Evidence]:
    """Yield pods of unknown schedulers, once for each workload."""
    yield from together(
        (variant, {"scheduler": variant.scheduler_name})
        for variant in rule_input.variants
        if variant.first and variant.term.spread and not _is_known(variant.scheduler_name, rule_input)
    )


def _is_known(scheduler: str, rule_input: RuleInput) -> bool:
    """Tell whether a scheduler spreads pods in a way that we know; an unset name means the default scheduler."""
    profile = rule_input.audit.snapshot.schedulers.get(scheduler)
    return scheduler in ("", DEFAULT_SCHEDULER) or (profile is not None and profile.spreads)


def _deprecated_topology_key(rule_input: RuleInput) -> Iterator[Evidence]:
    yield from together(
        (variant, _deprecation(variant.term.topology_key))
        for variant in rule_input.variants
        if variant.term.topology_key in _CURRENT_KEYS
    )


def _deprecation(key: str) -> Values:
    since, current = _CURRENT_KEYS[key]
    return {"key": key, "since": since, "current": current}


DAEMON_SET_SPREAD: Final = Rule(
    code="SPR210",
    name="daemon-set-spread",
    severity=Severity.INFO,
    summary="A spread constraint on a DaemonSet, whose pods are each pinned to a node",
    message="every pod of a DaemonSet is made for one node: {effect}",
    why=(
        "The controller pins each pod to its node, and the scheduler counts only nodes that the pod could use: one. A "
        "DoNotSchedule constraint with nodeAffinityPolicy Ignore counts all nodes, and one with minDomains holds the "
        "minimum at 0: either can leave a pod pending and a node without it."
    ),
    fix="remove the constraint",
    source=f"{KUBERNETES}/pkg/controller/daemon/util/daemonset_util.go",
    check=_daemon_set_spread,
)
NODE_NAME: Final = Rule(
    code="SPR211",
    name="node-name",
    severity=Severity.INFO,
    summary="spec.nodeName is set, so that the pod is not scheduled and its constraints are never looked at",
    message="spec.nodeName is {node}: the scheduler never looks at the constraints of such a pod",
    why=(
        "A pod that names its node goes there without being scheduled; the pods of a template that does so all go to "
        "one node. A required anti-affinity term of such a pod still keeps other pods away."
    ),
    fix="remove spec.nodeName; nodeSelector or node affinity choose nodes and are scheduled",
    source=f"{KUBERNETES}/pkg/scheduler/eventhandlers.go",
    check=_node_name,
)
UNKNOWN_SCHEDULER: Final = Rule(
    code="SPR212",
    name="unknown-scheduler",
    severity=Severity.INFO,
    summary="The pods are placed by another scheduler than kube-scheduler's default one",
    message="schedulerName is {scheduler}: selectors are evaluated, placement is not",
    why=(
        "kube-apiserver merges selectors whoever schedules the pod. Whether spread constraints are kept, and how pods "
        "are counted, is up to that scheduler."
    ),
    fix="nothing to do if that scheduler knows spread constraints; --scheduler-config names profiles of kube-scheduler",
    source=f"{KUBERNETES}/pkg/scheduler/profile/profile.go",
    check=_unknown_scheduler,
)
DEPRECATED_TOPOLOGY_KEY: Final = Rule(
    code="SPR213",
    name="deprecated-topology-key",
    severity=Severity.WARNING,
    summary="topologyKey is a node label that is deprecated",
    message="topologyKey {key} is deprecated since {since}, and nodes may be without it: {current} replaces it",
    why=(
        "Nodes that lack the label are in no domain: a DoNotSchedule constraint or a required affinity term refuses "
        "them, and a required anti-affinity term keeps nothing away from them. kube-apiserver warns of it in spread "
        "constraints only."
    ),
    fix="use the key that replaces it",
    source=f"{KUBERNETES}/pkg/api/node/util.go",
    check=_deprecated_topology_key,
)
