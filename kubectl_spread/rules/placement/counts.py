"""Helpers of the rules on placement: the names of a row's pods, and the severity of default constraints."""

from __future__ import annotations

from kubectl_spread.audit.evaluation.evaluate import EvaluatedConstraint
from kubectl_spread.report.severity import Severity


def names(row: EvaluatedConstraint) -> tuple[str, ...]:
    """Return the names of a row's pods."""
    return tuple(pod.name for pod in row.pods)


def at_most_info(row: EvaluatedConstraint) -> Severity | None:
    """Return info for one of the scheduler's soft default constraints; None stands for the rule's own severity."""
    return Severity.INFO if row.term.default and not row.term.required else None
