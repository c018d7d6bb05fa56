"""Causes: why is a constraint's skew above maxSkew, or why does it refuse the next pod every free node?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import StrEnum
from functools import partial
from typing import Final

from kubectl_spread.audit.evaluation import obstacles
from kubectl_spread.audit.evaluation.evaluate import Audit, EvaluatedPod
from kubectl_spread.audit.evaluation.obstacles import Obstacle, ObstacleKind
from kubectl_spread.audit.merge.verdicts import Confidence
from kubectl_spread.audit.snapshot.records import PodRecord
from kubectl_spread.diagnosis.node_answers import PlacementCheck
from kubectl_spread.explain import history
from kubectl_spread.explain.uneven_rows import RELABELLED, Proof, UnevenRow, uneven_rows
from kubectl_spread.explain.workload_pods import PodsByWorkload, counter, others
from kubectl_spread.kube.api.objects import ObjectRef
from kubectl_spread.phrases import capitalized, named, plural, some, value
from kubectl_spread.report import model


def _relabelled(uneven: UnevenRow) -> list[str]:
    """Return the evidence that a changed label keeps pending pods from being counted, or that it makes the skew."""
    if uneven.relabelled_pending:
        return list(_changes(uneven.relabelled_pending))
    lost, gained = _moved(uneven)
    value_of = uneven.spread.domains.value_of
    change = Counter(value_of[pod.node] for pod in lost)
    change.subtract(value_of[pod.node] for pod in gained)
    before = uneven.spread.changed(change)
    if not change or not uneven.skewed or not uneven.settled_by(before):
        return []
    number = plural(len(lost) + len(gained), "pod")
    names = some([pod.name for pod in (*lost, *gained)])
    return [
        f"A label that the selector requires was changed on {number} ({names}). {uneven.skews(before, 'Without that')}"
    ]


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


def _other_workloads(uneven: UnevenRow) -> Proof | None:
    """Return the proof that pods of other workloads make the skew.

    It is only likely where all of them have the same constraint, because such workloads are probably counted together
    on purpose.
    """
    foreign = others(uneven.spread, uneven.workload_pods, uneven.audit)
    without = uneven.spread.without(foreign)
    if not foreign or not uneven.settled_by(without):
        return None
    pods = _pods_of_others(uneven)
    workloads = sorted({uneven.audit.snapshot.workload(pod) for pod in pods})
    if sum(_has_constraint(pod, uneven) for pod in pods) == foreign.total():
        text = (
            f"The selector counts the pods of {len(workloads) + 1} workloads together{_list(workloads)}. All of them "
            f"have this constraint, so that is probably intended. {uneven.skews(without, 'Without the other pods')}"
        )
        return Proof(Confidence.LIKELY, text)
    text = f"The selector also counts {plural(foreign.total(), 'pod')} of other workloads{_list(workloads)}."
    return Proof(Confidence.CERTAIN, f"{text} {uneven.skews(without, 'Without them')}")


def _has_constraint(pod: PodRecord, uneven: UnevenRow) -> bool:
    term = uneven.row.term
    return any(
        own.spread and (own.topology_key, own.selector) == (term.topology_key, term.selector)
        for own in pod.pod_class.terms
    )


def _pods_of_others(uneven: UnevenRow) -> list[PodRecord]:
    """Return the counted pods of other workloads, as far as they were read."""
    counts, snapshot = counter(uneven.spread, uneven.audit), uneven.audit.snapshot
    return [
        pod
        for pod in uneven.audit.everyone
        if pod.namespace == uneven.row.namespace and counts(pod) and snapshot.workload(pod) != uneven.row.workload
    ]


def _list(workloads: Iterable[ObjectRef]) -> str:
    names = [named(workload.kind, workload.name) for workload in workloads]
    return f" ({some(names)})" if names else ""


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


_CLOSED: Final = {
    ObstacleKind.CORDONED: CauseName.DRAINED_DOMAIN,
    ObstacleKind.TAINTED: CauseName.TAINTED_DOMAIN,
    ObstacleKind.UNHEALTHY: CauseName.TAINTED_DOMAIN,
    ObstacleKind.FULL: CauseName.FULL_DOMAIN,
    ObstacleKind.EXCLUDED: CauseName.NODE_AFFINITY,
    ObstacleKind.CONSTRAINED: CauseName.HARD_CONSTRAINT,
    ObstacleKind.REPELLED: CauseName.POD_AFFINITY,
    ObstacleKind.VOLUME: CauseName.VOLUMES,
}


class SkewCause(model.Part, frozen=True, kw_only=True):
    """The reason why a row is uneven or refuses the next pod; ``row`` is its index in ``constraints``.

    ``confidence`` is ``certain`` if the evidence proves the cause, ``likely`` if it fits, ``unknown`` without a cause.
    """

    row: int
    path: str
    cause: str
    confidence: str
    evidence: list[str]


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


def _stale_selector(uneven: UnevenRow) -> Iterator[SkewCause]:
    if evidence := _relabelled(uneven):
        yield _cause(uneven, CauseName.STALE_SELECTOR, evidence)


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


def _proven(uneven: UnevenRow, name: CauseName, search: Callable[[UnevenRow], Proof | None]) -> Iterator[SkewCause]:
    if proof := search(uneven):
        yield _cause(uneven, name, proof.text, proof.confidence)


def _late_node(uneven: UnevenRow) -> Iterator[SkewCause]:
    for proof in history.late_nodes(uneven):
        yield _cause(uneven, CauseName.LATE_NODE, proof.text, proof.confidence)


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
    if uneven.spread.short_of_domains:
        evidence.append(
            f"minDomains is {uneven.spread.constraint.min_domains}, but only {len(uneven.spread.match_num)} domains "
            "are eligible, so the global minimum counts as 0."
        )
    return evidence


_SEARCHES: Final[tuple[Callable[[UnevenRow], Iterator[SkewCause]], ...]] = (
    _stale_selector,
    _terminating,
    partial(_proven, name=CauseName.OTHER_PODS, search=_other_workloads),
    _closed_domains,
    partial(_proven, name=CauseName.ROLLOUT, search=history.rollout),
    partial(_proven, name=CauseName.SCALE_DOWN, search=history.scale_down),
    _late_node,
    _default_constraints,
    _soft_constraint,
)
"""The searches for causes, the strongest evidence first."""
