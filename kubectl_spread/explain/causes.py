"""Causes: why is a skew above maxSkew, or why does a constraint refuse the next pod every free node?

Events, times and managedFields may show that a rollout, a scale-down or a late node left a skew.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from kubectl_spread.audit.evaluation import obstacles
from kubectl_spread.audit.evaluation.evaluate import Audit, EvaluatedPod
from kubectl_spread.audit.evaluation.obstacles import FILTERS, Obstacle, ObstacleKind
from kubectl_spread.audit.merge.verdicts import Confidence
from kubectl_spread.audit.snapshot.records import EventRecord, OwnerRecord, PodRecord
from kubectl_spread.audit.snapshot.revisions import LABELS
from kubectl_spread.engine.node_answers import PlacementCheck
from kubectl_spread.explain.uneven_rows import (
    LONG_AGO,
    RELABELLED,
    PodsByWorkload,
    UnevenRow,
    counter,
    others,
    uneven_rows,
)
from kubectl_spread.kube.api import labels as labelselectors
from kubectl_spread.phrases import capitalized, named, plural, some, value
from kubectl_spread.report import model
from kubectl_spread.report.projections import timestamp

_SCALED_DOWN: Final = re.compile(
    r"Scaled down (?:replica set|ReplicaSet) (\S+)(?: \(revision \d+\))?(?: from (\d{1,10}))? to \d+"
)
"""The message of the Deployment controller, which lacks the old number in older releases, and of Argo Rollouts."""
_ROLLOUT_MINUTES: Final = 10
"""The longest time from the creation of a ReplicaSet to that of a pod of its rollout, where no event shows the rollout.

