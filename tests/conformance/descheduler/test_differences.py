"""On random clusters, the named rules turn the scheduler's count into the descheduler's."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec
import pytest

from kubectl_spread.audit.evaluation.evaluators import Census
from kubectl_spread.audit.snapshot.scope import Scope
from kubectl_spread.audit.snapshot.snapshot import Snapshot
from kubectl_spread.kube import descheduler
from kubectl_spread.kube.api.types import Node, Pod, TopologySpreadConstraint
from kubectl_spread.kube.descheduler import Bearer, CountingRule, PodCounts
from kubectl_spread.kube.features import behaviour, gates
from kubectl_spread.kube.scheduler.podtopologyspread.constraints import effective_selector, working_constraint
from kubectl_spread.kube.scheduler.podtopologyspread.domains import NodeSets
from kubectl_spread.kube.scheduler.podtopologyspread.spread import Spread
from kubectl_spread.sources.decode import json_objects
from tests.conformance.descheduler import ours
from tests.conformance.descheduler.cases import case

SERVED = behaviour(37, gates(37, {}))

Outcome = tuple[Mapping[str, int], int]


class RandomCluster:
    """A random cluster, for both counts."""

    def __init__(self, index: int) -> None:
        question = msgspec.json.encode(case(1, index))
        decoded = msgspec.json.decode(question, type=ours.Question)
        nodes = ours.nodes(decoded)
        pods = [json_objects.decode(raw, Pod) for raw in decoded.pods]
        evictable = [not descheduler.obstacles(ours.evictee(raw)) for raw in decoded.pods]
        groups = [ours.group(pod, evictable=is_evictable) for pod, is_evictable in zip(pods, evictable, strict=True)]
        self.cluster = PodCounts(nodes, groups)
        self.census = self._census(nodes, pods)
        self.pods = pods

    @staticmethod
    def _census(nodes: Iterable[Node], pods: Iterable[Pod]) -> Census:
        snapshot = Snapshot(Scope(namespace="-"))
        for pod in pods:
            snapshot.add_pod(pod)
        return Census(snapshot, NodeSets(nodes, SERVED), SERVED)

    def hard(self) -> Iterator[tuple[Bearer, TopologySpreadConstraint, Spread]]:
        """Yield every hard constraint of every pod, with the scheduler's count."""
        for pod in self.pods:
            bearer = ours.bearer(pod)
            for constraint, spread in zip(bearer.constraints, self._spreads(pod), strict=True):
                if spread.constraint.hard:
                    yield bearer, constraint, spread

    def _spreads(self, pod: Pod) -> tuple[Spread, ...]:
        working = []
        for topology_spread_constraint in pod.spec.topology_spread_constraints:
            effective = effective_selector(
                topology_spread_constraint.label_selector,
                topology_spread_constraint.match_label_keys,
                pod.metadata.labels,
            )
            working.append(working_constraint(topology_spread_constraint, effective, SERVED))
        placement = ours.bearer(pod).placement
        return self.census.spreads(pod.metadata.namespace, pod.metadata.labels, working, placement)


def outcome(spread: Spread) -> Outcome:
    return spread.match_num, spread.min_match_num


@pytest.mark.parametrize("start", range(0, 200, 50))
def test_the_rules_turn_the_schedulers_count_into_the_deschedulers(start: int) -> None:
    for index in range(start, start + 50):
        random_cluster = RandomCluster(index)
        for bearer, constraint, spread in random_cluster.hard():

            def count(
                rules: Sequence[CountingRule],
                bearer: Bearer = bearer,
                constraint: TopologySpreadConstraint = constraint,
                in_cluster: PodCounts = random_cluster.cluster,
            ) -> Outcome:
                return outcome(descheduler._count(constraint, bearer, in_cluster, SERVED, rules))

            rules = descheduler.differences(constraint, bearer, random_cluster.cluster, SERVED)
            real = outcome(descheduler.count(constraint, bearer, random_cluster.cluster))
            assert count(()) == outcome(spread)
            assert count(rules) == real
            assert all(count([rule for rule in rules if rule is not left_out]) != real for left_out in rules)
