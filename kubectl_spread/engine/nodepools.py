"""NodePools: which may make a node for a waiting pod by Karpenter's own rules, and what refuses first in the others?

The answers are sure only where a NodePool refuses. Whether an instance type fits, and is available, is not in the API.

Source: kubernetes-sigs/karpenter v1.15.0 pkg/controllers/provisioning/scheduling/{scheduler,nodeclaim}.go, CanAdd.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial, reduce
from typing import TYPE_CHECKING, Final, TypeAlias

from msgspec import UNSET, UnsetType

from kubectl_spread.audit.snapshot.records import PodClass
from kubectl_spread.engine.cluster import SimulatedCluster
from kubectl_spread.engine.pods import SimulatedPod
from kubectl_spread.engine.pooldomains import PoolDomains, joint
from kubectl_spread.kube import noderequirements
from kubectl_spread.kube.api.labels import ZONE, Labels
from kubectl_spread.kube.api.quantity import thousandths
from kubectl_spread.kube.api.types import Node
from kubectl_spread.kube.nodeautoscaling import ZONE_ID, EC2NodeClass, NodeAutoscalers, NodePool
from kubectl_spread.kube.noderequirements import AllowedValues, Requirements
from kubectl_spread.kube.scheduler import taints
from kubectl_spread.kube.scheduler.podtopologyspread.domains import Placement
from kubectl_spread.phrases import domains, topology_name
from kubectl_spread.report.explanation import NodePoolAnswer

if TYPE_CHECKING:
    from kubectl_spread.engine.termdomains import TermDomains

    Restriction: TypeAlias = PoolDomains | TermDomains
    """What may keep Karpenter from some domains for a pod: a hard constraint, or a term of pod affinity."""

_NODES: Final = "nodes"
"""The limit on the number of nodes of a pool."""
_OF_EVERY_NODE: Final = frozenset({"cpu", "memory", _NODES})
"""The resources that every new node adds to."""


def answers(cluster: SimulatedCluster, pod: SimulatedPod, restrictions: Sequence[Restriction]) -> list[NodePoolAnswer]:
    """Return an answer of each NodePool about a pending pod, by name; restrictions are all that its domains have."""
    autoscalers = cluster.world.snapshot.node_autoscalers
    return [_answer(pool, autoscalers.class_of(pool), pod, restrictions) for pool in autoscalers.pools]


def accepting(autoscalers: NodeAutoscalers, pod_class: PodClass) -> list[NodePool]:
    """Return the NodePools that may make a node for pods of a class, constraints aside."""
    return [pool for pool in autoscalers.pools if _refusal(pool, autoscalers.class_of(pool), pod_class) is None]


def _answer(
    pool: NodePool, node_class: EC2NodeClass | None, pod: SimulatedPod, restrictions: Sequence[Restriction]
) -> NodePoolAnswer:
    refused = partial(NodePoolAnswer, name=pool.metadata.name)
    refusal = _refusal(pool, node_class, pod.kind.pod_class)
    if refusal is not None:
        return refused(filter=refusal[0], reason=refusal[1])
    choices = range(len(list(noderequirements.alternatives(pod.kind.pod_class.placement))))
    (name, reason), *others = (_restriction(pool, choice, restrictions) for choice in choices)
    if name and all(other for other, _ in others):
        return refused(filter=name, reason=reason)
    return refused(domains=_expected(pool, choices, restrictions))


def _restriction(pool: NodePool, choice: int, restrictions: Sequence[Restriction]) -> tuple[str, str]:
    """Return what leaves a pool no domain for one alternative of the pod's node affinity, and why; "" for nothing."""
    left: dict[str, tuple[Restriction, frozenset[str]]] = {}
    for each in restrictions:
        own = each.left(pool, choice)
        if own is None:
            continue
        if not own:
            return each.filter, each.reason(pool)
        both = own if each.key not in left else own & left[each.key][1]
        if not both:
            return each.filter, _joint_reason(each, own)
        left[each.key] = each, both
    for each, values in left.values():
        # A restriction that may leave a domain that is not known refuses others all the same.
        if not _not_refused(values, choice, each.key, restrictions):
            return each.filter, _joint_reason(each, values)
    return "", ""


