"""History: do events, times or managedFields show that a rollout, a scale-down or a late node left a skew?"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Iterable, Iterator
from datetime import datetime, timedelta
from typing import Final

from kubectl_spread.audit.merge.verdicts import Confidence
from kubectl_spread.audit.snapshot.records import EventRecord, OwnerRecord, PodRecord
from kubectl_spread.audit.snapshot.revisions import LABELS
from kubectl_spread.explain.uneven_rows import Proof, UnevenRow
from kubectl_spread.explain.workload_pods import LONG_AGO
from kubectl_spread.kube.api import labels as labelselectors
from kubectl_spread.phrases import named, plural
from kubectl_spread.report.projections import timestamp

_SCALED_DOWN: Final = re.compile(
    r"Scaled down (?:replica set|ReplicaSet) (\S+)(?: \(revision \d+\))?(?: from (\d{1,10}))? to \d+"
)
"""The message of the Deployment controller, which lacks the old number in older releases, and of Argo Rollouts."""
_ROLLOUT_MINUTES: Final = 10
"""The longest time from the creation of a ReplicaSet to that of a pod of its rollout, where no event shows the rollout.

This is the default of progressDeadlineSeconds: a rollout without progress for longer has failed.
"""


def rollout(uneven: UnevenRow) -> Proof | None:
    """Return the proof that pods of older revisions count now, or counted when the present pods were placed."""
    older = uneven.per_domain(pod for revision in uneven.workload_pods.revisions[:-1] for pod in revision.pods)
    if older.total():
        return _continuing(uneven, older)
    return _finished(uneven) if uneven.skewed else None


def _continuing(uneven: UnevenRow, older: Counter[str]) -> Proof | None:
    if older.total() == uneven.spread.match_num.total:
        return Proof(Confidence.CERTAIN, "All counted pods are of older revisions, which a newer one replaces.")
    without = uneven.spread.without(older)
    pods = f"{plural(older.total(), 'pod')} of older revisions"
    if uneven.settled_by(without):
        return Proof(Confidence.CERTAIN, f"The constraint also counts {pods}. {uneven.skews(without, 'Without them')}")
    if not uneven.per_domain(uneven.workload_pods.revisions[-1].pods):
        return None
    return Proof(Confidence.LIKELY, f"When pods of the newest revision were placed, {pods} counted, and they still do.")


def _finished(uneven: UnevenRow) -> Proof | None:
    newest = uneven.workload_pods.revisions[-1].owner if uneven.workload_pods.revisions else None
    if newest is None or _selects_one_revision(uneven) or not _rolls(uneven):
        return None
    older = [record for record in _siblings(uneven, newest) if _age(record) < _age(newest)]
    if not older and newest.revision <= 1:
        return None
    last = _last_created(uneven.counted)
    steps = _since(_scaled_down(uneven, {record.ref.name for record in older}), newest)
    if steps:
        if last is None or last > max(record.last or LONG_AGO for record, _ in steps):
            return None
        number = max(before for _, before in steps)
        counted = plural(number, "pod") if number else "pods"
        text = (
            f"Its pods were created while {counted} of the older revision still counted. Event: {_quoted(steps[0][0])}"
        )
        return Proof(Confidence.CERTAIN, text)
    if last is None or newest.created is None or last - newest.created > timedelta(minutes=_ROLLOUT_MINUTES):
        return None
    predecessor = f"came after {older[-1].ref.name}" if older else f"is revision {newest.revision}"
    return Proof(
        Confidence.LIKELY,
        f"Its pods were created within {_ROLLOUT_MINUTES} minutes of {newest.ref.kind} {newest.ref.name}, which "
        f"{predecessor}, and the selector counts pods of {'both' if older else 'older revisions too'}.",
    )


def scale_down(uneven: UnevenRow) -> Proof | None:
    """Return the proof that the workload was scaled down, and that no pod of it was created since."""
    last = _last_created(uneven.workload_pods.pods)
    if not uneven.skewed or last is None or not uneven.workload_pods.revisions:
        return None
    newest = uneven.workload_pods.revisions[-1].owner
    owner = uneven.workload_pods.workload if newest is None else newest.ref
    events = [event for event, _ in _scaled_down(uneven, {owner.name})]
    events += uneven.audit.snapshot.ownership.events_about(owner, "SuccessfulDelete")
    if not events:
        return _rescaled(uneven, last)
    later = [event for event in events if event.last is not None and event.last >= last]
    if not later:
        return None
    text = (
        "Pods were deleted and none was created since. Constraints do not decide which pods are deleted. "
        f"Event: {_quoted(later[0])}"
    )
    return Proof(Confidence.CERTAIN, text)


def late_nodes(uneven: UnevenRow) -> Iterator[Proof]:
    """Yield a proof for each low domain whose nodes are younger than every pod of the fuller domains.

    It is only likely, because older nodes of the domain may have been deleted.
    """
    if not uneven.skewed:
        return
    value_of = uneven.spread.domains.value_of
    last = _latest(pod.created for pod in uneven.counted if value_of[pod.node] not in uneven.low)
    if last is None:
        return
    created = {node.metadata.name: node.metadata.creation_timestamp for node in uneven.audit.nodes.nodes}
    for domain in uneven.low:
        node_times = [created[node] for node in uneven.nodes_of(domain)]
        first = min((time for time in node_times if time is not None), default=last)
        if None not in node_times and first > last:
            text = (
                f"The oldest node of {uneven.domain(domain)} was created at {timestamp(first)}, after every pod of the "
                f"fuller domains (the last at {timestamp(last)})."
            )
            yield Proof(Confidence.LIKELY, text)


def _latest(times: Iterable[datetime | None]) -> datetime | None:
    """Return the latest time; None if any is unknown."""
    times = list(times)
    return None if None in times else max((time for time in times if time is not None), default=None)


def _rescaled(uneven: UnevenRow, last: datetime) -> Proof | None:
    """Return the proof by managedFields that spec.replicas was written after the newest pod was created."""
    workload = uneven.workload_pods.workload
    record = uneven.audit.snapshot.ownership.record(workload)
    if record is None or record.scaled is None or record.scaled.time <= last:
        return None
    scaled = record.scaled
    return Proof(
        Confidence.LIKELY,
        f"{scaled.manager}, which owns spec.replicas of {named(workload.kind, workload.name)}, wrote it at "
        f"{timestamp(scaled.time)}. The newest pod was created before that, at {timestamp(last)}.",
    )


def _scaled_down(uneven: UnevenRow, replica_sets: Container[str]) -> list[tuple[EventRecord, int]]:
    """Return the events about the scale-down of ReplicaSets, each with the former number of pods, or 0 if unknown."""
    events = uneven.audit.snapshot.ownership.events_about(uneven.workload_pods.workload, "ScalingReplicaSet")
    matches = ((event, _SCALED_DOWN.match(event.message)) for event in events)
    return [(event, int(match[2] or 0)) for event, match in matches if match and match[1] in replica_sets]


def _since(steps: list[tuple[EventRecord, int]], newest: OwnerRecord) -> list[tuple[EventRecord, int]]:
    """Return the steps after the creation of the newest ReplicaSet.

    Times in the API are whole seconds, so a step in the same second may be older. It counts only if no step is later.
    """
    if newest.created is None:
        return steps
    later = [step for step in steps if (step[0].last or LONG_AGO) > newest.created]
    return later or [step for step in steps if step[0].last == newest.created]


def _siblings(uneven: UnevenRow, newest: OwnerRecord) -> list[OwnerRecord]:
    owned = uneven.audit.snapshot.ownership.below(uneven.workload_pods.workload)
    siblings = [record for record in owned if record.ref.kind == newest.ref.kind and record.ref != newest.ref]
    return sorted(siblings, key=_age)


def _age(record: OwnerRecord) -> tuple[int, datetime]:
    return record.revision, record.created or LONG_AGO


def _selects_one_revision(uneven: UnevenRow) -> bool:
    """Tell whether the selector has a label that distinguishes revisions, or selects nothing."""
    selector = uneven.spread.constraint.selector
    return selector is None or not labelselectors.keys(selector).isdisjoint(LABELS)


def _rolls(uneven: UnevenRow) -> bool:
    """Tell whether old and new pods run together during a rollout, as far as the workload was read."""
    workload = uneven.workload_pods.workload
    return all(
        template.rolls
        for template in uneven.audit.snapshot.templates
        if template.workload == workload and template.kind == workload.kind
    )


def _last_created(pods: Iterable[PodRecord]) -> datetime | None:
    return max((pod.created for pod in pods if pod.created is not None), default=None)


def _quoted(record: EventRecord) -> str:
    when = "" if record.last is None else f" at {timestamp(record.last)}"
    return f'"{record.message}"{when}'
