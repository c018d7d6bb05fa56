"""Placing: on which node does kube-scheduler put a pod, given all pods that are there now?

Source: kubernetes v1.37.1 pkg/scheduler/schedule_one.go, schedulePod, with the default plugins.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from functools import reduce
from heapq import nlargest
from itertools import chain, islice
from operator import or_
from random import Random
from typing import NamedTuple

from kubectl_spread.engine.kinds import ASSUMED_CPU, ASSUMED_MEMORY, HeldTerm, Kinds, SchedulingKind, selects
from kubectl_spread.engine.nodes import CountedNodes, KindAnswers, NodeTable, Values
from kubectl_spread.engine.pods import SimulatedPod
from kubectl_spread.engine.queue import EqualPods
from kubectl_spread.kube.api import labels as labelselectors
from kubectl_spread.kube.api.labels import ANYWHERE, HOSTNAME, Selecting, ascending
from kubectl_spread.kube.scheduler import scores
from kubectl_spread.kube.scheduler.interpodaffinity import Term
from kubectl_spread.kube.scheduler.podtopologyspread import scoring
from kubectl_spread.kube.scheduler.podtopologyspread.constraints import Constraint
from kubectl_spread.kube.scheduler.podtopologyspread.scoring import RankedCount
from kubectl_spread.kube.scheduler.scores import Weights

_CPU, _MEMORY = "cpu", "memory"
_UNKNOWN_ROOM: dict[str, int] = {}
TallySource = HeldTerm | tuple[str, Constraint] | tuple[Term, ...]
"""What a tally counts: the pods with a term, those that a constraint counts in a namespace, or those of all terms."""


class Tally:
    """Counts of pods by the value of a topology key; domains without pods have no entry.

    Attributes:
        counts: Maps a value to its number of pods, or to the sum of their weights.
        values: The value of each node.
        waiting: The pods that wait for a change.
    """

    __slots__ = ("counts", "values", "waiting")

    def __init__(self, values: Values) -> None:
        self.values = values
        self.waiting: dict[EqualPods, None] = {}
        self.counts: dict[str, int] = {}

    def add(self, number: int, pods: int) -> None:
        """Add pods on a node; a negative number removes them."""
        value = self.values[number]
        if value is not None:
            count = self.counts.get(value, 0) + pods
            if count:
                self.counts[value] = count
            else:
                del self.counts[value]


class Room:
    """The nodes with room for pods with the same requests, and the scores that depend on resources alone.

    Attributes:
        kind: A kind with these requests.
        own: The cpu and memory among them.
        fits: The nodes with room, as a bitmap.
        scores: The scores of nodes, as far as they are known.
        waiting: The pods that wait for room, and on which nodes.
        used: The sum of the usage of the pods of each node.
        log: The numbers of the nodes on which pods came or went, in this order.
        first: The room before other pods came and went, which knows the scores of the other nodes; None for none.
    """

    def __init__(
        self,
        kind: SchedulingKind,
        nodes: NodeTable,
        used: Sequence[dict[str, int]],
        log: Sequence[int],
        weights: Weights,
    ) -> None:
        self.kind = kind
        usage = dict(kind.usage)
        self.own = (usage.get(_CPU, 0), usage.get(_MEMORY, 0))
        self._nodes, self.used, self._weights, self.log = nodes, used, weights, log
        self._seen, self._changed = len(log), 0
        self.first: Room | None = None
        self.waiting: dict[EqualPods, int] = {}
        self.scores: list[int | None] = [None] * len(used)
        content = bytearray(len(used) // 8 + 1)
        for number in range(len(used)):
            if self.has_room(number):
                content[number >> 3] |= 1 << (number & 7)
        self.fits = int.from_bytes(content, "little")

    def copy(self, used: Sequence[dict[str, int]], log: Sequence[int]) -> Room:
        """Return the room after other pods came and went, of which ``log`` begins with the changes that are in this."""
        other = copy(self)
        other.used, other.log, other.first = used, log, self
        other.scores, other.waiting = [*self.scores], {}
        return other

    def has_room(self, number: int) -> bool:
        """Tell whether a pod fits on a node; on one whose room is unknown it does."""
        allocatable, used = self._nodes.allocatable[number], self.used[number]
        for port in self.kind.excluding:
            if used.get(port):
                return False
        if allocatable is None:
            return True
        # A simulation asks this most often: a loop takes half the time of a generator.
        for name, amount in self.kind.requests:  # noqa: SIM110
            if used.get(name, 0) + amount > allocatable.get(name, 0):
                return False
        return True

    def slots(self, number: int, most: int) -> int:
        """Return how many pods fit on a node, at most ``most``, if they exclude no ports."""
        allocatable, used = self._nodes.allocatable[number], self.used[number]
        if allocatable is None:
            return most
        free = (
            (allocatable.get(name, 0) - used.get(name, 0)) // amount for name, amount in self.kind.requests if amount
        )
        return max(0, min(free, default=most))

    def refresh(self) -> None:
        """Compute again what changed on nodes since the last time."""
        if self._seen == len(self.log):
            return
        for number in set(self.log[self._seen :]):
            self.scores[number] = None
            bit = 1 << number
            self._changed |= bit
            self.fits = self.fits | bit if self.has_room(number) else self.fits & ~bit
        self._seen = len(self.log)

    def score(self, number: int) -> int:
        """Return the weighted sum of the scores of a node that depend on resources."""
        if (score := self.scores[number]) is not None:
            return score
        if self.first is not None and not self._changed >> number & 1:
            score = self.scores[number] = self.first.score(number)
            return score
        allocatable, used = self._nodes.allocatable[number] or _UNKNOWN_ROOM, self.used[number]
        has = (allocatable.get(_CPU, 0), allocatable.get(_MEMORY, 0))
        own = self.kind.assumed
        assumed = (used.get(ASSUMED_CPU, 0) + own[0], used.get(ASSUMED_MEMORY, 0) + own[1])
        score = self._weights.node_resources_fit * scores.least_allocated(assumed, has)
        if self.own != (0, 0):
            before = (used.get(_CPU, 0), used.get(_MEMORY, 0))
            after = (before[0] + self.own[0], before[1] + self.own[1])
            score += self._weights.balanced_allocation * scores.balanced_allocation(after, before, has)
        self.scores[number] = score
        return score


class Repelling(NamedTuple):
    """A required term of anti-affinity, and the nodes that it refuses.

    Attributes:
        term: The term.
        nodes: The nodes, as a bitmap.
        held: The term as other pods have it; None for a term of the pod itself.
    """

    term: Term
    nodes: int
    held: HeldTerm | None


class Placements:
    """The pods on the nodes of a cluster at one moment, and where the scheduler would put one more.

    Attributes:
        nodes: The nodes.
        used: The sum of the usage of the pods of each node.
        to_find: The number of feasible nodes that are looked for.
        taken: The amounts of ``take_room`` by the number of the node.
    """

    def __init__(self, nodes: NodeTable, kinds: Kinds, weights: Weights) -> None:
        """Start without pods."""
        self.nodes = nodes
        self.to_find = nodes.to_find
        self.taken: dict[int, dict[str, int]] = {}
        self.used: list[dict[str, int]] = [{} for _ in nodes.names]
        self._kinds = kinds
        self._weights = weights
        self._population: dict[SchedulingKind, dict[int, int]] = {}
        self._tallies: dict[object, Tally] = {}
        self._tallies_of: dict[SchedulingKind, list[tuple[Tally, int]]] = {}
        self._sources = Selecting[tuple[Tally, TallySource]]()
        self._log: list[int] = []
        self._first: Placements | None = None
        self._rooms: dict[object, Room] = {}
        self._changed: dict[Tally, None] = {}
        self._freed = 0
        self._hopes: dict[Room, int] = {}
        self.start = 0

    def wait(self, equal: EqualPods) -> None:
        """Note that no node is feasible for some equal pods, until ``woken`` returns them.

        Source: kubernetes v1.37.1 pkg/scheduler/framework/plugins, the functions isSchedulableAfter… of the filters.
        """
        kind = equal.kind
        for tally in self._filtering(kind):
            tally.waiting[equal] = None
        room = self.room(kind)
        if hopes := self.nodes.answers(kind).allowed & ~equal.refused & ~room.fits:
            room.waiting[equal] = hopes
            self._hopes[room] = self._hopes.get(room, 0) | hopes

    def woken(self) -> list[EqualPods]:
        """Return the pods that waited, and for which a filter may now allow another node."""
        woken: list[EqualPods] = []
        for tally in self._changed:
            woken += tally.waiting
            tally.waiting.clear()
        self._changed.clear()
        freed, self._freed = self._freed, 0
        for room in [room for room, hopes in self._hopes.items() if hopes & freed]:
            room.refresh()
            if self._hopes[room] & room.fits:
                woken += (equal for equal, hopes in room.waiting.items() if hopes & room.fits)
                room.waiting = {equal: hopes for equal, hopes in room.waiting.items() if not hopes & room.fits}
                self._hopes[room] = reduce(or_, room.waiting.values(), 0)
        return woken

    def _filtering(self, kind: SchedulingKind) -> list[Tally]:
        """Return the tallies that the filters read for pods of a kind."""
        hard = zip(kind.hard, self.nodes.answers(kind).hard, strict=True)
        return [
            *(self.spread(kind, constraint, counted) for constraint, counted in hard),
            *(self._matching(kind.affinity, term.topology_key) for term in kind.affinity),
            *(self._matching((term,), term.topology_key) for term in kind.anti_affinity),
            *(self._holding(held) for held in self._kinds.acting_on(kind) if held.weight is None),
        ]

    @property
    def changes(self) -> int:
        """The number of times that pods came or went."""
        return len(self._log)

    def add(self, kind: SchedulingKind, number: int, pods: int = 1) -> None:
        """Put pods of a kind on a node; a negative number removes them."""
        on = self._population.setdefault(kind, {})
        on[number] = on.get(number, 0) + pods
        used = self.used[number]
        for name, amount in kind.usage:
            used[name] = used.get(name, 0) + pods * amount
        self._log.append(number)
        if pods < 0:
            self._freed |= 1 << number
        if self._tallies:
            for tally, weight in self._weights_of(kind):
                tally.add(number, weight * pods)
                if tally.waiting:
                    self._changed[tally] = None

    def add_all(self, pods: Iterable[SimulatedPod]) -> None:
        """Put pods on their nodes, if these are there."""
        numbers = self.nodes.numbers
        for pod in pods:
            if pod.node in numbers:
                self.add(pod.kind, numbers[pod.node])

    def take_room(self, number: int, usage: Iterable[tuple[str, int]]) -> None:
        """Let a node have less room, without a pod that could count."""
        used, taken = self.used[number], self.taken.setdefault(number, {})
        for name, amount in usage:
            used[name] = used.get(name, 0) + amount
            taken[name] = taken.get(name, 0) + amount
        self._log.append(number)

    def copy(self, nodes: NodeTable) -> Placements:
        """Return the same pods on the same nodes, of which no amounts may have changed.

        Pods come and go in the copy alone. It takes the room of the nodes from the first one, whose pods must stay.
        """
        other = Placements(nodes, self._kinds, self._weights)
        other.used = [*map(dict, self.used)]
        other._population = {kind: dict(on) for kind, on in self._population.items()}
        other.taken = {number: dict(amounts) for number, amounts in self.taken.items()}
        other._log = [*self._log]
        other._first = self._first or self
        return other

    def choose(self, kind: SchedulingKind, refused: int, random: Random) -> int | None:
        """Return the number of the node on which the scheduler puts a pod; None where no node is feasible.

        Args:
            kind: The kind of the pod.
            refused: The nodes that its volumes, or the node that it belongs to, refuse, as a bitmap.
            random: Decides between nodes with the same score.
        """
        best = self.best(kind, self.sample(self.feasible(kind, refused)))
        return random.choice(best) if len(best) > 1 else next(iter(best), None)

    def best(self, kind: SchedulingKind, candidates: Sequence[int]) -> Sequence[int]:
        """Return the candidates with the highest score."""
        if len(candidates) <= 1:
            return candidates
        totals = [*map(sum, zip(*self.scores(kind, candidates).values(), strict=True))]
        most = max(totals)
        return [number for number, total in zip(candidates, totals, strict=True) if total == most]

    def sample(self, feasible: int) -> Sequence[int]:
        """Return the feasible nodes that are found before the scheduler stops looking."""
        most = self.to_find
        if feasible.bit_count() <= most:
            return list(ascending(feasible))
        before = feasible & (1 << self.start) - 1
        # The scheduler stops at the first node more than it needs, and begins there the next time.
        *sample, self.start = islice(chain(ascending(feasible ^ before), ascending(before)), most + 1)
        return sample

    def feasible(self, kind: SchedulingKind, refused: int) -> int:
        """Return the nodes that all filters allow a pod, as a bitmap; ``refused`` as in ``choose``."""
        if not kind.parses:
            return 0
        feasible = self.nodes.answers(kind).allowed & ~refused
        if feasible:
            feasible &= self.room(kind).fits
        feasible = self._left_by_others(kind, feasible)
        return feasible if kind.ranks or feasible.bit_count() <= 1 else 0

    def admits(self, kind: SchedulingKind) -> bool:
        """Tell whether any node would take one more pod of a kind if it had room for it."""
        return kind.parses and bool(self._left_by_others(kind, self.nodes.answers(kind).allowed))

    def depends_on_others(self, kind: SchedulingKind) -> bool:
        """Tell whether other pods decide where pods of a kind may go, or a selector cannot be parsed."""
        if kind.hard or kind.affinity or kind.anti_affinity or not kind.ranks or not kind.parses:
            return True
        return any(held.weight is None for held in self._kinds.acting_on(kind))

    def is_within_bounds(self, kind: SchedulingKind, number: int) -> bool:
        """Tell whether the pods of a node request no more than it has of what a kind requests."""
        allocatable, used = self.nodes.allocatable[number], self.used[number]
        return allocatable is None or all(used.get(name, 0) <= allocatable.get(name, 0) for name, _ in kind.requests)

    def surely_takes(self, kind: SchedulingKind, pods: int, rivals: int) -> bool:
        """Tell whether nodes take pods of a kind in any order, because only room decides and there is enough.

        Args:
            kind: The kind.
            pods: The number of pods.
            rivals: The number of other pods that may take all room of a node each, before these.
        """
        if kind.excluding or self.depends_on_others(kind):
            return False
        room, bits = self.room(kind), self.nodes.answers(kind).allowed
        slots: list[int] = []
        left = pods * (1 + rivals)
        for number in ascending(bits & room.fits):
            slots.append(room.slots(number, pods))
            left -= slots[-1]
            if left <= 0:
                return True
        return sum(slots) - sum(nlargest(rivals, slots)) >= pods

    def _left_by_others(self, kind: SchedulingKind, nodes: int) -> int:
        """Return the nodes that constraints and pod affinity leave of some, as bitmaps."""
        for refused in self.constrained(kind, self.nodes.answers(kind)) if nodes else ():
            nodes &= ~refused
        return nodes & ~self.repelled(kind) if nodes else 0

    def room(self, kind: SchedulingKind) -> Room:
        """Return the room for pods with the requests of a kind."""
        key = (kind.usage, kind.assumed)
        room = self._rooms.get(key)
        if room is None:
            room = self._rooms[key] = (
                Room(kind, self.nodes, self.used, self._log, self._weights)
                if self._first is None
                else self._first.room(kind).copy(self.used, self._log)
            )
        room.refresh()
        return room

    def constrained(self, kind: SchedulingKind, answers: KindAnswers) -> Iterator[int]:
        """Yield the nodes that each hard constraint refuses, as a bitmap."""
        for constraint, counted in zip(kind.hard, answers.hard, strict=True):
            tally = self.spread(kind, constraint, counted)
            limit = self.limit(kind, constraint, counted, tally)
            key = constraint.topology_key
            if limit < 0:
                yield self.nodes.everything
                continue
            refused = self.nodes.everything & ~self.nodes.sets.carrying([key])
            for value, count in tally.counts.items():
                if count > limit:
                    refused |= self.nodes.mask(key, value)
            yield refused

    def limit(self, kind: SchedulingKind, constraint: Constraint, counted: CountedNodes, tally: Tally) -> int:
        """Return the number of matching pods up to which a domain takes one more pod of a kind."""
        return constraint.max_skew - int(self_matches(constraint, kind)) + minimum(constraint, counted.domains, tally)

    def repelled(self, kind: SchedulingKind) -> int:
        """Return the nodes that required pod affinity and anti-affinity refuse, as a bitmap."""
        refused = self.unattracted(kind)
        for repelling in self.repelling(kind):
            refused |= repelling.nodes
        return refused

    def repelling(self, kind: SchedulingKind) -> Iterator[Repelling]:
        """Yield the domains that required anti-affinity refuses, by the terms of a kind and by those of other pods."""
        for term in kind.anti_affinity:
            tally = self._matching((term,), term.topology_key)
            yield Repelling(term, self._occupied(term.topology_key, tally), None)
        for held in self._kinds.acting_on(kind):
            if held.weight is None:
                yield Repelling(held.term, self._occupied(held.term.topology_key, self._holding(held)), held)

    def kinds_with(self, repelling: Repelling) -> Iterator[SchedulingKind]:
        """Yield the kinds of the bound pods for which a term refuses nodes."""
        if repelling.held is not None:
            yield from self.holders(repelling.held)
            return
        for kind in self._kinds.matching((repelling.term,)):
            if any(self._population.get(kind, {}).values()):
                yield kind

    def by_domain(self, kinds: Iterable[SchedulingKind], key: str) -> dict[str, int]:
        """Return the number of pods of some kinds on the nodes of each domain of a topology key that has any."""
        values, counts = self.nodes.values(key), dict[str, int]()
        for kind in kinds:
            for number, pods in self._population.get(kind, {}).items():
                value = values[number]
                if pods and value is not None:
                    counts[value] = counts.get(value, 0) + pods
        return counts

    def holders(self, held: HeldTerm) -> list[SchedulingKind]:
        """Return the kinds of the bound pods that have a term."""
        holders = dict.fromkeys(self._kinds.holders(held))
        return [kind for kind in holders if any(self._population.get(kind, {}).values())]

    def unattracted(self, kind: SchedulingKind) -> int:
        """Return the nodes that the required affinity of a kind refuses, as a bitmap.

        Source: kubernetes v1.37.1 pkg/scheduler/framework/plugins/interpodaffinity/filtering.go, satisfyPodAffinity.
        """
        if not kind.affinity:
            return 0
        keys = [term.topology_key for term in kind.affinity]
        tallies = [self._matching(kind.affinity, key) for key in keys]
        attracting = self.nodes.sets.carrying(keys)
        starts_group = not any(tally.counts for tally in tallies) and all(
            term.matches(kind.pod, {}) for term in kind.affinity
        )
        for key, tally in () if starts_group else zip(keys, tallies, strict=True):
            attracting &= self._occupied(key, tally)
        return self.nodes.everything & ~attracting

    def _occupied(self, key: str, tally: Tally) -> int:
        """Return the nodes of the domains with pods, as a bitmap."""
        bits = 0
        for value in tally.counts:
            bits |= self.nodes.mask(key, value)
        return bits

    def scores(self, kind: SchedulingKind, candidates: Sequence[int]) -> dict[str, list[int]]:
        """Return the weighted scores of feasible nodes by what they depend on.

        Scores may differ from those of the scheduler by a number that is the same for all candidates.
        """
        answers, weights, room = self.nodes.answers(kind), self._weights, self.room(kind)
        of_resources = room.scores
        fit = [room.score(number) if (score := of_resources[number]) is None else score for number in candidates]
        parts: dict[str, tuple[int, list[int]]] = {"resources": (1, fit)}
        if answers.avoided is not None:
            avoided = [answers.avoided[number] for number in candidates]
            parts["taints"] = (weights.taint_toleration, scores.share_of_most(avoided, reverse=True))
        if answers.preferred is not None:
            preferred = [answers.preferred[number] for number in candidates]
            parts["node affinity"] = (weights.node_affinity, scores.share_of_most(preferred))
        if kind.soft:
            parts["spread"] = (weights.pod_topology_spread, self.spread_scores(kind, candidates))
        if affinity := self._affinity_scores(kind, candidates):
            parts["pod affinity"] = (weights.inter_pod_affinity, scores.between_extremes(affinity))
        return {name: [weight * score for score in part] for name, (weight, part) in parts.items()}

    def spread_scores(self, kind: SchedulingKind, candidates: Sequence[int]) -> list[int]:
        """Return the scores of feasible nodes by the soft constraints alone, from 0 to 100, the best.

        Source: kubernetes v1.37.1 pkg/scheduler/framework/plugins/podtopologyspread/scoring.go.
        """
        answers, ranked = self.nodes.answers(kind), candidates
        if answers.ranked != self.nodes.everything:
            ranked = [number for number in candidates if answers.ranked >> number & 1]
            if not ranked:
                return [0] * len(candidates)
        counts = []
        for constraint, counted in zip(kind.soft, answers.soft, strict=True):
            values = self.nodes.values(constraint.topology_key)
            if constraint.topology_key == HOSTNAME:
                on_nodes, size = self._on_nodes(kind, constraint).counts, len(ranked)
                names = self.nodes.names
                pods = [None if values[number] is None else on_nodes.get(names[number], 0) for number in ranked]
            else:
                # Nodes without the key and those with an empty value are one domain.
                tally, size = self.spread(kind, constraint, counted).counts, len({values[n] or "" for n in ranked})
                pods = [None if (value := values[n]) is None else tally.get(value, 0) for n in ranked]
            counts.append(RankedCount(pods, size, constraint.max_skew))
        normal = scoring.normalized(counts)
        if ranked is candidates:
            return normal
        of_ranked = dict(zip(ranked, normal, strict=True))
        return [of_ranked.get(number, 0) for number in candidates]

    def _affinity_scores(self, kind: SchedulingKind, candidates: Sequence[int]) -> list[int] | None:
        """Return the raw scores of preferred terms of the pod and of all pods; None without such terms."""
        tallies = [
            (self._matching((term,), term.topology_key), term.topology_key, weight) for term, weight in kind.preferred
        ]
        tallies += [
            (self._holding(held), held.term.topology_key, held.weight)
            for held in self._kinds.acting_on(kind)
            if held.weight is not None
        ]
        tallies = [each for each in tallies if each[0].counts]
        if not tallies:
            return None
        raw = [0] * len(candidates)
        for tally, key, weight in tallies:
            values, counts = self.nodes.values(key), tally.counts
            raw = [
                score if (value := values[number]) is None else score + weight * counts.get(value, 0)
                for score, number in zip(raw, candidates, strict=True)
            ]
        return raw

    def spread(self, kind: SchedulingKind, constraint: Constraint, counted: CountedNodes) -> Tally:
        """Return the pods that count for a constraint of a kind, by domain."""
        selector = self._kinds.selector_key(constraint)
        key = (kind.namespace, selector, constraint.topology_key, counted.bits, constraint.lenient)
        return self._tally(key, counted.values, self._counted_kinds(kind, constraint), (kind.namespace, constraint))

    def _on_nodes(self, kind: SchedulingKind, constraint: Constraint) -> Tally:
        """Return the pods that a constraint selects on each node, whether or not the node counts for it."""
        key = ("node", kind.namespace, self._kinds.selector_key(constraint))
        return self._tally(key, self.nodes.names, self._counted_kinds(kind, constraint), (kind.namespace, constraint))

    def _counted_kinds(self, kind: SchedulingKind, constraint: Constraint) -> Iterator[SchedulingKind]:
        """Yield the kinds of pods that count for a constraint of a kind."""
        selected = self._kinds.selected(kind.namespace, constraint.selector) if constraint.counts else ()
        return (each for each in selected if not each.terminating)

    def _matching(self, terms: tuple[Term, ...], key: str) -> Tally:
        """Return the pods that all terms select, by domain."""
        return self._tally((key, *map(id, terms)), self.nodes.values(key), self._kinds.matching(terms), terms)

    def _holding(self, held: HeldTerm) -> Tally:
        """Return the pods that have a term, by the domain of the term."""
        return self._tally(held, self.nodes.values(held.term.topology_key), self._kinds.holders(held), held)

    def _tally(self, key: object, values: Values, kinds: Iterable[SchedulingKind], source: TallySource) -> Tally:
        tally = self._tallies.get(key)
        if tally is None:
            weights: dict[SchedulingKind, int] = {}
            for kind in kinds:
                if kind in self._population:
                    weights[kind] = weights.get(kind, 0) + 1
            for kind in self._population if not self._tallies else ():
                self._tallies_of[kind] = []
            tally = self._tallies[key] = Tally(values)
            match source:
                case (str() as namespace, Constraint() as constraint):
                    self._sources.add(namespace, constraint.selector, (tally, source))
                case (Term() as term, *_):
                    self._sources.add(ANYWHERE, term.selector, (tally, source))
            for kind, weight in weights.items():
                self._tallies_of[kind].append((tally, weight))
                for number, pods in self._population[kind].items():
                    if pods:
                        tally.add(number, weight * pods)
        return tally

    def _weights_of(self, kind: SchedulingKind) -> list[tuple[Tally, int]]:
        """Return the tallies that count a kind, and how often; a kind that is new is compared with all that may."""
        if kind not in self._tallies_of:
            sources = [*self._sources.that_may_select(kind.namespace, kind.labels)]
            sources += ((self._tallies[held], held) for held in dict.fromkeys(kind.held) if held in self._tallies)
            counted = ((tally, _weight(source, kind)) for tally, source in sources)
            self._tallies_of[kind] = [(tally, weight) for tally, weight in counted if weight]
        return self._tallies_of[kind]


def _weight(source: TallySource, kind: SchedulingKind) -> int:
    """Return how often the source of a tally counts a pod of a kind."""
    match source:
        case HeldTerm():
            return sum(each is source for each in kind.held)
        case (str() as namespace, Constraint() as constraint):
            return int(namespace == kind.namespace and selects(constraint, kind))
        case _:
            return int(all(isinstance(term, Term) and term.matches(kind.pod, {}) for term in source))


def self_matches(constraint: Constraint, kind: SchedulingKind) -> bool:
    """Tell whether a constraint selects the pod that has it, whatever the scheduler counts for it."""
    return labelselectors.matches(constraint.selector, kind.labels)


def minimum(constraint: Constraint, domains: int, tally: Tally) -> int:
    """Return the global minimum over this number of eligible domains."""
    least = min(tally.counts.values(), default=0) if len(tally.counts) >= domains else 0
    return constraint.minimum(least, domains)
