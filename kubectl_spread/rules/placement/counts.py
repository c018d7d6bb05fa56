"""What the rules on placement share: the counted rows of a subject, and the names of their pods."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from kubectl_spread.audit.evaluation.evaluate import EvaluatedConstraint
from kubectl_spread.audit.snapshot.records import PodRecord
from kubectl_spread.kube.scheduler.podtopologyspread import Spread
from kubectl_spread.rules.model import Severity, Subject

_ENDING: Final = frozenset({"Pod", "Job", "CronJob"})
"""Kinds whose pods, once they run, are all there will be of them."""


@lru_cache(maxsize=1)
def counted(subject: Subject) -> tuple[tuple[EvaluatedConstraint, Spread], ...]:
    """Return the rows of a subject whose domains are known from nodes, each with its count."""
    return tuple((row, spread) for row, spread in subject.spreads if not row.lower_bound)


@lru_cache(maxsize=1)
def awaiting(subject: Subject) -> tuple[tuple[EvaluatedConstraint, Spread], ...]:
    """Return the counted rows whose pods wait for a place, or will be followed by others like them."""
    return tuple(
        (row, spread)
        for row, spread in counted(subject)
        if any(not pod.node for pod in row.pods) or followed(subject, row.pods)
    )


def followed(subject: Subject, pods: Iterable[PodRecord]) -> bool:
    """Tell whether there will be more such pods: none of a bare pod, a Job that has its pods, or an older revision."""
    if subject.workload.kind in _ENDING:
        return False
    return not subject.audit.revisions.superseded(subject.workload, pods)


def names(row: EvaluatedConstraint) -> tuple[str, ...]:
    """Return the names of a row's pods."""
    return tuple(pod.name for pod in row.pods)


def at_most_info(row: EvaluatedConstraint) -> Severity | None:
    """Return the severity of what concerns one of the scheduler's soft defaults; None: the rule's own."""
    return Severity.INFO if row.clause.default and not row.clause.required else None
