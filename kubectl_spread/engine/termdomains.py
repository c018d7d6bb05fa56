"""Term domains: where required pod affinity and anti-affinity let Karpenter make a node for one pod that waits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar, Final

import msgspec

from kubectl_spread.engine import topologygroups
from kubectl_spread.engine.cluster import SimulatedCluster
from kubectl_spread.engine.kinds import SchedulingKind
from kubectl_spread.engine.pods import SimulatedPod
from kubectl_spread.engine.pooldomains import places_of
from kubectl_spread.engine.topologygroups import AttractingGroup, TopologyGroup
from kubectl_spread.kube import noderequirements
from kubectl_spread.kube.api.labels import HOSTNAME
from kubectl_spread.kube.nodeautoscaling import NodeAutoscalers, NodePool
from kubectl_spread.kube.noderequirements import AllowedValues
from kubectl_spread.phrases import domains, topology_name

_NEW: Final = ""
"""The host that a new node is, and any domain that is not known yet: neither has a pod."""


class TermDomains(msgspec.Struct, frozen=True, eq=False):
    """The domains that one required term leaves for a pod, of the pod itself or of pods that repel it.

    Attributes:
        group: The pods that count for the term, by domain.
        subject: What the term is, as the subject of a sentence.
        kind: The kind of the pod.
        choices: What the pod allows for the topology key, for each alternative of its node affinity.
        autoscalers: The objects of Karpenter.
    """

    filter: ClassVar = "affinity"
    """What a NodePool without such a domain is refused by."""
    is_certain: ClassVar = True
    """Further domains would change nothing: what is left is known by the pods that are there."""

    group: TopologyGroup
    subject: str
    kind: SchedulingKind
    choices: Sequence[AllowedValues]
    autoscalers: NodeAutoscalers

    @property
    def key(self) -> str:
        """The topology key."""
        return self.group.key

    @property
    def restricts(self) -> bool:
        """Whether the term refuses the pod in a domain that Karpenter counts, hosts aside."""
        possible = {value for choice in self.choices for value in self._possible(choice, AllowedValues())}
        return self.key != HOSTNAME and len(possible) < len(self.group.pods)

    def left(self, pool: NodePool, choice: int) -> frozenset[str] | None:
        """Return the domains that the term leaves for nodes of a pool; None where it may leave one that is not known.

        A new node is a new domain of hosts.

        Args:
            pool: The pool.
            choice: The index of an alternative of the pod's node affinity.
        """
        allowed = self.choices[choice]
        places = frozenset([_NEW]) if self.key == HOSTNAME else self._places(pool, [allowed])
        if places is not None:
            return self._possible(allowed, AllowedValues(places, excluded=False))
        return None if self.group.takes(self.kind, allowed, _NEW) else self._possible(allowed, AllowedValues())

    def refuses(self, value: str, choice: int) -> bool:
        """Tell whether the term refuses the pod in a domain."""
        return not self.group.takes(self.kind, self.choices[choice], value)

    def expected(self, pool: NodePool) -> frozenset[str] | None:
        """Return the domains that are left by all alternatives; None where there may be one that is not known."""
        each = [self.left(pool, choice) for choice in range(len(self.choices))]
        return None if None in each else frozenset().union(*filter(None, each))

    def _places(self, pool: NodePool, choices: Iterable[AllowedValues]) -> frozenset[str] | None:
        return places_of(pool, self.key, choices, self.autoscalers)

    def _possible(self, choice: AllowedValues, node: AllowedValues) -> frozenset[str]:
        return frozenset(self.group.possible(self.kind, choice, node))

    def reason(self, pool: NodePool) -> str:
        """Return why a term leaves no domain for nodes of a pool."""
        key, places = self.key, sorted(self._places(pool, self.choices) or ())
        name = f"{self.subject} on {topology_name(key)}"
        occupied = sorted(value for value, pods in self.group.pods.items() if pods)
        if isinstance(self.group, AttractingGroup):
            if not occupied:
                return f"{name} selects no pod that has a node"
            if key == HOSTNAME:
                return f"{name} selects pods that no new node has"
            where = f", and its nodes can only be in {domains(key, places)}" if places else ""
            return f"{name} allows a pod only in {domains(key, occupied)}{where}"
        return f"{name} allows no pod in {domains(key, places)}, where its nodes can be"


def terms_of(cluster: SimulatedCluster, pod: SimulatedPod) -> Iterator[TermDomains]:
    """Yield the domains that each required term leaves for a pod that waits.

    A term of affinity is left out where pods of another kind wait that it selects: Karpenter may make a node for both.
    """
    kind, autoscalers = pod.kind, cluster.world.snapshot.node_autoscalers
    choices = [*noderequirements.alternatives(kind.pod_class.placement)]
    waiting = {each.kind for each in cluster.pending} - {kind}

    def of(group: TopologyGroup, subject: str) -> TermDomains:
        allowed = [choice.get(group.key, AllowedValues()) for choice in choices]
        return TermDomains(group, subject, kind, allowed, autoscalers)

    for term in kind.affinity:
        group = topologygroups.attracting(cluster, kind, term)
        if not any(map(group.counts, waiting)):
            yield of(group, "pod affinity")
    for term in kind.anti_affinity:
        yield of(topologygroups.repelling(cluster, kind, term), "pod anti-affinity")
    for held in cluster.world.kinds.acting_on(kind):
        if held.weight is None and (holders := cluster.state.holders(held)):
            yield of(topologygroups.of_others(cluster, held, holders), "anti-affinity of other pods")
