"""Causes: why is a constraint's skew above maxSkew, or its next pod refused by every node that is free?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum
from typing import Final

from kubectl_spread.audit.evaluation import obstacles
from kubectl_spread.audit.evaluation.evaluate import Audit
from kubectl_spread.audit.evaluation.obstacles import Obstacle, ObstacleKind
from kubectl_spread.audit.merge.verdicts import Confidence
from kubectl_spread.audit.snapshot.records import PodRecord
from kubectl_spread.diagnosis.skew_fix import Closing
from kubectl_spread.explain import history, relabelling
from kubectl_spread.explain.uneven_rows import UnevenRow, uneven_rows
from kubectl_spread.explain.workload_pods import PodsByWorkload, matcher, others
from kubectl_spread.kube.api.objects import ObjectRef
from kubectl_spread.phrases import plural, some
from kubectl_spread.report import model
from kubectl_spread.report.projections import timestamp


class CauseName(StrEnum):
    """What left a skew behind, or refuses the next pod."""

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
    """Why a row's pods are as they are; ``row`` is its index in ``constraints``.

    ``confidence`` is ``certain`` where the evidence proves it, ``likely`` where it fits, ``unknown`` if nothing does.
    """

    row: int
    path: str
    cause: str
    confidence: str
    evidence: list[str]


def causes(audit: Audit, pods: PodsByWorkload) -> list[SkewCause]:
    """Return the causes of every row that needs an explanation, the strongest first."""
    return [cause for uneven in uneven_rows(audit, pods) for cause in _of(uneven)]


def _of(uneven: UnevenRow) -> list[SkewCause]:
    causes = [cause for look in _LOOKS for cause in look(uneven)]
    certain = [cause for cause in causes if cause.confidence == Confidence.CERTAIN]
    likely = [cause for cause in causes if cause.confidence != Confidence.CERTAIN]
    return [*certain, *likely] or [_cause(uneven, CauseName.UNKNOWN, _looked_at(uneven), Confidence.UNKNOWN)]


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
    gone = uneven.audit.evaluator.terminating(uneven.row.namespace, uneven.spread)
    with_them = uneven.spread.changed(gone)
    if gone and uneven.settles(with_them):
        text = (
            f"{plural(sum(gone.values()), 'terminating pod')} no longer counted: {uneven.skews(with_them, 'with them')}"
        )
        yield _cause(uneven, CauseName.TERMINATING, text)


def _other_pods(uneven: UnevenRow) -> Iterator[SkewCause]:
    foreign = others(uneven.spread, uneven.workload_pods, uneven.audit)
    without = uneven.spread.without(foreign)
    if foreign and uneven.settles(without) and not _in_common(uneven, foreign):
        whose = _named(_owners(uneven))
        text = f"{plural(foreign.total(), 'pod')} of other workloads counted"
        yield _cause(uneven, CauseName.OTHER_PODS, f"{text}{whose}: {uneven.skews(without, 'without them')}")


def _counted_together(uneven: UnevenRow) -> Iterator[SkewCause]:
    """Workloads that count each other's pods by the same constraint: none of them is to blame."""
    foreign = others(uneven.spread, uneven.workload_pods, uneven.audit)
    without = uneven.spread.without(foreign)
    if foreign and uneven.settles(without) and (common := _in_common(uneven, foreign)):
        text = (
            f"likely meant: the selector counts the pods of {len(common) + 1} workloads together, which all have this "
            f"constraint{_named(common)}: {uneven.skews(without, 'of its own pods alone')}"
        )
        yield _cause(uneven, CauseName.OTHER_PODS, text, Confidence.LIKELY)


def _in_common(uneven: UnevenRow, foreign: Counter[str]) -> list[ObjectRef]:
    """Return whose the other pods are if all of them have the same constraint; none if any has not, or was not read."""
    pods = [pod for pod in _others_read(uneven) if _has_constraint(pod, uneven)]
    return _workloads(pods, uneven) if len(pods) == foreign.total() else []


def _has_constraint(pod: PodRecord, uneven: UnevenRow) -> bool:
    term = uneven.row.term
    return any(
        other.spread and (other.topology_key, other.selector) == (term.topology_key, term.selector)
        for other in pod.pod_class.terms
    )


def _owners(uneven: UnevenRow) -> list[ObjectRef]:
    """Return whose the other pods are, as far as they were read."""
    return _workloads(_others_read(uneven), uneven)


def _workloads(pods: Iterable[PodRecord], uneven: UnevenRow) -> list[ObjectRef]:
    workloads = {uneven.audit.snapshot.workload(pod) for pod in pods}
    return sorted(workloads)


def _others_read(uneven: UnevenRow) -> list[PodRecord]:
    """Return the pods of other workloads that count, as far as they were read."""
    selects, snapshot = matcher(uneven.spread, uneven.audit), uneven.audit.snapshot
    return [
        pod
        for pod in uneven.audit.everyone
        if pod.pod_class.namespace == uneven.row.namespace and pod.node in uneven.spread.domains.value_of
        if not pod.terminating and selects(pod) and snapshot.workload(pod) != uneven.row.workload
    ]


