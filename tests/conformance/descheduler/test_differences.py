"""The rules that are named turn the scheduler's count into the descheduler's, on random clusters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec
import pytest

from kubectl_spread.audit.evaluation.counting import Census
from kubectl_spread.audit.snapshot.scope import Scope
from kubectl_spread.audit.snapshot.snapshot import Snapshot
from kubectl_spread.kube.api.types import Node, Pod, TopologySpreadConstraint
from kubectl_spread.kube.descheduler import defaultevictor, topologyspread
from kubectl_spread.kube.descheduler.topologyspread import Bearer, CountingRule, PodCounts
from kubectl_spread.kube.features import behaviour, gates
from kubectl_spread.kube.scheduler import podtopologyspread
from kubectl_spread.kube.scheduler.podtopologyspread import NodeSets, Spread
from kubectl_spread.sources.decode import json_objects
from tests.conformance.descheduler import ours
from tests.conformance.descheduler.cases import case

SERVED = behaviour(37, gates(37, {}))

Outcome = tuple[Mapping[str, int], int]


class RandomCluster:
    """A random cluster, for both counts."""

    def __init__(self, index: int) -> None:
        question = msgspec.json.encode(case(1, index))
        asked = msgspec.json.decode(question, type=ours.Question)
        nodes, not_ready = ours.nodes(asked)
        pods = [json_objects.decode(raw, Pod) for raw in asked.pods]
        evictees = [defaultevictor.evictable(ours.evictee(raw)) for raw in asked.pods]
        groups = [ours.group(pod, evictable=one) for pod, one in zip(pods, evictees, strict=True)]
        self.cluster = PodCounts(nodes, not_ready, groups)
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
            of = ours.bearer(pod)
            for one, spread in zip(of.constraints, self._spreads(pod), strict=True):
                if spread.constraint.hard:
                    yield of, one, spread

    def _spreads(self, pod: Pod) -> tuple[Spread, ...]:
        working = []
        for one in pod.spec.topology_spread_constraints:
            effective = podtopologyspread.effective_selector(
                one.label_selector, one.match_label_keys, pod.metadata.labels
            )
            working.append(podtopologyspread.working_constraint(one, effective, SERVED))
        placement = ours.bearer(pod).placement
        return self.census.spreads(pod.metadata.namespace, pod.metadata.labels, working, placement)


def outcome(spread: Spread) -> Outcome:
    return spread.match_num, spread.min_match_num


@pytest.mark.parametrize("start", range(0, 200, 50))
def test_the_rules_turn_the_schedulers_count_into_the_deschedulers(start: int) -> None:
    for index in range(start, start + 50):
        found = RandomCluster(index)
        for of, one, spread in found.hard():

            def count(
                rules: Sequence[CountingRule],
                of: Bearer = of,
                one: TopologySpreadConstraint = one,
                in_cluster: PodCounts = found.cluster,
            ) -> Outcome:
                return outcome(topologyspread._count(one, of, in_cluster, SERVED, rules))

            rules = topologyspread.differences(one, of, found.cluster, SERVED)
            domains = topologyspread.count(one, of, found.cluster).domains
            seen = (domains, min(domains.values(), default=0))
            assert count(()) == outcome(spread)
            assert count(rules) == seen
            assert all(count([rule for rule in rules if rule is not left_out]) != seen for left_out in rules)
