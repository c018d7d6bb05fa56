"""NodeClaims: the nodes that Karpenter orders for all pods that wait together, by its own rules.

Karpenter decides for the whole batch before any node is there. A node that it orders may be in any of several domains,
until constraints and affinity of the pods that it expects there leave only one. Each new node is a domain of its own
for constraints and affinity on the host.

Source: kubernetes-sigs/karpenter v1.15.0 pkg/controllers/provisioning/scheduling/{scheduler,queue,existingnode,
nodeclaim,topology}.go: Solve, add, CanAdd, Record.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from operator import or_
from typing import Final, NamedTuple

from kubectl_spread.engine import nodepools, topologygroups
from kubectl_spread.engine.cluster import SimulatedCluster
from kubectl_spread.engine.kinds import HeldTerm, SchedulingKind
from kubectl_spread.engine.nodes import by_age
from kubectl_spread.engine.placing import Placements
from kubectl_spread.engine.pods import SimulatedPod
from kubectl_spread.engine.topologygroups import TopologyGroup
from kubectl_spread.engine.wishes import GroupsOfKind, Wish, groups_of
from kubectl_spread.kube import nodelifecycle, noderequirements
from kubectl_spread.kube.api.labels import HOSTNAME, ZONE, ascending
from kubectl_spread.kube.api.types import Node, Taint
from kubectl_spread.kube.nodeautoscaling import NODE_POOL_LABEL, ZONE_ID, NodePool
from kubectl_spread.kube.noderequirements import AllowedValues, Requirements
from kubectl_spread.memoization import memoized

_SIZE: Final = ("cpu", "memory")
_ANYTHING: Final = AllowedValues()
_ELSEWHERE: Final = "elsewhere"
"""The zone of no node, where only volumes can be used that are in no zone."""


class OrderedNode(NamedTuple):
    """A node that Karpenter has ordered: the name of its NodePool, the node, and that of the one that it is like."""

    pool: str
    node: Node
    model: str


class TrialNode:
    """A node that could be made, with the pods that belong to it and those that are expected there.

    Attributes:
        node: The node.
        model: The name of the node that it is like.
    """

    def __init__(self, cluster: SimulatedCluster, node: Node, model: str) -> None:
        """Begin with the pods that belong to ``model``."""
        self.node, self.model = node, model
        world = self._world = cluster.world
        self._table, _ = world.table((node,))
        self._state = Placements(self._table, world.kinds, world.weights)
        for each in cluster.belonging(model):
            self._state.add(each.kind, 0)

    def has_room(self, kind: SchedulingKind) -> bool:
        """Tell whether a pod of a kind may be there next to the others."""
        return bool(self._state.room(kind).fits) and not any(each.nodes for each in self._state.repelling(kind))

    def takes(self, kind: SchedulingKind) -> bool:
        """Tell whether a pod of a kind may be there, constraints and affinity to pods of other nodes aside."""
        return bool(self._table.answers(kind).allowed) and self.has_room(kind)

    def add(self, kind: SchedulingKind) -> None:
        """Expect a pod."""
        self._state.add(kind, 0)

    def adopt(self, requirements: Requirements, keys: Iterable[str]) -> None:
        """Take other values of some labels, where requirements list what they allow."""
        labels = self.node.metadata.labels
        listed = {key: requirements[key].listed or () for key in keys}
        lacking = {key: min(values) for key, values in listed.items() if values and labels.get(key) not in values}
        if lacking:
            self.node = self._world.changed(self.node, {**labels, **lacking}, self.node.spec.taints)
            self._table, _ = self._world.table((self.node,))
            self._state = self._state.copy(self._table)

    def is_within(self, requirements: Requirements, groups: Iterable[TopologyGroup]) -> bool:
        """Tell whether requirements allow the domains of the node: its zone, and those of some groups."""
        labels = self.node.metadata.labels
        keys = {ZONE, *(group.key for group in groups)}
        return all(requirements.get(key, _ANYTHING).allows(labels.get(key, "")) for key in keys)


class _Claim:
    """A node that Karpenter is about to order.

    Attributes:
        pool: Its NodePool.
        requirements: The values that its labels may have.
        trials: The nodes that it may become.
        pods: The number of pods that are expected there.
        full: The kinds of pods that it has no room for, or whose pods there repel others.
    """

    def __init__(self, pool: NodePool) -> None:
        self.pool = pool
        self.full: set[SchedulingKind] = set()
        self.requirements: Requirements = {}
        self.trials: Sequence[TrialNode] = ()
        self.pods = 0

    def add(self, kind: SchedulingKind, requirements: Requirements, trials: Sequence[TrialNode]) -> None:
        """Expect a pod, with which the node has other requirements, and may become one of ``trials`` only."""
        self.pods += 1
        self.requirements, self.trials = requirements, trials
        for each in trials:
            each.add(kind)


class Batch:
    """The pods that wait at one moment, and the nodes that are ordered for them.

    Attributes:
        cluster: The cluster.
        unsized: The NodePools that have no node whose size a new one could have.
        missed: The zones that were chosen, and where none is made because no node there answers.
    """

    def __init__(self, cluster: SimulatedCluster, made: Sequence[OrderedNode]) -> None:
        """Begin a batch; ``made`` are the nodes that were ordered before, and are there."""
        self.cluster = cluster
        self.unsized: set[str] = set()
        self.missed: set[str] = set()
        self._silent = cluster.silent_zones
        self._first = len(made) + 1
        self._claims: list[_Claim] = []
        self._state = cluster.state
        self._groups: dict[SchedulingKind, GroupsOfKind] = {}
        self._others: dict[HeldTerm, TopologyGroup] = {}
        self._amounts: dict[str, Counter[str]] = {}
        for each in made:
            self._amounts.setdefault(each.pool, Counter()).update(nodepools.amounts(each.node))

    def ordered(self, pods: Iterable[SimulatedPod]) -> list[OrderedNode]:
        """Return the nodes that are ordered for pods."""
        waiting = sorted((pod for pod in pods if pod.kind.parses), key=_size, reverse=True)
        self._find_groups({pod.kind: None for pod in waiting})
        left = len(waiting) + 1
        while len(waiting) < left:
            left, waiting = len(waiting), self._without_node(waiting)
        chosen = ((claim, self.cluster.random.choice(claim.trials)) for claim in self._claims)
        return [OrderedNode(claim.pool.metadata.name, trial.node, trial.model) for claim, trial in chosen]

    def _find_groups(self, kinds: Iterable[SchedulingKind]) -> None:
        """Count the pods of the cluster in the domains of all constraints and terms that decide for some kinds."""
        for kind in kinds:
            self._groups[kind] = groups_of(self.cluster, kind)
            for held in self.cluster.world.kinds.acting_on(kind):
                if held.weight is None and held not in self._others:
                    holders = [*self.cluster.state.holders(held), *(each for each in kinds if held in each.held)]
                    if holders:
                        self._others[held] = topologygroups.of_others(self.cluster, held, holders)

    def _without_node(self, pods: Iterable[SimulatedPod]) -> list[SimulatedPod]:
        """Find a node for each of some pods, and return those for which there is none."""
        vain, without = set[object](), list[SimulatedPod]()
        for pod in pods:
            # For a pod that is equal to one without a node there is none either, until another one gets a node.
            question = (pod.kind, pod.refused, self._reach(pod))
            if question not in vain and self._expect(pod):
                vain.clear()
            else:
                vain.add(question)
                without.append(pod)
        return without

    def _expect(self, pod: SimulatedPod) -> bool:
        """Find a node for a pod, or order one; tell whether there is one."""
        kind = pod.kind
        others = [group for group in self._others.values() if group.counts(kind)]
        wish = Wish(kind, self._groups[kind], others, self._reach(pod))
        while True:
            if self._put_on_node(pod, wish) or self._put_on_claim(wish) or self._order(wish):
                return True
            if not wish.relax():
                return False

    def _put_on_node(self, pod: SimulatedPod, wish: Wish) -> bool:
        """Expect a pod on the first node by name that Karpenter takes it to fit on; tell whether there is one."""
        table, kind = self.cluster.table, pod.kind
        nodes = table.answers(kind).allowed & ~pod.refused & self._state.room(kind).fits
        for group in wish.groups if nodes else ():
            possible = group.possible(kind, wish.strict.get(group.key, _ANYTHING), _ANYTHING)
            nodes &= reduce(or_, (table.mask(group.key, value) for value in possible), 0)
        for number in sorted(ascending(nodes), key=table.names.__getitem__):
            node = table.sets.nodes[number]
            requirements = wish.narrowed(noderequirements.combined((), node.metadata.labels), self.cluster.random)
            if requirements is not None:
                if self._state is self.cluster.state:
                    self._state = self._state.copy(table)
                self._state.add(kind, number)
                self._record(kind, requirements, node.spec.taints)
                return True
        return False

    def _put_on_claim(self, wish: Wish) -> bool:
        """Expect a pod on the emptiest node that is ordered and may take it; tell whether there is one."""
        # Of those with as many pods that one is the first which was the first before.
        self._claims.sort(key=lambda each: each.pods)
        for claim in self._claims:
            if wish.kind in claim.full:
                continue
            roomy = [trial for trial in claim.trials if trial.has_room(wish.kind)]
            if not roomy:
                claim.full.add(wish.kind)
            requirements = wish.narrowed(claim.requirements, self.cluster.random) if roomy else None
            if requirements is not None:
                named = self.cluster.world.snapshot.node_autoscalers.requirements(claim.pool.metadata.name)
                for trial in roomy:
                    trial.adopt(requirements, named.keys() - {ZONE, ZONE_ID})
                if self._add(claim, wish, requirements, roomy):
                    return True
        return False

    def _add(self, claim: _Claim, wish: Wish, requirements: Requirements, trials: Iterable[TrialNode]) -> bool:
        """Expect a pod on an ordered node, if any that it may become takes it and is in the domains that are left."""
        trials = [trial for trial in trials if trial.is_within(requirements, wish.groups) and trial.takes(wish.kind)]
        if trials:
            claim.add(wish.kind, requirements, trials)
            self._record(wish.kind, requirements, claim.pool.spec.template.spec.taints)
        return bool(trials)

    def _record(self, kind: SchedulingKind, requirements: Requirements, taints: Sequence[Taint]) -> None:
        """Count a pod in the groups that select it, and in those of the terms with which it repels others."""
        selecting = (group for group in self._counting(kind) if group.sees(requirements, taints))
        for group in (*selecting, *(self._others[held] for held in kind.held if held in self._others)):
            group.record(requirements.get(group.key, _ANYTHING))

    @memoized
    def _counting(self, kind: SchedulingKind) -> Sequence[TopologyGroup]:
        """Return the groups of the pods that wait which count pods of a kind."""
        return [
            group for of_kind in self._groups.values() for groups in of_kind for group in groups if group.counts(kind)
        ]

    def _order(self, wish: Wish) -> bool:
        """Order a node of the first NodePool that makes one for a pod; tell whether there is one."""
        autoscalers = self.cluster.world.snapshot.node_autoscalers
        pools = nodepools.accepting(autoscalers, wish.kind.pod_class)
        return any(self._order_of(pool, wish) for pool in sorted(pools, key=lambda each: -(each.spec.weight or 0)))

    def _order_of(self, pool: NodePool, wish: Wish) -> bool:
        """Order a node of a pool for a pod, as far as the limits of the pool allow it; tell whether there is one."""
        name = pool.metadata.name
        if not (own := self._nodes_of(name)):
            self.unsized.add(f"NodePool {name}")
            return False
        host = f"{name}-new-{self._first + len(self._claims)}"
        initial = self.cluster.world.snapshot.node_autoscalers.requirements(name)
        initial = {**initial, HOSTNAME: AllowedValues(frozenset([host]), excluded=False)}
        requirements = wish.narrowed(initial, self.cluster.random)
        if requirements is None:
            return False
        claim = _Claim(pool)
        trials = self._trials(pool, own, wish, requirements, host)
        if not self._add(claim, wish, requirements, trials):
            return False
        self._claims.append(claim)
        # The limits have to allow the largest node that it may become.
        amounts = reduce(or_, (nodepools.amounts(trial.node) for trial in claim.trials))
        self._amounts.setdefault(name, Counter()).update(amounts)
        return True

    def _trials(
        self, pool: NodePool, own: Sequence[Node], wish: Wish, requirements: Requirements, host: str
    ) -> list[TrialNode]:
        """Return a node of a pool for each zone that requirements allow, as far as its limits allow it.

        Karpenter chooses domains before it looks at what instance types there are. A zone that does not answer is taken
        to have none.
        """
        world, name = self.cluster.world, pool.metadata.name
        zones = nodepools.zones(world.snapshot.node_autoscalers, pool, own)
        zones = [zone for zone in zones if requirements.get(ZONE, _ANYTHING).allows(zone)]
        self.missed |= self._silent.intersection(zones)
        keys = {group.key for group in wish.groups} - {HOSTNAME, ZONE}
        listed = {key: values for key in sorted(keys) if (values := requirements[key].listed)}
        fixed = {key: self.cluster.random.choice(sorted(values)) for key, values in listed.items()}
        trials = []
        for zone in (each for each in zones if each not in self._silent):
            like, model = self._like(pool, own, zone, wish.kind, fixed)
            if nodepools.is_within_limits(pool, self._amounts.get(name, Counter()) + nodepools.amounts(like)):
                trials.append(TrialNode(self.cluster, world.copied(like, host), model.metadata.name))
        return trials

    @memoized
    def _reach(self, pod: SimulatedPod) -> frozenset[str] | None:
        """Return the zones where the volumes of a pod could be used on a new node; None for all.

        Source: kubernetes-sigs/karpenter v1.15.0 pkg/controllers/provisioning/scheduling/nodeclaim.go,
        tryVolumeAlternative: what volumes require is a requirement of the node, and the pod may be in other domains.
        """
        if not pod.record.claims:
            return None
        world, reach = self.cluster.world, set[str]()
        autoscalers = world.snapshot.node_autoscalers
        for pool in nodepools.accepting(autoscalers, pod.kind.pod_class):
            own = self._nodes_of(pool.metadata.name)
            for zone in (*nodepools.zones(autoscalers, pool, own), _ELSEWHERE) if own else ():
                like, _ = self._like(pool, own, zone, pod.kind, {})
                _, volumes = world.table((world.copied(like, f"{pool.metadata.name}-new"),))
                if not self.cluster.volumes_of(pod, volumes).refused:
                    reach.add(zone)
        return None if _ELSEWHERE in reach else frozenset(reach)

    @memoized
    def _nodes_of(self, pool: str) -> Sequence[Node]:
        """Return the nodes that the pool with a name had when the cluster was read, the best models first."""
        nodes = self.cluster.world.nodes
        own = (node for node in nodes if node.metadata.labels.get(NODE_POOL_LABEL) == pool)
        return sorted(own, key=newest, reverse=True)

    def _like(
        self, pool: NodePool, own: Sequence[Node], zone: str, kind: SchedulingKind, fixed: Mapping[str, str]
    ) -> tuple[Node, Node]:
        """Return what a node of a pool in a zone is like, with ``fixed`` labels, and the node that it is made of."""
        world = self.cluster.world
        model = next((node for node in own if node.metadata.labels.get(ZONE) == zone), own[0])
        autoscalers = world.snapshot.node_autoscalers
        labels = nodepools.labels_for(autoscalers, pool, kind.pod_class, model.metadata.labels, zone)
        return world.changed(model, {**labels, **fixed}, pool.spec.template.spec.taints), model


def newest(node: Node) -> tuple[bool, float, str]:
    """Return the order of nodes as models of new ones: those that answer, and of these the newest, come last."""
    return nodelifecycle.answers(node), *by_age(node)


def _size(pod: SimulatedPod) -> tuple[int, ...]:
    """Return the requests by which Karpenter orders pods, the largest first."""
    requests = dict(pod.kind.requests)
    return tuple(requests.get(name, 0) for name in _SIZE)
