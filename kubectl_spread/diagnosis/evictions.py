"""Evictions: which pods would have to be evicted so that, once they are replaced, a skew is within maxSkew?"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from heapq import heapify, heappop, heapreplace
from itertools import islice
from typing import Final, NamedTuple

import msgspec
from msgspec import UNSET, UnsetType

from kubectl_spread.audit.evaluation.counted import Counted
from kubectl_spread.audit.evaluation.evaluate import Audit, EvaluatedConstraint
from kubectl_spread.audit.merge.verdicts import Verdict
from kubectl_spread.audit.snapshot.records import PodClass, PodRecord
from kubectl_spread.diagnosis.node_answers import FreeCells, Replacement, replacement_of
from kubectl_spread.diagnosis.skew import why_wait
from kubectl_spread.kube.custom import base_kind
from kubectl_spread.kube.scheduler.podtopologyspread.constraints import Constraint
from kubectl_spread.kube.scheduler.podtopologyspread.spread import Spread, place
from kubectl_spread.phrases import named
from kubectl_spread.report import model

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


_NOT_REPLACED_ALIKE: Final = frozenset(
    {Verdict.STALE_LABEL, Verdict.REMOVED_LABEL, Verdict.LATE_LABEL, Verdict.DUPLICATE}
)

_NOT_REPLACED: Final = "nothing replaces these pods: they have no owner"
_DIFFERENT_NEEDS: Final = "no set of pods was found: they differ in the nodes or resources that they need"
HELD: Final = "no eviction is sure to help: PersistentVolumes may keep replacements where the pods are"
_NOWHERE: Final = "no eviction is sure to help: replacements have nowhere better to go"


class Evictions(model.Part, frozen=True, kw_only=True):
    """The pods to evict for one constraint, by name; or the reason why none can be named.

    If ``sure`` is true, this constraint alone decides where replacements go, so that the skew will be within maxSkew
    wherever the scheduler places them, and no smaller set suffices. ``row`` is an index in the constraints.
    """

    row: int
    path: str
    pods: list[str] | UnsetType = UNSET
    sure: bool | UnsetType = UNSET
    reason: str | UnsetType = UNSET


class Plan(msgspec.Struct, frozen=True):
    """The pods whose eviction ends a skew, by name; ``reason`` says why there are none.

    ``sure`` is whether nothing but the constraint decides where replacements go. ``only`` is the single domain that can
    take the replacement of a single pod; "" where there are more.
    """

    pods: tuple[PodRecord, ...] = ()
    sure: bool = False
    only: str = ""
    reason: str = ""


def depend_on_budgets(audit: Audit) -> bool:
    """Tell whether a fix may remove running pods, so that disruption budgets have to be read.

    Such pods are in an uneven constraint, have a selector that does not fit their labels, or cannot be edited.
    """
    return any(_may_remove(row, audit) for row in audit.rows)


def _may_remove(row: EvaluatedConstraint, audit: Audit) -> bool:
    spread = row.spread
    if spread is not None and not row.lower_bound and (spread.exceeds_max_skew or not spread.self_match_num):
        return True
    if any(member.verdict in _NOT_REPLACED_ALIKE for member in row.members):
        return True
    return any(audit.admission.edits(evaluation.pod_class) for evaluation, _ in row.evaluations)


def evictions(audit: Audit) -> list[Evictions]:
    """Return the pods to evict for every row whose hard constraint is above maxSkew, in the order of the rows."""
    return [
        _evictions(index, row, plan(row, spread, audit))
        for index, row in enumerate(audit.rows)
        if (spread := row.spread) is not None and spread.constraint.hard and not row.lower_bound
        if spread.exceeds_max_skew
    ]


def _evictions(index: int, row: EvaluatedConstraint, plan: Plan) -> Evictions:
    if not plan.pods:
        return Evictions(row=index, path=str(row.path), reason=plan.reason)
    return Evictions(row=index, path=str(row.path), pods=[pod.name for pod in plan.pods], sure=plan.sure)


def plan(row: EvaluatedConstraint, spread: Spread, audit: Audit) -> Plan:
    """Return the pods to evict so that the skew of a row's hard constraint, which is above maxSkew, is within it again.

    These may be pods of other workloads with the same constraint, because the skew is that of all counted pods.
    """
    if reason := _why_none(row, spread, audit) or _other_target(row, audit):
        return Plan(reason=reason)
    replacements = {replacement_of(evaluation.pod_class, audit) for evaluation, _ in row.evaluations}
    if len(replacements) == 1 and _decides_alone(evaluation.pod_class for evaluation, _ in row.evaluations):
        counted, replacement = audit.counted.of(row.namespace, spread), replacements.pop()
        # Workloads that share a constraint share its plan.
        return counted.remember(replacement, lambda: _plan_of_all(replacement, counted, audit))
    replacement = replacement_of(row.evaluations[0][0].pod_class, audit)
    game, candidates = _game(replacement, row.pods, spread, audit)
    numbers = fewest(game)
    if numbers is not None:
        numbers = _with_all_constraints(row, spread, game, candidates, audit)
    if numbers is None:
        return Plan(reason=_DIFFERENT_NEEDS if len(replacements) > 1 else f"{_NOWHERE}, by all of their constraints")
    return Plan(pods=_chosen_by_name(candidates, numbers))


def _plan_of_all(replacement: Replacement, counted: Counted, audit: Audit) -> Plan:
    """Return the pods to evict among all pods that a constraint counts and that no other hard constraint places."""
    spread = counted.spread
    pods = [
        pod
        for pod in counted.carriers
        if _decides_alone([pod.pod_class]) and replacement_of(pod.pod_class, audit) == replacement
    ]
    game, candidates = _game(replacement, pods, spread, audit)
    numbers = fewest(game)
    if numbers is None:
        return Plan(reason=_NOWHERE)
    chosen = _chosen_by_name(candidates, numbers)
    if not replacement.certain:
        return Plan(pods=chosen)
    return Plan(pods=chosen, sure=True, only=_only_domain(chosen, game, spread))


def _game(
    replacement: Replacement, pods: Iterable[PodRecord], spread: Spread, audit: Audit
) -> tuple[EvictionGame, Mapping[str, Sequence[PodRecord]]]:
    """Return the domains of a constraint for replacements, and the pods that may be evicted from each."""
    candidates = _candidates(replacement, pods, spread, audit)
    game = EvictionGame(
        counts=spread.match_num,
        capacity=_capacity(replacement, spread, audit),
        movable={domain: len(pods) for domain, pods in candidates.items()},
        lost={domain: sum(replacement.loses_room(pod, audit) for pod in pods) for domain, pods in candidates.items()},
        constraint=spread.constraint,
    )
    return game, candidates


def _only_domain(pods: Sequence[PodRecord], game: EvictionGame, spread: Spread) -> str:
    """Return the single domain that can take the replacement of a single pod; "" for more domains or pods."""
    if len(pods) > 1:
        return ""
    (left,) = {spread.domains.value_of[pod.node] for pod in pods}
    after = spread.placed(left, -1)
    # The filter does not allow the domain that the pod left: else the replacement could restore the skew.
    domains = [domain for domain, room in game.capacity.items() if room and after.allows(domain)]
    return domains[0] if len(domains) == 1 else ""


def _why_none(row: EvaluatedConstraint, spread: Spread, audit: Audit) -> str:
    """Return why no pods can be named, whatever the counts are; "" where they can."""
    if all(pod.pod_class.owner is None for pod in row.pods):
        return _NOT_REPLACED
    if spread.self_match_num == 0 or any(member.verdict in _NOT_REPLACED_ALIKE for member in row.members):
        return "replacements would not be like these pods: their labels or selectors differ"
    if held(row.pods, audit):
        return HELD
    if "" in spread.match_num:
        return f'nodes with the empty value "" of {spread.constraint.topology_key} count as a domain: name it first'
    if audit.revisions.superseded(row.workload, row.pods):
        return "these pods are of an older revision, which a newer one replaces"
    if audit.revisions.evens_out(row.workload, spread):
        return "without the pods of older revisions it is within maxSkew: the rollout replaces these"
    return why_wait(row)


def held(pods: Iterable[PodRecord], audit: Audit) -> bool:
    """Tell whether the volumes of each bound pod may keep its replacement where it is."""
    bound = [pod for pod in pods if pod.node]
    return bool(bound) and all(audit.volumes.of(pod).may_hold for pod in bound)


def _other_target(row: EvaluatedConstraint, audit: Audit) -> str:
    """Return the target to name instead where the user named only a part of a workload's pods; "" for all of them."""
    if not audit.snapshot.scope.targets:
        return ""
    requested = {pod.ref for pod in audit.pods}
    owned = (pod for pod in audit.snapshot.pods if pod.namespace == row.namespace and not pod.terminating)
    if all(pod.ref in requested for pod in owned if audit.snapshot.workload(pod) == row.workload):
        return ""
    part = "one pod" if len(requested) == 1 else "a part of the pods"
    workload = named(row.workload.kind, row.workload.name)
    return f"{part} alone is not what decides: name {workload} instead"