This is the default of progressDeadlineSeconds: a rollout without progress for longer has failed.
"""


class CauseName(StrEnum):
    """The causes of a skew, or of the refusal of the next pod."""

    STALE_SELECTOR = "stale-selector"
    TERMINATING = "terminating"
    OTHER_PODS = "other-pods"
    DRAINED_DOMAIN = "drained-domain"
    TAINTED_DOMAIN = "tainted-domain"
    FULL_DOMAIN = "full-domain"
    NODE_AFFINITY = "node-affinity"
    HARD_CONSTRAINT = "hard-constraint"
    POD_AFFINITY = "pod-affinity"
    VOLUMES = "volumes"
    ROLLOUT = "rollout"
    SCALE_DOWN = "scale-down"
    LATE_NODE = "late-node"
    DEFAULT_CONSTRAINTS = "default-constraints"
    SOFT_CONSTRAINT = "soft-constraint"
    UNKNOWN = "unknown"


_CLOSED: Final = {kind: CauseName(each.cause) for kind, each in FILTERS.items()}


class SkewCause(model.Part, frozen=True, kw_only=True):
    """The reason why a row is uneven or refuses the next pod; ``row`` is its index in ``constraints``.

    ``confidence`` is ``certain`` if the evidence proves the cause, ``likely`` if it fits, ``unknown`` without a cause.
    """

    row: int
    path: str
    cause: str
    confidence: str
    evidence: list[str]


def _cause(
    uneven: UnevenRow, name: CauseName, evidence: str | list[str], confidence: Confidence = Confidence.CERTAIN
) -> SkewCause:
    return SkewCause(
        row=uneven.index,
        path=str(uneven.row.path),
        cause=str(name),
        confidence=str(confidence),
        evidence=[evidence] if isinstance(evidence, str) else evidence,
    )


def _rollout(uneven: UnevenRow) -> Iterator[SkewCause]:
    """Yield the cause that pods of older revisions count now, or counted when the present pods were placed."""
    older = uneven.per_domain(pod for revision in uneven.workload_pods.revisions[:-1] for pod in revision.pods)
    without, pods = uneven.spread.without(older), f"{plural(older.total(), 'pod')} of older revisions"
    if not older.total():
        yield from _finished_rollout(uneven) if uneven.skewed else ()
    elif older.total() == uneven.spread.match_num.total:
        text = "All counted pods are of older revisions, which a newer one replaces."
        yield _cause(uneven, CauseName.ROLLOUT, text)
    elif uneven.settled_by(without):
        text = f"The constraint also counts {pods}. {uneven.skews(without, 'Without them')}"
        yield _cause(uneven, CauseName.ROLLOUT, text)
    elif uneven.per_domain(uneven.workload_pods.revisions[-1].pods):
        text = f"When pods of the newest revision were placed, {pods} counted, and they still do."
        yield _cause(uneven, CauseName.ROLLOUT, text, Confidence.LIKELY)


def _finished_rollout(uneven: UnevenRow) -> Iterator[SkewCause]:
    newest = uneven.workload_pods.revisions[-1].owner if uneven.workload_pods.revisions else None
    if newest is None or _selects_one_revision(uneven) or not _rolls(uneven):
        return
    older = [record for record in _siblings(uneven, newest) if _age(record) < _age(newest)]
    last = _last_created(uneven.counted)
    if last is None or (not older and newest.revision <= 1):
        return
    steps = _since(_scaled_down(uneven, {record.ref.name for record in older}), newest)
    if steps and last <= max(record.last or LONG_AGO for record, _ in steps):
        number = max(before for _, before in steps)
        counted = plural(number, "pod") if number else "pods"
        text = (
            f"Its pods were created while {counted} of the older revision still counted. Event: {_quoted(steps[0][0])}"
        )
        yield _cause(uneven, CauseName.ROLLOUT, text)
    elif not steps and newest.created and last - newest.created <= timedelta(minutes=_ROLLOUT_MINUTES):
        predecessor = f"came after {older[-1].ref.name}" if older else f"is revision {newest.revision}"
        text = (
            f"Its pods were created within {_ROLLOUT_MINUTES} minutes of {newest.ref.kind} {newest.ref.name}, which "
            f"{predecessor}, and the selector counts pods of {'both' if older else 'older revisions too'}."
        )
        yield _cause(uneven, CauseName.ROLLOUT, text, Confidence.LIKELY)


def _scale_down(uneven: UnevenRow) -> Iterator[SkewCause]:
    """Yield the cause that the workload was scaled down, where no pod of it was created since.

    Without events managedFields may say that spec.replicas was written after the newest pod was created.
    """
    last = _last_created(uneven.workload_pods.pods)
    if not uneven.skewed or last is None or not uneven.workload_pods.revisions:
        return
    newest, workload = uneven.workload_pods.revisions[-1].owner, uneven.workload_pods.workload
    ownership = uneven.audit.snapshot.ownership
    owner = workload if newest is None else newest.ref
    events = [event for event, _ in _scaled_down(uneven, {owner.name})]
    events += ownership.events_about(owner, "SuccessfulDelete")
    later = [event for event in events if event.last is not None and event.last >= last]
    record = ownership.record(workload)
    scaled = None if record is None else record.scaled
    if later:
        text = (
            "Pods were deleted and none was created since. Constraints do not decide which pods are deleted. "
            f"Event: {_quoted(later[0])}"
        )
        yield _cause(uneven, CauseName.SCALE_DOWN, text)
    elif not events and scaled is not None and scaled.time > last:
        text = (
            f"{scaled.manager}, which owns spec.replicas of {named(workload.kind, workload.name)}, wrote it at "
            f"{timestamp(scaled.time)}. The newest pod was created before that, at {timestamp(last)}."
        )
        yield _cause(uneven, CauseName.SCALE_DOWN, text, Confidence.LIKELY)


def _late_nodes(uneven: UnevenRow) -> Iterator[SkewCause]:
    """Yield a cause for each low domain whose nodes are younger than every pod of the fuller domains.

    It is only likely, because older nodes of the domain may have been deleted.
    """
    value_of = uneven.spread.domains.value_of
    times = [pod.created for pod in uneven.counted if value_of[pod.node] not in uneven.low]
    last = max((time for time in times if time is not None), default=None)
    if not uneven.skewed or last is None or None in times:
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
            yield _cause(uneven, CauseName.LATE_NODE, text, Confidence.LIKELY)


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


def _stale_selector(uneven: UnevenRow) -> Iterator[SkewCause]:
    """Yield the cause that a changed label keeps pending pods from being counted, or makes the skew."""
    if uneven.relabelled_pending:
        yield _cause(uneven, CauseName.STALE_SELECTOR, list(_changes(uneven.relabelled_pending)))
        return
    lost, gained = _moved(uneven)
    value_of = uneven.spread.domains.value_of
    change = Counter(value_of[pod.node] for pod in lost)
    change.subtract(value_of[pod.node] for pod in gained)
    before = uneven.spread.changed(change)
    if change and uneven.skewed and uneven.settled_by(before):
        pods = f"{plural(len(lost) + len(gained), 'pod')} ({some([pod.name for pod in (*lost, *gained)])})"
        text = f"A label that the selector requires was changed on {pods}. {uneven.skews(before, 'Without that')}"
        yield _cause(uneven, CauseName.STALE_SELECTOR, text)


def _changes(members: Sequence[EvaluatedPod]) -> Iterator[str]:
    """Yield the effect of each change of a label on the selectors of pending pods, with the names of the pods."""
    pods_by_change: dict[tuple[str, str, str | None], list[str]] = {}
    for member in members:
        for key in member.keys:
            if key.verdict in RELABELLED and key.stored is not None:
                pods_by_change.setdefault((key.key, key.stored, key.label), []).append(member.pod.name)
    for (name, stored, label), pods in pods_by_change.items():
        subject = f"Label {name} of {some(sorted(pods))}"
        if label is None:
            yield f"{subject} is missing. The selector requires {name}={value(stored)}, so it does not match the pod."
        else:
            now = f"was {value(stored)} at creation and is {value(label)} now"
            yield f"{subject} {now}. The selector requires both values, so it matches no pod."


def _moved(uneven: UnevenRow) -> tuple[list[PodRecord], list[PodRecord]]:
    """Return the workload's running pods that a changed label removed from the count, and the pods that it added."""
    counts = counter(uneven.spread, uneven.audit)
    lost: list[PodRecord] = []
    gained: list[PodRecord] = []
    for row in uneven.audit.rows:
        if (row.workload, row.path) != (uneven.row.workload, uneven.row.path):
            continue
        for member in row.members:
            pod = member.pod
            if member.verdict not in RELABELLED or pod.terminating or pod.node not in uneven.spread.domains.value_of:
                continue
            same_selector = member.term.selector == uneven.row.term.selector
            if same_selector and not counts(pod):
                lost.append(pod)
            elif not same_selector and counts(pod):
                gained.append(pod)
    return lost, gained