def _joint_reason(restriction: Restriction, values: frozenset[str]) -> str:
    """Return that another restriction refuses the only domains that one leaves, as the end of a sentence."""
    name = f"{restriction.subject} on {topology_name(restriction.key)}"
    only = domains(restriction.key, sorted(values))
    return f"{name} leaves only {only}, which another constraint or term of affinity refuses"


def _not_refused(values: Iterable[str], choice: int, key: str, restrictions: Iterable[Restriction]) -> frozenset[str]:
    """Return those of some domains of a topology key that no restriction surely refuses."""
    of_key = [each for each in restrictions if each.key == key]
    return frozenset(value for value in values if not any(each.refuses(value, choice) for each in of_key))


def _expected(pool: NodePool, choices: Sequence[int], restrictions: Sequence[Restriction]) -> list[str] | UnsetType:
    """Return the domains where a pool may make a node, if a restriction leaves only some; none where none is known."""
    first = next((each for each in restrictions if each.restricts), None)
    if first is None:
        return UNSET
    of_key = [each for each in restrictions if each.key == first.key]
    probable = reduce(joint, (each.expected(pool) for each in of_key))
    if probable is None:
        return UNSET
    left = [_not_refused(probable, choice, first.key, of_key) for choice in choices]
    if not any(left):
        # Karpenter may not count all domains that it probably counts.
        sure = [reduce(joint, (each.left(pool, choice) for each in of_key)) for choice in choices]
        left = [_not_refused(each or (), choice, first.key, of_key) for each, choice in zip(sure, choices, strict=True)]
    return sorted(frozenset[str]().union(*left))


def _refusal(pool: NodePool, node_class: EC2NodeClass | None, pod_class: PodClass) -> tuple[str, str] | None:
    """Return what refuses pods of a class first, constraints aside, and why; None for a pool that may take them."""
    own = _requirements(pool, node_class)
    for name, reason in (
        ("ready", _unused(pool)),
        ("static", _static(pool)),
        ("limits", next(_limits(pool, pod_class.requests or {}), "")),
        ("taints", _untolerated(pool, pod_class.placement)),
        ("requirements", _without_subnet(own)),
    ):
        if reason:
            return name, reason
    choices = list(noderequirements.alternatives(pod_class.placement))
    conflicts = [noderequirements.conflict(own, choice) for choice in choices]
    return ("requirements", _requirement(conflicts[0], own, choices[0])) if all(conflicts) else None


def _unused(pool: NodePool) -> str:
    if pool.deleted:
        return "it is being deleted"
    return "" if pool.ready else "it is not ready"


def _requirements(pool: NodePool, node_class: EC2NodeClass | None) -> Requirements:
    """Return the values of labels that nodes of a pool may have; they are in zones where their class has a subnet."""
    requirements = {**noderequirements.combined(pool.spec.template.spec.requirements, pool.labels)}
    for key in (ZONE, ZONE_ID):
        offered = None if node_class is None else node_class.values(key)
        if offered is not None:
            in_subnets = AllowedValues(offered, excluded=False)
            requirements[key] = requirements.get(key, AllowedValues()).both(in_subnets)
    return requirements


def _without_subnet(requirements: Requirements) -> str:
    """Return that a pool allows no zone in which its class has a subnet; "" if it does, or no subnets were read."""
    empty = any(key in requirements and requirements[key].is_empty for key in (ZONE, ZONE_ID))
    return "its class has no subnet in a zone that its requirements allow" if empty else ""


def _static(pool: NodePool) -> str:
    replicas = pool.spec.replicas
    return "" if replicas is None else f"it is static (replicas {replicas}), so it makes no node for waiting pods"


