"""Topology groups: the domains where Karpenter may put a pod by its constraints and by pod affinity, with their pods.

A group is one constraint of pods, one term of their own affinity, or one term of anti-affinity that other pods have.

Source: kubernetes-sigs/karpenter v1.15.0 pkg/controllers/provisioning/scheduling/topology.go and topologygroup.go:
nextDomainTopologySpread, nextDomainAffinity, nextDomainAntiAffinity, countDomains, updateInverseAntiAffinity, Record.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from random import Random

from msgspec.structs import replace

from kubectl_spread.engine.cluster import SimulatedCluster
from kubectl_spread.engine.kinds import HeldTerm, SchedulingKind, selects
from kubectl_spread.engine.nodes import CountedNodes
from kubectl_spread.engine.pods import SimulatedPod
from kubectl_spread.engine.pooldomains import PoolDomains, domain_sources, pool_domains, tolerated_pools
from kubectl_spread.kube import noderequirements
from kubectl_spread.kube.api.labels import HOSTNAME
from kubectl_spread.kube.api.types import NodeInclusionPolicy, Taint
from kubectl_spread.kube.noderequirements import AllowedValues, Requirements
from kubectl_spread.kube.scheduler import taints
from kubectl_spread.kube.scheduler.interpodaffinity import Term
from kubectl_spread.kube.scheduler.podtopologyspread.constraints import Constraint
from kubectl_spread.memoization import memoized


class TopologyGroup(ABC):
    """The domains of one topology key with the pods that count in them.

    Attributes:
        key: The topology key.
        pods: Maps each domain that Karpenter counts to its number of pods. Of hosts it may lack those without pods.
    """

    def __init__(self, key: str, pods: dict[str, int], matches: Callable[[SchedulingKind], bool]) -> None:
        """Begin with the pods of the cluster; ``matches`` tells whether pods of a kind count."""
        self.key, self.pods = key, pods
        self._matches = matches

    @memoized
    def counts(self, kind: SchedulingKind) -> bool:
        """Tell whether pods of a kind count."""
        return self._matches(kind)

    def possible(self, kind: SchedulingKind, pod: AllowedValues, node: AllowedValues) -> list[str]:
        """Return the domains that the group allows, of those that a pod of a kind and a node allow, in their order."""
        hosts = node.listed if self.key == HOSTNAME else None
        domains = self.pods if hosts is None else hosts
        allows = self._rule(kind, pod)
        return sorted(value for value in domains if node.allows(value) and pod.allows(value) and allows(value))

    def takes(self, kind: SchedulingKind, pod: AllowedValues, value: str) -> bool:
        """Tell whether a domain takes a pod of a kind, which allows some domains; "" stands for one without pods."""
        return self._rule(kind, pod)(value)

    @abstractmethod
    def _rule(self, kind: SchedulingKind, pod: AllowedValues) -> Callable[[str], bool]:
        """Return what tells whether a domain takes a pod of a kind, which allows some domains."""

    def options(self, kind: SchedulingKind, pod: AllowedValues, node: AllowedValues, random: Random) -> Sequence[str]:
        """Return the domains that Karpenter leaves for a node with a pod of a kind; none where the pod cannot be there.

        Args:
            kind: The kind.
            pod: What the pod allows.
            node: What the pod, those that are expected on the node, and the NodePool allow together.
            random: Decides where Karpenter takes any domain.
        """
        del random
        return self.possible(kind, pod, node)

    def record(self, node: AllowedValues) -> None:
        """Count a pod that matches on a node in these domains, if it is sure in which."""
        if node.listed is not None and len(node.listed) == 1:
            self._add(node.listed)

    def _add(self, domains: Iterable[str]) -> None:
        for value in domains:
            self.pods[value] = self.pods.get(value, 0) + 1

    def sees(self, requirements: Requirements, node_taints: Sequence[Taint]) -> bool:
        """Tell whether pods of a node with these requirements and taints count."""
        del requirements, node_taints
        return True


class ConstraintGroup(TopologyGroup):
    """A constraint of pods of a kind."""

    def __init__(
        self, kind: SchedulingKind, constraint: Constraint, pods: dict[str, int], domains: PoolDomains | None
    ) -> None:
        """Take the domains of a constraint, which count ``pods``; None for a constraint on the host."""
        super().__init__(
            constraint.topology_key,
            pods,
            lambda other: other.namespace == kind.namespace and selects(constraint, other),
        )
        self._placement, self._constraint, self._domains = kind.pod_class.placement, constraint, domains

    def _rule(self, kind: SchedulingKind, pod: AllowedValues) -> Callable[[str], bool]:
        if self._domains is None:
            most = self._constraint.limit(0) - int(self.counts(kind))
            return lambda value: self.pods.get(value, 0) <= most
        return frozenset(replace(self._domains, choices=(pod,)).allowed).__contains__

    def options(self, kind: SchedulingKind, pod: AllowedValues, node: AllowedValues, random: Random) -> Sequence[str]:
        """Return one of the domains with the fewest pods."""
        possible = self.possible(kind, pod, node)
        least = min((self.pods.get(value, 0) for value in possible), default=0)
        emptiest = [value for value in possible if self.pods.get(value, 0) == least]
        return [random.choice(emptiest)] if emptiest else []

    def sees(self, requirements: Requirements, node_taints: Sequence[Taint]) -> bool:
        """Tell whether the policies of the constraint let a node count."""
        constraint, placement = self._constraint, self._placement
        if constraint.node_taints_policy is NodeInclusionPolicy.HONOR and taints.find_untolerated(
            node_taints, placement.tolerations, comparison_operators=True
        ):
            return False
        choices = noderequirements.alternatives(placement)
        honors = constraint.node_affinity_policy is NodeInclusionPolicy.HONOR
        return not honors or any(not noderequirements.conflict(requirements, choice) for choice in choices)


class AttractingGroup(TopologyGroup):
    """A term of the affinity of pods, which select some that they want to be with."""

    def _starts(self, kind: SchedulingKind, pod: AllowedValues) -> bool:
        """Tell whether a pod may be the first one, where the term selects it and none that it could be with."""
        return self.counts(kind) and not any(pods and pod.allows(value) for value, pods in self.pods.items())

    def _rule(self, kind: SchedulingKind, pod: AllowedValues) -> Callable[[str], bool]:
        starts = self._starts(kind, pod)
        return lambda value: starts or self.pods.get(value, 0) > 0

    def options(self, kind: SchedulingKind, pod: AllowedValues, node: AllowedValues, random: Random) -> Sequence[str]:
        """Return the domains with pods. The first pod gets one that the node allows, and one that only it allows."""
        possible = self.possible(kind, pod, node)
        if self.key == HOSTNAME or not self._starts(kind, pod):
            return possible
        anywhere = self.possible(kind, pod, AllowedValues())
        return sorted({random.choice(values) for values in (possible, anywhere) if values})


class RepellingGroup(TopologyGroup):
    """A term of anti-affinity: of pods that select others, or of others that select these."""

    def _rule(self, kind: SchedulingKind, pod: AllowedValues) -> Callable[[str], bool]:
        del kind, pod
        return lambda value: not self.pods.get(value)

    def record(self, node: AllowedValues) -> None:
        """Count a pod in all domains where its node may be."""
        self._add(node.listed or ())


def of_constraint(
    cluster: SimulatedCluster, kind: SchedulingKind, constraint: Constraint, counted: CountedNodes
) -> ConstraintGroup | None:
    """Return the group of a constraint of a kind; None for one without a selector, which keeps Karpenter from no node.

    Args:
        cluster: The cluster.
        kind: The kind.
        constraint: The constraint.
        counted: The nodes that count for it.
    """
    if constraint.selector is None:
        return None
    pods = dict(cluster.state.spread(kind, constraint, counted).counts)
    domains = simulated_domains(cluster, kind, constraint, counted, pods)
    for value in _of_nodes(cluster, HOSTNAME) if domains is None else domains.sources:
        pods.setdefault(value, 0)
    return ConstraintGroup(kind, constraint, pods, domains)


def attracting(cluster: SimulatedCluster, kind: SchedulingKind, term: Term) -> AttractingGroup:
    """Return the group of a term of the affinity of pods of a kind that wait."""
    return AttractingGroup(term.topology_key, *_of_own(cluster, kind, term))


def repelling(cluster: SimulatedCluster, kind: SchedulingKind, term: Term) -> RepellingGroup:
    """Return the group of a term of the anti-affinity of pods of a kind that wait."""
    return RepellingGroup(term.topology_key, *_of_own(cluster, kind, term))


def _of_own(
    cluster: SimulatedCluster, kind: SchedulingKind, term: Term
) -> tuple[dict[str, int], Callable[[SchedulingKind], bool]]:
    """Return the pods by domain that a term of a kind selects, and what tells whether it selects pods of a kind.

    Karpenter does not count pods that are being deleted.
    """
    key = term.topology_key
    counted = (each for each in cluster.world.kinds.matching((term,)) if not each.terminating)
    domains = _of_pools(cluster, kind, key) | _of_nodes(cluster, key)
    return domains | cluster.state.by_domain(counted, key), lambda other: term.matches(other.pod, {})


def of_others(cluster: SimulatedCluster, held: HeldTerm, holders: Sequence[SchedulingKind]) -> RepellingGroup:
    """Return the group of a term of anti-affinity that pods of some kinds have, of which one has a pod, or waits.

    Of the domains that only nodes have, Karpenter knows hosts and those with such a pod.
    """
    key, kinds = held.term.topology_key, cluster.world.kinds
    domains = _of_nodes(cluster, key) if key == HOSTNAME else _of_pools(cluster, holders[0], key)
    return RepellingGroup(
        key, domains | cluster.state.by_domain(holders, key), lambda kind: held in kinds.acting_on(kind)
    )


def _of_pools(cluster: SimulatedCluster, kind: SchedulingKind, key: str) -> dict[str, int]:
    """Return the domains of the NodePools whose taints pods of a kind tolerate, without pods."""
    autoscalers = cluster.world.snapshot.node_autoscalers
    pools = tolerated_pools(autoscalers, kind.pod_class.placement)
    return dict.fromkeys(domain_sources(key, (), pools, autoscalers), 0)


def _of_nodes(cluster: SimulatedCluster, key: str) -> dict[str, int]:
    """Return the domains of nodes, without pods."""
    return dict.fromkeys((value for value in cluster.table.values(key) if value is not None), 0)


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
