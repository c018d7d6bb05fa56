"""Node groups: which ones does cluster-autoscaler surely not enlarge, as its status says, and what can it not see?

Source: kubernetes-sigs/cluster-autoscaler of August 2026, cluster-autoscaler/core/scaleup/orchestrator/orchestrator.go
and cluster-autoscaler/clusterstate/clusterstate.go.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import UNSET

from kubectl_spread.engine.pods import SimulatedPod
from kubectl_spread.kube.api.labels import HOSTNAME
from kubectl_spread.kube.api.types import Node
from kubectl_spread.kube.nodeautoscaling import GROUP_LABELS, AutoscalerStatus, NodeGroup
from kubectl_spread.phrases import domains, listed, plural, topology_name
from kubectl_spread.report.explanation import NodeGroupAnswer


def answers(status: AutoscalerStatus) -> list[NodeGroupAnswer]:
    """Return an answer of each node group, by name."""
    return [_answer(group) for group in sorted(status.node_groups, key=lambda group: group.name)]


def _answer(group: NodeGroup) -> NodeGroupAnswer:
    refusal = "maxSize" if group.is_full else "backoff" if group.backs_off else UNSET
    code = group.scale_up.backoff_info.error_code if refusal == "backoff" else ""
    return NodeGroupAnswer(
        name=group.name,
        target=group.health.cloud_provider_target,
        max_size=group.health.max_size,
        filter=refusal,
        error_code=code or UNSET,
    )


def reason(group: NodeGroupAnswer, nodes: Sequence[Node], key: str) -> str:
    """Return why a group surely gets no node, with the domains of its nodes by a topology key ("" for none)."""
    labels = [node.metadata.labels for node in members(group.name, nodes)]
    where = sorted({each[key] for each in labels if key in each})
    place = f" (its nodes are in {domains(key, where)})" if where else ""
    if group.filter == "maxSize":
        return f"node group {group.name}{place} has its maximum of {plural(group.max_size, 'node')}"
    code = f" ({group.error_code})" if isinstance(group.error_code, str) else ""
    return f"node group {group.name}{place} is in backoff after a failed scale-up{code}"


def members(group: str, nodes: Sequence[Node]) -> list[Node]:
    """Return the nodes of a group: those whose label has the longest part of the name of the group."""
    name = f"-{group.replace('/', '-')}-"
    values = {value for node in nodes for value in _names(node)}
    own = max((value for value in values if f"-{value}-" in name), key=len, default=None)
    return [node for node in nodes if own in _names(node)]


def _names(node: Node) -> list[str]:
    """Return what the labels of a node name as its group."""
    return [node.metadata.labels[label] for label in GROUP_LABELS if label in node.metadata.labels]


def unseen(groups: Sequence[NodeGroupAnswer], pod: SimulatedPod) -> str:
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
    noun = "Node group" if len(empty) == 1 else "Node groups"
    return (
        f"{noun} {listed(empty)} {have} no node, so a {keys[0]} that only {it} could open does not count for "
        "cluster-autoscaler and the scheduler, unless the constraint has minDomains"
    )