def _limits(pool: NodePool, requested: Mapping[str, int]) -> Iterator[str]:
    """Yield each limit that leaves no room for a node with a pod that requests these amounts.

    Source: kubernetes-sigs/karpenter v1.15.0 pkg/controllers/provisioning/scheduling/scheduler.go,
    filterByRemainingResources: an instance type with more than what remains is not used.
    """
    requests = {**requested, _NODES: 1}
    for name, limit in sorted(pool.spec.limits.items()):
        used = pool.status.resources.get(name, "0")
        try:
            remaining = thousandths(limit) - thousandths(used)
        except ValueError:
            continue
        request = requests.get(name, 0) * (1 if name == "cpu" else 1000)
        if remaining <= 0 and (request or name in _OF_EVERY_NODE):
            yield f"its limit of {name} is reached ({used} of {limit})"
        elif request > remaining:
            yield f"its limit of {name} leaves too little for the pod ({used} of {limit} are used)"


def amounts(node: Node) -> Counter[str]:
    """Return the thousandths of each resource that a node adds to what its NodePool has."""
    made = Counter({_NODES: 1000})
    for name, text in node.status.allocatable.items():
        with suppress(ValueError):
            made[name] = thousandths(text)
    return made


def is_within_limits(pool: NodePool, made: Mapping[str, int]) -> bool:
    """Tell whether the limits of a pool allow new nodes with these thousandths of each resource."""
    for name, limit in pool.spec.limits.items():
        with suppress(ValueError):
            if thousandths(pool.status.resources.get(name, "0")) + made.get(name, 0) > thousandths(limit):
                return False
    return True


def zones(autoscalers: NodeAutoscalers, pool: NodePool, own: Iterable[Node]) -> list[str]:
    """Return the zones where a pool makes nodes: those that it names or its class has, else those of its own nodes."""
    node_class, required = autoscalers.class_of(pool), autoscalers.values(pool.metadata.name, ZONE)
    offered = None if node_class is None else node_class.values(ZONE)
    listed = required.listed if offered is None else offered
    if listed is None:
        claims = autoscalers.claims_in(pool.metadata.name, ZONE)
        listed = frozenset((*claims, *(node.metadata.labels.get(ZONE, "") for node in own)))
    return sorted(value for value in listed if not value or required.allows(value))


def labels_for(
    autoscalers: NodeAutoscalers, pool: NodePool, pod_class: PodClass, labels: Labels, zone: str
) -> dict[str, str]:
    """Return the labels of a new node of a pool in a zone, which Karpenter makes for a pod.

    Args:
        autoscalers: The objects of Karpenter.
        pool: The pool.
        pod_class: The class of the pod.
        labels: Those of a node of the pool. Where the pod or the pool allows another value only, that is set.
        zone: The zone; every label with the zone of that node gets it.
    """
    own = labels.get(ZONE)
    made = {name: zone if value == own else value for name, value in labels.items() if own == zone or name != ZONE_ID}
    made |= {ZONE: zone} if zone else {}
    offered = _requirements(pool, autoscalers.class_of(pool))
    choices = noderequirements.alternatives(pod_class.placement)
    choice = next((each for each in choices if not noderequirements.conflict(offered, each)), {})
    for key in offered.keys() - {ZONE, ZONE_ID}:
        both = offered[key].both(choice.get(key, AllowedValues()))
        if both.listed and not both.allows(made.get(key, "")):
            made[key] = min(both.listed)
    return made


def _untolerated(pool: NodePool, placement: Placement) -> str:
    """Return that a pod does not tolerate a taint of a pool; "" if it tolerates all."""
    taint = taints.find_untolerated(pool.spec.template.spec.taints, placement.tolerations, comparison_operators=True)
    if taint is None:
        return ""
    text = f"{taint.key}={taint.value}" if taint.value else taint.key
    return f"the pod does not tolerate its taint {text}:{taint.effect}"


def _requirement(key: str, pool: Requirements, pod: Requirements) -> str:
    needed = f"the pod requires {pod[key].text}"
    if key not in pool:
        return f"its nodes have no label {key}, and {needed}"
    return f"its nodes have {key} {pool[key].text}, and {needed}"
