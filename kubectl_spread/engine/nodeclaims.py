"""NodeClaims: the nodes that Karpenter orders for all pods that wait together, by its own rules.

Karpenter decides for the whole batch before any node is there. It takes preferences as requirements first, and drops
one after another. Each new node is a domain of its own for constraints on the host, and of the other domains that a
constraint allows it chooses one with the fewest pods.

Source: kubernetes-sigs/karpenter v1.15.0 pkg/controllers/provisioning/scheduling/{scheduler,queue,topologygroup,
preferences}.go: Solve, add, nextDomainTopologySpread, Relax.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from kubectl_spread.engine import nodepools
from kubectl_spread.engine.cluster import SimulatedCluster
from kubectl_spread.engine.kinds import SchedulingKind, selects
from kubectl_spread.engine.nodes import CountedNodes, by_age
from kubectl_spread.engine.placing import Placements
from kubectl_spread.engine.pods import SimulatedPod
from kubectl_spread.engine.pooldomains import PoolDomains, simulated_domains
from kubectl_spread.kube import nodelifecycle
from kubectl_spread.kube.api.labels import HOSTNAME, ZONE
from kubectl_spread.kube.api.types import Node
from kubectl_spread.kube.nodeautoscaling import NODE_POOL_LABEL, NodePool
from kubectl_spread.kube.noderequirements import AllowedValues
from kubectl_spread.kube.scheduler.interpodaffinity import Term
from kubectl_spread.kube.scheduler.podtopologyspread.constraints import Constraint

_SIZE: Final = ("cpu", "memory")
_Question: TypeAlias = tuple[SchedulingKind, int, frozenset[str] | None]
"""A kind of pods, one of its constraints, and the zones that volumes allow."""


class OrderedNode:
    """A node that Karpenter has ordered, with the pods that it expects there.

    Attributes:
        pool: The name of its NodePool.
        node: The node.
        model: The node that it is like.
        pods: The number of pods that are expected there, by their kinds.
    """

    def __init__(self, cluster: SimulatedCluster, pool: str, node: Node, model: str) -> None:
        """Order a node like ``model``, with the pods that belong to it."""
        self.pool, self.node, self.model = pool, node, model
        self.pods: Counter[SchedulingKind] = Counter()
        world = cluster.world
        self._table, _ = world.table((node,))
        self._state = Placements(self._table, world.kinds, world.weights)
        for each in cluster.belonging(model):
            self._state.add(each.kind, 0)

    def takes(self, kind: SchedulingKind) -> bool:
        """Tell whether a pod of a kind may be there next to the others, constraints and affinity to others aside."""
        fits = self._table.answers(kind).allowed & self._state.room(kind).fits
        return bool(fits) and not any(each.nodes for each in self._state.repelling(kind))

    def add(self, kind: SchedulingKind) -> None:
        """Expect a pod."""
        self.pods[kind] += 1
        self._state.add(kind, 0)

    def holds(self, term: Term) -> bool:
        """Tell whether a term selects a pod that is expected there."""
        return any(term.matches(kind.pod, {}) for kind in self.pods)


class _Wish:
    """What Karpenter requires for a pod, until it drops preferences.

    Attributes:
        kind: The kind of the pod.
        reach: The zones that its volumes allow; None for all.
        counted: The domains of its constraints, but those on the host.
        on_host: Its constraints on the host.
        apart: The terms by which it prefers a node without other pods.
    """

    def __init__(self, batch: Batch, kind: SchedulingKind, reach: frozenset[str] | None) -> None:
        answers = batch.cluster.table.answers(kind)
        self.kind, self.reach = kind, reach
        # Karpenter does not know the default constraints of the scheduler.
        own = bool(kind.pod_class.spec.topology_spread_constraints)
        soft = [*zip(kind.soft, answers.soft, strict=True)] if own else []
        every = [*(zip(kind.hard, answers.hard, strict=True) if own else ()), *soft]
        self.counted = [domains for each in every if (domains := batch.domains(kind, reach, *each)) is not None]
        self.on_host = [each for each, _ in every if each.topology_key == HOSTNAME and each.selector is not None]
        self.apart = [term for term, weight in kind.preferred if weight < 0 and term.topology_key == HOSTNAME]
        self._soft = [each for each, _ in soft]

    def relax(self) -> bool:
        """Drop the first preference; tell whether there was one."""
        if self.apart:
            self.apart = []
            return True
        if not self._soft:
            return False
        dropped = self._soft.pop(0)
        self.on_host = [each for each in self.on_host if each is not dropped]
        self.counted = [each for each in self.counted if each.constraint is not dropped]
        return True

    def allows(self, claim: OrderedNode) -> bool:
        """Tell whether the pod may be on a node that is ordered."""
        labels = claim.node.metadata.labels
        return (
            (self.reach is None or labels.get(ZONE) in self.reach)
            and all(labels.get(each.constraint.topology_key) in each.allowed for each in self.counted)
            and all(self._has_room(each, claim) for each in self.on_host)
            and not any(claim.holds(term) for term in self.apart)
        )

    def _has_room(self, constraint: Constraint, claim: OrderedNode) -> bool:
        pods = sum(number for kind, number in claim.pods.items() if _counts(constraint, self.kind, kind))
        return pods + int(selects(constraint, self.kind)) <= constraint.limit(0)


def _counts(constraint: Constraint, of: SchedulingKind, kind: SchedulingKind) -> bool:
    """Tell whether a constraint of a kind counts the pods of another."""
    return of.namespace == kind.namespace and selects(constraint, kind)


class Batch:
    """The pods that wait at one moment, and the nodes that are ordered for them.

    Attributes:
        cluster: The cluster.
        unsized: The NodePools that have no node whose size a new one could have.
        missed: The zones that were chosen, and where none is made because no node there answers.
    """

    def __init__(self, cluster: SimulatedCluster, made: Iterable[OrderedNode]) -> None:
        """Begin a batch; ``made`` are the nodes that were ordered before, and are there."""
        self.cluster = cluster
        self.unsized: set[str] = set()
        self.missed: set[str] = set()
        self._silent = cluster.silent_zones
        self._claims: list[OrderedNode] = []
        self._new: list[OrderedNode] = []
        self._domains: dict[_Question, tuple[Constraint, PoolDomains | None, Counter[str]]] = {}
        self._amounts: dict[str, Counter[str]] = {}
        for each in made:
            there = OrderedNode(cluster, each.pool, each.node, each.node.metadata.name)
            for pod in cluster.on({each.node.metadata.name}):
                if not pod.is_daemon:
                    there.add(pod.kind)
            self._hold(there)

    def ordered(self, pods: Iterable[SimulatedPod]) -> list[OrderedNode]:
        """Return the nodes that are ordered for pods; none for those with affinity across nodes."""
        vain = set[tuple[SchedulingKind, int]]()
        for pod in sorted(filter(_is_free, pods), key=_size, reverse=True):
            # For a pod that is equal to one without a node there is no more room.
            question = (pod.kind, pod.refused)
            if question not in vain and not self._expect(pod):
                vain.add(question)
        return self._new

    def _hold(self, claim: OrderedNode) -> None:
        self._claims.append(claim)
        self._amounts.setdefault(claim.pool, Counter()).update(nodepools.amounts(claim.node))

    def domains(
        self, kind: SchedulingKind, reach: frozenset[str] | None, constraint: Constraint, counted: CountedNodes
    ) -> PoolDomains | None:
        """Return the domains of a constraint, whose counts grow with the pods that are expected on new nodes."""
        # The entry keeps the constraint, so that no other object gets its identity.
        key = (kind, id(constraint), reach)
        if key not in self._domains:
            counts = Counter(self.cluster.state.spread(kind, constraint, counted).counts)
            domains = simulated_domains(self.cluster, kind, constraint, counted, counts)
            if domains is not None and reach is not None and constraint.topology_key == ZONE:
                domains = domains.within(reach)
            self._domains[key] = (constraint, domains, counts)
        return self._domains[key][1]

    def _reach(self, pod: SimulatedPod) -> frozenset[str] | None:
        """Return the zones where the volumes of a pod could be used on a new node; None for all.

        Source: kubernetes-sigs/karpenter v1.15.0 pkg/controllers/provisioning/scheduling/volumetopology.go, Inject:
        what volumes require is a requirement of the pod.
        """
        if not pod.refused:
            return None
        world, reach = self.cluster.world, set[str]()
        autoscalers = world.snapshot.node_autoscalers
        for pool in nodepools.accepting(autoscalers, pod.kind.pod_class):
            own = _nodes_of(self.cluster, pool)
            for zone in nodepools.zones(autoscalers, pool, own) if own else ():
                like, _ = self._like(pool, own, zone, pod.kind, {})
                _, volumes = world.table((world.copied(like, f"{pool.metadata.name}-new"),))
                if not self.cluster.volumes_of(pod, volumes).refused:
                    reach.add(zone)
        return frozenset(reach)

    def _expect(self, pod: SimulatedPod) -> bool:
        """Find a node that is ordered for a pod, or order one; tell whether there is one."""
        kind = pod.kind
        wish = _Wish(self, kind, self._reach(pod))
        while True:
            claim = self._claim_for(wish) or self._order(wish)
            if claim is not None:
                self._add(claim, kind)
                return True
            if not wish.relax():
                return False

    def _claim_for(self, wish: _Wish) -> OrderedNode | None:
        """Return the emptiest node that is ordered and may take a pod."""
        claims = sorted(self._claims, key=lambda each: each.pods.total())
        return next((each for each in claims if wish.allows(each) and each.takes(wish.kind)), None)

    def _add(self, claim: OrderedNode, kind: SchedulingKind) -> None:
        claim.add(kind)
        for (of, _, _), (constraint, _, counts) in self._domains.items():
            value = claim.node.metadata.labels.get(constraint.topology_key)
            if value is not None and _counts(constraint, of, kind):
                counts[value] += 1

    def _order(self, wish: _Wish) -> OrderedNode | None:
        """Order a node of the first NodePool that makes one for a pod; None where none does."""
        autoscalers = self.cluster.world.snapshot.node_autoscalers
        pools = nodepools.accepting(autoscalers, wish.kind.pod_class)
        for pool in sorted(pools, key=lambda each: -(each.spec.weight or 0)):
            for claim in self._of_pool(pool, wish):
                if claim.takes(wish.kind) and wish.allows(claim):
                    self._hold(claim)
                    self._new.append(claim)
                    return claim
        return None

    def _of_pool(self, pool: NodePool, wish: _Wish) -> Iterator[OrderedNode]:
        """Yield a node of a pool for each zone that Karpenter may choose, as far as the limits of the pool allow it.

        Of several domains with the fewest pods it chooses any, before it looks at what instance types there are. A zone
        that does not answer is taken to have none.
        """
        world, name = self.cluster.world, pool.metadata.name
        autoscalers = world.snapshot.node_autoscalers
        if not (own := _nodes_of(self.cluster, pool)):
            self.unsized.add(f"NodePool {name}")
            return
        chosen: dict[str, set[str]] = {}
        for each in wish.counted:
            key = each.constraint.topology_key
            emptiest = _emptiest(each, autoscalers.values(name, key))
            chosen[key] = chosen.get(key, emptiest) & emptiest
        if not all(chosen.values()):
            return
        fixed = {key: self.cluster.random.choice(sorted(values)) for key, values in chosen.items()}
        zones = [zone for zone in nodepools.zones(autoscalers, pool, own) if zone == fixed.get(ZONE, zone)]
        zones = [zone for zone in zones if wish.reach is None or zone in wish.reach]
        self.cluster.random.shuffle(zones)
        self.missed |= self._silent.intersection(zones)
        for zone in (each for each in zones if each not in self._silent):
            like, model = self._like(pool, own, zone, wish.kind, fixed)
            made = self._amounts.get(name, Counter()) + nodepools.amounts(like)
            if nodepools.is_within_limits(pool, made):
                number = len(self._claims) + 1
                yield OrderedNode(self.cluster, name, world.copied(like, f"{name}-new-{number}"), model.metadata.name)

    def _like(
        self, pool: NodePool, own: Sequence[Node], zone: str, kind: SchedulingKind, fixed: Mapping[str, str]
    ) -> tuple[Node, Node]:
        """Return what a node of a pool in a zone is like, with ``fixed`` labels, and the node that it is made of."""
        world = self.cluster.world
        model = max(own, key=lambda node: (node.metadata.labels.get(ZONE) == zone, *newest(node)))
        autoscalers = world.snapshot.node_autoscalers
        labels = nodepools.labels_for(autoscalers, pool, kind.pod_class, model.metadata.labels, zone)
        return world.changed(model, {**labels, **fixed}, pool.spec.template.spec.taints), model


def _nodes_of(cluster: SimulatedCluster, pool: NodePool) -> list[Node]:
    """Return the nodes that a pool had when the cluster was read."""
    nodes = cluster.world.nodes
    return [node for node in nodes if node.metadata.labels.get(NODE_POOL_LABEL) == pool.metadata.name]


def _emptiest(counted: PoolDomains, required: AllowedValues) -> set[str]:
    """Return the domains with the fewest pods of those that a constraint and the requirements of a NodePool allow."""
    allowed = [value for value in counted.allowed if required.allows(value)]
    least = min(map(counted.pods, allowed), default=0)
    return {value for value in allowed if counted.pods(value) == least}


def newest(node: Node) -> tuple[bool, float, str]:
    """Return the order of nodes as models of new ones: those that answer, and of these the newest, come last."""
    return nodelifecycle.answers(node), *by_age(node)


def _is_free(pod: SimulatedPod) -> bool:
    """Tell whether a pod may be placed, and no affinity to pods of other nodes decides where."""
    far = any(term.topology_key != HOSTNAME for term in pod.kind.anti_affinity)
    return pod.kind.parses and not (pod.kind.affinity or far)


def _size(pod: SimulatedPod) -> tuple[int, ...]:
    """Return the requests by which Karpenter orders pods, the largest first."""
    requests = dict(pod.kind.requests)
    return tuple(requests.get(name, 0) for name in _SIZE)
