"""Other workloads: do their pods make the skew, because the constraint counts them too?"""

from __future__ import annotations

from collections.abc import Iterable

from kubectl_spread.audit.merge.verdicts import Confidence
from kubectl_spread.audit.snapshot.records import PodRecord
from kubectl_spread.explain.uneven_rows import Proof, UnevenRow
from kubectl_spread.explain.workload_pods import counter, others
from kubectl_spread.kube.api.objects import ObjectRef
from kubectl_spread.phrases import named, plural, some


def proof(uneven: UnevenRow) -> Proof | None:
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
