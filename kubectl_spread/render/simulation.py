"""The document of ``simulate``: what is left at once and after, why, and the workloads that are affected."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import UnsetType
from msgspec.structs import replace

from kubectl_spread.kube.api.labels import ZONE
from kubectl_spread.phrases import capitalized, domains, named, plural, some, value
from kubectl_spread.render import about, words
from kubectl_spread.render.document import Card, Document, Instruction, Table, bar
from kubectl_spread.render.terminal import Cell, Column
from kubectl_spread.report.model import CommandLine, Severity, Workload
from kubectl_spread.report.recommendation import WORKLOADS
from kubectl_spread.report.simulation import (
    AffectedWorkload,
    Range,
    SimulatedWorkload,
    SimulationFinding,
    SpreadSimulation,
)

_COLUMNS: Final = (
    Column("Workload", fit="middle", least=16),
    Column("Running", "right", short="Run"),
    Column("At once", "right", short="Once"),
    Column("Lost", "right"),
    Column("Pending", "right", short="Pend"),
    Column("Skew after", fit="end", short="Skew"),
)
_WHY: Final = Column("Why", fit="wrap", least=24)
_ROWS: Final = 12
"""With more rows than this, the screen has the first ones."""
_FIRST: Final = 5
"""The number of these."""
_COMMANDS: Final = 3
"""The most commands of a fix that are printed without ``-o wide``."""


def document(report: SpreadSimulation, inputs: Sequence[str] | None = None, *, wide: bool = False) -> Document:
    """Return a report as a document.

    Args:
        report: The report.
        inputs: The flags of commands that read the same cluster or files; None where these cannot be read again.
        wide: Whether it has rows of all workloads, and pods that waited before.
    """
    cards = _cards(report, inputs, wide=wide)
    return Document(
        command="simulate",
        title="Simulation",
        cluster=about.label(report.cluster),
        header=[
            *about.identified(report.cluster),
            *report.events,
            *about.autoscaling(report.summary.not_simulated),
        ],
        facts=[("AT ONCE", _at_once(report))],
        label="AFTER",
        headline=conclusion(report),
        cards=cards,
        picture=_picture(report),
        tables=[_table(report, wide=wide)],
        notes=[*_ending(report, len(report.findings) - len(cards))],
    )


def _several_namespaces(report: SpreadSimulation) -> bool:
    """Tell whether the workloads are in more than one namespace."""
    return isinstance(report.cluster.namespace, UnsetType) and (
        len({workload.namespace for workload in report.workloads}) > 1
    )


def _is_worse(workload: SimulatedWorkload) -> bool:
    """Tell whether a workload has less than before at some moment that matters, or pods that wait."""
    before, after = workload.before, workload.after
    stops = workload.least.min == 0 < before.ready
    return bool(stops or after.pending.max or after.running.min < before.running)


def _moves(workload: SimulatedWorkload) -> bool:
    """Tell whether pods of a workload come, go or move."""
    before, after = workload.before, workload.after
    unchanged = after.running == Range(min=before.running, max=before.running)
    moved = any(domain.pods != Range(min=domain.before, max=domain.before) for domain in workload.domains)
    return bool(workload.lost or moved or not unchanged or workload.least.min < before.ready)


def _has_row(workload: SimulatedWorkload, report: SpreadSimulation) -> bool:
    """Tell whether a workload is worse off, or named by an event."""
    name = named(workload.workload.kind, workload.workload.name)
    events = (event.replace(",", " ").replace(":", " ").split() for event in report.events)
    return _is_worse(workload) or any(name in parts for parts in events)


def _name(namespace: str, workload: Workload, *, several: bool) -> str:
    name = named(workload.kind, workload.name)
    return f"{namespace}/{name}" if several else name


def _cards(report: SpreadSimulation, inputs: Sequence[str] | None, *, wide: bool) -> list[Card]:
    """Return the findings, the worst first; without ``wide`` not those on pods that waited before, if there are others.

    Where no fix has commands, the worst one has the command that finds what to write.
    """
    several = _several_namespaces(report)
    after = {(each.namespace, each.workload): each for each in report.workloads}
    worst = report.findings[0].severity if report.findings else Severity.INFO
    findings = [each for each in report.findings if wide or worst is Severity.INFO or not _waited_before(each)]
    cards = [
        Card(
            sentence=finding.message,
            severity=finding.severity,
            objects=_objects(finding, after, several=several),
            instructions=[*_instructions(finding, wide=wide)],
        )
        for finding in findings
    ]
    if inputs is None or any(each.commands for card in cards for each in card.instructions):
        return cards
    if worst is not Severity.ERROR:
        return cards
    first, *others = cards
    return [replace(first, instructions=[*first.instructions, *_ask(report.findings[0], inputs)]), *others]


def _waited_before(finding: SimulationFinding) -> bool:
    """Tell whether a finding is only about pods that the events do not concern."""
    return finding.severity is Severity.INFO and any(each.pending.max for each in finding.workloads)


def _ask(finding: SimulationFinding, inputs: Sequence[str]) -> Iterator[Instruction]:
    """Yield the command that finds what to write in the first workload of a finding for which there is an answer."""
    chosen = [each for each in sorted(finding.workloads, key=_badness) if each.workload.kind in WORKLOADS]
    for affected in chosen[:1]:
        name = named(affected.workload.kind, affected.workload.name)
        command = CommandLine(["kubectl", "spread", "recommend", name, "-n", affected.namespace, *inputs])
        yield Instruction("Ask what to write, one workload at a time:", [str(command)])


def _badness(affected: AffectedWorkload) -> tuple[int, int, str, str]:
    return -affected.new.max, -affected.pending.max, affected.namespace, affected.workload.name


def _objects(
    finding: SimulationFinding, after: dict[tuple[str, Workload], SimulatedWorkload], *, several: bool
) -> list[str]:
    """Return the workloads of a finding with their pending pods, unless its message has all that there is to say."""
    if len(finding.workloads) == 1 and not several:
        return []
    return [
        _name(each.namespace, each.workload, several=several) + _share(each, after.get((each.namespace, each.workload)))
        for each in sorted(finding.workloads, key=_badness)
    ]


def _share(affected: AffectedWorkload, workload: SimulatedWorkload | None) -> str:
    """Return how many pods wait, and of how many where that is certain: `` (2 of 6)``."""
    if not affected.pending.max:
        return ""
    after = None if workload is None else workload.after
    if after is None or after.running.min != after.running.max or after.pending.min != after.pending.max:
        return f" ({affected.pending.text})"
    return f" ({affected.pending.text} of {after.running.min + after.pending.min})"


def _instructions(finding: SimulationFinding, *, wide: bool) -> Iterator[Instruction]:
    """Yield the fixes of a finding."""
    if isinstance(finding.fix, str):
        commands = [] if isinstance(finding.commands, UnsetType) else finding.commands
        yield _instruction(f"Fix, tried in the simulation: {finding.fix}", commands, wide=wide)
    for each in [] if isinstance(finding.alternatives, UnsetType) else finding.alternatives:
        yield _instruction(f"Or, tried as well: {each.fix}", each.commands, wide=wide)


def _instruction(text: str, commands: Sequence[str], *, wide: bool) -> Instruction:
    """Return a fix; of many commands only the number, if not ``wide``."""
    if wide or len(commands) <= _COMMANDS:
        return Instruction(f"{text}.", commands)
    return Instruction(f"{text} ({len(commands)} commands: -o wide; -o script runs patches a few at a time).")


def _table(report: SpreadSimulation, *, wide: bool) -> Table:
    """Return the workloads that are affected, or all, those with the most pending pods first."""
    several = _several_namespaces(report)
    chosen = [each for each in report.workloads if wide or _has_row(each, report)]
    chosen.sort(key=lambda each: (-each.after.new.max, -each.after.pending.max, -each.lost))
    # The causes say why pods wait.
    whys = ["; ".join(reason.text for reason in each.reasons if not reason.pods.max) for each in chosen]
    rows = [
        [*_cells(each, several=several), *([Cell(why)] if any(whys) else [])]
        for each, why in zip(chosen, whys, strict=True)
    ]
    columns = [*_COLUMNS, *([_WHY] if any(whys) else [])]
    return Table("Workloads", columns, rows, first=0 if len(chosen) <= _ROWS else _FIRST)


def _cells(workload: SimulatedWorkload, *, several: bool) -> Sequence[Cell]:
    before, after = str(workload.before.running), workload.after
    skews = ", ".join(f"{words.short_key(each.topology_key)} {each.skew.text}" for each in workload.skews)
    return [
        Cell(_name(workload.namespace, workload.workload, several=several)),
        Cell(before if before == after.running.text else f"{before} to {after.running.text}", _red(after.running.min)),
        Cell(workload.least.text, "" if workload.least.min else "yellow"),
        Cell(str(workload.lost)),
        Cell(after.pending.text, "red" if after.pending.max else ""),
        Cell(skews or "-"),
    ]


def _red(number: int) -> str:
    return "" if number else "red"


def _at_once(report: SpreadSimulation) -> str:
    """Return the sentence about the workloads without a ready pod at some moment."""
    keeping = [each for each in report.workloads if each.before.ready and each.after.running.min]
    if not keeping:
        return "No workload keeps a ready pod."
    interrupted = [each for each in keeping if not each.least.min]
    if not interrupted:
        return "Every workload that keeps pods has a ready one throughout."
    verb = "has" if len(interrupted) == 1 else "have"
    return f"{plural(len(interrupted), 'workload')} {verb} no ready pod for a time."


def conclusion(report: SpreadSimulation) -> str:
    """Return what is left at the end, in a sentence or two."""
    summary = report.summary
    refused = summary.refused
    left = f" The drain would leave {refused.of('pod')}." if refused.max else ""
    end = f".{left}"
    parts = [*_worse(report)]
    if parts:
        return f"{', '.join(parts)}{end}{_with_new_nodes(report)}"
    workloads = plural(summary.workloads, "workload")
    if summary.unknown:
        return f"Whether all pods of {workloads} would run is not known{end}"
    return f"All pods of {workloads} would run{end}"


def _with_new_nodes(report: SpreadSimulation) -> str:
    """Return the nodes that autoscalers could make for the pods that wait, and how many wait in spite of these."""
    grown = report.with_new_nodes
    if isinstance(grown, UnsetType):
        return ""
    left, missed = grown.pending, grown.missed
    limits = []
    if missed:
        limits.append(
            f"None is made in {domains(ZONE, missed)}, which {'does' if len(missed) == 1 else 'do'} not answer."
        )
    if grown.unsized:
        verb = "has" if len(grown.unsized) == 1 else "have"
        limits.append(f"{capitalized(some(grown.unsized))} {verb} no node whose size they could have.")
    if not grown.total.max:
        return " ".join(["", "No new node is made for them.", *limits])
    of_makers: dict[str, list[str]] = {}
    for each in grown.nodes:
        zone = f" in {domains(ZONE, [each.zone])}" if each.zone else ""
        of_makers.setdefault(each.maker, []).append(f"{each.nodes.words}{zone}")
    places = "; ".join(f"{maker}: {', '.join(numbers)}" for maker, numbers in of_makers.items())
    wait = f"{left.of('pod')} would still wait" if left.max else "no pod would wait"
    nodes = grown.total.of("new node")
    return " ".join(["", f"If {nodes} can be had ({places}), {wait}.", *(limits if left.max else [])])


def _worse(report: SpreadSimulation) -> Iterator[str]:
    """Yield the pods that would wait, how many of them are new, and what else does not run."""
    summary = report.summary
    if summary.pending.max:
        before = summary.pending.max - summary.new.max
        split = f" ({summary.new.words} new, {before} waited before)" if before else ""
        if not summary.new.max:
            split = " as before"
        workloads = plural(sum(each.after.pending.max > 0 for each in report.workloads), "workload")
        yield f"{summary.pending.of('pod')} of {workloads} would wait{split}"
    if lost := summary.not_replaced.max:
        yield f"{summary.not_replaced.of('pod')} {'is' if lost == 1 else 'are'} not replaced"
    if summary.stopped.max:
        yield f"{summary.stopped.of('workload')} would have no running pod"


def _ending(report: SpreadSimulation, notes_left: int) -> Iterator[str]:
    """Yield the workloads and findings that are not shown, the runs, and what the simulation leaves out.

    One run does not show what is random.
    """
    moved = [each for each in report.workloads if _moves(each) and not _has_row(each, report)]
    sentences = []
    if moved:
        verb, pronoun = ("has", "it") if len(moved) == 1 else ("have", "they")
        which = "other workload" if any(_has_row(each, report) for each in report.workloads) else "workload"
        sentences.append(f"Pods of {plural(len(moved), which)} move, and {pronoun} {verb} all of them again.")
    if notes_left:
        sentences.append(
            f"{plural(notes_left, 'note')} on pods that waited before {'is' if notes_left == 1 else 'are'} not shown."
        )
    number = plural(report.runs, "simulated run")
    sentences.append(f"{number}; others may end differently." if report.runs == 1 else f"{number}.")
    yield " ".join(sentences)
    yield from about.not_simulated(report.summary.not_simulated)


def _picture(report: SpreadSimulation) -> Table | None:
    """Return the running pods of each zone before and after the events."""
    rows: dict[str, tuple[int, int, int]] = {}
    for workload in report.workloads:
        for domain in workload.domains:
            if domain.topology_key == ZONE:
                before, least, most = rows.get(domain.value, (0, 0, 0))
                rows[domain.value] = (before + domain.before, least + domain.pods.min, most + domain.pods.max)
    largest = max((max(before, most) for before, _, most in rows.values()), default=0)
    zones = [
        [Cell(value(name)), bar(before, largest), bar(most, largest, Range(min=least, max=most).text)]
        for name, (before, least, most) in sorted(rows.items())
    ]
    columns = [*map(Column, ("Zone", "Pods before", "Pods after"))]
    return Table("Running pods by zone", columns, zones) if zones else None
