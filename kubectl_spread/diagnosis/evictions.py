"""Evictions: which pods would have to be evicted so that, once they are replaced, a skew is within maxSkew?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import msgspec
from msgspec import UNSET, UnsetType

from kubectl_spread.audit.evaluation.counted import Counted
from kubectl_spread.audit.evaluation.evaluate import Audit, EvaluatedConstraint
from kubectl_spread.audit.merge.verdicts import Verdict
from kubectl_spread.audit.snapshot.records import PodClass, PodRecord
from kubectl_spread.diagnosis.eviction_plan import EvictionGame, fewest, fullest_first
from kubectl_spread.diagnosis.replacements import FreeCells, Replacement, replacement_of
from kubectl_spread.diagnosis.skew import why_wait
from kubectl_spread.kube.custom.groups import base_kind
from kubectl_spread.kube.scheduler.podtopologyspread.filtering import place
from kubectl_spread.kube.scheduler.podtopologyspread.spread import Spread
from kubectl_spread.phrases import named
from kubectl_spread.report import model

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
    spreads = [each for each in row.evaluations[0][0].spreads if each is not None and each.constraint.hard]
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
        worst = free.fullest(spreads, left)
        if worst is None:
            return None
        left[worst] -= 1
        spreads = place(spreads, worst)
    return spreads
