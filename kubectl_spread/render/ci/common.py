"""What the formats for CI have in common: files that a CI can show, the order of findings, what was not evaluated."""

from __future__ import annotations

from typing import Final

from msgspec import UnsetType

from kubectl_spread.errors import STDIN
from kubectl_spread.render.words import safe
from kubectl_spread.report.model import Finding, Report, Source

HOME: Final = "https://github.com/kubectl-spread/kubectl-spread"
_UNANSWERED: Final = ("conflicting", "forbidden", "malformed", "unreadable")
"""Reasons for which what was asked for could not be checked; for the others it did not have to be."""
_DEVICES: Final = "/dev/"


def in_file(finding: Finding) -> Source | None:
    """Return where a finding is written in a file; standard input and pipes are none that can be shown."""
    source = finding.source
    if isinstance(source, UnsetType) or source.file == STDIN or source.file.startswith(_DEVICES):
        return None
    return source


def column(source: Source) -> int | None:
    """Return the column of a place, where it is known."""
    return source.column if isinstance(source.column, int) else None


def rule(finding: Finding) -> str:
    """Return the rule of a finding: ``SPR301 hard-skew``."""
    return safe(f"{finding.code} {finding.name}")


def place(finding: Finding) -> str:
    """Return the namespace, kind and name of a finding's object: ``shop/Deployment/web``."""
    return safe(f"{finding.namespace}/{finding.object.kind}/{finding.object.name}")


def unanswered(report: Report) -> dict[str, int]:
    """Return how much of what was asked for could not be checked, by reason."""
    return {reason: number for reason in _UNANSWERED if (number := report.summary.skipped.get(reason, 0))}
