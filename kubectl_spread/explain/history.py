"""History: what events, ages and managed fields tell about rollouts and scale-downs that left a skew behind."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import Final

from kubectl_spread.audit.snapshot.records import EventRecord, OwnerRecord, PodRecord
from kubectl_spread.audit.snapshot.revisions import LABELS
from kubectl_spread.explain.cases import Case
from kubectl_spread.explain.families import LONG_AGO
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


def rollout(case: Case) -> Proof | None:
    """Tell whether pods of an older revision count now, or counted when those that are there now were placed."""
    older: Counter[str] = Counter()
    for revision in case.family.revisions[:-1]:
        older.update(case.per_domain(revision.pods))
    if older.total():
        return _going_on(case, older)
    return _over(case) if case.skewed else None


def _going_on(case: Case, older: Counter[str]) -> Proof | None:
    without = case.spread.without(older)
    many = plural(older.total(), "pod")
    if case.settles(without):
        return True, f"{many} of older revisions also counted: {case.skews(without, 'without them')}"
    if not case.per_domain(case.family.revisions[-1].pods):
        return None
    return False, f"likely: {many} of older revisions also counted when those of the newest were placed, and still do"


def _over(case: Case) -> Proof | None:
    newest = case.family.revisions[-1].owner if case.family.revisions else None
    if newest is None or _told_apart(case) or not _rolls(case):
        return None
    older = [one for one in _siblings(case, newest) if _age(one) < _age(newest)]
    if not older and newest.revision <= 1:
        return None
    last = _last_created(case.counted)
    steps = _since(list(_scaled_down(case, {record.ref.name for record in older})), newest)
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


def scale_down(case: Case) -> Proof | None:
    """Tell whether pods were deleted to have fewer of them, and none was created since."""
    last = _last_created(case.family.pods)
    if not case.skewed or last is None or not case.family.revisions:
        return None
    newest = case.family.revisions[-1].owner
    direct = case.family.workload if newest is None else newest.ref
    found = [record for record, _ in _scaled_down(case, {direct.name})]
    found += case.audit.snapshot.ownership.events_about(direct, "SuccessfulDelete")
    if found:
        later = [record for record in found if record.last is not None and record.last >= last]
        if not later:
            return None
        return True, f"{_quoted(later[0])}; no pod was created since, and what is deleted is not chosen by constraints"
    return _rescaled(case, last)


def _rescaled(case: Case, last: datetime) -> Proof | None:
    """Tell without events whether the number of pods may have been lowered after the newest was created."""
    workload = case.family.workload
    record = case.audit.snapshot.ownership.record(workload)
    if record is None or record.scaled is None or record.scaled.time <= last:
        return None
    scaled = record.scaled
    return False, (
        f"likely: {scaled.manager}, which owns spec.replicas of {workload.kind} {workload.name}, wrote at "
        f"{timestamp(scaled.time)}, and the newest pod was created at {timestamp(last)}"
    )


def _scaled_down(case: Case, names: Iterable[str]) -> Iterator[tuple[EventRecord, int]]:
    """Yield what was said of ReplicaSets of these names being scaled down, and how many pods they had; 0: not said."""
    wanted = frozenset(names)
    for record in case.audit.snapshot.ownership.events_about(case.family.workload, "ScalingReplicaSet"):
        match = _SCALED_DOWN.match(record.message)
        if match and match[1] in wanted:
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


def _siblings(case: Case, newest: OwnerRecord) -> list[OwnerRecord]:
    owned = case.audit.snapshot.ownership.below(case.family.workload)
    found = [record for record in owned if record.ref.kind == newest.ref.kind and record.ref != newest.ref]
    return sorted(found, key=_age)


def _age(record: OwnerRecord) -> tuple[int, datetime]:
    return record.revision, record.created or LONG_AGO


def _told_apart(case: Case) -> bool:
    """Tell whether the selector asks for one revision alone."""
    selector = case.spread.constraint.selector
    return selector is None or not labelselectors.keys(selector).isdisjoint(LABELS)


def _rolls(case: Case) -> bool:
    """Tell whether old and new pods stand side by side during a rollout, as far as the workload was read."""
    workload = case.family.workload
    return all(
        template.rolls
        for template in case.audit.snapshot.templates
        if template.workload == workload and template.kind == workload.kind
    )


def _last_created(pods: Iterable[PodRecord]) -> datetime | None:
    return max((pod.created for pod in pods if pod.created is not None), default=None)


def _quoted(record: EventRecord) -> str:
    when = "" if record.last is None else f" at {timestamp(record.last)}"
    return f'"{record.message}"{when}'


def _minutes() -> int:
    return int(_ROLLOUT.total_seconds()) // 60
