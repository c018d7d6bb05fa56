"""Replacements: which nodes take the pods that replace evicted ones, and where would they be worst?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain

import msgspec

from kubectl_spread.audit.evaluation.affinity import own_terms
from kubectl_spread.audit.evaluation.evaluate import Audit
from kubectl_spread.audit.evaluation.obstacles import ObstacleKind
from kubectl_spread.audit.evaluation.volumes import VolumeNodes
from kubectl_spread.audit.snapshot.records import PodClass, PodRecord
from kubectl_spread.kube.scheduler.podtopologyspread.domains import Cell
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
        self, replacement: Replacement, spreads: Sequence[Spread], decisive: int, enough: int, audit: Audit
    ) -> None:
        """Take the nodes that have the topology keys of all hard constraints of a replacement.

        Args:
            replacement: The pods to place.
            spreads: The counts of all their hard constraints.
            decisive: The index of the constraint by whose domains ``fullest`` and ``emptiest`` choose.
            enough: The room of which the rest is not asked.
            audit: The audit.
        """
        self._keys = [each.constraint.topology_key for each in spreads]
        self._decisive = decisive
        self._replacement = replacement
        self._enough = enough
        self._audit = audit
        self._nodes = audit.nodes.cells(self._keys)
        self._cells = audit.nodes.cells_in_order(self._keys)
        self._of_value: dict[str | None, list[Cell]] = {}
        for cell in self._cells if spreads else ():
            self._of_value.setdefault(cell[decisive], []).append(cell)
        self._room: dict[Cell, int] = {}

    def left_by(self, pods: Iterable[PodRecord]) -> Counter[Cell]:
        """Return the room that removed pods leave to their replacements."""
        by_name, replacement = self._audit.nodes.by_name, self._replacement
        bound = (pod for pod in pods if pod.node in by_name and not replacement.loses_room(pod, self._audit))
        labels = (by_name[pod.node].metadata.labels for pod in bound)
        return Counter(tuple(map(of_node.get, self._keys)) for of_node in labels)

    def fullest(
        self, spreads: Sequence[Spread], left: Mapping[Cell, int], volumes: VolumeNodes | None = None
    ) -> Cell | None:
        """Return a cell in the fullest domain that all constraints allow, where one more pod is worst for the skew.

        ``left`` is further room, or less if negative; ``volumes`` are those of the pod. Of several cells it is the
        first one; None: there is none.
        """
        return next(self._allowed(spreads, left, volumes, fullest=True), None)

    def emptiest(
        self, spreads: Sequence[Spread], left: Mapping[Cell, int], volumes: VolumeNodes | None = None
    ) -> Cell | None:
        """Return a cell in the emptiest domain that all constraints allow, as ``fullest`` does."""
        return next(self._allowed(spreads, left, volumes, fullest=False), None)

    def _allowed(
        self, spreads: Sequence[Spread], left: Mapping[Cell, int], volumes: VolumeNodes | None, *, fullest: bool
    ) -> Iterator[Cell]:
        """Yield the first allowed cell of the domains with each number of pods."""
        if not spreads:
            yield from self._first(self._cells, (), left, volumes)
            return
        limits = [(each.match_num.occupied, each.most_allowed) for each in spreads]
        occupied, limit = limits[self._decisive]
        by_count: dict[int, list[str]] = {}
        for domain, number in occupied.items():
            if number <= limit and domain in self._of_value:
                by_count.setdefault(number, []).append(domain)
        if limit >= 0 and not occupied.keys() >= self._of_value.keys():
            by_count[0] = []
        for number in sorted(by_count, reverse=fullest):
            if number:
                firsts = (self._first(self._of_value[domain], limits, left, volumes) for domain in by_count[number])
                yield from sorted(chain.from_iterable(firsts), key=str)
            else:
                empty = (cell for cell in self._cells if cell[self._decisive] not in occupied)
                yield from self._first(empty, limits, left, volumes)

    def _first(
        self,
        cells: Iterable[Cell],
        limits: Sequence[tuple[Mapping[str, int], int]],
        left: Mapping[Cell, int],
        volumes: VolumeNodes | None,
    ) -> Iterator[Cell]:
        """Yield the first cell, if any, with room in domains that have no more pods than each limit."""
        for cell in cells:
            allowed = all(
                occupied.get(value or "", 0) <= limit for value, (occupied, limit) in zip(cell, limits, strict=True)
            )
            if allowed and self._room_of(cell) + left.get(cell, 0) > 0 and self._holds(cell, volumes):
                yield cell
                return

    def _holds(self, cell: Cell, volumes: VolumeNodes | None) -> bool:
        """Tell whether a node of a cell has the volumes of a pod."""
        if volumes is None or not volumes.refusals:
            return True
        return any(volumes.obstacle(node.metadata.name) is None for node in self._nodes[cell])

    def _room_of(self, cell: Cell) -> int:
        """Return the replacements that the nodes of a cell take."""
        if cell not in self._room:
            room = 0
            for node in self._nodes[cell]:
                if room >= self._enough:
                    break
                room += self._replacement.room(node.metadata.name, self._audit, self._enough)
            self._room[cell] = room
        return self._room[cell]
