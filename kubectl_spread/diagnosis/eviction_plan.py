"""Balancing: how few pods have to leave their domains so that a skew ends within maxSkew?

The scheduler may place each replacement in any domain that its filter allows. What is found holds whichever it takes,
so replacements are placed as badly as the filter lets them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from heapq import heapify, heappop, heapreplace
from itertools import islice
from typing import Final, NamedTuple

import msgspec

from kubectl_spread.kube.scheduler.podtopologyspread.constraints import Constraint

_FEW: Final = 8
"""With more domains than this, smaller sets are not looked for."""
_TRIES: Final = 5_000
"""How many sets are tried at most to find one that is smaller."""


class EvictionGame(msgspec.Struct, frozen=True):
    """The domains of one hard constraint, as a game of evicting and placing.

    Attributes:
        counts: Maps every eligible domain to its matching pods.
        capacity: Maps a domain to how many more pods its nodes take; absent: none.
        movable: Maps a domain to how many of its matching pods may be evicted.
        lost: Maps a domain to how many of these, which go first, leave room behind that no pod can use.
        constraint: The constraint; it selects the pods that are evicted and their replacements.
    """

    counts: Mapping[str, int]
    capacity: Mapping[str, int]
    movable: Mapping[str, int]
    lost: Mapping[str, int]
    constraint: Constraint

    def limit(self, least: int) -> int:
        """Return how many pods a domain may have after a placement while the emptiest domain has ``least``."""
        return self.constraint.limit(self.constraint.minimum(least, len(self.counts)))


def fewest(field: EvictionGame) -> dict[str, int] | None:
    """Return how many pods to evict from each domain, as few as suffice however replacements are placed.

    None: no number does. Taking from the fullest domain is best unless pods there cannot be moved or nodes are full;
    so with few domains smaller sets are looked for too, as long as they are not too many to try.
    """
    least = _least(field)
    if any(number > field.movable.get(domain, 0) for domain, number in least.items()):
        return None
    at_least = max(1, sum(least.values()))
    chosen = _from_the_fullest(field, at_least)
    domains = sorted(field.movable)
    if len(domains) > _FEW:
        return chosen
    ranges = [range(least[domain], field.movable[domain] + 1) for domain in domains]
    fewer = range(at_least, sum(chosen.values()) if chosen else sum(field.movable.values()) + 1)
    shares = (numbers for number in fewer for numbers in _shares(number, ranges))
    for numbers in islice(shares, _TRIES):
        gone = {domain: share for domain, share in zip(domains, numbers, strict=True) if share}
        if _suffices(field, gone):
            return gone
    return chosen


def _from_the_fullest(field: EvictionGame, at_least: int) -> dict[str, int] | None:
    """Take pods one by one from the domain that is the fullest then, ``at_least`` so many, until that suffices."""
    order = fullest_first(field)
    sizes = range(at_least, len(order) + 1)

    def enough(size: int) -> bool:
        return _suffices(field, Counter(order[:size]))

    # With many domains not every size is tried; what is found suffices, though a smaller one might too.
    start = bisect_left(sizes, x=True, key=enough) if len(field.counts) > _FEW else 0
    size = next((size for size in sizes[start:] if enough(size)), None)
    return None if size is None else dict(sorted(Counter(order[:size]).items()))


def fullest_first(field: EvictionGame) -> list[str]:
    """Return the domains to take from, one pod at a time, as long as any can be moved."""
    heap = [(-field.counts[domain], domain) for domain, number in field.movable.items() if number]
    heapify(heap)
    order: list[str] = []
    taken: Counter[str] = Counter()
    while heap:
        number, domain = heap[0]
        taken[domain] += 1
        if taken[domain] < field.movable[domain]:
            heapreplace(heap, (number + 1, domain))
        else:
            heappop(heap)
        order.append(domain)
    return order


def _least(field: EvictionGame) -> dict[str, int]:
    """Return how many pods have to leave each domain, wherever they go: the minimum is at most the mean."""
    limit = field.limit(sum(field.counts.values()) // len(field.counts))
    return {domain: max(0, number - limit) for domain, number in field.counts.items()}


def _shares(number: int, ranges: Sequence[range]) -> Iterator[tuple[int, ...]]:
    """Yield every way to take ``number`` things from places that give so many each, the most from the first."""
    if not ranges:
        if not number:
            yield ()
        return
    for first in reversed(ranges[0]):
        if first <= number:
            yield from ((first, *rest) for rest in _shares(number - first, ranges[1:]))


def _suffices(field: EvictionGame, gone: Mapping[str, int]) -> bool:
    """Tell whether all replacements find a place and the skew is within maxSkew, wherever the filter lets them go."""
    left = {domain: _domain_without(field, domain, gone.get(domain, 0)) for domain in field.counts}
    number = sum(gone.values())
    if _absorbed(field, left.values(), min(domain.most for domain in left.values())) < number:
        return False
    fullest = max(domain.pods for domain in left.values())
    alike = Counter(left.values())
    return fullest <= field.limit(min(_left_behind(field, alike, domain, number) for domain in alike))


class _Domain(NamedTuple):
    """A domain after evictions: its pods, and how many it has when all its room is taken."""

    pods: int
    most: int


def _domain_without(field: EvictionGame, domain: str, gone: int) -> _Domain:
    count = field.counts[domain] - gone
    room = field.capacity.get(domain, 0) + max(0, gone - field.lost.get(domain, 0))
    return _Domain(count, count + room)


def _left_behind(field: EvictionGame, alike: Counter[_Domain], domain: _Domain, number: int) -> int:
    """Return how many pods a domain has at the end if as many replacements as possible go elsewhere.

    They can go to every other domain until that is maxSkew above the minimum, which is ``domain`` itself at last.
    """
    others = list((alike - Counter([domain])).elements())
    level = domain.pods
    while level < domain.most and _absorbed(field, others, level) + level - domain.pods < number:
        level += 1
    return level


def _absorbed(field: EvictionGame, domains: Collection[_Domain], minimum: int) -> int:
    """Return how many replacements domains take while the minimum is no higher; one that is full holds it down."""
    limit = field.limit(min([minimum, *(domain.most for domain in domains)]))
    return sum(max(0, min(domain.most, limit) - domain.pods) for domain in domains)
