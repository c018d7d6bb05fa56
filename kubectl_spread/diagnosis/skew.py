"""Diagnosis: which pods make a skew, how many have to go, and what stands in the way?

Rules grade it and ``explain`` prints it. A skew is one fact of the pods that are counted together, whoever owns them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from enum import StrEnum

import msgspec

from kubectl_spread.audit.evaluation.evaluate import Audit, EvaluatedConstraint
from kubectl_spread.audit.evaluation.obstacles import Obstacle
from kubectl_spread.audit.snapshot.records import PodRecord
from kubectl_spread.diagnosis.skew_fix import Closing, obstacles_below
from kubectl_spread.kube.scheduler.podtopologyspread import Spread


class Passing(StrEnum):
    """Why a skew that pods of older revisions make will pass, which is what to do about it."""

    SUPERSEDED = "nothing to do: these pods are of an older revision, which a newer one replaces"
    ROLLOUT = "nothing to do while the rollout continues: without the pods of older revisions it is within maxSkew"


class Skew(msgspec.Struct, frozen=True):
    """A skew above maxSkew, as a workload has it whose pods are in the fullest domain.

    Attributes:
        row: Pods of the workload with the constraint.
        spread: The count.
        domains: The fullest domains in which the workload has pods, by value.
        pods: Its pods there that count, by name.
        must_go: How many of all pods that are counted have to be placed again at least.
        below: What keeps the pods from every lower domain; None: some node there would take one.
        passing: Why the skew will pass; None: it will not.
    """

    row: EvaluatedConstraint
    spread: Spread
    domains: tuple[str, ...]
    pods: tuple[PodRecord, ...]
    must_go: int
    below: list[Obstacle] | None
    passing: Passing | None


def skew_of(row: EvaluatedConstraint, spread: Spread, audit: Audit) -> Skew | None:
    """Return the skew that pods of a row's workload make; None where it is within maxSkew, or other pods make it."""
    if not spread.exceeds_max_skew:
        return None
    pods = in_the_fullest(row, spread, audit)
    if not pods:
        return None
    return Skew(
        row=row,
        spread=spread,
        domains=tuple(sorted({spread.domains.value_of[pod.node] for pod in pods})),
        pods=pods,
        must_go=_must_go(row, spread, audit),
        below=obstacles_below(row, spread, audit),
        passing=_passing(row, spread, audit),
    )


def in_the_fullest(row: EvaluatedConstraint, spread: Spread, audit: Audit) -> tuple[PodRecord, ...]:
    """Return the pods of a row's workload that are asked for and that count in a fullest domain, by name."""
    value_of, most = spread.domains.value_of, spread.match_num.most
    own = audit.counted.of(row.namespace, spread).of_workload(row.workload)
    fullest = [pod for pod in own if spread.match_num[value_of[pod.node]] == most]
    if audit.snapshot.scope.targets:
        asked = {id(pod) for pod in audit.pods}
        fullest = [pod for pod in fullest if id(pod) in asked]
    return tuple(fullest)


def _must_go(row: EvaluatedConstraint, spread: Spread, audit: Audit) -> int:
    """Return how many pods have to be placed again at least, were each placed where there are the fewest.

    Only domains with a node that would take one are filled.
    """
    closing = Closing(row, spread, audit, moving=True)
    most, nodes = spread.match_num.most, dict[str, list[str]]()
    for node, domain in spread.domains.value_of.items():
        if spread.match_num[domain] < most - 1:
            nodes.setdefault(domain, []).append(node)
    closed = {domain for domain, found in nodes.items() if closing.obstacles(found) is not None}
    counts = Counter(spread.match_num.values())
    highest = sum(spread.match_num.values()) // len(spread.match_num)
    if closed:
        highest = min(highest, *(spread.match_num[domain] for domain in closed))
    highest = spread.constraint.minimum(highest, len(spread.match_num))
    return fewest_moves(counts, max_skew=spread.constraint.max_skew, highest=highest)


def fewest_moves(counts: Mapping[int, int], *, max_skew: int, highest: int) -> int:
    """Return how many pods have to move at least until no domain is more than ``max_skew`` above the minimum.

    Args:
        counts: Maps a number of pods to how many domains have so many.
        max_skew: The constraint's.
        highest: The highest minimum that there may be in the end.
    """

    def moves(minimum: int) -> int:
        away = sum(number * max(0, pods - minimum - max_skew) for pods, number in counts.items())
        return max(away, sum(number * max(0, minimum - pods) for pods, number in counts.items()))

    return min(moves(minimum) for minimum in range(min(highest, *counts), highest + 1))


def _passing(row: EvaluatedConstraint, spread: Spread, audit: Audit) -> Passing | None:
    if audit.revisions.superseded(row.workload, row.pods):
        return Passing.SUPERSEDED
    if row.lower_bound or not audit.revisions.evens_out(row.workload, spread):
        return None
    return Passing.ROLLOUT
