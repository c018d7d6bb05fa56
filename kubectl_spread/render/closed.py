"""Closed domains: one sentence about all workloads that wait for them, and what to do if they stay closed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from msgspec import UnsetType

from kubectl_spread.phrases import capitalized, domains, listed, plural
from kubectl_spread.report.model import ClosedDomains, Finding, Severity

_NODES: Final = 6
"""The most nodes of closed domains that are named; the command has all of them."""
_HOSTNAME: Final = "kubernetes.io/hostname"
_EACH: Final = "kubectl spread explain TYPE/NAME -n NAMESPACE prints the patch"


def closed_domains(findings: Sequence[Finding]) -> ClosedDomains | None:
    """Return the closed domains for which the pods of all findings of a cause wait."""
    closed = findings[0].closed
    return None if isinstance(closed, UnsetType) else closed


def message(findings: Sequence[Finding]) -> str:
    """Return the message of a cause: that of its only finding, or a sentence about all workloads that wait."""
    closed = closed_domains(findings)
    if closed is None or len(findings) == 1:
        return findings[0].message
    text = f"{summary(closed, findings)}."
    pods, workloads = waiting(findings)
    others = len({finding.ref for finding in findings}) - workloads
    if pods and others:
        which = "another workload" if others == 1 else f"any of {others} other workloads"
        text += f" One more pod of {which} would wait, too."
    return text


def summary(closed: ClosedDomains, findings: Sequence[Finding]) -> str:
    """Return how domains are closed and how many pods wait for them, without the full stop."""
    nodes = "" if closed.topology_key == _HOSTNAME else f" ({_named(closed.nodes)})"
    verb, whom = ("is", "it") if len(closed.domains) == 1 else ("are", "them")
    state = f"{capitalized(domains(closed.topology_key, closed.domains))} {verb} {closed.state}{nodes}"
    pods, workloads = waiting(findings)
    if pods:
        return f"{state}: {plural(pods, 'pod')} of {plural(workloads, 'workload')} wait{'s' * (pods == 1)} for {whom}"
    others = len({finding.ref for finding in findings})
    return f"{state}: one more pod of {'any of ' * (others > 1)}{plural(others, 'workload')} would wait for {whom}"


def _named(nodes: Sequence[str]) -> str:
    return ", ".join(nodes) if len(nodes) <= _NODES else listed(nodes, _NODES)


def waiting(findings: Sequence[Finding]) -> tuple[int, int]:
    """Return the number of pending pods of errors, and of their workloads."""
    errors = [finding for finding in findings if finding.severity is Severity.ERROR and finding.pending_pods]
    pods = {(finding.namespace, pod) for finding in errors for pod in finding.pods}
    return len(pods), len({finding.ref for finding in errors})


def alternatives(findings: Sequence[Finding]) -> list[Finding]:
    """Return the findings with a fix for the case that the domains stay closed."""
    return [finding for finding in findings if finding.has_alternative]


def alternative(findings: Sequence[Finding]) -> str:
    """Return what to do if the domains stay closed; "" if nothing else helps."""
    others = alternatives(findings)
    if not others:
        return ""
    ((fix, _),) = Counter(finding.fix for finding in others).most_common(1)
    helped = len({finding.ref for finding in others if finding.fix == fix})
    if len(findings) == 1:
        return fix
    total = len({finding.ref for finding in findings})
    which = f"{helped} of {plural(total, 'workload')}" if helped < total else f"all {helped}"
    return f"{fix} This helps {which}: {_EACH} of each."
