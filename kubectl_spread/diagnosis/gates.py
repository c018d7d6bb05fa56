"""Feature gates: which answers depend on gates that the version of the API server does not decide?"""

from __future__ import annotations

from typing import Final

from kubectl_spread.audit.evaluation.evaluate import Audit
from kubectl_spread.audit.merge.admission_check import AdmissionCheck, may_depend_on_merge
from kubectl_spread.audit.merge.verdicts import GATED
from kubectl_spread.kube import features
from kubectl_spread.kube.features import OLDEST_MINOR

_ALL_LOCKED: Final = 33
"""From this minor on, no gate that can still be switched changes how the scheduler counts by default."""


def decide_counts(minor: int) -> bool:
    """Tell whether gates that a server of this minor may switch change how its scheduler counts."""
    return OLDEST_MINOR <= minor < _ALL_LOCKED


def decide(audit: Audit) -> bool:
    """Tell whether gates decide a verdict, or whether a template or its pods are refused.

    The answer is the same whichever gates the audit was made with.
    """
    return any(GATED & row.verdicts.keys() for row in audit.rows) or _refusals_depend(audit)


def _refusals_depend(audit: Audit) -> bool:
    """Tell whether an API server with another merge would give another answer to a template."""
    doubtful = [template for template in audit.templates if may_depend_on_merge(template)]
    checks = [AdmissionCheck(behaviour) for behaviour in features.merges(audit.context.behaviour)] if doubtful else []
    return any(len({check.template(template) for check in checks}) > 1 for template in doubtful)
