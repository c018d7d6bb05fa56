"""Skews: which pods make a skew, how many have to be placed again, and which obstacles are there?

Rules grade a skew and ``explain`` prints it. It is a fact about all pods that are counted together, whoever owns them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping
from enum import StrEnum
from itertools import chain
from typing import Final

import msgspec

from kubectl_spread.audit.evaluation.counted import Counted
from kubectl_spread.audit.evaluation.evaluate import Audit, EvaluatedConstraint
from kubectl_spread.audit.evaluation.obstacles import Obstacle, only_pinned
from kubectl_spread.audit.snapshot.records import PodRecord
from kubectl_spread.engine.node_answers import PlacementCheck, why_not
from kubectl_spread.kube.custom import base_kind
from kubectl_spread.kube.scheduler.podtopologyspread.spread import Spread
from kubectl_spread.memoization import memoized

_STRIDE: Final = 64
"""Of so many domains one is asked before the others."""


class Passing(StrEnum):
    """Why a skew that pods of older revisions make will pass, as the advice to the user."""

    SUPERSEDED = "nothing to do: these pods are of an older revision, which a newer one replaces"
    ROLLOUT = "nothing to do while the rollout continues: without the pods of older revisions it is within maxSkew"


class Skew(msgspec.Struct, frozen=True):
    """A skew above maxSkew, of a workload with pods in the fullest domain.

    Attributes:
        row: Pods of the workload with the constraint.
        spread: The count.
        domains: The fullest domains in which the workload has pods, by value.
        pods: The workload's counted pods in these domains, by name.
        must_go: The least number of counted pods that have to be placed again.
        kept_away: Why no node of a lower domain takes a pod; None: some node would.
        pinned: Whether only nodeSelector or node affinity of the pods keeps them away.
        passing: Why the skew will pass; None: it will not.
    """

    row: EvaluatedConstraint
    spread: Spread
    domains: tuple[str, ...]
    pods: tuple[PodRecord, ...]
    must_go: int
    kept_away: str | None
    pinned: bool
    passing: Passing | None


def skew_of(row: EvaluatedConstraint, spread: Spread, audit: Audit) -> Skew | None:
    """Return the skew that pods of a row's workload make; None where it is within maxSkew or made by other pods."""
    if not spread.exceeds_max_skew:
        return None
    pods = in_the_fullest(row, spread, audit)
    if not pods:
        return None
    check = PlacementCheck(row, spread, audit, moving=True)
    # Workloads by the thousand may share a constraint, and nodes answer all of them alike.
    ending = _ending(audit.counted.of(row.namespace, spread), check)
    return Skew(
        row=row,
        spread=spread,
        domains=tuple(sorted({spread.domains.value_of[pod.node] for pod in pods})),
        pods=pods,
        must_go=ending.must_go,
        kept_away=ending.kept_away,
        pinned=ending.pinned,
        passing=_passing(row, spread, audit),
    )


def in_the_fullest(row: EvaluatedConstraint, spread: Spread, audit: Audit) -> tuple[PodRecord, ...]:
    """Return the requested pods of a row's workload that are counted in a fullest domain, by name."""
    value_of, most = spread.domains.value_of, spread.match_num.most
    own = audit.counted.of(row.namespace, spread).of_workload(row.workload)
    fullest = [pod for pod in own if spread.match_num[value_of[pod.node]] == most]
    if audit.snapshot.scope.targets:
        requested = {pod.ref for pod in audit.pods}
        fullest = [pod for pod in fullest if pod.ref in requested]
    return tuple(fullest)


class Ending(msgspec.Struct, frozen=True):
    """How a skew may end: ``must_go``, ``kept_away`` and ``pinned`` of a ``Skew``."""

    must_go: int
    kept_away: str | None
    pinned: bool


@memoized
def _ending(counted: Counted, check: PlacementCheck) -> Ending:
    """Return how a skew may end, if pods go only to domains with a node that would take one.

    The fewest pods have to move if each is placed in the emptiest domain.
    """
    spread = counted.spread
    match_num, occupied = spread.match_num, spread.match_num.occupied
    refusing, some_open = list[Obstacle](), False
    highest, members = match_num.total // len(match_num), spread.domains.members
    below = [domain for domain in members if occupied.get(domain, 0) < match_num.most - 1]
    # Nodes of one zone are often refused together, and next to each other.
    for domain in chain.from_iterable(below[start::_STRIDE] for start in range(_STRIDE)):
        if some_open and highest <= match_num.least:
            # Of thousands of hosts one that takes a pod is enough, as refusals only lower the minimum.
            break
        if not some_open or match_num[domain] < highest:
            obstacles = check.obstacles(members[domain])
            if obstacles is None:
                some_open = True
            else:
                refusing += obstacles
                highest = min(highest, match_num[domain])
    highest = spread.constraint.minimum(highest, len(match_num))
    counts = Counter(occupied.values())
    if match_num.empty:
        counts[0] += match_num.empty
    return Ending(
        must_go=fewest_moves(counts, max_skew=spread.constraint.max_skew, highest=highest),
        kept_away=None if some_open else why_not(refusing),
        pinned=not some_open and only_pinned(refusing),
    )


def fewest_moves(counts: Mapping[int, int], *, max_skew: int, highest: int) -> int:
    """Return the fewest pods that have to move until no domain is more than ``max_skew`` above the minimum.

    Args:
        counts: Maps a number of pods to the number of domains that have it.
        max_skew: The maxSkew of the constraint.
        highest: The highest minimum that is possible in the end.
    """

    def away(minimum: int) -> int:
        return sum(number * max(0, pods - minimum - max_skew) for pods, number in counts.items())

    def arriving(minimum: int) -> int:
        return sum(number * max(0, minimum - pods) for pods, number in counts.items())

    # With a higher minimum fewer pods have to leave and more have to arrive, so the fewest moves are where these cross.
    minima = range(min(highest, *counts), highest + 1)
    crossing = bisect_left(minima, x=True, key=lambda minimum: away(minimum) <= arriving(minimum))
    return min(max(away(minimum), arriving(minimum)) for minimum in minima[max(0, crossing - 1) : crossing + 1])


_AWAITED: Final = "nothing to do until the pending pods are placed, which may end the skew"
_RETURNING: Final = "nothing to do until the StatefulSet has replaced the terminating pods, which may end the skew"
_OF_A_JOB: Final = "nothing to do: the pods of a Job end by themselves, and a Job counts a deleted pod as failed"


def why_wait(row: EvaluatedConstraint) -> str:
    """Return why no pod of a row should be deleted now; "" where one may be."""
    if any(pod.waits and pod.pod_class.stored for pod in row.pods):
        return _AWAITED
    if row.workload.kind == "StatefulSet" and any(pod.terminating for pod in row.pods):
        return _RETURNING
    return _OF_A_JOB if any(base_kind(pod.pod_class.kind) == "Job" for pod in row.pods) else ""


def _passing(row: EvaluatedConstraint, spread: Spread, audit: Audit) -> Passing | None:
    if audit.revisions.superseded(row.workload, row.pods):
        return Passing.SUPERSEDED
    if row.lower_bound or not audit.revisions.evens_out(row.workload, spread):
        return None
    return Passing.ROLLOUT
