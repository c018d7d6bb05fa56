"""Volumes: which answers depend on where the claims of pods lead?"""

from __future__ import annotations

from collections.abc import Iterator

from kubectl_spread.audit.evaluation.evaluate import Audit
from kubectl_spread.audit.evaluation.volumes import UNREAD
from kubectl_spread.audit.snapshot.records import PodRecord
from kubectl_spread.diagnosis.exposure import Exposures, replicas


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
    """Yield the pods of uneven constraints, and of workloads that one domain may stop, if any pod uses claims."""
    if not any(pod.node and audit.volumes.uses_claims(pod) for pod in audit.pods):
        return
    for row in audit.rows:
        spread = row.spread
        if spread is not None and spread.exceeds_max_skew and not row.lower_bound:
            yield from row.pods
    exposures = Exposures(audit)
    for workload in replicas(audit):
        yield from exposures.concentrated(workload)
