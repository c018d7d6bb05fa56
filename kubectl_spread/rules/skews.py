"""SPR3xx: skew above maxSkew."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import Final

from kubectl_spread.audit import closing
from kubectl_spread.audit.evaluate import Row
from kubectl_spread.audit.obstacles import Obstacle
from kubectl_spread.audit.phrases import plural, value
from kubectl_spread.kube.podtopologyspread import Spread
from kubectl_spread.rules.model import Evidence, Part, Rule, Severity, Subject

_FILTERING: Final = "https://github.com/kubernetes/kubernetes/blob/v1.37.1/pkg/scheduler/framework/plugins/podtopologyspread/filtering.go"


def _hard_skew(subject: Subject) -> Iterator[Evidence]:
    for row, spread in _uneven(subject, hard=True):
        below = closing.obstacles_below(row, spread, subject.audit)
        passing = _passing(row, spread, subject)
        severity = Severity.WARNING if below is None and not passing else Severity.INFO
        yield _skew_evidence(row, spread, severity, below, passing)


def _soft_skew(subject: Subject) -> Iterator[Evidence]:
    for row, spread in _uneven(subject, hard=False):
        below = closing.obstacles_below(row, spread, subject.audit)
        yield _skew_evidence(row, spread, Severity.INFO, below, _passing(row, spread, subject))


class _Passing(StrEnum):
    """Why a skew that pods of older revisions make will pass, which is what to do about it."""

    SUPERSEDED = "nothing to do: these pods are of an older revision, which a newer one replaces"
    ROLLOUT = "nothing to do while the rollout goes on: without the pods of older revisions it is within maxSkew"


def _passing(row: Row, spread: Spread, subject: Subject) -> _Passing | None:
    revisions = subject.audit.revisions
    if revisions.superseded(subject.namespace, subject.workload, row.pods):
        return _Passing.SUPERSEDED
    if row.lower_bound or not revisions.evens_out(subject.namespace, subject.workload, spread):
        return None
    return _Passing.ROLLOUT


def _uneven(subject: Subject, *, hard: bool) -> Iterator[tuple[Row, Spread]]:
    """Yield the row of the subject with the largest skew, if that is above maxSkew."""
    found = [
        (row, spread)
        for row, spread in subject.spreads
        if spread.constraint.hard is hard and spread.skew > spread.constraint.max_skew
    ]
    if found:
        yield max(found, key=lambda item: item[1].skew)


def _skew_evidence(
    row: Row, spread: Spread, severity: Severity, below: list[Obstacle] | None, passing: _Passing | None
) -> Evidence:
    own: dict[str, list[str]] = {}
    for pod in row.pods:
        if not pod.terminating:
            own.setdefault(spread.domains.value_of.get(pod.node, ""), []).append(pod.name)
    fullest = min(spread.match_num.occupied, key=lambda domain: (-spread.match_num[domain], domain not in own, domain))
    pods = own.get(fullest, [])
    total = spread.match_num.total
    values: dict[str, str | int] = {
        "domain": value(fullest),
        "match_num": spread.match_num[fullest],
        "held": f"all {plural(total, 'pod')}"
        if spread.match_num[fullest] == total
        else f"{spread.match_num[fullest]} pods",
        "min_match_num": spread.min_match_num,
        "skew": spread.skew,
        "max_skew": spread.constraint.max_skew,
        "topology_key": spread.constraint.topology_key,
        "closable": "" if below is None else f"; no node of a lower domain could take one ({closing.why_not(below)})",
    }
    return Evidence(tuple(pods), values, severity, _skew_fix(row, spread, below, passing))


def _skew_fix(row: Row, spread: Spread, below: list[Obstacle] | None, passing: _Passing | None) -> str | None:
    """Return what to do about a skew that evictions would not mend; a rollout that cannot go on ends none."""
    if passing is _Passing.SUPERSEDED or (passing is not None and below is None):
        return str(passing)
    if "" in spread.match_num:
        return "give the nodes of the domain with the empty value their own first; it counts as a domain"
    if below is None and row.workload.kind == "Pod":
        return "{restart}"
    return None if below is None else "nothing to gain by moving pods until a node of a lower domain can take one"


HARD_SKEW: Final = Rule(
    code="SPR301",
    name="hard-skew",
    severity=Severity.WARNING,
    summary="A domain holds more matching pods than a DoNotSchedule constraint allows",
    message=(
        "{topology_key} {domain} holds {held}, the global minimum is {min_match_num}: skew "
        "{skew}, maxSkew {max_skew}{closable}"
    ),
    why=(
        "The scheduler holds each new pod to maxSkew, but never moves one: scale-down, rollouts, evictions "
        "and nodes that come late leave a skew behind. Losing the fullest domain then loses more pods than "
        "the constraint promises."
    ),
    fix="evict pods of the named domain; their owner replaces them where the constraint allows",
    source=_FILTERING,
    needs_nodes=True,
    of=frozenset({Part.COUNTS}),
    check=_hard_skew,
)

SOFT_SKEW: Final = Rule(
    code="SPR302",
    name="soft-skew",
    severity=Severity.INFO,
    summary="A domain holds more matching pods than a ScheduleAnyway constraint asks for",
    message=(
        "{topology_key} {domain} holds {held}, the global minimum is {min_match_num}: skew "
        "{skew}, maxSkew {max_skew}{closable}"
    ),
    why="ScheduleAnyway is a preference: other scores may outweigh it, and nothing moves pods that run.",
    fix="use DoNotSchedule if the spread must hold; else evict pods of the named domain when convenient",
    source="https://kep.k8s.io/895",
    needs_nodes=True,
    of=frozenset({Part.COUNTS}),
    check=_soft_skew,
)