def _named(workloads: Iterable[ObjectRef]) -> str:
    names = [f"{workload.kind} {workload.name}" for workload in workloads]
    return f" ({some(names)})" if names else ""


def _closed_domains(uneven: UnevenRow) -> Iterator[SkewCause]:
    """The low domains that cannot take a pod, by what keeps most of their nodes from it."""
    texts: dict[ObstacleKind, list[str]] = {}
    closing = _closing(uneven)
    for value in uneven.low:
        refusals: list[Obstacle] | None = closing.obstacles(uneven.nodes_of(value))
        if refusals:
            most = Counter(obstacle.cause for obstacle in refusals).most_common(1)[0][0]
            number = plural(uneven.spread.match_num[value], "pod")
            text = f"{uneven.domain(value)} has {number} and cannot take one: {obstacles.summary(refusals)}"
            texts.setdefault(most, []).append(text)
    yield from (_cause(uneven, name, texts[kind]) for kind, name in _CLOSED.items() if kind in texts)


def _closing(uneven: UnevenRow) -> Closing:
    """Return what tells whether nodes would take a pod of the uneven: of a skew one that left the fullest domain."""
    return Closing(uneven.row, uneven.spread, uneven.audit, moving=uneven.skewed)


def _rollout(uneven: UnevenRow) -> Iterator[SkewCause]:
    yield from _proven(uneven, CauseName.ROLLOUT, history.rollout(uneven))


def _scale_down(uneven: UnevenRow) -> Iterator[SkewCause]:
    yield from _proven(uneven, CauseName.SCALE_DOWN, history.scale_down(uneven))


def _proven(uneven: UnevenRow, name: CauseName, proof: history.Proof | None) -> Iterator[SkewCause]:
    if proof is not None:
        certain, text = proof
        yield _cause(uneven, name, text, Confidence.CERTAIN if certain else Confidence.LIKELY)


def _late_node(uneven: UnevenRow) -> Iterator[SkewCause]:
    """A low domain whose nodes are younger than every pod elsewhere; an older node may have been there and gone."""
    if not uneven.skewed:
        return
    born = {node.metadata.name: node.metadata.creation_timestamp for node in uneven.audit.nodes.nodes}
    value_of = uneven.spread.domains.value_of
    elsewhere = [pod.created for pod in uneven.counted if value_of[pod.node] not in uneven.low]
    for value in uneven.low:
        ages = [born[node] for node in uneven.nodes_of(value)]
        first = min((age for age in ages if age is not None), default=None)
        last = max((age for age in elsewhere if age is not None), default=None)
        if None in ages or None in elsewhere or first is None or last is None or first <= last:
            continue
        text = (
            f"likely: the oldest node of {uneven.domain(value)} was created at {timestamp(first)}, after every pod of "
            f"fuller domains (the last at {timestamp(last)})"
        )
        yield _cause(uneven, CauseName.LATE_NODE, text, Confidence.LIKELY)


def _default_constraints(uneven: UnevenRow) -> Iterator[SkewCause]:
    if uneven.row.term.default:
        text = "the pods have no constraint of their own: this is a default one of the scheduler"
        yield _cause(uneven, CauseName.DEFAULT_CONSTRAINTS, text)


def _soft_constraint(uneven: UnevenRow) -> Iterator[SkewCause]:
    closing = _closing(uneven)
    open_ones = [value for value in uneven.low if closing.obstacles(uneven.nodes_of(value)) is None]
    if not uneven.spread.constraint.hard and uneven.skewed and open_ones:
        text = (
            "likely: ScheduleAnyway is a preference that other scores outweigh; "
            f"{uneven.domain(open_ones[0])} could take a pod now"
        )
        yield _cause(uneven, CauseName.SOFT_CONSTRAINT, text, Confidence.LIKELY)


def _looked_at(uneven: UnevenRow) -> list[str]:
    looked = (
        "looked at: changed labels, terminating pods, pods of other workloads and revisions, what keeps pods from the "
        "lower domains, ages of nodes and pods, events (they are kept for an hour), managedFields of spec.replicas"
    )
    evidence = [looked]
    if uneven.spread.short_of_domains:
        evidence.append(
            f"minDomains is {uneven.spread.constraint.min_domains} and {len(uneven.spread.match_num)} are eligible: "
            "the minimum counts as 0"
        )
    return evidence


_LOOKS: Final[tuple[Callable[[UnevenRow], Iterator[SkewCause]], ...]] = (
    _stale_selector,
    _terminating,
    _other_pods,
    _closed_domains,
    _rollout,
    _scale_down,
    _late_node,
    _default_constraints,
    _soft_constraint,
    _counted_together,
)
"""What is looked for, the strongest evidence first."""
