"""History: what events, ages and managed fields tell about rollouts and scale-downs that left a skew behind."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import Final

from kubectl_spread.audit.snapshot.records import EventRecord, OwnerRecord, PodRecord
from kubectl_spread.audit.snapshot.revisions import LABELS
from kubectl_spread.explain.uneven_rows import UnevenRow
from kubectl_spread.explain.workload_pods import LONG_AGO
from kubectl_spread.kube.api import labels as labelselectors
from kubectl_spread.phrases import plural
from kubectl_spread.report.projections import timestamp

Proof = tuple[bool, str]
"""Whether the evidence is certain, and the evidence in words."""

_SCALED_DOWN: Final = re.compile(
    r"Scaled down (?:replica set|ReplicaSet) (\S+)(?: \(revision \d+\))?(?: from (\d{1,10}))? to \d+"
)
"""What the Deployment controller says, before and since it names the old number, and Argo's Rollout controller."""
_ROLLOUT: Final = timedelta(minutes=10)
"""How long after its ReplicaSet a pod may be created and still belong to the rollout, where no event tells.

The default of progressDeadlineSeconds: a rollout that stands still for longer has failed.
"""


def rollout(uneven: UnevenRow) -> Proof | None:
    """Tell whether pods of an older revision count now, or counted when those that are there now were placed."""
    older: Counter[str] = Counter()
    for revision in uneven.workload_pods.revisions[:-1]:
        older.update(uneven.per_domain(revision.pods))
    if older.total():
        return _going_on(uneven, older)
    return _over(uneven) if uneven.skewed else None


def _going_on(uneven: UnevenRow, older: Counter[str]) -> Proof | None:
    without = uneven.spread.without(older)
    many = plural(older.total(), "pod")
    if uneven.settles(without):
        return True, f"{many} of older revisions also counted: {uneven.skews(without, 'without them')}"
    if not uneven.per_domain(uneven.workload_pods.revisions[-1].pods):
        return None
    return False, f"likely: {many} of older revisions also counted when those of the newest were placed, and still do"


def _over(uneven: UnevenRow) -> Proof | None:
    newest = uneven.workload_pods.revisions[-1].owner if uneven.workload_pods.revisions else None
    if newest is None or _told_apart(uneven) or not _rolls(uneven):
        return None
    older = [record for record in _siblings(uneven, newest) if _age(record) < _age(newest)]
    if not older and newest.revision <= 1:
        return None
    last = _last_created(uneven.counted)
    steps = _since(list(_scaled_down(uneven, {record.ref.name for record in older})), newest)
    if steps:
        if last is None or last > max(record.last or LONG_AGO for record, _ in steps):
            return None
        number = max(before for _, before in steps)
        counted = plural(number, "pod") if number else "pods"
        return True, (
            f"its pods were created while {counted} of the older revision still counted: {_quoted(steps[0][0])}"
        )
    if last is None or newest.created is None or last - newest.created > _ROLLOUT:
        return None
    came = f"came after {older[-1].ref.name}" if older else f"is revision {newest.revision}"
    return False, (
        f"likely: its pods were created within {_minutes()} minutes of {newest.ref.kind} {newest.ref.name}, "
        f"which {came}, and the selector counts pods of {'both' if older else 'older revisions too'}"
    )


def scale_down(uneven: UnevenRow) -> Proof | None:
    """Tell whether pods were deleted to have fewer of them, and none was created since."""
    last = _last_created(uneven.workload_pods.pods)
    if not uneven.skewed or last is None or not uneven.workload_pods.revisions:
        return None
    newest = uneven.workload_pods.revisions[-1].owner
    direct = uneven.workload_pods.workload if newest is None else newest.ref
    records = [record for record, _ in _scaled_down(uneven, {direct.name})]
    records += uneven.audit.snapshot.ownership.events_about(direct, "SuccessfulDelete")
    if records:
        later = [record for record in records if record.last is not None and record.last >= last]
        if not later:
            return None
        return True, f"{_quoted(later[0])}; no pod was created since, and what is deleted is not chosen by constraints"
    return _rescaled(uneven, last)


def _rescaled(uneven: UnevenRow, last: datetime) -> Proof | None:
    """Tell without events whether the number of pods may have been lowered after the newest was created."""
    workload = uneven.workload_pods.workload
    record = uneven.audit.snapshot.ownership.record(workload)
    if record is None or record.scaled is None or record.scaled.time <= last:
        return None
    scaled = record.scaled
    return False, (
        f"likely: {scaled.manager}, which owns spec.replicas of {workload.kind} {workload.name}, wrote at "
        f"{timestamp(scaled.time)}, and the newest pod was created at {timestamp(last)}"
    )


def _scaled_down(uneven: UnevenRow, names: Iterable[str]) -> Iterator[tuple[EventRecord, int]]:
    """Yield what was said of ReplicaSets of these names being scaled down, and how many pods they had; 0: not said."""
    replica_sets = frozenset(names)
    for record in uneven.audit.snapshot.ownership.events_about(uneven.workload_pods.workload, "ScalingReplicaSet"):
        match = _SCALED_DOWN.match(record.message)
        if match and match[1] in replica_sets:
            yield record, int(match[2] or 0)


def _since(steps: list[tuple[EventRecord, int]], newest: OwnerRecord) -> list[tuple[EventRecord, int]]:
    """Return the steps that came after the newest ReplicaSet.

    Times have seconds: what was said within the second of its creation may have come before it, and is taken only
    where nothing was said later.
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


def _told_apart(uneven: UnevenRow) -> bool:
    """Tell whether the selector asks for one revision alone."""
    selector = uneven.spread.constraint.selector
    return selector is None or not labelselectors.keys(selector).isdisjoint(LABELS)


def _rolls(uneven: UnevenRow) -> bool:
    """Tell whether old and new pods stand side by side during a rollout, as far as the workload was read."""
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


def _minutes() -> int:
    return int(_ROLLOUT.total_seconds()) // 60
