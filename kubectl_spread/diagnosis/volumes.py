"""Volumes: which answers depend on where the claims of pods lead?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kubectl_spread.audit.evaluation.evaluate import Audit
from kubectl_spread.audit.evaluation.volumes import UNREAD
from kubectl_spread.audit.snapshot.records import PodRecord
from kubectl_spread.diagnosis.exposure import Exposures
from kubectl_spread.kube.api.objects import ObjectRef


def decide(audit: Audit, *, explaining: bool) -> bool:
    """Tell whether the claims of pods in question decide where these may be, so that they have to be read.

    Args:
        audit: The cluster.
        explaining: Whether each pod is in question.
    """
    if not audit.nodes.nodes:
        return False
    return any(audit.volumes.claims(pod) for pod in (audit.pods if explaining else _in_question(audit)))


def unread(audit: Audit) -> bool:
    """Tell whether a finding depends on claims or volumes that were not read."""
    return any(audit.volumes.of(pod).unknown == UNREAD for pod in _in_question(audit))


def _in_question(audit: Audit) -> Iterator[PodRecord]:
    """Yield pods with claims of uneven constraints, and of workloads that one domain may stop."""
    with_claims = [pod for pod in audit.pods if pod.node and audit.volumes.uses_claims(pod)]
    if not with_claims:
        return
    for row in audit.rows:
        spread = row.spread
        if spread is not None and spread.exceeds_max_skew and not row.lower_bound:
            yield from row.pods
    exposures = Exposures(audit)
    for pods in _by_workload(with_claims, audit):
        if exposures.concentrates(pods):
            yield from pods


def _by_workload(pods: Iterable[PodRecord], audit: Audit) -> Iterable[list[PodRecord]]:
    by_workload: dict[ObjectRef, list[PodRecord]] = {}
    for pod in pods:
        by_workload.setdefault(audit.snapshot.workload(pod), []).append(pod)
    return [several for several in by_workload.values() if len(several) > 1]
