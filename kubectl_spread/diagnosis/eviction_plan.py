"""The eviction plan: how few pods have to leave their domains so that a skew ends within maxSkew?

The scheduler may place each replacement in any domain that its filter allows. A plan has to suffice whichever domain it
takes, so replacements are placed where they are worst for the skew, as far as the filter allows.
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
"""With more domains than this, smaller sets are not searched."""
_TRIES: Final = 5_000
"""The most sets that are tried in search of a smaller one."""


class EvictionGame(msgspec.Struct, frozen=True):
    """The domains of one hard constraint, as a game of evicting and placing.

    Attributes:
        counts: Maps every eligible domain to its matching pods.
        capacity: Maps a domain to the number of further pods that its nodes take; absent: none.
        movable: Maps a domain to the number of its matching pods that may be evicted.
        lost: Maps a domain to the number of movable pods that leave room which no pod can use; they are evicted first.
        constraint: The constraint; it selects the pods that are evicted and their replacements.
    """

    counts: Mapping[str, int]
    capacity: Mapping[str, int]
    movable: Mapping[str, int]
    lost: Mapping[str, int]
    constraint: Constraint

    def limit(self, least: int) -> int:
        """Return the most pods that a domain may have after a placement while the emptiest domain has ``least``."""
        return self.constraint.limit(self.constraint.minimum(least, len(self.counts)))


def fewest(game: EvictionGame) -> dict[str, int] | None:
    """Return the fewest pods to evict from each domain that suffice however replacements are placed; None: none do.

    Evicting from the fullest domain is best unless pods there cannot be moved or nodes are full. So with few domains
    smaller sets are searched too, up to a number of tries.
    """
    least = _least(game)
    if any(number > game.movable.get(domain, 0) for domain, number in least.items()):
        return None
    at_least = max(1, sum(least.values()))
    chosen = _from_the_fullest(game, at_least)
    domains = sorted(game.movable)
    if len(domains) > _FEW:
        return chosen
    ranges = [range(least[domain], game.movable[domain] + 1) for domain in domains]
    fewer = range(at_least, sum(chosen.values()) if chosen else sum(game.movable.values()) + 1)
    shares = (numbers for number in fewer for numbers in _shares(number, ranges))
    for numbers in islice(shares, _TRIES):
        gone = {domain: share for domain, share in zip(domains, numbers, strict=True) if share}
        if _suffices(game, gone):
            return gone
    return chosen


def _from_the_fullest(game: EvictionGame, at_least: int) -> dict[str, int] | None:
    """Take pods one by one from the domain that is then the fullest, at least ``at_least``, until that suffices."""
    order = fullest_first(game)
    sizes = range(at_least, len(order) + 1)

    def enough(size: int) -> bool:
        return _suffices(game, Counter(order[:size]))

    # With many domains not every size is tried, so that a smaller one might suffice too.
    start = bisect_left(sizes, x=True, key=enough) if len(game.counts) > _FEW else 0
    size = next((size for size in sizes[start:] if enough(size)), None)
    return None if size is None else dict(sorted(Counter(order[:size]).items()))


def fullest_first(game: EvictionGame) -> list[str]:
    """Return the domains to take pods from, one pod at a time, as long as any pod can be moved."""
    heap = [(-game.counts[domain], domain) for domain, number in game.movable.items() if number]
    heapify(heap)
    order: list[str] = []
    taken: Counter[str] = Counter()
    while heap:
        number, domain = heap[0]
        taken[domain] += 1
        if taken[domain] < game.movable[domain]:
            heapreplace(heap, (number + 1, domain))
        else:
            heappop(heap)
        order.append(domain)
    return order


def _least(game: EvictionGame) -> dict[str, int]:
    """Return the pods that have to leave each domain wherever they go, because the minimum is at most the mean."""
    limit = game.limit(sum(game.counts.values()) // len(game.counts))
    return {domain: max(0, number - limit) for domain, number in game.counts.items()}


def _shares(number: int, ranges: Sequence[range]) -> Iterator[tuple[int, ...]]:
    """Yield every way to take ``number`` pods from domains with these ranges, most pods from the first domain first."""
    if not ranges:
        if not number:
            yield ()
        return
    for first in reversed(ranges[0]):
        if first <= number:
            yield from ((first, *rest) for rest in _shares(number - first, ranges[1:]))


def _suffices(game: EvictionGame, gone: Mapping[str, int]) -> bool:
    """Tell whether all replacements find a place and the skew is within maxSkew, wherever the filter allows them."""
    left = {domain: _domain_without(game, domain, gone.get(domain, 0)) for domain in game.counts}
    number = sum(gone.values())
    if _absorbed(game, left.values(), min(domain.most for domain in left.values())) < number:
        return False
    fullest = max(domain.pods for domain in left.values())
    alike = Counter(left.values())
    return fullest <= game.limit(min(_left_behind(game, alike, domain, number) for domain in alike))


class _Domain(NamedTuple):
    """A domain after evictions: its pods, and its pods once all its room is taken."""

    pods: int
    most: int


def _domain_without(game: EvictionGame, domain: str, gone: int) -> _Domain:
    count = game.counts[domain] - gone
    room = game.capacity.get(domain, 0) + max(0, gone - game.lost.get(domain, 0))
    return _Domain(count, count + room)


def _left_behind(game: EvictionGame, alike: Counter[_Domain], domain: _Domain, number: int) -> int:
    """Return the pods that a domain has at the end if as many replacements as possible go to other domains.

    Each other domain takes replacements until it is maxSkew above the minimum, which in the end is ``domain`` itself.
    """
    others = list((alike - Counter([domain])).elements())
    level = domain.pods
    while level < domain.most and _absorbed(game, others, level) + level - domain.pods < number:
        level += 1
    return level


def _absorbed(game: EvictionGame, domains: Collection[_Domain], minimum: int) -> int:
    """Return the replacements that domains take while the minimum is no higher; a full domain keeps it low."""
    limit = game.limit(min([minimum, *(domain.most for domain in domains)]))
    return sum(max(0, min(domain.most, limit) - domain.pods) for domain in domains)
