"""Waiting: why is a pod pending, according to the evaluation and to the scheduler's events?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import msgspec
from msgspec import UNSET, UnsetType

from kubectl_spread.audit.evaluation.evaluate import Audit
from kubectl_spread.audit.merge.verdicts import Verdict
from kubectl_spread.audit.snapshot.records import ENCODER, PodClass, PodRecord
from kubectl_spread.engine.newnodes import OF_KARPENTER
from kubectl_spread.explain.next_pods import refused
from kubectl_spread.report import projections
from kubectl_spread.report.explanation import Condition, InertConstraint, SchedulerEvent, Waiting

if TYPE_CHECKING:
    # The engine is given.
    from kubectl_spread.engine.engine import Engine

FAILED_SCHEDULING = "FailedScheduling"


def waiting(audit: Audit, engine: Engine) -> list[Waiting]:
    """Return an answer for each set of requested pending pods that share it, in the order of their names."""
    if not audit.snapshot.nodes:
        return []
    inert = _inert(audit)
    pods_by_class: dict[tuple[PodClass, tuple[str, ...], tuple[str, ...], bytes], list[PodRecord]] = {}
    for pod in audit.pods:
        if not pod.node and not pod.terminating and pod.pod_class.profile is not None and not pod.pod_class.pinned:
            key = (pod.pod_class, pod.claims, pod.gates, ENCODER.encode(inert.get(pod.name)))
            pods_by_class.setdefault(key, []).append(pod)
    pods_by_answer: dict[bytes, tuple[Waiting, list[PodRecord]]] = {}
    for pods in pods_by_class.values():
        answer = _answer(pods[0], inert.get(pods[0].name, ()), engine)
        pods_by_answer.setdefault(ENCODER.encode(answer), (answer, []))[1].extend(pods)
    complete = [
        _complete(answer, sorted(pods, key=lambda pod: pod.name), audit) for answer, pods in pods_by_answer.values()
    ]
    return sorted(complete, key=lambda answer: answer.pods)


def _answer(pod: PodRecord, inert: Sequence[InertConstraint], engine: Engine) -> Waiting:
    """Return the answer for a pod, without its name."""
    destinations = engine.destinations(pod)
    return Waiting(
        pods=[],
        allowed=destinations.allowed,
        refused=refused(destinations),
        gates=list(pod.gates) or UNSET,
        inert=list(inert) or UNSET,
        unknown=list(destinations.unknown) or UNSET,
    )


def _complete(waiting: Waiting, pods: Sequence[PodRecord], audit: Audit) -> Waiting:
    event = max(_events(pods, audit), key=lambda event: event.last or "", default=UNSET)
    condition = next(_conditions(pods), UNSET) if isinstance(event, UnsetType) else UNSET
    return msgspec.structs.replace(waiting, pods=[pod.name for pod in pods], event=event, condition=condition)


def _conditions(pods: Sequence[PodRecord]) -> Iterator[Condition]:
    """Yield the condition of each pod that the scheduler tried to place; it does not try pods with gates."""
    for pod in pods:
        condition = pod.unscheduled
        if condition is not None and not pod.gates:
            time = condition.last_transition_time
            since = UNSET if time is None else projections.timestamp(time)
            yield Condition(pod=pod.name, reason=condition.reason, message=condition.message, since=since)


def _events(pods: Sequence[PodRecord], audit: Audit) -> Iterator[SchedulerEvent]:
    """Yield the newest event of the scheduler about each pod that has one."""
    for pod in pods:
        events = [
            event
            for event in audit.snapshot.ownership.events_about(pod.ref, FAILED_SCHEDULING)
            if not event.message.startswith(OF_KARPENTER)
        ]
        if events:
            last = UNSET if events[0].last is None else projections.timestamp(events[0].last)
            yield SchedulerEvent(pod=pod.name, message=events[0].message, count=events[0].count, last=last)


def _inert(audit: Audit) -> dict[str, list[InertConstraint]]:
    """Map the names of pending pods to their constraints that select nothing because a label was changed."""
    inert: dict[str, list[InertConstraint]] = {}
    if not audit.context.behaviour.scheduler_adds_match_label_keys:
        return inert
    for row in audit.rows:
        for member in row.members:
            if member.pod.node or not member.term.spread:
                continue
            for key in member.keys:
                if key.verdict is Verdict.STALE_LABEL and key.stored is not None and key.label is not None:
                    constraint = InertConstraint(path=str(row.path), key=key.key, stored=key.stored, label=key.label)
                    inert.setdefault(member.pod.name, []).append(constraint)
    return inert
