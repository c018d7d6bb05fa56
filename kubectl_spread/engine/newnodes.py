"""New nodes: can Karpenter or cluster-autoscaler make a node for a waiting pod, and if not, what helps?

"None" means that every NodePool and node group surely refuses. No answer says that a node will be made.

Source: kubernetes-sigs/cluster-autoscaler of August 2026, cluster-autoscaler/core/scaleup/orchestrator/orchestrator.go
and cluster-autoscaler/clusterstate/clusterstate.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from msgspec import UNSET

from kubectl_spread.audit.snapshot.records import PodRecord
from kubectl_spread.engine import nodepools
from kubectl_spread.engine.answers import Reason
from kubectl_spread.engine.cluster import SimulatedCluster
from kubectl_spread.engine.pods import SimulatedPod
from kubectl_spread.engine.pooldomains import PoolDomains
from kubectl_spread.engine.termdomains import terms_of
from kubectl_spread.engine.topologygroups import constrained
from kubectl_spread.kube.api.labels import HOSTNAME, ZONE
from kubectl_spread.kube.api.objects import ObjectRef
from kubectl_spread.kube.api.types import Node
from kubectl_spread.kube.nodeautoscaling import GROUP_LABELS, AutoscalerStatus, NodeGroup
from kubectl_spread.phrases import domains, listed, noun, plural, sentence, topology_name
from kubectl_spread.report.explanation import NewNodes, NodeGroupAnswer, NodePoolAnswer, NodePoolDomain, refusing

NONE: Final = "none"
POSSIBLE: Final = "possible"
OF_KARPENTER: Final = "Failed to schedule pod"
"""The beginning of Karpenter's message in an event FailedScheduling, whose reason is that of the scheduler's."""
_FAILED_SCHEDULING: Final = "FailedScheduling"
_NOT_TRIGGERED: Final = "NotTriggerScaleUp"
_NO_TYPES: Final = "NoCompatibleInstanceTypes"
_HELP: Final = {
    "ready": "see why NodePool {name} {state}: kubectl describe nodepool {name}",
    "static": "raise spec.replicas of NodePool {name}, or add a NodePool without replicas",
    "limits": "raise spec.limits of NodePool {name}",
    "taints": "add a toleration of the taint of NodePool {name} to the pod template",
    "requirements": "let the requirements of NodePool {name} and the pod's node selector or affinity share a value",
    "affinity": "let NodePool {name} and its class offer a domain that pod affinity allows, or prefer it only",
    "spread": "let NodePool {name} and its class offer a domain that the constraint allows, or use ScheduleAnyway",
    "maxSize": "raise the maximum size of node group {name}",
    "backoff": "wait until the backoff of node group {name} ends, or let another group make the node",
}
"""Maps what refuses to what helps."""


def needs_new_node(pod: SimulatedPod, reason: Reason) -> bool:
    """Tell whether a pending pod would run on a new node: no node takes it, it has no gates, and none is its own."""
    return not (reason.free or pod.held or pod.kind.pod_class.pinned)


def in_one_sentence(cluster: SimulatedCluster, pod: SimulatedPod, reason: Reason) -> str:
    """Return whether a node can be made for a pending pod; "" where no autoscaler was read, or it needs none."""
    if not cluster.world.snapshot.node_autoscalers.known or not needs_new_node(pod, reason):
        return ""
    return new_nodes(cluster, pod).summary


def new_nodes(cluster: SimulatedCluster, pod: SimulatedPod) -> NewNodes:
    """Return whether a node can be made for a pending pod, without its name and messages."""
    autoscalers = cluster.world.snapshot.node_autoscalers
    counted = list(constrained(cluster, pod))
    restrictions: list[nodepools.Restriction] = [*counted, *terms_of(cluster, pod)]
    pools = nodepools.answers(cluster, pod, restrictions)
    groups = [] if autoscalers.status is None else node_groups(autoscalers.status)
    open_pools = [pool for pool in pools if pool.filter is UNSET]
    open_groups = [group for group in groups if group.filter is UNSET]
    refusals, unseen = _refusals(pools, groups, cluster), _unseen(groups, pod)
    summary = _summary(open_pools, open_groups, restrictions)
    return NewNodes(
        pods=[],
        verdict=POSSIBLE if open_pools or open_groups else NONE,
        summary=summary or f"{refusing(pools, groups)}: {_first(refusals)}",
        reasons=[
            *map(sentence, refusals),
            *_disagreements(open_pools, counted),
            *([sentence(unseen)] if unseen else []),
        ],
        fixes=[sentence(text) for text in _fixes(pools, groups, counted)],
        node_pools=pools,
        domains=[each for domain in counted for each in _counted(domain)] if pools else [],
        node_groups=groups,
        messages=[],
    )


def _refusals(
    pools: Iterable[NodePoolAnswer], groups: Iterable[NodeGroupAnswer], cluster: SimulatedCluster
) -> list[str]:
    nodes = cluster.table.sets.nodes
    of_pools = [f"NodePool {pool.name} refuses because {pool.reason}" for pool in pools if pool.filter is not UNSET]
    return [*of_pools, *(_reason_of_group(group, nodes) for group in groups if group.filter is not UNSET)]


def _first(refusals: Sequence[str]) -> str:
    """Return the first refusal, and the number of the others, as the end of a sentence."""
    more = f", and {len(refusals) - 1} more refuse too" if len(refusals) > 1 else ""
    return f"{refusals[0]}{more}."


def _summary(
    pools: Sequence[NodePoolAnswer], groups: Sequence[NodeGroupAnswer], restrictions: Iterable[nodepools.Restriction]
) -> str:
    """Return which pools or groups may make a node; "" if there are none."""
    if not pools and not groups:
        return ""
    if not pools:
        names = listed([group.name for group in groups])
        return f"cluster-autoscaler may add a node to {names}, if its labels, taints, zone and size fit the pod."
    names = f"{'NodePool' if len(pools) == 1 else 'NodePools'} {listed([pool.name for pool in pools])}"
    restricting = next((each for each in restrictions if each.restricts), None)
    places = sorted({value for pool in pools if isinstance(pool.domains, list) for value in pool.domains})
    if restricting is not None and all(pool.domains == [] for pool in pools):
        return (
            f"{names} may make a node only in a {noun(restricting.key)} that is not known, because the pod's "
            f"constraints and terms of affinity refuse all others."
        )
    if restricting is None or not places:
        return f"{names} may make a node, if an instance type fits and is available."
    where = domains(restricting.key, places)
    only = "only" if restricting.is_certain else "probably only"
    return f"{names} may make a node {only} in {where}, if an instance type fits and is available there."


def _disagreements(pools: Sequence[NodePoolAnswer], counted: Sequence[PoolDomains]) -> Iterator[str]:
    """Yield where Karpenter counts an empty domain that the scheduler does not count, and keeps pods from others."""
    for each in counted if pools else ():
        refused = each.refused
        empty = [value for value in each.unseen if not each.pods(value)]
        if not refused or not empty:
            continue
        key = each.constraint.topology_key
        full = listed([f"{value} ({plural(each.pods(value), 'pod')})" for value in refused])
        counts = "counts" if each.is_certain else "probably counts"
        yield (
            f"Karpenter {counts} {domains(key, empty)} with 0 pods ({each.reasons(empty)}), so with maxSkew "
            f"{each.constraint.max_skew} it makes no node in {full}. No node that counts is in {domains(key, empty)}, "
            f"so kube-scheduler does not count {'it' if len(empty) == 1 else 'them'}."
        )


def _fixes(
    pools: Sequence[NodePoolAnswer], groups: Sequence[NodeGroupAnswer], counted: Iterable[PoolDomains]
) -> Iterator[str]:
    """Yield what helps: against domains without nodes where a pool makes nodes, else against each refusal."""
    if any(pool.filter is UNSET for pool in pools):
        # With Honor the domains of pools whose taints the pod does not tolerate do not count.
        honor = "" if any(pool.filter == "taints" for pool in pools) else ". nodeTaintsPolicy: Honor does not help"
        yield from (f"{text}{honor}" for text in map(without_empty, counted) if text)
        return
    states = [(pool.filter, pool.name, str(pool.reason).removeprefix("it ")) for pool in pools]
    for refusal, name, state in [*states, *((group.filter, group.name, "") for group in groups)]:
        if isinstance(refusal, str):
            yield _HELP[refusal].format(name=name, state=state)


def without_empty(counted: PoolDomains) -> str:
    """Return what helps if a domain without nodes has no capacity; "" where none keeps pods from other domains."""
    action = forgetting(counted)
    empty = [value for value in counted.unseen if not counted.pods(value)]
    have = "has" if len(empty) == 1 else "have"
    return f"if {domains(counted.constraint.topology_key, empty)} {have} no capacity: {action}" if action else ""


def forgetting(counted: PoolDomains) -> str:
    """Return what makes Karpenter forget a domain without nodes; "" where none keeps pods from other domains.

    NodePools may still name domains that only other pods may use.
    """
    key = counted.constraint.topology_key
    empty = [value for value in counted.unseen if not counted.pods(value)]
    others = [value for value in sorted(counted.sources) if value not in empty and counted.usable(value)]
    if not empty or not others or not counted.refused:
        return ""
    subnets = any(not source.certain for value in empty for source in counted.sources[value])
    subnet = f"remove the subnets of {domains(key, empty)} from the EC2NodeClass, and " if subnets else ""
    of_others = len(empty) + len(others) < len(counted.sources)
    naming = f"no longer name {domains(key, empty)}" if of_others else f"name only {domains(key, others)}"
    return (
        f"{subnet}let the requirements of the NodePools {naming} for {key}, "
        f"or make the constraint on {topology_name(key)} ScheduleAnyway"
    )


def _counted(counted: PoolDomains) -> Iterator[NodePoolDomain]:
    for value, sources in sorted(counted.sources.items()):
        yield NodePoolDomain(
            topology_key=counted.constraint.topology_key,
            value=value,
            pods=counted.pods(value),
            nodes=counted.nodes.get(value, 0),
            sources=[source.text for source in sources],
        )


def messages(cluster: SimulatedCluster, pod: PodRecord, pools: Iterable[NodePoolAnswer]) -> Iterator[str]:
    """Yield the last event of each autoscaler about the pod, and of Karpenter about each pool."""
    ownership = cluster.world.snapshot.ownership
    of_pod = ownership.events_about(pod.ref, _FAILED_SCHEDULING)
    yield from [event.message for event in of_pod if event.message.startswith(OF_KARPENTER)][:1]
    yield from [event.message for event in ownership.events_about(pod.ref, _NOT_TRIGGERED)][:1]
    for pool in pools:
        about = ObjectRef("", "NodePool", pool.name)
        yield from [f"NodePool {pool.name}: {event.message}" for event in ownership.events_about(about, _NO_TYPES)][:1]


def node_groups(status: AutoscalerStatus) -> list[NodeGroupAnswer]:
    """Return an answer of each node group, by name."""
    return [_answer_of_group(group) for group in sorted(status.node_groups, key=lambda group: group.name)]


def _answer_of_group(group: NodeGroup) -> NodeGroupAnswer:
    refusal = "maxSize" if group.is_full else "backoff" if group.backs_off else UNSET
    code = group.scale_up.backoff_info.error_code if refusal == "backoff" else ""
    return NodeGroupAnswer(
        name=group.name,
        target=group.health.cloud_provider_target,
        max_size=group.health.max_size,
        filter=refusal,
        error_code=code or UNSET,
    )


def _reason_of_group(group: NodeGroupAnswer, nodes: Sequence[Node]) -> str:
    """Return why a group surely gets no node, with the zones of its nodes."""
    labels = [node.metadata.labels for node in members(group.name, nodes)]
    where = sorted({each[ZONE] for each in labels if ZONE in each})
    place = f" (its nodes are in {domains(ZONE, where)})" if where else ""
    if group.filter == "maxSize":
        return f"node group {group.name}{place} has its maximum of {plural(group.max_size, 'node')}"
    code = f" ({group.error_code})" if isinstance(group.error_code, str) else ""
    return f"node group {group.name}{place} is in backoff after a failed scale-up{code}"


def members(group: str, nodes: Sequence[Node]) -> list[Node]:
    """Return the nodes of a group: those whose label has the longest part of the name of the group."""
    name = f"-{group.replace('/', '-')}-"
    values = {value for node in nodes for value in _group_names(node)}
    own = max((value for value in values if f"-{value}-" in name), key=len, default=None)
    return [node for node in nodes if own in _group_names(node)]


def _group_names(node: Node) -> list[str]:
    """Return what the labels of a node name as its group."""
    return [node.metadata.labels[label] for label in GROUP_LABELS if label in node.metadata.labels]


def _unseen(groups: Sequence[NodeGroupAnswer], pod: SimulatedPod) -> str:
    """Return that empty groups are invisible to the hard constraints of a pod; "" where that decides nothing.

    cluster-autoscaler runs the scheduler's filters on one node of a group at a time, so the domain of an empty group
    does not count while another group is tried. With minDomains the minimum is 0 in spite of that.
    """
    empty = [group.name for group in groups if group.target == 0 and group.filter is UNSET]
    keys = [
        topology_name(each.topology_key)
        for each in pod.kind.hard
        if each.min_domains == 1 and each.topology_key != HOSTNAME
    ]
    if not empty or not keys:
        return ""
    have, it = ("has", "it") if len(empty) == 1 else ("have", "they")
    subject = "Node group" if len(empty) == 1 else "Node groups"
    return (
        f"{subject} {listed(empty)} {have} no node, so a {keys[0]} that only {it} could open does not count for "
        "cluster-autoscaler and the scheduler, unless the constraint has minDomains"
    )
