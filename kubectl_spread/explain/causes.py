"""Causes: why is a constraint's skew above maxSkew, or its next pod refused by every node that is free?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum
from typing import Final

from kubectl_spread.audit.evaluation import obstacles
from kubectl_spread.audit.evaluation.evaluate import Audit
from kubectl_spread.audit.evaluation.obstacles import Obstacle
from kubectl_spread.audit.evaluation.obstacles import ObstacleKind as Kept
from kubectl_spread.audit.merge.verdicts import Confidence
from kubectl_spread.audit.snapshot.records import PodRecord
from kubectl_spread.diagnosis.skew_fix import Closing
from kubectl_spread.explain import history, relabelling
from kubectl_spread.explain.cases import Case, cases
from kubectl_spread.explain.families import Families, leaving, matcher, others
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
    Kept.CORDONED: CauseName.DRAINED_DOMAIN,
    Kept.TAINTED: CauseName.TAINTED_DOMAIN,
    Kept.FULL: CauseName.FULL_DOMAIN,
    Kept.EXCLUDED: CauseName.NODE_AFFINITY,
    Kept.CONSTRAINED: CauseName.HARD_CONSTRAINT,
    Kept.REPELLED: CauseName.POD_AFFINITY,
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


def causes(audit: Audit, families: Families) -> list[SkewCause]:
    """Return the causes of every row that needs an explanation, the strongest first."""
    return [cause for case in cases(audit, families) for cause in _of(case)]


def _of(case: Case) -> list[SkewCause]:
    found = [cause for look in _LOOKS for cause in look(case)]
    certain = [cause for cause in found if cause.confidence == Confidence.CERTAIN]
    likely = [cause for cause in found if cause.confidence != Confidence.CERTAIN]
    return [*certain, *likely] or [_cause(case, CauseName.UNKNOWN, _looked_at(case), Confidence.UNKNOWN)]


def _cause(
    case: Case, name: CauseName, evidence: str | list[str], confidence: Confidence = Confidence.CERTAIN
) -> SkewCause:
    return SkewCause(
        row=case.index,
        path=str(case.row.path),
        cause=str(name),
        confidence=str(confidence),
        evidence=[evidence] if isinstance(evidence, str) else evidence,
    )


def _stale_selector(case: Case) -> Iterator[SkewCause]:
    if evidence := relabelling.evidence(case):
        yield _cause(case, CauseName.STALE_SELECTOR, evidence)


def _terminating(case: Case) -> Iterator[SkewCause]:
    gone = leaving(case.spread, case.row.namespace, case.audit)
    with_them = case.spread.changed(gone)
    if gone and case.settles(with_them):
        told = f"{plural(gone.total(), 'terminating pod')} no longer counted: {case.skews(with_them, 'with them')}"
        yield _cause(case, CauseName.TERMINATING, told)


def _other_pods(case: Case) -> Iterator[SkewCause]:
    foreign = others(case.spread, case.family, case.audit)
    without = case.spread.without(foreign)
    if foreign and case.settles(without) and not _in_common(case, foreign):
        whose = _named(_owners(case))
        told = f"{plural(foreign.total(), 'pod')} of other workloads counted"
        yield _cause(case, CauseName.OTHER_PODS, f"{told}{whose}: {case.skews(without, 'without them')}")


def _counted_together(case: Case) -> Iterator[SkewCause]:
    """Workloads that count each other's pods by the same constraint: none of them is to blame."""
    foreign = others(case.spread, case.family, case.audit)
    without = case.spread.without(foreign)
    if foreign and case.settles(without) and (common := _in_common(case, foreign)):
        told = (
            f"likely meant: the selector counts the pods of {len(common) + 1} workloads together, which all have this "
            f"constraint{_named(common)}: {case.skews(without, 'of its own pods alone')}"
        )
        yield _cause(case, CauseName.OTHER_PODS, told, Confidence.LIKELY)


def _in_common(case: Case, foreign: Counter[str]) -> list[ObjectRef]:
    """Return whose the other pods are if all of them have the same constraint; none if any has not, or was not read."""
    pods = [pod for pod in _others_read(case) if _has_constraint(pod, case)]
    return _workloads(pods, case) if len(pods) == foreign.total() else []


def _has_constraint(pod: PodRecord, case: Case) -> bool:
    clause = case.row.clause
    return any(
        one.spread and (one.topology_key, one.selector) == (clause.topology_key, clause.selector)
        for one in pod.shape.clauses
    )


def _owners(case: Case) -> list[ObjectRef]:
    """Return whose the other pods are, as far as they were read."""
    return _workloads(_others_read(case), case)


