"""Wishes: what Karpenter requires for a pod that waits, of a node and of the domains that it may be in.

Karpenter takes preferences as requirements first, and drops one after another while it finds no node.

Source: kubernetes-sigs/karpenter v1.15.0 pkg/controllers/provisioning/scheduling/{nodeclaim,topology,preferences}.go
and pkg/scheduling/requirements.go: CanAdd, AddRequirements, Relax, newPodRequirements.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random
from typing import NamedTuple

from kubectl_spread.engine import topologygroups
from kubectl_spread.engine.cluster import SimulatedCluster
from kubectl_spread.engine.kinds import SchedulingKind
from kubectl_spread.engine.topologygroups import TopologyGroup
from kubectl_spread.kube import noderequirements
from kubectl_spread.kube.api.labels import ZONE
from kubectl_spread.kube.noderequirements import AllowedValues, Requirements


class GroupsOfKind(NamedTuple):
    """The topology groups of pods of a kind.

    Attributes:
        required: Those of hard constraints and required terms.
        attracting: Those of preferred terms of affinity, the heaviest first.
        repelling: Those of preferred terms of anti-affinity, the heaviest first.
        soft: Those of soft constraints.
    """

    required: Sequence[TopologyGroup]
    attracting: Sequence[TopologyGroup]
    repelling: Sequence[TopologyGroup]
    soft: Sequence[TopologyGroup]


def groups_of(cluster: SimulatedCluster, kind: SchedulingKind) -> GroupsOfKind:
    """Return the topology groups that pods of a kind have themselves.

    Karpenter does not know the default constraints of the scheduler.
    """
    answers = cluster.table.answers(kind)
    own = bool(kind.pod_class.spec.topology_spread_constraints)
    hard, soft = (
        [topologygroups.of_constraint(cluster, kind, *each) for each in zip(constraints, counted, strict=True) if own]
        for constraints, counted in ((kind.hard, answers.hard), (kind.soft, answers.soft))
    )
    preferred = sorted(kind.preferred, key=lambda each: -abs(each[1]))
    return GroupsOfKind(
        required=[
            *filter(None, hard),
            *(topologygroups.attracting(cluster, kind, term) for term in kind.affinity),
            *(topologygroups.repelling(cluster, kind, term) for term in kind.anti_affinity),
        ],
        attracting=[topologygroups.attracting(cluster, kind, term) for term, weight in preferred if weight > 0],
        repelling=[topologygroups.repelling(cluster, kind, term) for term, weight in preferred if weight < 0],
        soft=[*filter(None, soft)],
    )


class Wish:
    """What Karpenter requires for a pod now.

    Attributes:
        kind: The kind of the pod.
        reach: The zones that its volumes allow; None for all.
    """

    def __init__(
        self,
        kind: SchedulingKind,
        groups: GroupsOfKind,
        others: Sequence[TopologyGroup],
        reach: frozenset[str] | None = None,
    ) -> None:
        """Begin with all preferences; ``others`` are the terms of anti-affinity with which other pods repel the pod."""
        self.kind, self.reach = kind, reach
        self._required = [*groups.required, *others]
        self._choices = [*noderequirements.alternatives(kind.pod_class.placement)]
        self._attracting, self._repelling, self._soft = [*groups.attracting], [*groups.repelling], [*groups.soft]
        self._nodes = [*_preferred_nodes(kind)]

    @property
    def groups(self) -> list[TopologyGroup]:
        """The topology groups that decide."""
        return [*self._required, *self._attracting, *self._repelling, *self._soft]

    @property
    def strict(self) -> Requirements:
        """What the pod requires of labels, preferences and volumes aside: it may be in these domains."""
        return self._choices[0]

    @property
    def requirements(self) -> Requirements:
        """What it requires of labels, with the heaviest preference that is left."""
        return noderequirements.together(self.strict, self._nodes[0]) if self._nodes else self.strict

    def relax(self) -> bool:
        """Drop the first alternative of several, or the first preference; tell whether there was any."""
        if len(self._choices) > 1:
            del self._choices[0]
            return True
        droppable: tuple[list[TopologyGroup] | list[Requirements], ...]
        droppable = (self._attracting, self._repelling, self._nodes, self._soft)
        for preferences in droppable:
            if preferences:
                del preferences[0]
                return True
        return False

    def narrowed(self, node: Requirements, random: Random) -> Requirements | None:
        """Return what the labels of a node may be if the pod is there, too; None where it cannot be there."""
        if noderequirements.conflict(node, self.requirements):
            return None
        base = noderequirements.together(node, self.requirements)
        if self.reach is not None:
            reach = {ZONE: AllowedValues(self.reach, excluded=False)}
            if noderequirements.conflict(base, reach):
                return None
            base = noderequirements.together(base, reach)
        narrowed, anything = base, AllowedValues()
        for group in self.groups:
            key = group.key
            values = group.options(self.kind, self.strict.get(key, anything), base.get(key, anything), random)
            options = {key: AllowedValues(frozenset(values), excluded=False)}
            if not values or noderequirements.conflict(narrowed, options):
                return None
            narrowed = noderequirements.together(narrowed, options)
        return narrowed


def _preferred_nodes(kind: SchedulingKind) -> Iterator[Requirements]:
    """Yield the preferences of node affinity, the heaviest first."""
    affinity = kind.pod_class.placement.affinity
    node_affinity = None if affinity is None else affinity.node_affinity
    terms = () if node_affinity is None else node_affinity.preferred_during_scheduling_ignored_during_execution
    for term in sorted(terms, key=lambda each: -each.weight):
        yield noderequirements.combined(term.preference.match_expressions, {})