def _other_workloads(uneven: UnevenRow) -> Iterator[SkewCause]:
    """Yield the cause that pods of other workloads make the skew.

    It is only likely where all of them have the same constraint, because such workloads are probably counted together
    on purpose.
    """
    foreign = others(uneven.spread, uneven.workload_pods, uneven.audit)
    without = uneven.spread.without(foreign)
    if not foreign or not uneven.settled_by(without):
        return
    counts, snapshot = counter(uneven.spread, uneven.audit), uneven.audit.snapshot
    pods = [
        pod
        for pod in uneven.audit.everyone
        if pod.namespace == uneven.row.namespace and counts(pod) and snapshot.workload(pod) != uneven.row.workload
    ]
    workloads = sorted({snapshot.workload(pod) for pod in pods})
    names = f" ({some([named(workload.kind, workload.name) for workload in workloads])})" if workloads else ""
    if sum(_has_constraint(pod, uneven) for pod in pods) == foreign.total():
        text = (
            f"The selector counts the pods of {len(workloads) + 1} workloads together{names}. All of them "
            f"have this constraint, so that is probably intended. {uneven.skews(without, 'Without the other pods')}"
        )
        yield _cause(uneven, CauseName.OTHER_PODS, text, Confidence.LIKELY)
    else:
        text = f"The selector also counts {plural(foreign.total(), 'pod')} of other workloads{names}."
        yield _cause(uneven, CauseName.OTHER_PODS, f"{text} {uneven.skews(without, 'Without them')}")


def _has_constraint(pod: PodRecord, uneven: UnevenRow) -> bool:
    term = uneven.row.term
    return any(
        own.spread and (own.topology_key, own.selector) == (term.topology_key, term.selector)
        for own in pod.pod_class.terms
    )


def causes(audit: Audit, pods: PodsByWorkload) -> list[SkewCause]:
    """Return the causes of every row that needs an explanation, the strongest first."""
    return [cause for uneven in uneven_rows(audit, pods) for cause in _causes_of(uneven)]