def _candidates(
    replacement: Replacement, pods: Iterable[PodRecord], spread: Spread, audit: Audit
) -> dict[str, Sequence[PodRecord]]:
    """Return the pods that an owner would replace, by domain: first pods whose room is lost, then by name.

    A Job counts a deleted pod as failed. Pods are left out whose volumes may not follow them everywhere.
    """
    by_domain: dict[str, list[PodRecord]] = {}
    for pod in pods:
        domain, owner = spread.domains.value_of.get(pod.node), pod.pod_class.owner
        if domain is None or pod.terminating or owner is None or base_kind(owner.kind) == "Job":
            continue
        if not audit.volumes.of(pod).may_hold:
            by_domain.setdefault(domain, []).append(pod)
    return {
        domain: sorted(pods, key=lambda pod: (not replacement.loses_room(pod, audit), pod.name))
        for domain, pods in by_domain.items()
    }


def _chosen(candidates: Mapping[str, Sequence[PodRecord]], numbers: Mapping[str, int]) -> Iterator[PodRecord]:
    return (pod for domain, number in numbers.items() for pod in candidates[domain][:number])


def _chosen_by_name(candidates: Mapping[str, Sequence[PodRecord]], numbers: Mapping[str, int]) -> tuple[PodRecord, ...]:
    return tuple(sorted(_chosen(candidates, numbers), key=lambda pod: pod.name))


