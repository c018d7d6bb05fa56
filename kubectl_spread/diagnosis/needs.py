"""Needs: which answers depend on claims, volumes and feature gates, so that these have to be read?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kubectl_spread.audit.evaluation.evaluate import Audit
from kubectl_spread.audit.evaluation.volumes import UNREAD
from kubectl_spread.audit.merge.admission import AdmissionCheck, may_depend_on_merge
from kubectl_spread.audit.merge.verdicts import GATED
from kubectl_spread.audit.snapshot.records import PodRecord
from kubectl_spread.diagnosis.exposure import Exposures, replicas
from kubectl_spread.kube import features
from kubectl_spread.kube.features import OLDEST_MINOR

_ALL_LOCKED: Final = 33
"""From this minor on, no gate that can still be switched changes how the scheduler counts by default."""


def claims_decide(audit: Audit, *, explaining: bool) -> bool:
    """Tell whether the claims of pods in question decide where these may be, so that they have to be read.

    Args:
        audit: The cluster.
        explaining: Whether each pod is in question.
    """
    if not audit.nodes.nodes:
        return False
    return any(audit.volumes.claims(pod) for pod in (audit.pods if explaining else _in_question(audit)))


def volumes_unread(audit: Audit) -> bool:
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


def gates_decide_counts(minor: int) -> bool:
    """Tell whether gates that a server of this minor may switch change how its scheduler counts."""
    return OLDEST_MINOR <= minor < _ALL_LOCKED


def gates_decide(audit: Audit) -> bool:
    """Tell whether gates decide a verdict, or whether a template or its pods are refused.

    The answer is the same whichever gates the audit was made with.
    """
    return any(GATED & row.verdicts.keys() for row in audit.rows) or _refusals_depend(audit)


def _refusals_depend(audit: Audit) -> bool:
    """Tell whether an API server with another merge would give another answer to a template."""
    doubtful = [template for template in audit.templates if may_depend_on_merge(template)]
    checks = [AdmissionCheck(behaviour) for behaviour in features.merges(audit.context.behaviour)] if doubtful else []
    return any(len({check.template(template) for check in checks}) > 1 for template in doubtful)
