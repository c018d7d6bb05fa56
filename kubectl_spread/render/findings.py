"""Findings as cards of a document: a title for each rule and severity, below it its causes, each text once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import IntEnum, auto
from typing import Final

import msgspec
from msgspec import UnsetType
from msgspec.structs import replace

from kubectl_spread.phrases import named, plural
from kubectl_spread.render import about, document, words
from kubectl_spread.render.document import Card, Instruction
from kubectl_spread.report.model import Finding, Severity

_PLACEMENT: Final = "SPR3"
"""The codes of findings about the places of pods begin with this."""
_CAUSES: Final = 3
"""The most causes of a block that are printed in full."""
_FIXES: Final = 2
"""The most different fixes of a cause that are printed."""
_COMMANDS: Final = 3
"""The most objects of a cause whose commands are printed."""
_LONG: Final = 160
"""Patches with more characters than this are left to ``explain`` in long reports, unless pods wait for them."""
_WIDE: Final = " (-o wide lists all)"
_JSON: Final = " (-o json lists all)"
"""The hint of formats without a screen."""


class Detail(IntEnum):
    """How much of a block is printed."""

    TITLE = auto()
    """The title alone, unless pods do not run; for the end of long reports."""
    BRIEF = auto()
    """One cause of a block without pending pods, and the command of one object; for long reports."""
    USUAL = auto()
    CAUSES = auto()
    """All causes, for formats without a screen."""
    EVERYTHING = auto()


class Cause(msgspec.Struct, frozen=True):
    """Findings with the same message, or whose pods wait for the same closed domains; the worst first."""

    findings: list[Finding]

    @property
    def pods(self) -> int:
        """The number of pods of all findings."""
        return sum(finding.pod_count for finding in self.findings)

    @property
    def pending(self) -> int:
        """The number of pending pods of all findings."""
        return sum(finding.pending or 0 for finding in self.findings)


class Block(msgspec.Struct, frozen=True):
    """The causes of one rule's findings of one severity, those with the most pending pods first.

    Findings whose pods wait for the same closed domains are a block, too.
    """

    causes: list[Cause]

    @property
    def findings(self) -> list[Finding]:
        """The findings of all causes."""
        return [finding for cause in self.causes for finding in cause.findings]


def rules(findings: Iterable[Finding]) -> str:
    """Return the codes of the rules of findings with their names."""
    return ", ".join(dict.fromkeys(f"{finding.code} {finding.name}" for finding in findings))


def blocks(findings: Iterable[Finding]) -> list[Block]:
    """Return the findings in blocks, the worst first: by severity, pending pods, placement, and the number of pods."""
    grouped: dict[tuple[str, ...], dict[str, list[Finding]]] = {}
    for finding in findings:
        is_closed = not isinstance(finding.closed, UnsetType)
        key = (finding.group,) if is_closed else (str(finding.severity), finding.code)
        causes = grouped.setdefault(key, {})
        causes.setdefault(finding.group, []).append(finding)
    for causes in grouped.values():
        for of_cause in causes.values():
            of_cause.sort(key=lambda finding: (finding.severity, finding.pending or 0), reverse=True)
    unsorted = [Block(sorted(map(Cause, causes.values()), key=_size, reverse=True)) for causes in grouped.values()]
    return sorted(unsorted, key=_importance, reverse=True)


def _size(cause: Cause) -> tuple[int, int, int]:
    return cause.pending, len(cause.findings), cause.pods


def _importance(block: Block) -> tuple[Severity, int, bool, int]:
    """Return the severity and the pending pods; then pods that are unevenly placed come before others.

    Pods that do not run make an error, so that an error comes first even if a warning has more pending pods.
    """
    finding, pods = block.findings[0], sum(cause.pods for cause in block.causes)
    pending = sum(cause.pending for cause in block.causes) if finding.severity > Severity.INFO else 0
    return finding.severity, pending, finding.code.startswith(_PLACEMENT), pods


def cards(block: Block, *, namespaces: bool, detail: Detail = Detail.USUAL) -> list[Card]:
    """Return the causes of a block.

    Args:
        block: The findings.
        namespaces: Whether objects are written with their namespaces.
        detail: How much is printed; causes with pods that do not run always are.
    """
    waiting = sum(cause.pending > 0 and cause.findings[0].severity is Severity.ERROR for cause in block.causes)
    is_named = len(block.findings) == 1 or (detail <= Detail.BRIEF and not waiting)
    most = len(block.causes) if detail >= Detail.CAUSES else max(1 if is_named else _CAUSES, waiting)
    subject = _subject(block.causes[0].findings if is_named else block.findings, namespaces=namespaces, named=is_named)
    severity, title = block.findings[0].severity, f"{rules(block.findings)}: {subject}"
    if detail is Detail.TITLE and not waiting:
        return [Card("", severity, title=title)]
    causes, left = block.causes[:most], block.causes[most:]
    first, *others = [_card(cause, named=is_named, namespaces=namespaces, detail=detail) for cause in causes]
    if left:
        objects = _objects([finding for cause in left for finding in cause.findings])
        others.append(Card(f"and {objects} with other values{_WIDE}"))
    return [replace(first, severity=severity, title=title), *others]


def _subject(findings: Sequence[Finding], *, namespaces: bool, named: bool) -> str:
    """Return the number of objects or, if they are ``named``, the first one and the number of the others.

    The object of the only finding is named with its pods.
    """
    if not named:
        return _objects(findings)
    if len(findings) > 1:
        return _listed(findings, namespaces=namespaces)
    (finding,) = findings
    return f"{_object(finding, namespaces=namespaces)}{_pods(finding)}{written(finding)}"


def _pods(finding: Finding) -> str:
    """Return the name of the only pod of a workload, or the number of the pods."""
    if not finding.pods or finding.object.kind == "Pod":
        return ""
    if finding.pod_count > 1:
        return f", {plural(finding.pod_count, 'pod')}"
    return f", pod {finding.pods[0]}"


def _objects(findings: Sequence[Finding]) -> str:
    """Return the number of the workloads of findings, and of their namespaces."""
    workloads = plural(len({finding.ref for finding in findings}), "workload")
    namespaces = len({finding.namespace for finding in findings})
    return workloads if namespaces == 1 else f"{workloads} in {namespaces} namespaces"


def _object(finding: Finding, *, namespaces: bool) -> str:
    name = named(finding.object.kind, finding.object.name)
    return f"{finding.namespace}/{name}" if namespaces else name


def written(finding: Finding) -> str:
    """Return the position of a finding on a manifest, as compilers write it."""
    return f" ({finding.source.file}:{finding.source.line})" if finding.source else ""


def _card(cause: Cause, *, named: bool, namespaces: bool, detail: Detail) -> Card:
    """Return a cause with its objects, unless the title has ``named`` them, and what to do."""
    findings = cause.findings
    objects = [] if named else _places(findings, namespaces=namespaces)
    if detail is Detail.EVERYTHING:
        objects = [_with_pods(finding, namespaces=namespaces) for finding in findings]
    elif detail is Detail.CAUSES:
        objects = [*dict.fromkeys(_with_path(each, namespaces=namespaces, named=named) for each in findings)]
    advised = instructions(findings, namespaces=namespaces, detail=detail)
    return Card(about.message(findings), objects=objects, instructions=[*advised])


def instructions(findings: Sequence[Finding], *, namespaces: bool, detail: Detail) -> Iterator[Instruction]:
    """Yield the fixes of a cause; if its pods wait for closed domains, also how to open these."""
    domains = about.closed_domains(findings)
    others = [finding for finding in findings if finding.has_alternative]
    if domains is None:
        yield from _fixes("Fix", findings, namespaces=namespaces, detail=detail)
    elif domains.lasting and others:
        yield from _fixes("Fix", others, namespaces=namespaces, detail=detail)
        yield Instruction(f"{domains.condition}: {domains.fix}", domains.commands or ())
    else:
        yield Instruction(f"Fix: {domains.fix}", domains.commands or ())
        if others and (detail is Detail.EVERYTHING or len(findings) == 1):
            yield from _fixes(domains.condition, others, namespaces=namespaces, detail=detail)
        elif others:
            yield Instruction(f"{domains.condition}: {about.alternative(findings, others)}")


def _fixes(label: str, findings: Sequence[Finding], *, namespaces: bool, detail: Detail) -> Iterator[Instruction]:
    """Yield each different fix, with its objects where there are several fixes.

    Fixes for pending pods come first. Those with something to type are always printed.
    """
    by_text: dict[str, list[Finding]] = {}
    for finding in sorted(findings, key=_urgency, reverse=True):
        by_text.setdefault(finding.fix, []).append(finding)
    ready = sum(all(_urgency(fixed[0])) for fixed in by_text.values())
    most = len(by_text) if detail is Detail.EVERYTHING else max(_FIXES, ready)
    hint = _WIDE if detail <= Detail.USUAL else _JSON
    for fix, fixed in list(by_text.items())[:most]:
        whose = f" for {_listed(fixed, namespaces=namespaces)}" if len(by_text) > 1 else ""
        printed, left = _printed(fixed, detail)
        commands = [*dict.fromkeys(command for finding in printed for command in finding.own_commands)]
        is_waiting, _ = _urgency(fixed[0])
        if detail is Detail.BRIEF and not is_waiting and any(len(command) > _LONG for command in commands):
            yield Instruction(f"{label}{whose}: {fix} {about.EXPLAIN}.")
        else:
            yield Instruction(f"{label}{whose}: {fix}", commands)
        for finding in printed:
            yield from document.written(finding.lines)
        if left and detail is not Detail.BRIEF:
            yield Instruction(f"and for {left} more{hint}")
    if left := sum(map(len, list(by_text.values())[most:])):
        yield Instruction(f"and {left} more with other fixes{hint}")


def _urgency(finding: Finding) -> tuple[bool, bool]:
    """Return whether pods of an error wait, and whether there is something to type."""
    return finding.severity is Severity.ERROR and bool(finding.pending), not isinstance(finding.commands, UnsetType)


def _printed(findings: Sequence[Finding], detail: Detail) -> tuple[list[Finding], int]:
    """Return all findings with commands or lines if these are few, else the first, and the number of the others."""
    each = [finding for finding in findings if finding.own_commands or finding.lines]
    printed = each if detail is Detail.EVERYTHING or len(each) <= _COMMANDS else each[:1]
    return printed, len(each) - len(printed)


def _listed(findings: Sequence[Finding], *, namespaces: bool) -> str:
    """Return the first object, and the number of the others."""
    first, *others = _places(findings, namespaces=namespaces)
    return first + (f" and {len(others)} more" if others else "")


def _places(findings: Sequence[Finding], *, namespaces: bool) -> list[str]:
    """Return the objects of findings, with their positions on manifests."""
    return list(dict.fromkeys(_object(finding, namespaces=namespaces) + written(finding) for finding in findings))


def _with_pods(finding: Finding, *, namespaces: bool) -> str:
    """Return the object and the path of a finding, with its first pods."""
    place = _with_path(finding, namespaces=namespaces, named=False)
    return f"{place}: {words.names(finding.pods)}" if finding.pods else place


def _with_path(finding: Finding, *, namespaces: bool, named: bool) -> str:
    """Return the object and the path of a finding; only the path if the object is ``named`` above."""
    path = words.short_path(finding.path)
    return path if named else f"{_object(finding, namespaces=namespaces)}{written(finding)} {path}".rstrip()
