"""Waiting: why is a pod pending, by the evaluation and the scheduler's events, and where may the next pods go?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import UNSET, UnsetType

from kubectl_spread.audit.evaluation.evaluate import Audit, EvaluatedGroup
from kubectl_spread.audit.evaluation.obstacles import FILTERS
from kubectl_spread.audit.merge.verdicts import Verdict
from kubectl_spread.audit.snapshot.records import ENCODER, PodClass, PodRecord
from kubectl_spread.audit.snapshot.revisions import revision_of
from kubectl_spread.engine.newnodes import OF_KARPENTER
from kubectl_spread.explain.uneven_rows import RELABELLED
from kubectl_spread.kube.api.objects import ObjectRef
from kubectl_spread.phrases import value
from kubectl_spread.report import projections
from kubectl_spread.report.explanation import (
    Condition,
    InertConstraint,
    NextPods,
    NodeRefusal,
    Placing,
    SchedulerEvent,
    Step,
    Waiting,
)

if TYPE_CHECKING:
    # The engine is given.
    from kubectl_spread.engine.destinations import Destinations, NextPod
    from kubectl_spread.engine.engine import Engine


FAILED_SCHEDULING = "FailedScheduling"


def waiting(audit: Audit, engine: Engine) -> list[Waiting]:
    """Return an answer for each set of requested pending pods that share it, in the order of their names."""
    if not audit.snapshot.nodes:
        return []
    inert = _inert(audit)
    pods_by_class: dict[tuple[PodClass, tuple[str, ...], tuple[str, ...], bytes], list[PodRecord]] = {}
    for pod in audit.pods:
        if pod.waits and pod.pod_class.profile is not None and not pod.pod_class.pinned:
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


_BETWEEN_KEYS: Final = " / "


def succeeded(audit: Audit) -> list[tuple[EvaluatedGroup, list[PodRecord]]]:
    """Return the groups that the next pods may be like, each with its fresh pods.

    A controller creates pods of its newest revision, with the labels of its template. Without such fresh pods, the next
    pod may be like any other pod.
    """
    relabelled = {
        (row.namespace, member.pod.name) for row in audit.rows for member in row.members if member.verdict in RELABELLED
    }
    groups_by_workload: dict[ObjectRef, list[tuple[EvaluatedGroup, list[PodRecord]]]] = {}
    for group in audit.groups:
        unchanged = (pod for pod in group.pods if (pod.namespace, pod.name) not in relabelled)
        fresh = [pod for pod in unchanged if _is_fresh(pod, group, audit)]
        groups_by_workload.setdefault(group.workload, []).append((group, fresh))
    return [successor for groups in groups_by_workload.values() for successor in _freshest(groups)]


def placing(audit: Audit, engine: Engine) -> list[Placing]:
    """Return the nodes where the next pods may go, without pods that the API would refuse because of a selector."""
    return [
        _placing(
            [pod.name for pod in pods],
            # A new pod has its selectors merged again, which a pending one has not.
            engine.destinations(pods[0]) if engine.waits(pods[0]) else engine.next_destinations(pods[0]),
        )
        for group, pods in succeeded(audit)
        if group.evaluation.node_answers is not None and _parses(pods[0].pod_class)
    ]


def _placing(pods: list[str], destinations: Destinations) -> Placing:
    return Placing(
        pods=pods,
        allowed=destinations.allowed,
        scores=dict(destinations.scores) or UNSET,
        refused=refused(destinations),
        unknown=list(destinations.unknown) or UNSET,
    )


def refused(destinations: Destinations) -> list[NodeRefusal]:
    """Return the nodes that will not take a pod, by the first filter that refuses each of them."""
    nodes_by_reason: dict[tuple[str, str], list[str]] = {}
    for cause, nodes in destinations.refused:
        nodes_by_reason.setdefault((FILTERS[cause.kind].name, cause.text), []).extend(destinations.named(nodes))
    order = [each.name for each in FILTERS.values()]
    return [
        NodeRefusal(filter=name, reason=reason, nodes=sorted(nodes_by_reason[name, reason]))
        for name, reason in sorted(nodes_by_reason, key=lambda each: (order.index(each[0]), each[1]))
    ]


def _parses(pod_class: PodClass) -> bool:
    """Tell whether every selector of a class can be parsed; if not, the API refuses new pods of the class."""
    return all(term.parse_error is None for term in pod_class.terms)


def _is_fresh(pod: PodRecord, group: EvaluatedGroup, audit: Audit) -> bool:
    """Tell whether the controller of a pod would give it the same labels now, as far as the template was read."""
    if pod.terminating:
        return False
    revisions, labels = audit.revisions.of(group.workload), pod.pod_class.labels
    if revisions and revision_of(labels) != revisions[-1]:
        return False
    chain = audit.snapshot.owner_chain(pod)
    return not chain or all(labels.get(key) == text for key, text in chain[0].template_labels.items())


def _freshest(groups: list[tuple[EvaluatedGroup, list[PodRecord]]]) -> Iterator[tuple[EvaluatedGroup, list[PodRecord]]]:
    """Yield the groups that have fresh pods; if there are none, yield all groups with all of their pods."""
    any_fresh = any(fresh for _, fresh in groups)
    for group, fresh in groups:
        if fresh or not any_fresh:
            yield group, fresh or group.pods


def next_pods(audit: Audit, engine: Engine, number: int) -> Iterator[NextPods]:
    """Yield ``number`` more pods of each group, placed one after another, for groups with a counted constraint."""
    for group, pods in succeeded(audit) if number else ():
        counted = [spread for spread in group.evaluation.spreads if spread is not None]
        keys = [spread.constraint.topology_key for spread in group.evaluation.hard or counted]
        if keys and group.evaluation.node_answers is not None and _parses(pods[0].pod_class):
            steps = [_step(step, keys, audit) for step in engine.next_pods(pods[0], number)]
            yield NextPods(pods=[pod.name for pod in group.pods], topology_keys=keys, steps=steps)


def _step(step: NextPod, keys: Sequence[str], audit: Audit) -> Step:
    allowed = step.destinations.allowed
    if not allowed:
        reasons = [cause.text for cause, _ in step.destinations.refused]
        return Step(allowed=[], nodes=0, assumed="", reason="; ".join(dict.fromkeys(reasons)))
    cells = {node: _cell(node, keys, audit) for node in allowed}
    return Step(allowed=sorted(set(cells.values())), nodes=len(allowed), assumed=cells[step.node])


def _cell(node: str, keys: Sequence[str], audit: Audit) -> str:
    """Return the domain of a node as its values, in the order of the keys."""
    domains = map(audit.nodes.labels_of(node).get, keys)
    return _BETWEEN_KEYS.join("<none>" if domain is None else value(domain) for domain in domains)
