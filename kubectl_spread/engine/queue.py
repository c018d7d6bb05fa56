"""Queue: the pods without a node. One that found none is tried again only when a change could help it.

Source: kubernetes v1.37.1 pkg/scheduler/backend/queue/scheduling_queue.go, moveAllToActiveOrBackoffQueue, which asks
the queueing hints of plugins.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Iterator
from enum import Enum
from random import Random
from typing import TYPE_CHECKING

from kubectl_spread.engine.kinds import SchedulingKind

if TYPE_CHECKING:
    from kubectl_spread.engine.pods import SimulatedPod


class Arrival(Enum):
    """The order in which the scheduler sees pods that come at about the same time.

    It takes a pod as soon as there is one, and a pod that found no node waits some seconds before it is tried again. A
    pod that may preempt others gets a node before those with a lower priority in any case.
    """

    TOGETHER = "all at once, so that it places them by priority"
    MIXED = "one by one"
    NEWEST = "one by one, and those again last that found no node"


class EqualPods:
    """Pending pods of which the filters allow the same nodes, so that all of them wait for the same.

    Attributes:
        kind: Their kind.
        refused: The nodes that their volumes or pins refuse, as a bitmap.
        pods: The pods, in the order in which they came.
        rank: The place of the next of them among those that are tried.
        has_turn: Whether it has a place.
    """

    __slots__ = ("has_turn", "kind", "pods", "rank", "refused")

    def __init__(self, kind: SchedulingKind, refused: int) -> None:
        self.kind, self.refused, self.rank, self.has_turn = kind, refused, 0.0, False
        self.pods: dict[SimulatedPod, None] = {}

    def next_pod(self, arrival: Arrival) -> SimulatedPod:
        """Return the pod that is tried next."""
        return next(reversed(self.pods) if arrival is Arrival.NEWEST else iter(self.pods))

    def advance(self, arrival: Arrival, random: Random) -> None:
        """Let the rank be that of the next pod; of pods that come one by one, each has any place after the last."""
        if arrival is Arrival.MIXED:
            self.rank += (1 - self.rank) * (1 - random.random() ** (1 / len(self.pods)))
        else:
            order = self.next_pod(arrival).order
            self.rank = -order if arrival is Arrival.NEWEST else order


class SchedulingQueue:
    """The pods without a node that have no scheduling gates."""

    def __init__(self) -> None:
        self._equal: dict[object, EqualPods] = {}
        self._of: dict[SimulatedPod, EqualPods] = {}
        self._awake: dict[EqualPods, None] = {}

    def add(self, pod: SimulatedPod, *, alone: bool) -> None:
        """Add a pod, which may be the only one that waits for its claim."""
        question = (pod.kind, pod.refused, pod if alone else None)
        equal = self._equal.get(question)
        if equal is None:
            equal = self._equal[question] = EqualPods(pod.kind, pod.refused)
        if not equal.pods:
            self._awake[equal] = None
        equal.pods[pod] = None
        self._of[pod] = equal

    def discard(self, pod: SimulatedPod) -> None:
        """Remove a pod, if it is there."""
        equal = self._of.pop(pod, None)
        if equal is not None:
            del equal.pods[pod]

    def wake(self, woken: Iterable[EqualPods]) -> None:
        """Let pods be tried again."""
        self._awake |= dict.fromkeys(woken)

    def wake_all(self) -> None:
        """Let all pods be tried again."""
        self.wake(self._equal.values())

    def take_awake(self) -> list[EqualPods]:
        """Return the pods that are to be tried, and let them wait until they are woken again."""
        awake = [equal for equal in self._awake if equal.pods]
        self._awake.clear()
        return awake


class Turns:
    """The order in which pods are tried: by priority and by when they came."""

    def __init__(self, equals: Iterable[EqualPods], arrival: Arrival, random: Random) -> None:
        """Take the pods that are to be tried."""
        awake = [*equals]
        self._arrival, self._random = arrival, random
        self._lowest = min((equal.kind.priority for equal in awake), default=0)
        self._heap: list[tuple[int, float, int, EqualPods]] = []
        self._later: list[EqualPods] = []
        self._now = (-math.inf, 0.0)
        self._entries = 0
        for equal in awake:
            self.join(equal)

    def join(self, equal: EqualPods) -> None:
        """Let pods be tried that were not tried in vain since they were woken; those that are late in the next turn."""
        if equal.pods and not equal.has_turn:
            equal.rank = 0.0
            self.follow(equal)

    def follow(self, equal: EqualPods) -> None:
        """Let the next of some equal pods be tried."""
        equal.has_turn = True
        equal.advance(self._arrival, self._random)
        place = (-self._priority(equal.kind), equal.rank)
        if place < self._now:
            self._later.append(equal)
        else:
            self._entries += 1
            heapq.heappush(self._heap, (*place, self._entries, equal))

    def _priority(self, kind: SchedulingKind) -> int:
        return kind.priority if kind.preempts or self._arrival is Arrival.TOGETHER else self._lowest

    def __iter__(self) -> Iterator[tuple[EqualPods, SimulatedPod]]:
        """Yield the pods that are to be tried, each with those that are equal."""
        while self._heap or self._later:
            if not self._heap:
                self._now, later, self._later = (-math.inf, 0.0), self._later, []
                for equal in later:
                    equal.has_turn = False
                    self.join(equal)
                continue
            priority, rank, _, equal = heapq.heappop(self._heap)
            self._now, equal.has_turn = (priority, rank), False
            if equal.pods:
                yield equal, equal.next_pod(self._arrival)
