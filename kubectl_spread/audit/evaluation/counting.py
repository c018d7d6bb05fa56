"""Counting with the snapshot: each distinct selector and constraint is evaluated once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from kubectl_spread.audit.snapshot.digests import digest
from kubectl_spread.audit.snapshot.snapshot import Snapshot
from kubectl_spread.kube.api import labels as labelselectors
from kubectl_spread.kube.api.labels import Labels
from kubectl_spread.kube.api.types import LabelSelector
from kubectl_spread.kube.features import Behaviour
from kubectl_spread.kube.scheduler import podtopologyspread
from kubectl_spread.kube.scheduler.podtopologyspread import Constraint, Domains, NodeSets, Placement, Spread
from kubectl_spread.kube.scheduler.podtopologyspread_scoring import lenient_domains

ENCODER: Final = msgspec.json.Encoder(order="deterministic")


class Census:
    """Counts matching pods per node, once per namespace and selector, and spreads, once per constraint."""

    def __init__(self, snapshot: Snapshot, nodes: NodeSets, behaviour: Behaviour) -> None:
        """Count the pods of ``snapshot`` on ``nodes``."""
        self.nodes = nodes
        self._snapshot = snapshot
        self._behaviour = behaviour
        self._matching: dict[tuple[str, bytes], Mapping[str, int]] = {}
        self._sums: dict[tuple[int, ...], Mapping[str, int]] = {}
        self._lenient: dict[object, Domains] = {}
        self._spreads: dict[object, Spread] = {}

    def spreads(
        self, namespace: str, labels: Labels, constraints: Sequence[Constraint], placement: Placement
    ) -> tuple[Spread, ...]:
        """Count every constraint of one pod, in the pod's order."""
        return tuple(
            self._spread(namespace, labels, constraint, self._domains(constraint, constraints, placement))
            for constraint in constraints
        )

    def _spread(self, namespace: str, labels: Labels, constraint: Constraint, domains: Domains) -> Spread:
        question = (
            namespace,
            digest(constraint),
            id(domains),
            labelselectors.matches(constraint.selector, labels),
        )
        if question not in self._spreads:
            matching = self.matching(namespace, constraint.selector)
            self._spreads[question] = podtopologyspread.count(constraint, domains, matching, labels)
        return self._spreads[question]

    def _domains(self, constraint: Constraint, constraints: Sequence[Constraint], placement: Placement) -> Domains:
        if not constraint.lenient:
            return self.nodes.domains(constraint, _keys_alike(constraint, constraints), placement)
        question = (constraint.topology_key, constraint.node_affinity_policy, id(self.nodes.usable(placement)))
        if question not in self._lenient:
            self._lenient[question] = lenient_domains(constraint, self.nodes, placement)
        return self._lenient[question]

    def matching(self, namespace: str, selector: LabelSelector | None) -> Mapping[str, int]:
        """Map a node's name to its number of pods in ``namespace`` that count for ``selector``."""
        if podtopologyspread.counts_nothing(selector, self._behaviour):
            return {}
        question = (namespace, digest(selector))
        if question not in self._matching:
            selected = self._snapshot.population(namespace).selected(selector) if selector else ()
            self._matching[question] = self._sum([per_node for _, per_node in selected])
        return self._matching[question]

    def _sum(self, counts: Sequence[Mapping[str, int]]) -> Mapping[str, int]:
        """Return counts added up; the selectors of one template select the same pods, and share the sum."""
        key = tuple(map(id, counts))
        if key not in self._sums:
            found: Counter[str] = Counter()
            for per_node in counts:
                found.update(per_node)
            self._sums[key] = counts[0] if len(counts) == 1 else found
        return self._sums[key]


def _keys_alike(constraint: Constraint, constraints: Sequence[Constraint]) -> tuple[str, ...]:
    return tuple(other.topology_key for other in constraints if other.hard == constraint.hard)
