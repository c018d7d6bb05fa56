"""Tallies: the counts of a pod's constraints while pods come and go."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

import msgspec

from kubectl_spread.audit.evaluation.evaluate import Audit
from kubectl_spread.kube.scheduler.podtopologyspread import Spread
from kubectl_spread.kube.scheduler.podtopologyspread_scoring import NO_VALUE
from kubectl_spread.phrases import value

Cell: TypeAlias = tuple[str | None, ...]
"""A node's values for the topology keys of some constraints, in their order; None where it lacks one."""
_BETWEEN_KEYS = " / "


class SimulatedCount(msgspec.Struct, frozen=True):
    """One constraint while pods are added and removed; ``counts`` maps each eligible domain to its matching pods."""

    spread: Spread
    counts: dict[str, int]

    @property
    def minimum(self) -> int:
        """The global minimum, as the scheduler takes it."""
        return min(self.counts.values(), default=0) if len(self.counts) >= self.spread.constraint.min_domains else 0

    @property
    def skew(self) -> int:
        """The largest skew of any eligible domain."""
        return max(self.counts.values(), default=self.minimum) - self.minimum

    def lets_in(self, domain: str | None) -> bool:
        """Tell whether one more such pod may go to a domain."""
        constraint = self.spread.constraint
        if domain is None or not constraint.hard:
            return not constraint.hard
        return self.counts.get(domain, 0) + self.spread.self_match_num - self.minimum <= constraint.max_skew

    def add(self, domain: str | None, number: int = 1) -> None:
        """Count so many more pods in a domain; fewer, if the number is negative."""
        if domain is None and self.spread.constraint.lenient:
            domain = NO_VALUE
        if domain in self.counts:
            self.counts[domain] += number * self.spread.self_match_num


def tallies(spreads: Iterable[Spread]) -> list[SimulatedCount]:
    """Return the tallies of counts as they are now."""
    return [SimulatedCount(spread, dict(spread.match_num)) for spread in spreads]


def cells(audit: Audit, nodes: Iterable[str], keys: Sequence[str]) -> dict[Cell, list[str]]:
    """Return those of ``nodes`` that share their values for ``keys``, in the nodes' order."""
    labels = {node.metadata.name: node.metadata.labels for node in audit.nodes.nodes}
    found: dict[Cell, list[str]] = {}
    for name in nodes:
        found.setdefault(tuple(labels[name].get(key) for key in keys), []).append(name)
    return found


def cell_name(cell: Cell) -> str:
    """Return a cell as its values, in the order of the keys."""
    return _BETWEEN_KEYS.join("<none>" if domain is None else value(domain) for domain in cell)
