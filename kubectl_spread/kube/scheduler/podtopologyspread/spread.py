"""Spread: how many matching pods does each domain have, and may one more go there?

Source: kubernetes v1.37.1 pkg/scheduler/framework/plugins/podtopologyspread, calPreFilterState, minMatchNum, Filter and
countPodsMatchSelector.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import cached_property

import msgspec

from kubectl_spread.kube.api import labels as labelselectors
from kubectl_spread.kube.api.types import Node
from kubectl_spread.kube.scheduler.podtopologyspread.constraints import Constraint
from kubectl_spread.kube.scheduler.podtopologyspread.domains import Domains, NodeSets


class MatchNum(Mapping[str, int]):
    """The number of matching pods of every eligible domain, by its topology value.

    Only domains with pods have an entry, because a workload is on few of many hosts.
    """

    def __init__(self, domains: Mapping[str, object], occupied: Mapping[str, int]) -> None:
        self._domains = domains
        self._occupied = occupied

    def __getitem__(self, value: str) -> int:
        number = self._occupied.get(value, 0)
        if not number and value not in self._domains:
            raise KeyError(value)
        return number

    def __iter__(self) -> Iterator[str]:
        return iter(self._domains)

    def __len__(self) -> int:
        return len(self._domains)

    @property
    def occupied(self) -> Mapping[str, int]:
        """The counts of the domains with pods."""
        return self._occupied

    @property
    def empty(self) -> int:
        """The number of domains without pods."""
        return len(self._domains) - len(self._occupied)

    @cached_property
    def most(self) -> int:
        """The count of the fullest domain; 0 without domains."""
        return max(self._distinct(), default=0)

    @cached_property
    def least(self) -> int:
        """The count of the emptiest domain; 0 without domains."""
        return min(self._distinct(), default=0)

    def _distinct(self) -> set[int]:
        return {*self._occupied.values(), *((0,) if self.empty else ())}

    @property
    def total(self) -> int:
        """The number of pods in all domains."""
        return sum(self._occupied.values())

    def changed(self, change: Mapping[str, int]) -> MatchNum:
        """Return the counts after ``change``, a number of pods per domain, is added; ineligible domains are ignored."""
        counts = {value: self[value] + number for value, number in change.items() if value in self._domains}
        occupied = {**self._occupied, **counts}
        return MatchNum(self._domains, {value: number for value, number in occupied.items() if number})


class Spread(msgspec.Struct, frozen=True, eq=False, dict=True):
    """The count of one constraint for pods with the same labels and placement; compared by identity."""

    constraint: Constraint
    domains: Domains
    match_num: MatchNum
    self_match_num: int

    @property
    def min_match_num(self) -> int:
        """The global minimum: the count of the emptiest domain, or 0 if fewer domains than minDomains are eligible."""
        return self.constraint.minimum(self.match_num.least, len(self.match_num))

    @property
    def short_of_domains(self) -> bool:
        """Whether fewer domains than minDomains are eligible."""
        return len(self.match_num) < self.constraint.min_domains

    @property
    def lowered(self) -> bool:
        """Whether it is minDomains that lets the global minimum be 0, and no eligible domain has no pods."""
        return self.short_of_domains and self.match_num.least > 0

    @property
    def skew(self) -> int:
        """The skew of the fullest domain; 0 without domains."""
        return self.match_num.most - self.min_match_num

    @property
    def exceeds_max_skew(self) -> bool:
        """Whether the skew is above maxSkew."""
        return self.skew > self.constraint.max_skew

    def changed(self, change: Mapping[str, int]) -> Spread:
        """Return the count after ``change``, a number of matching pods per domain, is added."""
        return msgspec.structs.replace(self, match_num=self.match_num.changed(change))

    def without(self, pods: Mapping[str, int]) -> Spread:
        """Return the count without ``pods``, a number of matching pods per domain."""
        return self.changed({value: -number for value, number in pods.items()})

    def with_domains(self, pods: Mapping[str, int]) -> Spread:
        """Return the count with ``pods``, a number of matching pods per domain, whose domains become eligible."""
        match_num = MatchNum({**dict.fromkeys(self.match_num), **pods}, self.match_num.occupied)
        return msgspec.structs.replace(self, match_num=match_num.changed(pods))

    def allows(self, topology_value: str | None) -> bool:
        """Tell whether one more such pod may go to nodes with a value, or without the topology key (None)."""
        if not self.constraint.hard:
            return True
        return topology_value is not None and self.match_num.occupied.get(topology_value, 0) <= self.most_allowed

    @cached_property
    def most_allowed(self) -> int:
        """The matchNum up to which one more such pod may go to a domain, so that its skew is at most maxSkew."""
        return self.constraint.max_skew - self.self_match_num + self.min_match_num

    @property
    def blocked(self) -> Sequence[str]:
        """The eligible domains to which one more such pod may not go."""
        if not self.constraint.hard:
            return ()
        if self.most_allowed < 0:
            return list(self.match_num)
        return [domain for domain, number in self.match_num.occupied.items() if number > self.most_allowed]

    def frees(self, before: Spread) -> bool:
        """Tell whether some domain is allowed that was not allowed ``before``."""
        return any(self.allows(value) and not before.allows(value) for value in self.match_num)

    @property
    def allows_all(self) -> bool:
        """Whether one more such pod may go to any eligible domain."""
        return not self.constraint.hard or self.match_num.most <= self.most_allowed


def pods_per_domain(domains: Domains, matching: Mapping[str, int]) -> MatchNum:
    """Count matching pods per eligible domain; ``matching`` maps the names of nodes to their numbers of them."""
    occupied: Counter[str] = Counter()
    value_of = domains.value_of
    if len(value_of) < len(matching):
        matching = {node: matching[node] for node in value_of if node in matching}
    for node, number in matching.items():
        value = value_of.get(node)
        if value is not None:
            occupied[value] += number
    return MatchNum(domains.nodes, occupied)


class FilterAnswer(StrEnum):
    """The Filter's answer for one node."""

    FEASIBLE = "feasible"
    NOT_MATCHING = "not matching"
    MISSING_LABEL = "missing label"


def filter_nodes(spreads: Iterable[Spread], nodes: NodeSets) -> dict[FilterAnswer, int]:
    """Return the nodes with each answer, as bitmaps; the first hard constraint that a node fails decides."""
    missing = refused = 0
    left = nodes.index.everything
    for spread in spreads:
        if not spread.constraint.hard:
            continue
        key = spread.constraint.topology_key
        labelled = left & nodes.carrying([key])
        passing = 0 if spread.most_allowed < 0 else labelled & ~nodes.index.with_value(key, spread.blocked)
        missing |= left & ~labelled
        refused |= labelled & ~passing
        left = passing
    return {FilterAnswer.FEASIBLE: left, FilterAnswer.NOT_MATCHING: refused, FilterAnswer.MISSING_LABEL: missing}


def count_answers(spreads: Iterable[Spread], nodes: NodeSets) -> Counter[FilterAnswer]:
    """Count the answers for all nodes."""
    return +Counter({answer: bits.bit_count() for answer, bits in filter_nodes(spreads, nodes).items()})


def feasible_nodes(spreads: Iterable[Spread], nodes: NodeSets) -> Iterator[Node]:
    """Yield the nodes that pass all of the pod's hard constraints, by name; most callers need only the first ones."""
    feasible = filter_nodes(spreads, nodes)[FilterAnswer.FEASIBLE]
    return (nodes.nodes[number] for number in labelselectors.ascending(feasible))
