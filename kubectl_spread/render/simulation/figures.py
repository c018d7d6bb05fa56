"""Figures: the sentences and cells that all formats of ``simulate`` have."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec import UnsetType

from kubectl_spread.kube.api.topologykeys import ZONE
from kubectl_spread.phrases import plural
from kubectl_spread.render import about, words
from kubectl_spread.report.simulation import Range, SimulatedWorkload, SimulationFinding, SpreadSimulation

COLUMNS: Final = ("WORKLOAD", "RUNNING", "LOST", "PENDING", "SKEW AFTER", "WHY")


def header(report: SpreadSimulation) -> list[str]:
    """Return the parts of the header: the cluster, its Kubernetes, and the events."""
    return [*about.identified(report.cluster), *map(words.safe, report.events)]


def changed(report: SpreadSimulation) -> list[SimulatedWorkload]:
    """Return the workloads that change, or that have pending pods; those with the most pending pods first."""
    affected = [workload for workload in report.workloads if _is_affected(workload)]
    return sorted(affected, key=lambda workload: (-workload.after.pending.max, -workload.lost))


def _is_affected(workload: SimulatedWorkload) -> bool:
    after = workload.after
    unchanged = after.running == Range(min=workload.before.running, max=workload.before.running)
    moved = any(domain.pods != Range(min=domain.before, max=domain.before) for domain in workload.domains)
    return bool(workload.lost or after.pending.max or moved or not unchanged)


def several_namespaces(report: SpreadSimulation) -> bool:
    """Tell whether the workloads are in more than one namespace."""
    return isinstance(report.cluster.namespace, UnsetType) and (
        len({workload.namespace for workload in report.workloads}) > 1
    )


def skews(workload: SimulatedWorkload) -> str:
    """Return the skews after the events: ``zone 1``; ``-`` where the pods have no constraint."""
    return ", ".join(f"{words.short_key(each.topology_key)} {each.skew.text}" for each in workload.skews) or "-"


def why(workload: SimulatedWorkload) -> str:
    """Return why pods stay pending."""
    return "; ".join(words.safe(reason.text) for reason in workload.reasons)


def cells(workload: SimulatedWorkload) -> tuple[str, ...]:
    """Return the cells of a workload after its name: running before and after, lost, pending, skews, and why."""
    return (
        str(workload.before.running),
        workload.after.running.text,
        str(workload.lost),
        workload.after.pending.text,
        skews(workload),
        why(workload),
    )


def sentences(finding: SimulationFinding) -> Iterator[str]:
    """Yield the message of a finding, and its fix."""
    yield words.safe(finding.message)
    if isinstance(finding.fix, str):
        yield f"Fix, tried in the simulation: {words.safe(finding.fix)}."


def commands(finding: SimulationFinding) -> list[str]:
    """Return the commands of a fix."""
    return [] if isinstance(finding.commands, UnsetType) else finding.commands


def conclusion(report: SpreadSimulation) -> str:
    """Return the answer in one sentence."""
    summary, runs = report.summary, plural(report.runs, "simulated run")
    pending = sum(workload.after.pending.max > 0 for workload in report.workloads)
    end = f" ({runs})." + (" The drain would not end." if report.refused_evictions else "")
    if not pending and not summary.stopped.max:
        return f"All pods of {plural(summary.workloads, 'workload')} would run{end}"
    stopped = f"{summary.stopped.words} would stop" if summary.stopped.max else "none of them would stop"
    return f"{plural(pending, 'workload')} would have pending pods, {stopped}{end}"


def remarks(report: SpreadSimulation) -> list[str]:
    """Return what the simulation leaves out."""
    left_out = report.summary.not_simulated
    return [f"Not simulated: {', '.join(map(words.safe, left_out))}."] if left_out else []


def zones(report: SpreadSimulation) -> list[tuple[str, int, Range]]:
    """Return the running pods of each zone before and after the events."""
    rows: dict[str, tuple[int, int, int]] = {}
    for workload in report.workloads:
        for domain in workload.domains:
            if domain.topology_key == ZONE:
                before, least, most = rows.get(domain.value, (0, 0, 0))
                rows[domain.value] = (before + domain.before, least + domain.pods.min, most + domain.pods.max)
    return [(value, before, Range(min=least, max=most)) for value, (before, least, most) in sorted(rows.items())]