def _causes_of(uneven: UnevenRow) -> list[SkewCause]:
    causes = sorted((cause for search in _SEARCHES for cause in search(uneven)), key=_weakness)
    return causes or [_cause(uneven, CauseName.UNKNOWN, _searched(uneven), Confidence.UNKNOWN)]


def _weakness(cause: SkewCause) -> int:
    """Return the sort key: certain causes first, then likely ones, and last a selector meant for several workloads."""
    if cause.confidence == Confidence.CERTAIN:
        return 0
    return 2 if cause.cause == CauseName.OTHER_PODS else 1


def _terminating(uneven: UnevenRow) -> Iterator[SkewCause]:
    terminating = uneven.audit.evaluator.census.terminating(uneven.row.namespace, uneven.spread)
    with_them = uneven.spread.changed(terminating)
    if terminating and uneven.settled_by(with_them):
        pods = plural(sum(terminating.values()), "terminating pod")
        verb = "is" if sum(terminating.values()) == 1 else "are"
        text = f"{pods} {verb} not counted. {uneven.skews(with_them, 'With them')}"
        yield _cause(uneven, CauseName.TERMINATING, text)


def _closed_domains(uneven: UnevenRow) -> Iterator[SkewCause]:
    """Yield a cause for each kind of obstacle that keeps pods from most nodes of a low domain."""
    texts: dict[ObstacleKind, list[str]] = {}
    for domain, refusals in _obstacles_in_low_domains(uneven).items():
        if refusals:
            most = Counter(obstacle.cause for obstacle in refusals).most_common(1)[0][0]
            number = plural(uneven.spread.match_num[domain], "pod") if uneven.spread.match_num[domain] else "no pods"
            name = capitalized(uneven.domain(domain))
            text = f"{name} has {number} and cannot take one ({obstacles.summary(refusals)})."
            texts.setdefault(most, []).append(text)
    yield from (_cause(uneven, name, texts[kind]) for kind, name in _CLOSED.items() if kind in texts)


def _obstacles_in_low_domains(uneven: UnevenRow) -> dict[str, list[Obstacle] | None]:
    """Map each low domain to the obstacles on its nodes; None if some node would take a pod.

    That pod is one that left the fullest domain if there is a skew, and the next pod if there is none.
    """
    check = PlacementCheck(uneven.row, uneven.spread, uneven.audit, moving=uneven.skewed)
    return {domain: check.obstacles(uneven.nodes_of(domain)) for domain in uneven.low}


def _default_constraints(uneven: UnevenRow) -> Iterator[SkewCause]:
    if uneven.row.term.default:
        text = "The pods have no constraint of their own, so the scheduler applies this default constraint."
        yield _cause(uneven, CauseName.DEFAULT_CONSTRAINTS, text)


def _soft_constraint(uneven: UnevenRow) -> Iterator[SkewCause]:
    if uneven.spread.constraint.hard or not uneven.skewed:
        return
    open_domains = [domain for domain, refusals in _obstacles_in_low_domains(uneven).items() if refusals is None]
    if open_domains:
        text = (
            "ScheduleAnyway is only a preference, which other scores of the scheduler can outweigh. "
            f"{capitalized(uneven.domain(open_domains[0]))} could take a pod now."
        )
        yield _cause(uneven, CauseName.SOFT_CONSTRAINT, text, Confidence.LIKELY)


def _searched(uneven: UnevenRow) -> list[str]:
    searched = (
        "The cause cannot be determined from the API. Checked were changed labels, terminating pods, pods of other "
        "workloads and revisions, the nodes of the lower domains, the ages of nodes and pods, events (kept for an "
        "hour) and managedFields of spec.replicas."
    )
    evidence = [searched]
    if uneven.spread.lowered:
        evidence.append(
            f"minDomains is {uneven.spread.constraint.min_domains}, but only {len(uneven.spread.match_num)} domains "
            "are eligible, so the global minimum counts as 0."
        )
    return evidence


_SEARCHES: Final[tuple[Callable[[UnevenRow], Iterator[SkewCause]], ...]] = (
    _stale_selector,
    _terminating,
    _other_workloads,
    _closed_domains,
    _rollout,
    _scale_down,
    _late_nodes,
    _default_constraints,
    _soft_constraint,
)
"""The searches for causes, the strongest evidence first."""
