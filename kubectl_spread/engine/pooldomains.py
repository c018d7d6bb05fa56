"""The domains that Karpenter counts for a hard constraint, which may be more than those that the scheduler counts.

Karpenter counts each domain in which it could make a node, whether or not there is capacity, with 0 pods.

Source: kubernetes-sigs/karpenter v1.15.0 pkg/controllers/provisioning/scheduling/topology.go, topologygroup.go and
topologydomaingroup.go: NewTopology, countDomains, nextDomainTopologySpread, domainMinCount.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import ClassVar, Final

import msgspec
from msgspec.structs import replace

from kubectl_spread.kube import noderequirements
from kubectl_spread.kube.api.labels import HOSTNAME
from kubectl_spread.kube.api.types import NodeInclusionPolicy
from kubectl_spread.kube.nodeautoscaling import NodeAutoscalers, NodePool
from kubectl_spread.kube.noderequirements import AllowedValues
from kubectl_spread.kube.scheduler import taints
from kubectl_spread.kube.scheduler.podtopologyspread.constraints import Constraint
from kubectl_spread.kube.scheduler.podtopologyspread.domains import Placement
from kubectl_spread.phrases import domains, listed, noun, plural, topology_name


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

    filter: ClassVar = "spread"
    """What a NodePool without such a domain is refused by."""
    subject: ClassVar = "the constraint"
    """The constraint, as the subject of a sentence."""

    constraint: Constraint
    counts: Mapping[str, int]
    nodes: Mapping[str, int]
    sources: Mapping[str, Sequence[DomainSource]]
    own: int
    choices: Sequence[AllowedValues]
    autoscalers: NodeAutoscalers

    @property
    def key(self) -> str:
        """The topology key."""
        return self.constraint.topology_key

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
        return sorted({value for choice in self.choices for value in self._allowed_by(choice, universe)})

    def _allowed_by(self, choice: AllowedValues, universe: Iterable[str]) -> list[str]:
        """Return the domains that may have one more pod, for one alternative of the pod's node affinity.

        Karpenter tries one after another, and counts the domains that one allows.
        """
        own = [value for value in universe if choice.allows(value)]
        least = min(map(self.pods, own), default=0)
        minimum = self.constraint.minimum(least, len(own))
        return [value for value in own if self.pods(value) + self.own <= self.constraint.limit(minimum)]

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
        return places_of(pool, self.constraint.topology_key, self.choices, self.autoscalers)

    def left(self, pool: NodePool, choice: int) -> frozenset[str] | None:
        """Return the domains that the constraint leaves for nodes of a pool; None where it may leave one not known.

        Only domains that Karpenter surely counts refuse others. Of those that are left, it chooses one with the fewest
        pods.
        """
        places = places_of(pool, self.key, [self.choices[choice]], self.autoscalers)
        if places is None:
            return None
        certain = self.certain
        allowed = places.intersection(self._allowed_by(self.choices[choice], certain))
        least = min(map(self.pods, allowed), default=None)
        left = allowed | places.difference(certain)
        return frozenset(value for value in left if least is None or self.pods(value) <= least)

    def refuses(self, value: str, choice: int) -> bool:
        """Tell whether the constraint refuses a domain that Karpenter surely counts."""
        certain = self.certain
        return value in certain and value not in self._allowed_by(self.choices[choice], certain)

    def expected(self, pool: NodePool) -> frozenset[str]:
        """Return the domains where a pool may make a node, if Karpenter counts all domains that it probably counts."""
        places = self.places(pool)
        return frozenset(value for value in self.allowed if places is None or value in places)

    def reason(self, pool: NodePool) -> str:
        """Return that the constraint allows a pod in no domain where the nodes of a pool can be."""
        name = f"{self.subject} on {topology_name(self.key)} (maxSkew {self.constraint.max_skew})"
        allowed, places = self.allowed, sorted(self.places(pool) or ())
        if not places:
            where = f"its nodes can be in no {noun(self.key)}"
            return f"{where}: its class has none that its requirements and the pod allow"
        if not allowed:
            return f"{name} allows a pod in no domain that Karpenter counts"
        where = f"{domains(self.key, allowed)} ({plural(min(map(self.pods, allowed)), 'pod')})"
        return f"{name} allows a pod only in {where}, and its nodes can only be in {domains(self.key, places)}"


def joint(first: frozenset[str] | None, second: frozenset[str] | None) -> frozenset[str] | None:
    """Return the domains that two sets have in common; None stands for any domain."""
    if first is None or second is None:
        return second if first is None else first
    return first & second


def places_of(
    pool: NodePool, key: str, choices: Iterable[AllowedValues], autoscalers: NodeAutoscalers
) -> frozenset[str] | None:
    """Return the domains of a topology key where nodes of a pool can be for a pod; None where that is not known.

    Args:
        pool: The pool.
        key: The topology key.
        choices: What the pod allows, for each alternative of its node affinity.
        autoscalers: The objects of Karpenter.
    """
    required = autoscalers.values(pool.metadata.name, key)
    node_class = autoscalers.class_of(pool)
    offered = None if node_class is None else node_class.values(key)
    places = required.listed if offered is None else offered
    if places is None:
        return None
    both = [choice.both(required) for choice in choices]
    return frozenset(value for value in places if any(each.allows(value) for each in both))


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
    honors = constraint.node_taints_policy is NodeInclusionPolicy.HONOR
    pools = tolerated_pools(autoscalers, placement) if honors else used_pools(autoscalers)
    return PoolDomains(
        constraint=constraint,
        counts=counts,
        nodes=nodes,
        sources=domain_sources(key, nodes, pools, autoscalers),
        own=own,
        choices=[choice.get(key, AllowedValues()) for choice in noderequirements.alternatives(placement)],
        autoscalers=autoscalers,
    )


def domain_sources(
    key: str, nodes: Iterable[str], pools: Iterable[NodePool], autoscalers: NodeAutoscalers
) -> dict[str, list[DomainSource]]:
    """Return the domains of a topology key with the reasons why Karpenter counts each.

    Args:
        key: The topology key.
        nodes: The domains of nodes that count.
        pools: The NodePools whose domains count.
        autoscalers: The objects of Karpenter.
    """
    # A dict has each source once, in the order of discovery: pools share the subnets of a class.
    sources: dict[str, dict[DomainSource, None]] = {}
    for pool in pools:
        for value, source in _of_pool(pool, key, autoscalers):
            sources.setdefault(value, {})[source] = None
    for value in nodes:
        sources.setdefault(value, {})[HAS_NODES] = None
    return {value: list(each) for value, each in sources.items()}


def used_pools(autoscalers: NodeAutoscalers) -> Iterator[NodePool]:
    """Yield the NodePools that Karpenter uses for pods that wait."""
    return (pool for pool in autoscalers.pools if pool.ready and pool.spec.replicas is None)


def tolerated_pools(autoscalers: NodeAutoscalers, placement: Placement) -> Iterator[NodePool]:
    """Yield those of them whose taints a pod tolerates."""
    for pool in used_pools(autoscalers):
        pool_taints = pool.spec.template.spec.taints
        if taints.find_untolerated(pool_taints, placement.tolerations, comparison_operators=True) is None:
            yield pool


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
