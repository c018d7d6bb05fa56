"""Counting with the snapshot: each distinct selection of pods is counted once for each distinct set of domains."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from kubectl_spread.audit.snapshot.digests import digest
from kubectl_spread.audit.snapshot.records import Population
from kubectl_spread.audit.snapshot.snapshot import Snapshot
from kubectl_spread.kube.api import labels as labelselectors
from kubectl_spread.kube.api.labels import Labels
from kubectl_spread.kube.api.types import LabelSelector
from kubectl_spread.kube.features import Behaviour
from kubectl_spread.kube.scheduler.podtopologyspread.constraints import Constraint, counts_nothing
from kubectl_spread.kube.scheduler.podtopologyspread.domains import Domains, NodeSets, Placement, UsableNodes
from kubectl_spread.kube.scheduler.podtopologyspread.scoring import lenient_domains
from kubectl_spread.kube.scheduler.podtopologyspread.spread import MatchNum, Spread, pods_per_domain


class Census:
    """Counts matching pods per node and per domain, once for each selection of pods, and spreads, once a constraint."""

    def __init__(self, snapshot: Snapshot, nodes: NodeSets, behaviour: Behaviour) -> None:
        """Count the pods of ``snapshot`` on ``nodes``."""
        self.nodes = nodes
        self._snapshot = snapshot
        self._behaviour = behaviour
        self._counts: dict[tuple[str, bool], _Counts] = {}
        self._lenient: dict[object, Domains] = {}
        self._spreads: dict[object, Spread] = {}

    def spreads(
        self, namespace: str, labels: Labels, constraints: Sequence[Constraint], placement: Placement
    ) -> tuple[Spread, ...]:
        """Count every constraint of one pod, in the pod's order."""
        carrying = {
            hard: self.nodes.carrying(other.topology_key for other in constraints if other.hard is hard)
            for hard in {constraint.hard for constraint in constraints}
        }
        usable = self.nodes.usable(placement)
        return tuple(
            self._spread(namespace, labels, constraint, self._domains(constraint, carrying[constraint.hard], usable))
            for constraint in constraints
        )

    def _domains(self, constraint: Constraint, carrying: int, usable: UsableNodes) -> Domains:
        if not constraint.lenient:
            return self.nodes.eligible_domains(constraint, carrying, usable)
        question = (constraint.topology_key, constraint.node_affinity_policy, usable)
        if question not in self._lenient:
            self._lenient[question] = lenient_domains(constraint, self.nodes, usable)
        return self._lenient[question]

    def matching(self, namespace: str, selector: LabelSelector | None) -> Mapping[str, int]:
        """Map a node's name to its number of pods in ``namespace`` that count for ``selector``."""
        if selector is None or counts_nothing(selector, self._behaviour):
            return {}
        counts = self._counts_of(namespace)
        return counts.per_node(counts.selection(selector))

    def terminating(self, namespace: str, spread: Spread) -> Mapping[str, int]:
        """Return the number of terminating pods that match in each eligible domain with any."""
        selector = spread.constraint.selector
        if selector is None or not spread.constraint.counts:
            return {}
        counts = self._counts_of(namespace, terminating=True)
        return counts.per_domain(counts.selection(selector), spread.domains).occupied

    def _spread(self, namespace: str, labels: Labels, constraint: Constraint, domains: Domains) -> Spread:
        self_match_num = int(labelselectors.matches(constraint.selector, labels))
        question = (namespace, digest(constraint), domains, self_match_num)
        if question not in self._spreads:
            match_num = self._match_num(namespace, constraint.selector, domains)
            self._spreads[question] = Spread(constraint, domains, match_num, self_match_num)
        return self._spreads[question]

    def _match_num(self, namespace: str, selector: LabelSelector | None, domains: Domains) -> MatchNum:
        if selector is None or counts_nothing(selector, self._behaviour):
            return MatchNum(domains.nodes, {})
        counts = self._counts_of(namespace)
        return counts.per_domain(counts.selection(selector), domains)

    def _counts_of(self, namespace: str, *, terminating: bool = False) -> _Counts:
        question = (namespace, terminating)
        if question not in self._counts:
            of = self._snapshot.terminating if terminating else self._snapshot.population
            self._counts[question] = _Counts(of(namespace))
        return self._counts[question]


class _Counts:
    """The counts of the pods of one namespace, by selection of their label sets."""

    def __init__(self, population: Population) -> None:
        self._population = population
        self._selections: dict[bytes, tuple[int, ...]] = {}
        self._per_node: dict[tuple[int, ...], Mapping[str, int]] = {}
        self._per_domain: dict[tuple[tuple[int, ...], Domains], MatchNum] = {}

    def selection(self, selector: LabelSelector) -> tuple[int, ...]:
        """Return the numbers of the label sets that a selector selects."""
        key = digest(selector)
        if key not in self._selections:
            self._selections[key] = self._population.selection(selector)
        return self._selections[key]

    def per_node(self, selection: tuple[int, ...]) -> Mapping[str, int]:
        """Map a node's name to its number of selected pods."""
        if len(selection) == 1:
            return self._population[selection[0]]
        if selection not in self._per_node:
            total: Counter[str] = Counter()
            for number in selection:
                total.update(self._population[number])
            self._per_node[selection] = total
        return self._per_node[selection]

    def per_domain(self, selection: tuple[int, ...], domains: Domains) -> MatchNum:
        """Count the selected pods in each domain."""
        question = (selection, domains)
        if question not in self._per_domain:
            self._per_domain[question] = pods_per_domain(domains, self.per_node(selection))
        return self._per_domain[question]
