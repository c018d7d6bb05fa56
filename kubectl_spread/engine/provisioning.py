"""Provisioning: the nodes that Karpenter or cluster-autoscaler could make for pods that wait, if they can be had.

A new node is like those that its NodePool or node group has: instance types, and whether they are available, are not in
the API.

Source: kubernetes-sigs/cluster-autoscaler of August 2026 cluster-autoscaler/core/scaleup/orchestrator/orchestrator.go:
groups in random order (the expander "random"), one node at a time, by the filters of the scheduler.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from kubectl_spread.engine import newnodes
from kubectl_spread.engine.cluster import SimulatedCluster
from kubectl_spread.engine.nodeclaims import Batch, OrderedNode, TrialNode, newest
from kubectl_spread.engine.pods import SimulatedPod
from kubectl_spread.kube.api.labels import ZONE
from kubectl_spread.kube.api.types import Node

_ATTEMPTS: Final = 10
"""How often Karpenter decides again where it found no node; it may choose another of several equal domains then."""


class MadeNode(NamedTuple):
    """What made a node, such as ``NodePool default``, and its zone; "" for none."""

    maker: str
    zone: str


class _Offer(NamedTuple):
    """A node that could be made: the name of its node group, and the node that it is like."""

    group: str
    model: Node


class Provisioning:
    """The autoscalers of a cluster, which make nodes where pods wait for them.

    Attributes:
        made: The nodes that were made.
        unsized: What could make a node, but has none whose size a new one could have.
        missed: The zones where a node would be made if any node there answered.
    """

    def __init__(self) -> None:
        self.made: Counter[MadeNode] = Counter()
        self.unsized: set[str] = set()
        self.missed: set[str] = set()
        self._claims: list[OrderedNode] = []

    def step(self, cluster: SimulatedCluster) -> bool:
        """Make the nodes that Karpenter orders now, or one of a node group; tell whether there are any."""
        waiting = [pod for pod in cluster.queue() if not (pod.pin or cluster.user_of_claim(pod))]
        autoscalers = cluster.world.snapshot.node_autoscalers
        for _ in range(_ATTEMPTS) if waiting and autoscalers.pools else ():
            batch = Batch(cluster, self._claims)
            claims = batch.ordered(waiting)
            self.unsized |= batch.unsized
            self.missed |= batch.missed
            if claims:
                cluster.add_nodes([(claim.node, claim.model) for claim in claims])
                self._claims += claims
                for claim in claims:
                    self._note(f"NodePool {claim.pool}", claim.node)
                return True
        return autoscalers.status is not None and self._enlarge(cluster, waiting)

    def _note(self, maker: str, node: Node) -> None:
        self.made[MadeNode(maker, node.metadata.labels.get(ZONE, ""))] += 1

    def _enlarge(self, cluster: SimulatedCluster, waiting: Iterable[SimulatedPod]) -> bool:
        """Add a node to a group for the first pod that one would help; tell whether there is one."""
        answered = set[object]()
        for pod in waiting:
            question = (pod.kind, pod.refused)
            if question not in answered:
                answered.add(question)
                if any(self._add(cluster, pod, offer) for offer in self._offers(cluster)):
                    return True
        return False

    def _offers(self, cluster: SimulatedCluster) -> Iterator[_Offer]:
        """Yield a node of each group that may grow, for each zone that it has nodes in."""
        world = cluster.world
        status = world.snapshot.node_autoscalers.status
        groups = [] if status is None else newnodes.node_groups(status)
        cluster.random.shuffle(groups)
        for group in groups:
            maker = f"node group {group.name}"
            made = sum(number for each, number in self.made.items() if each.maker == maker)
            if not isinstance(group.filter, str) and group.target + made < group.max_size:
                members = newnodes.members(group.name, world.nodes)
                if not members:
                    self.unsized.add(maker)
                zones = sorted({node.metadata.labels.get(ZONE, "") for node in members} - cluster.silent_zones)
                cluster.random.shuffle(zones)
                for zone in zones:
                    of_zone = (node for node in members if node.metadata.labels.get(ZONE, "") == zone)
                    yield _Offer(group.name, max(of_zone, key=newest))

    def _add(self, cluster: SimulatedCluster, pod: SimulatedPod, offer: _Offer) -> bool:
        """Add a node if the filters of the scheduler allow a pod there; tell whether they do."""
        model = offer.model.metadata.name
        node = cluster.world.copied(offer.model, f"{model}-new-{self.made.total() + 1}")
        if not TrialNode(cluster, node, model).takes(pod.kind):
            return False
        before = cluster.nodes
        cluster.set_nodes(sorted((*before, node), key=lambda each: each.metadata.name))
        feasible = cluster.state.feasible(pod.kind, pod.refused) >> cluster.table.numbers[node.metadata.name] & 1
        cluster.set_nodes(before)
        if feasible:
            cluster.add_nodes([(node, model)])
            self._note(f"node group {offer.group}", node)
        return bool(feasible)
