"""Causes: why is a constraint's skew above maxSkew, or its next pod refused by every node that is free?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from enum import StrEnum
from typing import Final

from kubectl_spread.audit.evaluation import obstacles
from kubectl_spread.audit.evaluation.evaluate import Audit
from kubectl_spread.audit.evaluation.obstacles import Obstacle, ObstacleKind
from kubectl_spread.audit.merge.verdicts import Confidence
from kubectl_spread.audit.snapshot.records import PodRecord
from kubectl_spread.diagnosis.skew_fix import PlacementCheck
from kubectl_spread.explain import history, relabelling
from kubectl_spread.explain.uneven_rows import UnevenRow, uneven_rows
from kubectl_spread.explain.workload_pods import PodsByWorkload, counter, others
from kubectl_spread.kube.api.objects import ObjectRef
from kubectl_spread.phrases import plural, some
from kubectl_spread.report import model
from kubectl_spread.report.projections import timestamp


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
    ROLLOUT = "rollout"
    SCALE_DOWN = "scale-down"
    LATE_NODE = "late-node"
    DEFAULT_CONSTRAINTS = "default-constraints"
    SOFT_CONSTRAINT = "soft-constraint"
    UNKNOWN = "unknown"


_CLOSED: Final = {
    ObstacleKind.CORDONED: CauseName.DRAINED_DOMAIN,
    ObstacleKind.TAINTED: CauseName.TAINTED_DOMAIN,
    ObstacleKind.FULL: CauseName.FULL_DOMAIN,
    ObstacleKind.EXCLUDED: CauseName.NODE_AFFINITY,
    ObstacleKind.CONSTRAINED: CauseName.HARD_CONSTRAINT,
    ObstacleKind.REPELLED: CauseName.POD_AFFINITY,
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
    """Return the sort key: certain causes first, last a selector that is meant to count several workloads."""
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
    if evidence := relabelling.evidence(uneven):
        yield _cause(uneven, CauseName.STALE_SELECTOR, evidence)


def _terminating(uneven: UnevenRow) -> Iterator[SkewCause]:
    terminating = uneven.audit.evaluator.census.terminating(uneven.row.namespace, uneven.spread)
    with_them = uneven.spread.changed(terminating)
    if terminating and uneven.settled_by(with_them):
        pods = plural(sum(terminating.values()), "terminating pod")
        yield _cause(uneven, CauseName.TERMINATING, f"{pods} no longer counted: {uneven.skews(with_them, 'with them')}")


def _other_pods(uneven: UnevenRow) -> Iterator[SkewCause]:
    """Yield a cause if pods of other workloads make the skew.

    No workload is to blame if all of them have the same constraint and so count each other's pods.
    """
    foreign = others(uneven.spread, uneven.workload_pods, uneven.audit)
    without = uneven.spread.without(foreign)
    if not foreign or not uneven.settled_by(without):
        return
    pods = _pods_of_others(uneven)
    workloads = _workloads(pods, uneven)
    bearers = [pod for pod in pods if _has_constraint(pod, uneven)]
    if bearers and len(bearers) == foreign.total():
        text = (
            f"likely meant: the selector counts the pods of {len(workloads) + 1} workloads together, which all have "
            f"this constraint{_list(workloads)}: {uneven.skews(without, 'of its own pods alone')}"
        )
        yield _cause(uneven, CauseName.OTHER_PODS, text, Confidence.LIKELY)
        return
    text = f"{plural(foreign.total(), 'pod')} of other workloads counted{_list(workloads)}"
    yield _cause(uneven, CauseName.OTHER_PODS, f"{text}: {uneven.skews(without, 'without them')}")


def _has_constraint(pod: PodRecord, uneven: UnevenRow) -> bool:
    term = uneven.row.term
    return any(
        own.spread and (own.topology_key, own.selector) == (term.topology_key, term.selector)
        for own in pod.pod_class.terms
    )


def _workloads(pods: Iterable[PodRecord], uneven: UnevenRow) -> list[ObjectRef]:
    return sorted({uneven.audit.snapshot.workload(pod) for pod in pods})


def _pods_of_others(uneven: UnevenRow) -> list[PodRecord]:
    """Return the pods of other workloads that were read and that count."""
    counts, snapshot = counter(uneven.spread, uneven.audit), uneven.audit.snapshot
    return [
        pod
        for pod in uneven.audit.everyone
        if pod.namespace == uneven.row.namespace and counts(pod) and snapshot.workload(pod) != uneven.row.workload
    ]


def _list(workloads: Iterable[ObjectRef]) -> str:
    names = [f"{workload.kind} {workload.name}" for workload in workloads]
    return f" ({some(names)})" if names else ""


def _closed_domains(uneven: UnevenRow) -> Iterator[SkewCause]:
    """Yield a cause for each kind of obstacle that keeps pods from most nodes of a low domain."""
    texts: dict[ObstacleKind, list[str]] = {}
    for domain, refusals in _obstacles_in_low_domains(uneven).items():
        if refusals:
            most = Counter(obstacle.cause for obstacle in refusals).most_common(1)[0][0]
            number = plural(uneven.spread.match_num[domain], "pod")
            text = f"{uneven.domain(domain)} has {number} and cannot take one: {obstacles.summary(refusals)}"
            texts.setdefault(most, []).append(text)
    yield from (_cause(uneven, name, texts[kind]) for kind, name in _CLOSED.items() if kind in texts)


def _obstacles_in_low_domains(uneven: UnevenRow) -> dict[str, list[Obstacle] | None]:
    """Map each low domain to the obstacles on its nodes; None if some node would take a pod.

    With a skew that is a pod that left the fullest domain, otherwise the next pod.
    """
    check = PlacementCheck(uneven.row, uneven.spread, uneven.audit, moving=uneven.skewed)
    return {domain: check.obstacles(uneven.nodes_of(domain)) for domain in uneven.low}


def _rollout(uneven: UnevenRow) -> Iterator[SkewCause]:
    if proof := history.rollout(uneven):
        yield _cause(uneven, CauseName.ROLLOUT, proof.text, proof.confidence)


def _scale_down(uneven: UnevenRow) -> Iterator[SkewCause]:
    if proof := history.scale_down(uneven):
        yield _cause(uneven, CauseName.SCALE_DOWN, proof.text, proof.confidence)


def _late_node(uneven: UnevenRow) -> Iterator[SkewCause]:
    """Yield the low domains whose nodes are younger than every pod elsewhere.

    The cause is only likely, because older nodes of the domain may be gone.
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
                f"likely: the oldest node of {uneven.domain(domain)} was created at {timestamp(first)}, after every "
                f"pod of fuller domains (the last at {timestamp(last)})"
            )
            yield _cause(uneven, CauseName.LATE_NODE, text, Confidence.LIKELY)