def _workloads(pods: Iterable[PodRecord], case: Case) -> list[ObjectRef]:
    found = {case.audit.snapshot.workload(pod) for pod in pods}
    return sorted(found)


def _others_read(case: Case) -> list[PodRecord]:
    """Return the pods of other workloads that count, as far as they were read."""
    selects, snapshot = matcher(case.spread, case.audit), case.audit.snapshot
    return [
        pod
        for pod in case.audit.everyone
        if pod.shape.namespace == case.row.namespace and pod.node in case.spread.domains.value_of
        if not pod.terminating and selects(pod) and snapshot.workload(pod) != case.row.workload
    ]


def _named(workloads: Iterable[ObjectRef]) -> str:
    names = [f"{workload.kind} {workload.name}" for workload in workloads]
    return f" ({some(names)})" if names else ""


def _closed_domains(case: Case) -> Iterator[SkewCause]:
    """The low domains that cannot take a pod, by what keeps most of their nodes from it."""
    found: dict[Kept, list[str]] = {}
    closing = _closing(case)
    for value in case.low:
        kept: list[Obstacle] | None = closing.obstacles(case.nodes_of(value))
        if kept:
            most = Counter(obstacle.cause for obstacle in kept).most_common(1)[0][0]
            number = plural(case.spread.match_num[value], "pod")
            text = f"{case.domain(value)} has {number} and cannot take one: {obstacles.summary(kept)}"
            found.setdefault(most, []).append(text)
    yield from (_cause(case, name, found[kept]) for kept, name in _CLOSED.items() if kept in found)


def _closing(case: Case) -> Closing:
    """Return what tells whether nodes would take a pod of the case: of a skew one that left the fullest domain."""
    return Closing(case.row, case.spread, case.audit, moving=case.skewed)


def _rollout(case: Case) -> Iterator[SkewCause]:
    yield from _proven(case, CauseName.ROLLOUT, history.rollout(case))


def _scale_down(case: Case) -> Iterator[SkewCause]:
    yield from _proven(case, CauseName.SCALE_DOWN, history.scale_down(case))


def _proven(case: Case, name: CauseName, proof: history.Proof | None) -> Iterator[SkewCause]:
    if proof is not None:
        certain, text = proof
        yield _cause(case, name, text, Confidence.CERTAIN if certain else Confidence.LIKELY)


def _late_node(case: Case) -> Iterator[SkewCause]:
    """A low domain whose nodes are younger than every pod elsewhere; an older node may have been there and gone."""
    if not case.skewed:
        return
    born = {node.metadata.name: node.metadata.creation_timestamp for node in case.audit.nodes.nodes}
    value_of = case.spread.domains.value_of
    elsewhere = [pod.created for pod in case.counted if value_of[pod.node] not in case.low]
    for value in case.low:
        ages = [born[node] for node in case.nodes_of(value)]
        first = min((age for age in ages if age is not None), default=None)
        last = max((age for age in elsewhere if age is not None), default=None)
        if None in ages or None in elsewhere or first is None or last is None or first <= last:
            continue
        told = (
            f"likely: the oldest node of {case.domain(value)} was created at {timestamp(first)}, after every pod of "
            f"fuller domains (the last at {timestamp(last)})"
        )
        yield _cause(case, CauseName.LATE_NODE, told, Confidence.LIKELY)


def _default_constraints(case: Case) -> Iterator[SkewCause]:
    if case.row.clause.default:
        told = "the pods have no constraint of their own: this is a default one of the scheduler"
        yield _cause(case, CauseName.DEFAULT_CONSTRAINTS, told)


def _soft_constraint(case: Case) -> Iterator[SkewCause]:
    closing = _closing(case)
    open_ones = [value for value in case.low if closing.obstacles(case.nodes_of(value)) is None]
    if not case.spread.constraint.hard and case.skewed and open_ones:
        told = (
            "likely: ScheduleAnyway is a preference that other scores outweigh; "
            f"{case.domain(open_ones[0])} could take a pod now"
        )
        yield _cause(case, CauseName.SOFT_CONSTRAINT, told, Confidence.LIKELY)


def _looked_at(case: Case) -> list[str]:
    looked = (
        "looked at: changed labels, terminating pods, pods of other workloads and revisions, what keeps pods from the "
        "lower domains, ages of nodes and pods, events (they are kept for an hour), managedFields of spec.replicas"
    )
    found = [looked]
    if case.spread.short_of_domains:
        found.append(
            f"minDomains is {case.spread.constraint.min_domains} and {len(case.spread.match_num)} are eligible: the "
            "minimum counts as 0"
        )
    return found


_LOOKS: Final[tuple[Callable[[Case], Iterator[SkewCause]], ...]] = (
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
