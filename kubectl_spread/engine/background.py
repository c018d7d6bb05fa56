"""Background: the pods that decide about a workload only by the room that they take, so that they are placed once.

In a large cluster, an event moves tens of thousands of pods, and a search asks for the same event again and again with
another manifest of one workload. The pods of the background are then no pods of a run: they only take room. Those that
an event moves are placed before any pod of the workload, which is the worst order for it, and for all changes alike.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from random import Random
from typing import Final

from kubectl_spread.engine.kinds import SchedulingKind, selects
from kubectl_spread.engine.placing import Placements
from kubectl_spread.engine.pods import SimulatedPod
from kubectl_spread.engine.world import World
from kubectl_spread.kube.api.labels import ZONE
from kubectl_spread.kube.api.objects import ObjectRef
from kubectl_spread.kube.api.types import LabelSelector
from kubectl_spread.kube.scheduler import scores
from kubectl_spread.memoization import memoized

_SEED: Final = 0


class Background:
    """The background of one workload.

    Attributes:
        lowest_priority: The lowest priority of its pods.
        unreadable: Its pods whose requests cannot be read, so that the room of their nodes is unknown.
        scarce: Whether an event left so little room that the pods of the runs could take it from those of the
            background, had they come first.
    """

    def __init__(
        self, world: World, subject: SchedulingKind, pods: Sequence[SimulatedPod], close: Collection[ObjectRef]
    ) -> None:
        """Take what is not close.

        Args:
            world: The cluster.
            subject: The pods of the workload that is asked about.
            pods: All pods of the cluster.
            close: The workloads that are not part of the background, that one among them.
        """
        self._world, self._subject = world, subject
        self._table, self._volumes = world.table(world.nodes)
        self._pods = [pod for pod in pods if pod.workload not in close]
        # Each pod of the runs may move, and a rollout may have twice as many.
        self._others = 2 * (len(pods) - len(self._pods))
        self.scarce = False
        self.lowest_priority = min((pod.kind.priority for pod in self._pods), default=0)
        self.unreadable = [pod for pod in self._pods if pod.kind.pod_class.requests is None]
        self._all = Placements(self._table, world.kinds, world.weights)
        self._all.add_all((*world.mirrors(), *pods))
        self._on: dict[str, list[SimulatedPod]] = {}
        for pod in self._pods:
            self._on.setdefault(pod.node, []).append(pod)

    def placements(self, own: Iterable[SimulatedPod]) -> Placements:
        """Return some pods on their nodes, and the room that the background takes."""
        placements = Placements(self._table, self._world.kinds, self._world.weights)
        for pod in chain(self._world.mirrors(), self._pods):
            if (number := self._table.numbers.get(pod.node)) is not None:
                placements.take_room(number, pod.kind.usage)
        placements.add_all(own)
        return placements

    def room_taken(self, nodes: Collection[str]) -> Mapping[int, Mapping[str, int]]:
        """Map the numbers of nodes to what pods of the background take there when some nodes keep none any more.

        Those that the workload's pods may preempt come after them.
        """
        return self._move(frozenset(nodes))

    @memoized
    def _move(self, names: frozenset[str]) -> Mapping[int, Mapping[str, int]]:
        random, state = Random(_SEED), self._all.copy(self._table)  # noqa: S311 - it decides on nothing secret
        numbers, subject = self._table.numbers, self._subject
        closed = sum(1 << numbers[name] for name in names)
        pods = [pod for name in sorted(names) for pod in self._on.get(name, ())]
        pods = [pod for pod in pods if pod.owner is not None and not pod.is_daemon]
        for pod in pods:
            state.add(pod.kind, numbers[pod.node], -1)
        random.shuffle(pods)
        # Which of many nodes with much room they take does not matter.
        state.to_find = min(state.to_find, scores.LEAST)
        taken: dict[int, Counter[str]] = {}
        for pod in sorted(pods, key=lambda pod: -pod.kind.priority):
            refused = self._volumes.of(pod.record).refused if pod.record.claims else 0
            number = state.choose(pod.kind, refused | closed, random)
            if number is None:
                continue
            state.add(pod.kind, number)
            if not (subject.preempts and pod.kind.priority < subject.priority):
                taken.setdefault(number, Counter()).update(dict(pod.kind.usage))
        waiting = self._on.get("", ())
        self.scarce = self.scarce or self._is_scarce(state, {pod.kind for pod in (*pods, *waiting)}, closed)
        return taken

    def _is_scarce(self, state: Placements, kinds: Collection[SchedulingKind], closed: int) -> bool:
        """Tell whether the pods of the runs, one on a node, could leave no node of a zone with room for some kind."""
        answers = self._table.answers
        zones = [self._table.mask(ZONE, zone) for zone in {*self._table.values(ZONE)} if zone is not None]
        for kind in {(kind.usage, answers(kind).allowed): kind for kind in kinds}.values():
            allowed = answers(kind).allowed & ~closed
            free = allowed & state.room(kind).fits
            for nodes in (self._table.everything, *zones):
                if allowed & nodes and (free & nodes).bit_count() <= self._others:
                    return True
        return False


def without_background(
    world: World, workload: ObjectRef, kind: SchedulingKind, selector: LabelSelector | None
) -> World:
    """Return a cluster whose runs have only the pods that decide about a workload by more than their room.

    Args:
        world: The cluster.
        workload: The workload.
        kind: Its pods.
        selector: Selects its pods; a change may let constraints count others that it selects.
    """
    pods = [*world.pods()]
    close = _close(world, workload, [kind, *world.kinds.selected(kind.namespace, selector)], pods)
    background = Background(world, kind, pods, close)
    return world.alone([pod for pod in pods if pod.workload in close], background)


def _close(
    world: World, workload: ObjectRef, first: Collection[SchedulingKind], pods: Sequence[SimulatedPod]
) -> set[ObjectRef]:
    """Return the workloads whose pods count for those of a workload, or the other way round, with their own ones."""
    links = _Links(world, pods)
    close = {workload}
    left = [*first, *links.kinds_of.get(workload, ())]
    while left:
        kind = left.pop()
        for other in (other for each in (kind, *links.of(kind)) for other in links.workloads_of.get(each, ())):
            if other not in close:
                close.add(other)
                left += links.kinds_of[other]
    return close


class _Links:
    """The kinds of pods that decide about each other by more than their room.

    Attributes:
        kinds_of: The kinds of the pods of each workload.
        workloads_of: The workloads of the pods of each kind.
    """

    def __init__(self, world: World, pods: Iterable[SimulatedPod]) -> None:
        self._world = world
        self.kinds_of: dict[ObjectRef, dict[SchedulingKind, None]] = {}
        self.workloads_of: dict[SchedulingKind, dict[ObjectRef, None]] = {}
        self._in: dict[str, dict[SchedulingKind, None]] = {}
        self._claims: dict[SchedulingKind, set[str]] = {}
        self._claimed: dict[tuple[str, str], dict[SchedulingKind, None]] = {}
        for pod in pods:
            kind = pod.kind
            self.kinds_of.setdefault(pod.workload, {})[kind] = None
            self.workloads_of.setdefault(kind, {})[pod.workload] = None
            self._in.setdefault(kind.namespace, {})[kind] = None
            for claim in pod.record.claims:
                self._claims.setdefault(kind, set()).add(claim)
                self._claimed.setdefault((kind.namespace, claim), {})[kind] = None

    def of(self, kind: SchedulingKind) -> Iterator[SchedulingKind]:
        """Yield the kinds that decide about one, or about which it decides."""
        kinds = self._world.kinds
        for constraint in (*kind.hard, *kind.soft):
            yield from kinds.selected(kind.namespace, constraint.selector)
        for term in (*kind.affinity, *kind.anti_affinity, *(term for term, _ in kind.preferred)):
            yield from kinds.matching((term,))
        for held in kinds.acting_on(kind):
            yield from kinds.holders(held)
        for other in self._in.get(kind.namespace, ()):
            if any(selects(constraint, kind) for constraint in (*other.hard, *other.soft)):
                yield other
        for budget in self._world.snapshot.budgets.of(kind.namespace, kind.labels):
            yield from kinds.selected(kind.namespace, budget.spec.selector)
        for claim in self._claims.get(kind, ()):
            yield from self._claimed[kind.namespace, claim]