def _latest(times: Iterable[datetime | None]) -> datetime | None:
    """Return the latest time; None if any is unknown."""
    times = list(times)
    return None if None in times else max((time for time in times if time is not None), default=None)


def _default_constraints(uneven: UnevenRow) -> Iterator[SkewCause]:
    if uneven.row.term.default:
        text = "the pods have no constraint of their own: this is a default one of the scheduler"
        yield _cause(uneven, CauseName.DEFAULT_CONSTRAINTS, text)


def _soft_constraint(uneven: UnevenRow) -> Iterator[SkewCause]:
    if uneven.spread.constraint.hard or not uneven.skewed:
        return
    open_domains = [domain for domain, refusals in _obstacles_in_low_domains(uneven).items() if refusals is None]
    if open_domains:
        text = (
            "likely: ScheduleAnyway is a preference that other scores outweigh; "
            f"{uneven.domain(open_domains[0])} could take a pod now"
        )
        yield _cause(uneven, CauseName.SOFT_CONSTRAINT, text, Confidence.LIKELY)


def _searched(uneven: UnevenRow) -> list[str]:
    searched = (
        "looked at: changed labels, terminating pods, pods of other workloads and revisions, what keeps pods from the "
        "lower domains, ages of nodes and pods, events (they are kept for an hour), managedFields of spec.replicas"
    )
    evidence = [searched]
    if uneven.spread.short_of_domains:
        evidence.append(
            f"minDomains is {uneven.spread.constraint.min_domains} and {len(uneven.spread.match_num)} are eligible: "
            "the minimum counts as 0"
        )
    return evidence


_SEARCHES: Final[tuple[Callable[[UnevenRow], Iterator[SkewCause]], ...]] = (
    _stale_selector,
    _terminating,
    _other_pods,
    _closed_domains,
    _rollout,
    _scale_down,
    _late_node,
    _default_constraints,
    _soft_constraint,
)
"""The searches for causes, the strongest evidence first."""