def _capacity(replacement: Replacement, spread: Spread, audit: Audit) -> dict[str, int]:
    """Return the replacements that the free nodes of each domain take, up to the number of counted pods."""
    capacity, enough = dict.fromkeys(spread.match_num, 0), spread.match_num.total
    for node, domain in spread.domains.value_of.items():
        if capacity[domain] < enough:
            capacity[domain] += replacement.room(node, audit, enough)
    return capacity


def _decides_alone(pod_classes: Iterable[PodClass]) -> bool:
    """Tell whether pods have a single hard constraint and no required affinity term."""
    return all(sum(term.required for term in pod_class.terms) == 1 for pod_class in pod_classes)


def _with_all_constraints(
    row: EvaluatedConstraint,
    spread: Spread,
    game: EvictionGame,
    candidates: Mapping[str, Sequence[PodRecord]],
    audit: Audit,
) -> dict[str, int] | None:
    """Return the pods to evict from each domain if all hard constraints filter; None: no number suffices.

    Replacements are placed where they are worst for the uneven constraint, as far as all constraints allow it.
    """
    order = fullest_first(game)
    spreads = row.evaluations[0][0].hard
    uneven = [each.constraint.topology_key for each in spreads].index(spread.constraint.topology_key)
    replacement = replacement_of(row.evaluations[0][0].pod_class, audit)
    free = FreeCells(replacement, spreads, uneven, len(order), audit)
    for size in range(1, len(order) + 1):
        numbers = dict(sorted(Counter(order[:size]).items()))
        after = _replaced(list(_chosen(candidates, numbers)), spreads, free)
        if after is not None and not after[uneven].exceeds_max_skew:
            return numbers
    return None


def _replaced(evicted: Sequence[PodRecord], spreads: Sequence[Spread], free: FreeCells) -> Sequence[Spread] | None:
    """Return the counts after evicted pods are replaced where that is worst; None: not all replacements have a node."""
    for pod in evicted:
        spreads = place(spreads, [each.domains.value_of.get(pod.node) for each in spreads], -1)
    left = free.left_by(evicted)
    for _ in evicted:
        worst = free.choose(spreads, left, fullest=True)
        if worst is None:
            return None
        left[worst] -= 1
        spreads = place(spreads, worst)
    return spreads
