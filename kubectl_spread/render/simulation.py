"""The report of ``simulate``: the sentences and cells of all its formats, Markdown, and the table that it prints."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import UnsetType

from kubectl_spread.kube.api.labels import ZONE
from kubectl_spread.phrases import plural
from kubectl_spread.render import about, words
from kubectl_spread.render.findings import STYLES
from kubectl_spread.render.markdown import escaped
from kubectl_spread.render.markdown import table as markdown_table
from kubectl_spread.render.terminal import Cell, Column, Terminal, between_phrases, hanging
from kubectl_spread.render.terminal import table as terminal_table
from kubectl_spread.report.simulation import Range, SimulatedWorkload, SimulationFinding, SpreadSimulation

_TITLES: Final = ("Namespace", "Workload", "Running", "At once", "After", "Lost", "Pending", "Skew after", "Why")
_ZONES: Final = ("Zone", "Pods before", "Pods after")
_INDENT: Final = "  "
_COLUMNS: Final = (
    Column("WORKLOAD", fit="middle", least=16),
    Column("RUNNING", "right", short="RUN"),
    Column("AT ONCE", "right", short="ONCE"),
    Column("LOST", "right"),
    Column("PENDING", "right", short="PEND"),
    Column("SKEW AFTER", fit="end", short="SKEW"),
)
_WHY: Final = Column("WHY", fit="wrap", least=24)


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
    dips = workload.least.min < workload.before.ready
    return bool(workload.lost or after.pending.max or moved or dips or not unchanged)


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


def _other_reasons(workload: SimulatedWorkload) -> str:
    """Return why pods are missing that do not wait, such as those of a Job that failed."""
    return "; ".join(words.safe(reason.text) for reason in workload.reasons if not reason.pods.max)


def cells(workload: SimulatedWorkload) -> tuple[str, ...]:
    """Return the cells of a workload after its name.

    They are the running pods before, the fewest ready ones, the running ones after, lost, pending, skews, and why.
    """
    return (
        str(workload.before.running),
        workload.least.text,
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


def alternatives(finding: SimulationFinding) -> list[tuple[str, list[str]]]:
    """Return the other fixes in words, each with its commands."""
    tried = [] if isinstance(finding.alternatives, UnsetType) else finding.alternatives
    return [(f"Or, tried as well: {words.safe(each.fix)}.", each.commands) for each in tried]


def at_once(report: SpreadSimulation) -> str:
    """Return the sentence about the workloads without a ready pod at some moment."""
    interrupted = [
        each for each in report.workloads if each.before.ready and not each.least.min and each.after.running.min
    ]
    if not interrupted:
        return "Every workload that keeps pods has a ready one throughout."
    single = sum(each.before.running + each.before.pending == 1 for each in interrupted)
    of_these = f" ({single} of them {'has' if single == 1 else 'have'} one pod)" if single else ""
    if single == len(interrupted):
        of_these = f" ({'it has' if single == 1 else 'all have'} one pod)"
    verb = "has" if len(interrupted) == 1 else "have"
    return f"{plural(len(interrupted), 'workload')} {verb} no ready pod for a time{of_these}."


def conclusion(report: SpreadSimulation) -> str:
    """Return what is left at the end in one sentence."""
    summary = report.summary
    refused = summary.refused
    left = f" The drain would leave {refused.words} {'pod' if refused.max == 1 else 'pods'}." if refused.max else ""
    end = f".{left}"
    parts = [*_worse(report)]
    if parts:
        return f"{', '.join(parts)}{end}"
    workloads = plural(summary.workloads, "workload")
    if summary.unknown:
        return f"Whether all pods of {workloads} would run is not known{end}"
    return f"All pods of {workloads} would run{end}"


def _worse(report: SpreadSimulation) -> Iterator[str]:
    """Yield the pods that would wait, how many of them are new, and what else does not run."""
    summary = report.summary
    if summary.pending.max:
        noun = "pod" if summary.pending.max == 1 else "pods"
        before = summary.pending.max - summary.new.max
        split = f" ({summary.new.words} new, {before} waited before)" if before else ""
        if not summary.new.max:
            split = " as before"
        workloads = plural(sum(each.after.pending.max > 0 for each in report.workloads), "workload")
        yield f"{summary.pending.words} {noun} of {workloads} would wait{split}"
    if lost := summary.not_replaced.max:
        noun = "pod is" if lost == 1 else "pods are"
        yield f"{summary.not_replaced.words} {noun} not replaced"
    if stopped := summary.stopped.max:
        noun = "workload" if stopped == 1 else "workloads"
        yield f"{summary.stopped.words} {noun} would have no running pod"


def ending(report: SpreadSimulation) -> str:
    """Return the number of runs; one alone does not show what is random."""
    number = plural(report.runs, "simulated run")
    return f"{number}; others may end differently." if report.runs == 1 else f"{number}."


def remarks(report: SpreadSimulation) -> list[str]:
    """Return what the simulation leaves out."""
    left_out = report.summary.not_simulated
    return [f"Not simulated: {'; '.join(map(words.safe, left_out))}."] if left_out else []


def zones(report: SpreadSimulation) -> list[tuple[str, int, Range]]:
    """Return the running pods of each zone before and after the events."""
    rows: dict[str, tuple[int, int, int]] = {}
    for workload in report.workloads:
        for domain in workload.domains:
            if domain.topology_key == ZONE:
                before, least, most = rows.get(domain.value, (0, 0, 0))
                rows[domain.value] = (before + domain.before, least + domain.pods.min, most + domain.pods.max)
    return [(value, before, Range(min=least, max=most)) for value, (before, least, most) in sorted(rows.items())]


def markdown(report: SpreadSimulation) -> str:
    """Return a report as Markdown."""
    return "\n\n".join(_parts(report)) + "\n"


def _parts(report: SpreadSimulation) -> Iterator[str]:
    yield "## Simulation"
    yield " · ".join(map(escaped, header(report)))
    yield f"At once: {escaped(at_once(report))}"
    yield f"**After: {escaped(conclusion(report))}**"
    for finding in report.findings:
        first, *others = sentences(finding)
        yield " ".join((f"**{finding.severity.value}** {escaped(first)}", *map(escaped, others)))
        yield from _console(commands(finding))
        for alternative, lines in alternatives(finding):
            yield escaped(alternative)
            yield from _console(lines)
    if workloads := changed(report):
        yield markdown_table(
            _TITLES, [(words.safe(each.namespace), words.workload(each.workload), *cells(each)) for each in workloads]
        )
    if rows := [(zone, str(before), after.text) for zone, before, after in zones(report)]:
        yield markdown_table(_ZONES, rows)
    yield from map(escaped, (ending(report), *remarks(report)))


def _console(lines: Sequence[str]) -> Iterator[str]:
    if lines:
        yield "\n".join(("```console", *(f"$ {words.safe(line)}" for line in lines), "```"))


def text(report: SpreadSimulation, terminal: Terminal, *, wide: bool) -> str:
    """Return the header, what is left at once and after, the findings, and the workloads that change (or all)."""
    workloads = report.workloads if wide else changed(report)
    with_namespace = several_namespaces(report)
    columns = [*([Column("NAMESPACE", fit="end")] if with_namespace else []), *_COLUMNS]
    parts = [between_phrases(_INDENT.join(header(report)), _INDENT, terminal)]
    parts.append(
        hanging(f"AT ONCE  {at_once(report)}", _INDENT, terminal)
        + hanging(f"AFTER    {conclusion(report)}", _INDENT, terminal)
    )
    for finding in report.findings:
        first, *others = sentences(finding)
        severity = terminal.styled(finding.severity.value, STYLES[finding.severity])
        text = hanging(f"{severity} {first}", _INDENT, terminal)
        text += "".join(hanging(f"{_INDENT}{sentence}", _INDENT * 2, terminal) for sentence in others)
        # A command is one line of any length, so that it can be copied.
        text += "".join(f"{_INDENT}$ {words.safe(command)}\n" for command in commands(finding))
        for alternative, lines in alternatives(finding):
            text += hanging(f"{_INDENT}{alternative}", _INDENT * 2, terminal)
            text += "".join(f"{_INDENT}$ {words.safe(command)}\n" for command in lines)
        parts.append(text)
    if workloads:
        # Findings have the reasons of pending pods.
        whys = [why(workload) if wide else _other_reasons(workload) for workload in workloads]
        rows = [_row(workload, with_namespace=with_namespace) for workload in workloads]
        if any(whys):
            columns.append(_WHY)
            rows = [[*row, Cell(text)] for row, text in zip(rows, whys, strict=True)]
        parts.append(terminal_table(columns, rows, terminal))
    last = [ending(report), *remarks(report)]
    parts.append("".join(hanging(sentence, _INDENT, terminal) for sentence in last))
    return "\n".join(parts)


def _row(workload: SimulatedWorkload, *, with_namespace: bool) -> list[Cell]:
    before, after, pending = str(workload.before.running), workload.after.running, workload.after.pending
    return [
        *([Cell(words.safe(workload.namespace))] if with_namespace else []),
        Cell(words.workload(workload.workload)),
        Cell(before if before == after.text else f"{before} to {after.text}", "" if after.min else "red"),
        Cell(workload.least.text, "" if workload.least.min else "yellow"),
        Cell(str(workload.lost)),
        Cell(pending.text, "red" if pending.max else ""),
        Cell(skews(workload)),
    ]
