"""Formats that CI systems read."""

from __future__ import annotations

from collections import defaultdict
from typing import Final

import msgspec
from msgspec import UnsetType

from kubectl_spread.render import figures
from kubectl_spread.render.findings import Detail, instructions
from kubectl_spread.report.model import Finding, Report, Unchecked

HOME: Final = "https://github.com/kubectl-spread/kubectl-spread"


def rule(finding: Finding) -> str:
    """Return the rule of a finding: ``SPR301 hard-skew``."""
    return f"{finding.code} {finding.name}"


def patch(finding: Finding) -> str:
    """Return the operations of a finding's patch as JSON (RFC 6902), or ""."""
    if isinstance(finding.patch, UnsetType):
        return ""
    return msgspec.json.encode(finding.patch.operations).decode()


def advice(finding: Finding) -> list[str]:
    """Return what to do about a finding: fixes, each with its commands, in a line each."""
    steps = instructions([finding], namespaces=False, detail=Detail.EVERYTHING)
    return [line for step in steps if not step.lines for line in (step.text, *step.commands)]


def place(finding: Finding) -> str:
    """Return the namespace, kind and name of a finding's object: ``shop/Deployment/web``."""
    return f"{finding.namespace}/{finding.object.kind}/{finding.object.name}"


def unanswered(report: Report) -> dict[str, list[str]]:
    """Return the reasons why objects in scope were not evaluated, with lines of text.

    The first line has the number of objects, and the others are about one object each, as far as they have names.
    """
    skipped, entries = report.summary.skipped, defaultdict[str, list[Unchecked]](list)
    for each in report.unchecked or ():
        entries[each.reason].append(each)
    return {
        reason: [f"could not be checked: {skipped[reason]} {reason}", *figures.unchecked_lines(entries[reason])]
        for reason in figures.UNANSWERED
        if skipped.get(reason)
    }
