"""The sections of `explain` about pods to place; their JSON form is a contract (docs/json.md)."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import UNSET, UnsetType

from kubectl_spread.report.model import Part


class NodeRefusal(Part, frozen=True, kw_only=True):
    """Nodes that will not take the next pod, all for the same reason.

    ``filter`` is ``cordon``, ``taints``, ``nodeAffinity``, ``resources``, ``volumes``, ``spread`` or ``podAffinity``.
    """

    filter: str
    reason: str
    nodes: list[str]


class Placing(Part, frozen=True, kw_only=True):
    """The nodes where the next pod of one group may go; ``unknown`` are the questions that could not be answered.

    ``scores`` are the scores of the scheduler's spread plugin alone. They are absent if a single node is allowed, and
    for pods without soft constraints.
    """

    pods: list[str]
    allowed: list[str]
    scores: dict[str, int] | UnsetType = UNSET
    refused: list[NodeRefusal]
    unknown: list[str] | UnsetType = UNSET


class Step(Part, frozen=True, kw_only=True):
    """One more pod: the domains that would take it, the number of their nodes, and the domain that is assumed.

    A domain of several constraints is written as the values of their topology keys, in the constraints' order. The
    pod is assumed to use the node with the best score. If no node takes it, ``assumed`` is "" and ``reason`` says why.
    """

    allowed: list[str]
    nodes: int
    assumed: str
    reason: str | UnsetType = UNSET


class NextPods(Part, frozen=True, kw_only=True):
    """The next pods of one group."""

    pods: list[str]
    topology_keys: list[str]
    steps: list[Step]


class SchedulerEvent(Part, frozen=True, kw_only=True):
    """An event of the scheduler about a pod, with its number of occurrences and the time of the last."""

    pod: str
    message: str
    count: int
    last: str | UnsetType = UNSET


class Condition(Part, frozen=True, kw_only=True):
    """The reason in a pod's status why it has no node, and the time of that condition."""

    pod: str
    reason: str
    message: str
    since: str | UnsetType = UNSET


class InertConstraint(Part, frozen=True, kw_only=True):
    """A constraint that selects no pod because the label ``key`` was changed from ``stored`` to ``label``."""

    path: str
    key: str
    stored: str
    label: str


class Waiting(Part, frozen=True, kw_only=True):
    """Pending pods that are alike: the nodes that would take one, and the other nodes by their first reason.

    ``gates`` keep the scheduler from trying to place the pods. ``condition`` is that of the first pod with one; it is
    absent if there is an ``event``.
    """

    pods: list[str]
    allowed: list[str]
    refused: list[NodeRefusal]
    gates: list[str] | UnsetType = UNSET
    inert: list[InertConstraint] | UnsetType = UNSET
    unknown: list[str] | UnsetType = UNSET
    event: SchedulerEvent | UnsetType = UNSET
    condition: Condition | UnsetType = UNSET


class NodePoolAnswer(Part, frozen=True, kw_only=True):
    """Whether a NodePool may make a node for a pod.

    ``filter`` is the first thing that refuses: ``ready``, ``static``, ``limits``, ``taints``, ``requirements``,
    ``spread`` or ``affinity``. Without one the NodePool may make a node, but only in ``domains`` where a hard
    constraint or pod affinity restricts it; an empty list stands for domains that are not known.
    """

    name: str
    filter: str | UnsetType = UNSET
    reason: str | UnsetType = UNSET
    domains: list[str] | UnsetType = UNSET


class NodePoolDomain(Part, frozen=True, kw_only=True):
    """A domain that Karpenter counts for a hard constraint, with its matching pods and the reasons why it counts.

    ``nodes`` is the number of nodes that count for the scheduler; it does not count a domain that has none.
    """

    topology_key: str
    value: str
    pods: int
    nodes: int
    sources: list[str]


class NodeGroupAnswer(Part, frozen=True, kw_only=True):
    """A node group of cluster-autoscaler; ``filter`` is ``maxSize`` or ``backoff``, and absent if it may grow.

    ``error_code`` is the reason of a backoff.
    """

    name: str
    target: int
    max_size: int
    filter: str | UnsetType = UNSET
    error_code: str | UnsetType = UNSET


class NewNodes(Part, frozen=True, kw_only=True):
    """Whether node autoscalers can make a node for pending pods that no node takes.

    ``verdict`` is ``none`` where every NodePool and node group surely refuses, else ``possible``: the API does not
    tell instance types and their availability. ``messages`` are the last events of the autoscalers.
    """

    pods: list[str]
    verdict: str
    summary: str
    reasons: list[str]
    fixes: list[str]
    node_pools: list[NodePoolAnswer]
    domains: list[NodePoolDomain]
    node_groups: list[NodeGroupAnswer]
    messages: list[str]


def refusing(pools: Sequence[NodePoolAnswer], groups: Sequence[NodeGroupAnswer]) -> str:
    """Return that none of the NodePools and node groups can make a node, without claims about what was not read."""
    if not groups:
        return "No NodePool can make a node"
    return "No NodePool or node group can make a node" if pools else "No node group can get a node"
