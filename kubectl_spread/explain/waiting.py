"""Waiting: why is a pending pod pending, in our words and in the scheduler's own?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
from msgspec import UNSET, UnsetType

from kubectl_spread.audit.evaluation.counting import ENCODER
from kubectl_spread.audit.evaluation.evaluate import Audit
from kubectl_spread.audit.merge.verdicts import Verdict
from kubectl_spread.audit.snapshot.records import PodClass, PodRecord
from kubectl_spread.explain.placing import NodeRefusal, place
from kubectl_spread.report import model, projections

FAILED_SCHEDULING = "FailedScheduling"


class Said(model.Part, frozen=True, kw_only=True):
    """The scheduler's own words about a pod, how often it said so, and when last."""

    pod: str
    message: str
    count: int
    last: str | UnsetType = UNSET


class Condition(model.Part, frozen=True, kw_only=True):
    """What the status of a pod says of why it has no node, and since when it has none."""

    pod: str
    reason: str
    message: str
    since: str | UnsetType = UNSET


class Inert(model.Part, frozen=True, kw_only=True):
    """A constraint that selects no pod because the label ``key`` was changed from ``stored`` to ``label``."""

    path: str
    key: str
    stored: str
    label: str


class Waiting(model.Part, frozen=True, kw_only=True):
    """Pending pods that are alike: the nodes that would take one, and those that would not by their first reason.

    ``gates`` keep the scheduler from looking at them at all. ``event`` is absent where none was read; then
    ``condition`` is that of the first pod whose status tells.
    """

    pods: list[str]
    allowed: list[str]
    refused: list[NodeRefusal]
    gates: list[str] | UnsetType = UNSET
    inert: list[Inert] | UnsetType = UNSET
    unknown: list[str] | UnsetType = UNSET
    event: Said | UnsetType = UNSET
    condition: Condition | UnsetType = UNSET


def waiting(audit: Audit) -> list[Waiting]:
    """Return the pending pods that were asked for, those together that are alike in what keeps them, by name."""
    if not audit.snapshot.nodes:
        return []
    inert = _inert(audit)
    by_class: dict[tuple[PodClass, tuple[str, ...], tuple[bytes, ...]], list[PodRecord]] = {}
    for pod in audit.pods:
        if not pod.node and not pod.terminating and pod.pod_class.profile is not None and not pod.pod_class.pinned:
            silenced = tuple(ENCODER.encode(constraint) for constraint in inert.get(pod.name, ()))
            by_class.setdefault((pod.pod_class, pod.gates, silenced), []).append(pod)
    alike: dict[bytes, tuple[Waiting, list[PodRecord]]] = {}
    for pods in by_class.values():
        answer = _answer(pods, inert.get(pods[0].name, ()), audit)
        alike.setdefault(ENCODER.encode(answer), (answer, []))[1].extend(pods)
    complete = [_complete(answer, sorted(pods, key=lambda pod: pod.name), audit) for answer, pods in alike.values()]
    return sorted(complete, key=lambda answer: answer.pods)


def _answer(pods: Sequence[PodRecord], inert: Sequence[Inert], audit: Audit) -> Waiting:
    """Return the report on pods of one class, without their names."""
    placing = place(pods[0].pod_class, [], audit)
    return Waiting(
        pods=[],
        allowed=placing.allowed,
        refused=placing.refused,
        gates=list(pods[0].gates) or UNSET,
        inert=list(inert) or UNSET,
        unknown=placing.unknown,
    )


def _complete(waiting: Waiting, pods: Sequence[PodRecord], audit: Audit) -> Waiting:
    event = max(_events(pods, audit), key=_last, default=UNSET)
    condition = next(_conditions(pods), UNSET) if isinstance(event, UnsetType) else UNSET
    return msgspec.structs.replace(waiting, pods=[pod.name for pod in pods], event=event, condition=condition)


def _last(event: Said) -> str:
    return "" if isinstance(event.last, UnsetType) else event.last


def _conditions(pods: Sequence[PodRecord]) -> Iterator[Condition]:
    """Yield what the status of each pod says that was refused; what gates hold back nobody looked at."""
    for pod in pods:
        condition = pod.unscheduled
        if condition is not None and not pod.gates:
            time = condition.last_transition_time
            since = UNSET if time is None else projections.timestamp(time)
            yield Condition(pod=pod.name, reason=condition.reason, message=condition.message, since=since)


def _events(pods: Sequence[PodRecord], audit: Audit) -> Iterator[Said]:
    """Yield the newest event about each pod that has one."""
    for pod in pods:
        events = audit.snapshot.ownership.events_about(pod.ref, FAILED_SCHEDULING)
        if events:
            last = UNSET if events[0].last is None else projections.timestamp(events[0].last)
            yield Said(pod=pod.name, message=events[0].message, count=events[0].count, last=last)


def _inert(audit: Audit) -> dict[str, list[Inert]]:
    """Return the constraints of pending pods that select nothing because a label was changed, by name of the pod."""
    inert: dict[str, list[Inert]] = {}
    if not audit.context.behaviour.scheduler_adds_match_label_keys:
        return inert
    for row in audit.rows:
        for member in row.members:
            if member.pod.node or not member.term.spread:
                continue
            for key in member.keys:
                if key.verdict is Verdict.STALE_LABEL and key.stored is not None and key.label is not None:
                    constraint = Inert(path=str(row.path), key=key.key, stored=key.stored, label=key.label)
                    inert.setdefault(member.pod.name, []).append(constraint)
    return inert
