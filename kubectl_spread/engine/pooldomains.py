"""The domains that Karpenter counts for a hard constraint, which may be more than those that the scheduler counts.

Karpenter counts each domain in which it could make a node, whether or not there is capacity, with 0 pods.

Source: kubernetes-sigs/karpenter v1.15.0 pkg/controllers/provisioning/scheduling/topology.go, topologygroup.go and
topologydomaingroup.go: NewTopology, countDomains, nextDomainTopologySpread, domainMinCount.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import msgspec
from msgspec.structs import replace

from kubectl_spread.engine.cluster import SimulatedCluster
from kubectl_spread.engine.kinds import SchedulingKind, selects
from kubectl_spread.engine.nodes import CountedNodes
from kubectl_spread.engine.pods import SimulatedPod
from kubectl_spread.kube import noderequirements
from kubectl_spread.kube.api.labels import HOSTNAME
from kubectl_spread.kube.api.types import NodeInclusionPolicy
from kubectl_spread.kube.nodeautoscaling import NodeAutoscalers, NodePool
from kubectl_spread.kube.noderequirements import AllowedValues
from kubectl_spread.kube.scheduler import taints
from kubectl_spread.kube.scheduler.podtopologyspread.constraints import Constraint
from kubectl_spread.kube.scheduler.podtopologyspread.domains import Placement
from kubectl_spread.phrases import listed


class DomainSource(msgspec.Struct, frozen=True):
    """Why Karpenter counts a domain.

    Attributes:
        text: The reason, without a full stop.
        certain: Whether it does not depend on the instance types of the provider.
        named: Whether a NodePool names the domain.
    """

    text: str
    certain: bool = True
    named: bool = False


HAS_NODES: Final = DomainSource("it has nodes")


class PoolDomains(msgspec.Struct, frozen=True, eq=False):
    """The domains of one hard constraint of a pod, as Karpenter counts them.

    Attributes:
        constraint: The constraint.
        counts: Maps a domain to its matching pods; one without pods has no entry.
        nodes: Maps a domain to its nodes that count for the scheduler.
        sources: Maps a domain to the reasons why Karpenter counts it, in the order of their discovery.
        own: 1 if the constraint counts the pod itself, else 0.
        choices: What the pod allows for the topology key, for each alternative of its node affinity.
        autoscalers: The objects of Karpenter.
    """

    constraint: Constraint
    counts: Mapping[str, int]
    nodes: Mapping[str, int]
    sources: Mapping[str, Sequence[DomainSource]]
    own: int
    choices: Sequence[AllowedValues]
    autoscalers: NodeAutoscalers

    def pods(self, value: str) -> int:
        """Return the number of matching pods of a domain."""
        return self.counts.get(value, 0)

    @property
    def certain(self) -> list[str]:
        """The domains that Karpenter surely counts."""
        return sorted(value for value, sources in self.sources.items() if any(each.certain for each in sources))

    @property
    def allowed(self) -> list[str]:
        """The domains that may have one more pod, if Karpenter counts all of them; more domains allow no more."""
        return self._allowed(sorted(self.sources))

    @property
    def seen(self) -> PoolDomains:
        """The domains with nodes, which are those that the scheduler counts."""
        return replace(self, sources={value: each for value, each in self.sources.items() if value in self.nodes})

    def after_loss(self, lost: str) -> PoolDomains:
        """Return the domains after the loss of all nodes and pods of one; it counts on if a NodePool adds it."""
        sources = [source for source in self.sources[lost] if source is not HAS_NODES]
        others = {value: each for value, each in self.sources.items() if value != lost}
        return replace(
            self,
            counts={value: pods for value, pods in self.counts.items() if value != lost},
            nodes={value: nodes for value, nodes in self.nodes.items() if value != lost},
            sources={**others, lost: sources} if sources else others,
        )

    def _allowed(self, universe: Sequence[str]) -> list[str]:
        own = [value for value in universe if self.usable(value)]
        least = min(map(self.pods, own), default=0)
        minimum = self.constraint.minimum(least, len(own))
        return [value for value in own if self.pods(value) + self.own <= self.constraint.limit(minimum)]

    def within(self, values: frozenset[str]) -> PoolDomains:
        """Return the domains for a pod whose volumes allow some values only, as Karpenter takes them for its own."""
        offered = AllowedValues(values, excluded=False)
        return replace(self, choices=[choice.both(offered) for choice in self.choices])

    def usable(self, value: str) -> bool:
        """Tell whether the node selector and the node affinity of the pod allow a domain."""
        return any(choice.allows(value) for choice in self.choices)

    @property
    def refused(self) -> list[str]:
        """The domains that Karpenter counts and the pod may use, in which the constraint refuses it."""
        allowed = set(self.allowed)
        return [value for value in sorted(self.sources) if self.usable(value) and value not in allowed]

    def reasons(self, values: Iterable[str]) -> str:
        """Return the main reasons why Karpenter counts domains, nodes aside; first that NodePools name them."""
        sources = dict.fromkeys(source for value in values for source in self._main_sources(value))
        return listed([source.text for source in sorted(sources, key=lambda source: not source.named)])

    def _main_sources(self, value: str) -> list[DomainSource]:
        """Return the reasons to count a domain without its nodes, and without NodeClaims if a NodePool names it."""
        sources = [source for source in self.sources[value] if source is not HAS_NODES]
        named = any(source.named for source in sources)
        return [source for source in sources if source.named or not (named and source.certain)]

    @property
    def restricts(self) -> bool:
        """Whether the constraint refuses a pod in a domain that Karpenter counts."""
        return len(self.allowed) < len(self.sources)

    @property
    def is_certain(self) -> bool:
        """Whether the domains that Karpenter surely counts allow the same as all that it probably counts."""
        return self._allowed(self.certain) == self.allowed

    @property
    def unseen(self) -> list[str]:
        """The domains that Karpenter counts and the pod may use, without a node that counts for the scheduler."""
        return [value for value in sorted(self.sources) if value not in self.nodes and self.usable(value)]

    def places(self, pool: NodePool) -> frozenset[str] | None:
        """Return the domains where nodes of a pool can be; None where that is not known."""
        required = self.autoscalers.values(pool.metadata.name, self.constraint.topology_key)
        node_class = self.autoscalers.class_of(pool)
        offered = None if node_class is None else node_class.values(self.constraint.topology_key)
        places = required.listed if offered is None else offered
        if places is None:
            return None
        own = (value for value in places if any(choice.both(required).allows(value) for choice in self.choices))
        return frozenset(own)

    def reachable(self, pool: NodePool) -> bool:
        """Tell whether a node of a pool may be in a domain that the constraint allows.

        Only domains that Karpenter surely counts refuse others.
        """
        places = self.places(pool)
        if places is None:
            return True
        certain = self._allowed(self.certain)
        return any(value in certain or value not in self.certain for value in places)

    def expected(self, pool: NodePool) -> list[str]:
        """Return the domains where a pool may make a node, if Karpenter counts all domains that it probably counts."""
        places = self.places(pool)
        return [value for value in self.allowed if places is None or value in places]


def pool_domains(
    constraint: Constraint,
    placement: Placement,
    *,
    counts: Mapping[str, int],
    nodes: Mapping[str, int],
    own: int,
    autoscalers: NodeAutoscalers,
) -> PoolDomains | None:
    """Return the domains of a hard constraint of a pod; None for a constraint that keeps Karpenter from no node.

    Karpenter counts a new node as a new domain of hostnames. It counts all pods of the namespace for a constraint
    without a selector, which is left out.

    Args:
        constraint: The constraint.
        placement: What decides on which nodes the pod may be.
        counts: Maps a domain to its matching pods.
        nodes: Maps a domain to its nodes that count for the scheduler.
        own: 1 if the constraint counts the pod itself, else 0.
        autoscalers: The objects of Karpenter.
    """
    key = constraint.topology_key
    if key == HOSTNAME or constraint.selector is None:
        return None
    return PoolDomains(
        constraint=constraint,
        counts=counts,
        nodes=nodes,
        sources=_sources(constraint, placement, nodes, autoscalers),
        own=own,
        choices=[choice.get(key, AllowedValues()) for choice in noderequirements.alternatives(placement)],
        autoscalers=autoscalers,
    )


def constrained(cluster: SimulatedCluster, pod: SimulatedPod) -> Iterator[PoolDomains]:
    """Yield the domains of each hard constraint that a pod itself has, in the order of the constraints.

    Karpenter knows no default constraints of the scheduler.
    """
    pod_class = pod.kind.pod_class
    if not pod_class.spec.topology_spread_constraints:
        return
    hard = zip(pod.kind.hard, cluster.table.answers(pod.kind).hard, strict=True)
    for constraint, counted in hard:
        counts = cluster.state.spread(pod.kind, constraint, counted).counts
        domains = simulated_domains(cluster, pod.kind, constraint, counted, counts)
        if domains is not None:
            yield domains


def simulated_domains(
    cluster: SimulatedCluster,
    kind: SchedulingKind,
    constraint: Constraint,
    counted: CountedNodes,
    counts: Mapping[str, int],
) -> PoolDomains | None:
    """Return the domains of a constraint of pods of a kind, as ``pool_domains``; ``counts`` may change later."""
    return pool_domains(
        constraint,
        kind.pod_class.placement,
        counts=counts,
        nodes=Counter(value for value in counted.values if value is not None),
        own=int(selects(constraint, kind)),
        autoscalers=cluster.world.snapshot.node_autoscalers,
    )


def _sources(
    constraint: Constraint, placement: Placement, nodes: Mapping[str, int], autoscalers: NodeAutoscalers
) -> dict[str, list[DomainSource]]:
    # A dict has each source once, in the order of discovery: pools share the subnets of a class.
    sources: dict[str, dict[DomainSource, None]] = {}
    for pool in autoscalers.pools:
        if not pool.ready or pool.spec.replicas is not None or not _counts(pool, placement, constraint):
            continue
        for value, source in _of_pool(pool, constraint.topology_key, autoscalers):
            sources.setdefault(value, {})[source] = None
    for value in nodes:
        sources.setdefault(value, {})[HAS_NODES] = None
    return {value: list(each) for value, each in sources.items()}


def _counts(pool: NodePool, placement: Placement, constraint: Constraint) -> bool:
    """Tell whether the domains of a pool count: with nodeTaintsPolicy Honor only if the pod tolerates its taints."""
    if constraint.node_taints_policy is not NodeInclusionPolicy.HONOR:
        return True
    pool_taints = pool.spec.template.spec.taints
    return taints.find_untolerated(pool_taints, placement.tolerations, comparison_operators=True) is None


def _of_pool(pool: NodePool, key: str, autoscalers: NodeAutoscalers) -> Iterator[tuple[str, DomainSource]]:
    """Yield the domains that a pool adds; instance types add those that the requirements of the pool allow.

    NodeClaims tell nothing more about a domain that the pool names.
    """
    name = f"NodePool {pool.metadata.name}"
    required = autoscalers.values(pool.metadata.name, key)
    for value in sorted(required.listed or ()):
        yield value, DomainSource(f"{name} names it", named=True)
    claims = autoscalers.claims_in(pool.metadata.name, key) if required.listed is None else {}
    for value, claim in claims.items():
        if required.allows(value):
            yield value, DomainSource(f"{name} has NodeClaim {claim.metadata.name} there")
    node_class = autoscalers.class_of(pool)
    offered = None if node_class is None else node_class.values(key)
    for value in sorted(offered or ()):
        if required.allows(value) and node_class is not None:
            yield value, DomainSource(f"EC2NodeClass {node_class.metadata.name} has a subnet there", certain=False)
