"""Counting with the snapshot: each distinct selector and constraint is evaluated once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from kubectl_spread.audit.snapshot import Snapshot
from kubectl_spread.kube import labels as labelselectors
from kubectl_spread.kube import podtopologyspread
from kubectl_spread.kube.features import Behaviour
from kubectl_spread.kube.labels import Labels
from kubectl_spread.kube.model import LabelSelector
from kubectl_spread.kube.podtopologyspread import Constraint, Domains, NodeSets, Placement, Spread
from kubectl_spread.kube.podtopologyspread_scoring import lenient_domains

ENCODER: Final = msgspec.json.Encoder(order="deterministic")


class Census:
    """Counts matching pods per node, once per namespace and selector, and spreads, once per constraint."""

    def __init__(self, snapshot: Snapshot, nodes: NodeSets, behaviour: Behaviour) -> None:
        """Count the pods of ``snapshot`` on ``nodes``."""
        self.nodes = nodes
        self._snapshot = snapshot
        self._behaviour = behaviour
        self._matching: dict[tuple[str, bytes], Mapping[str, int]] = {}
        self._lenient: dict[object, Domains] = {}

    def spreads(
        self, namespace: str, labels: Labels, constraints: Sequence[Constraint], placement: Placement
    ) -> tuple[Spread, ...]:
        """Count every constraint of one pod, in the pod's order."""
        return tuple(
            podtopologyspread.count(
                constraint,
                self._domains(constraint, constraints, placement),
                self.matching(namespace, constraint.selector),
                labels,
            )
            for constraint in constraints
        )

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
        question = (namespace, ENCODER.encode(selector))
        if question not in self._matching:
            found: Counter[str] = Counter()
            for labels, per_node in self._snapshot.population(namespace):
                if labelselectors.matches(selector, labels):
                    found.update(per_node)
            self._matching[question] = found
        return self._matching[question]


def _keys_alike(constraint: Constraint, constraints: Sequence[Constraint]) -> tuple[str, ...]:
    return tuple(other.topology_key for other in constraints if other.hard == constraint.hard)
