"""Replacements: which nodes take the pods that replace evicted ones, and where would they be worst?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from kubectl_spread.audit.evaluation.affinity import own_terms
from kubectl_spread.audit.evaluation.evaluate import Audit, EvaluatedConstraint
from kubectl_spread.audit.evaluation.obstacles import ObstacleKind
from kubectl_spread.audit.snapshot.records import PodClass, PodRecord
from kubectl_spread.kube.scheduler.podtopologyspread.domains import Cell
from kubectl_spread.kube.scheduler.podtopologyspread.filtering import place
from kubectl_spread.kube.scheduler.podtopologyspread.spread import Spread


class Replacement(msgspec.Struct, frozen=True):
    """The pods that replace evicted ones, as far as nodes tell them apart.

    Attributes:
        pod_class: Their class.
        repelled: The nodes that they cannot use because of the anti-affinity of pods that stay.
        certain: Whether everything that decides ``repelled`` was read.
    """

    pod_class: PodClass
    repelled: frozenset[str]
    certain: bool

    def room(self, node: str, audit: Audit, most: int) -> int:
        """Return the number of replacements that a node takes, up to ``most``."""
        if node in self.repelled or audit.obstacles.of(self.pod_class, node):
            return 0
        return audit.obstacles.takes(self.pod_class, node, most=most)

    def loses_room(self, pod: PodRecord, audit: Audit) -> bool:
        """Tell whether no replacement could use the room that a pod leaves on its node."""
        obstacle = audit.obstacles.of(pod.pod_class, pod.node)
        return pod.node in self.repelled or (obstacle is not None and obstacle.cause is not ObstacleKind.FULL)


def replacement_of(pod_class: PodClass, audit: Audit) -> Replacement:
    """Return the replacement of pods of ``pod_class``; pods with required terms of their own may repel each other."""
    repelled = audit.affinity.refusals(pod_class)
    nodes = frozenset[str]() if repelled is None or own_terms(pod_class) else frozenset(repelled)
    return Replacement(audit.obstacles.kind(pod_class), nodes, repelled is not None)


class FreeCells:
    """The room for replacements on nodes with equal values of the topology keys; a node is asked when it matters."""

    def __init__(
        self, row: EvaluatedConstraint, spreads: Sequence[Spread], uneven_key: str, enough: int, audit: Audit
    ) -> None:
        """Take the nodes that have the topology keys of all hard constraints of a row.

        Args:
            row: The row, whose constraint with the key ``uneven_key`` is above maxSkew.
            spreads: The counts of all its hard constraints.
            uneven_key: The topology key.
            enough: The room of which the rest is not asked.
            audit: The audit.
        """
        self._spreads = spreads
        self._keys = [each.constraint.topology_key for each in spreads]
        self._uneven = self._keys.index(uneven_key)
        self._replacement = replacement_of(row.evaluations[0][0].pod_class, audit)
        self._most = len(row.pods)
        self._enough = enough
        self._audit = audit
        self._nodes = audit.nodes.cells(self._keys)
        self._cells = audit.nodes.cells_in_order(self._keys)
        self._of_value: dict[str | None, list[Cell]] = {}
        for cell in self._cells:
            self._of_value.setdefault(cell[self._uneven], []).append(cell)
        self._room: dict[Cell, int] = {}

    def end_within_max_skew(self, evicted: Sequence[PodRecord]) -> bool:
        """Tell whether the uneven constraint is within maxSkew wherever its constraints let replacements go."""
        spreads = self._spreads
        for pod in evicted:
            spreads = place(spreads, [each.domains.value_of.get(pod.node) for each in spreads], -1)
        left = self._left_by(evicted)
        for _ in evicted:
            worst = self._worst(spreads, left)
            if worst is None:
                return False
            left[worst] -= 1
            spreads = place(spreads, worst)
        return not spreads[self._uneven].exceeds_max_skew

    def _left_by(self, evicted: Iterable[PodRecord]) -> Counter[Cell]:
        """Return the room that evicted pods leave to their replacements."""
        by_name, replacement = self._audit.nodes.by_name, self._replacement
        nodes = (by_name.get(pod.node) for pod in evicted if not replacement.loses_room(pod, self._audit))
        return Counter(tuple(node.metadata.labels.get(key) for key in self._keys) for node in nodes if node is not None)

    def _worst(self, spreads: Sequence[Spread], left: Mapping[Cell, int]) -> Cell | None:
        """Return where one more pod is worst for the uneven constraint: in the fullest domain that all allow.

        ``left`` is further room, or less if negative. Of several cells it is the first one; None: there is none.
        """
        limits = [(each.match_num.occupied, each.most_allowed) for each in spreads]
        occupied, limit = limits[self._uneven]
        by_count: dict[int, list[str]] = {}
        for domain, number in occupied.items():
            if number <= limit and domain in self._of_value:
                by_count.setdefault(number, []).append(domain)
        for number in sorted(by_count, reverse=True):
            firsts = (self._first(self._of_value[domain], limits, left) for domain in by_count[number])
            cell = min(filter(None, firsts), key=str, default=None)
            if cell is not None:
                return cell
        if limit < 0 or occupied.keys() >= self._of_value.keys():
            return None
        return self._first((cell for cell in self._cells if cell[self._uneven] not in occupied), limits, left)

    def _first(
        self, cells: Iterable[Cell], limits: Sequence[tuple[Mapping[str, int], int]], left: Mapping[Cell, int]
    ) -> Cell | None:
        """Return the first cell with room in domains that have no more pods than each limit."""
        for cell in cells:
            allowed = all(
                occupied.get(value or "", 0) <= limit for value, (occupied, limit) in zip(cell, limits, strict=True)
            )
            if allowed and self._room_of(cell) + left.get(cell, 0) > 0:
                return cell
        return None

    def _room_of(self, cell: Cell) -> int:
        """Return the replacements that the nodes of a cell take."""
        if cell not in self._room:
            room = 0
            for node in self._nodes[cell]:
                if room >= self._enough:
                    break
                room += self._replacement.room(node.metadata.name, self._audit, self._most)
            self._room[cell] = room
        return self._room[cell]
