"""Findings on a screen: a block for each rule and severity, a paragraph for each cause, each text once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum, auto
from typing import Final

import msgspec
from msgspec import UnsetType

from kubectl_spread.phrases import plural
from kubectl_spread.render import about, words
from kubectl_spread.render.terminal import Terminal, hanging, paragraph
from kubectl_spread.report.model import ClosedDomains, Finding, Severity

STYLES: Final = {Severity.ERROR: "bold red", Severity.WARNING: "yellow", Severity.INFO: "cyan"}
_INDENT: Final = "  "
_DETAIL: Final = "    "
"""The indentation of the objects and the commands of a cause."""
_PLACEMENT: Final = "SPR3"
"""The codes of findings about the places of pods begin with this."""
_CAUSES: Final = 3
"""The most causes of a block that are printed in full."""
_OBJECTS: Final = 4
"""The most objects of a cause that are named."""
_OBJECTS_OF_MANY: Final = 2
"""The most objects of a cause that are named in a long report."""
_FIXES: Final = 2
"""The most different fixes of a cause that are printed."""
_COMMANDS: Final = 3
"""The most objects of a cause whose commands are printed."""
_WIDE: Final = "(-o wide lists all)"


class Detail(Enum):
    """How much of a block is printed."""

    BRIEF = auto()
    """One cause of a block without pending pods, and the command of one object; for long reports."""
    USUAL = auto()
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
        return sum(finding.pending_pods for finding in self.findings)


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
            of_cause.sort(key=lambda finding: (finding.severity, finding.pending_pods), reverse=True)
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


def text(block: Block, terminal: Terminal, *, namespaces: bool, detail: Detail = Detail.USUAL) -> str:
    """Return the text of a block.

    Args:
        block: The findings.
        terminal: Where it is printed.
        namespaces: Whether objects are written with their namespaces.
        detail: How much is printed; causes with pending pods always are.
    """
    # Causes with pods that do not run are always printed.
    waiting = sum(cause.pending > 0 and cause.findings[0].severity is Severity.ERROR for cause in block.causes)
    is_named = len(block.findings) == 1 or (detail is Detail.BRIEF and not waiting)
    most = len(block.causes) if detail is Detail.EVERYTHING else max(1 if is_named else _CAUSES, waiting)
    paragraphs = [
        _cause(cause, terminal, named=is_named, namespaces=namespaces, detail=detail) for cause in block.causes[:most]
    ]
    if left := block.causes[most:]:
        objects = _objects([finding for cause in left for finding in cause.findings])
        paragraphs.append(f"{_INDENT}and {objects} with other values {_WIDE}\n")
    subject = _subject(block.causes[0].findings if is_named else block.findings, namespaces=namespaces, named=is_named)
    return _title(block, subject, terminal) + "".join(paragraphs)


def _title(block: Block, subject: str, terminal: Terminal) -> str:
    """Return the severity, the rule and the objects, in bold; the severity has its colour."""
    first = block.findings[0]
    severity = str(first.severity)
    title = f"{severity} {rules(block.findings)}: {subject}"
    lines = hanging(title, _INDENT, terminal).removeprefix(severity).splitlines()
    styled = "\n".join(terminal.styled(line, "bold") for line in lines)
    return f"{terminal.styled(severity, STYLES[first.severity])}{styled}\n"


def _subject(findings: Sequence[Finding], *, namespaces: bool, named: bool) -> str:
    """Return the number of objects or, if they are ``named``, the first one and the number of the others.

    The object of the only finding is named with its pods.
    """
    if not named:
        return _objects(findings)
    if len(findings) > 1:
        return _listed(findings, 1, namespaces=namespaces)
    (finding,) = findings
    return f"{_object(finding, namespaces=namespaces)}{_pods(finding)}{written(finding)}"


def _pods(finding: Finding) -> str:
    """Return the name of the only pod of a workload, or the number of the pods."""
    if not finding.pods or finding.object.kind == "Pod":
        return ""
    if finding.pod_count > 1:
        return f", {plural(finding.pod_count, 'pod')}"
    return f", pod {words.safe(finding.pods[0])}"


def _objects(findings: Sequence[Finding]) -> str:
    """Return the number of the workloads of findings, and of their namespaces."""
    workloads = plural(len({finding.ref for finding in findings}), "workload")
    namespaces = len({finding.namespace for finding in findings})
    return workloads if namespaces == 1 else f"{workloads} in {namespaces} namespaces"


def _object(finding: Finding, *, namespaces: bool) -> str:
    name = words.workload(finding.object)
    return f"{words.safe(finding.namespace)}/{name}" if namespaces else name


def written(finding: Finding) -> str:
    """Return the position of a finding on a manifest, as compilers write it."""
    return (
        "" if isinstance(finding.source, UnsetType) else f" ({words.safe(finding.source.file)}:{finding.source.line})"
    )


def _cause(cause: Cause, terminal: Terminal, *, named: bool, namespaces: bool, detail: Detail) -> str:
    """Return the message, the objects unless the title has ``named`` them, the fixes and the commands."""
    findings = cause.findings
    printed = paragraph(words.safe(about.message(findings)), _INDENT, terminal)
    if detail is Detail.EVERYTHING:
        objects = [_with_pods(finding, namespaces=namespaces) for finding in findings]
    else:
        most = _OBJECTS if detail is Detail.USUAL else _OBJECTS_OF_MANY
        hint = f" {_WIDE}" if detail is Detail.USUAL else ""
        objects = [] if named else [_listed(findings, most, namespaces=namespaces, hint=hint)]
    printed += "".join(paragraph(line, _DETAIL, terminal) for line in objects)
    return printed + _fixes(findings, terminal, namespaces=namespaces, detail=detail)


class Advice(msgspec.Struct, frozen=True):
    """A fix with its findings, the commands to print, and the number of findings whose commands are left out."""

    fix: str
    findings: list[Finding]
    commands: list[str]
    left: int


def advice(findings: Iterable[Finding], *, everything: bool = False) -> list[Advice]:
    """Return each different fix of findings, with the commands of all findings if these are few, else of the first.

    Fixes for pending pods come first. Those with something to type are always printed.
    """
    by_text: dict[str, list[Finding]] = {}
    for finding in sorted(findings, key=_urgency, reverse=True):
        by_text.setdefault(finding.fix, []).append(finding)
    ready = sum(all(_urgency(fixed[0])) for fixed in by_text.values())
    all_advice = [_advice(fix, fixed, everything=everything) for fix, fixed in by_text.items()]
    return all_advice if everything else all_advice[: max(_FIXES, ready)]


def _urgency(finding: Finding) -> tuple[bool, bool]:
    """Return whether pods of an error wait, and whether there is something to type."""
    return finding.severity is Severity.ERROR and finding.pending_pods > 0, not isinstance(finding.commands, UnsetType)


def _advice(fix: str, findings: list[Finding], *, everything: bool) -> Advice:
    each = [finding.own_commands for finding in findings if finding.own_commands]
    printed = each if everything or len(each) <= _COMMANDS else each[:1]
    commands = dict.fromkeys(command for commands in printed for command in commands)
    return Advice(fix, findings, list(commands), len(each) - len(printed))


def _fixes(findings: Sequence[Finding], terminal: Terminal, *, namespaces: bool, detail: Detail) -> str:
    """Return each different fix with its commands, and with its objects where there are several fixes."""
    domains = about.closed_domains(findings)
    if domains is not None:
        return _opening(domains, findings, terminal, namespaces=namespaces, detail=detail)
    return _each_fix("Fix", findings, terminal, namespaces=namespaces, detail=detail)


def _opening(
    domains: ClosedDomains, findings: Sequence[Finding], terminal: Terminal, *, namespaces: bool, detail: Detail
) -> str:
    """Return how to open closed domains, and what to do if they stay closed."""
    others = about.alternatives(findings)
    opening = _typed(domains.opening)
    if domains.lasting and others:
        own = _each_fix("Fix", others, terminal, namespaces=namespaces, detail=detail)
        return own + paragraph(f"{domains.condition}: {words.safe(domains.fix)}", _INDENT, terminal) + opening
    printed = paragraph(f"Fix: {words.safe(domains.fix)}", _INDENT, terminal) + opening
    if others and (detail is Detail.EVERYTHING or len(findings) == 1):
        return printed + _each_fix(domains.condition, others, terminal, namespaces=namespaces, detail=detail)
    text = f"{domains.condition}: {words.safe(about.alternative(findings))}"
    return printed + (paragraph(text, _INDENT, terminal) if others else "")


def _typed(commands: Iterable[str]) -> str:
    """Return commands, each in one line of any length, so that it can be copied."""
    return "".join(f"{_DETAIL}$ {words.safe(command)}\n" for command in commands)


def _each_fix(label: str, findings: Sequence[Finding], terminal: Terminal, *, namespaces: bool, detail: Detail) -> str:
    all_advice = advice(findings, everything=detail is Detail.EVERYTHING)
    left = len(findings) - sum(len(each.findings) for each in all_advice)
    printed = ""
    for each in all_advice:
        whose = f" for {_listed(each.findings, 1, namespaces=namespaces)}" if len(all_advice) > 1 else ""
        printed += paragraph(f"{label}{whose}: {words.safe(each.fix)}", _INDENT, terminal)
        printed += _typed(each.commands)
        printed += f"{_DETAIL}and for {each.left} more {_WIDE}\n" if each.left and detail is Detail.USUAL else ""
    return printed + (f"{_INDENT}and {left} more with other fixes {_WIDE}\n" if left else "")


def _listed(findings: Sequence[Finding], most: int, *, namespaces: bool, hint: str = "") -> str:
    """Return the first objects, and the number of the others with a hint how to list them."""
    names = list(dict.fromkeys(_object(finding, namespaces=namespaces) + written(finding) for finding in findings))
    left = len(names) - most
    return ", ".join(names[:most]) + (f" and {left} more{hint}" if left > 0 else "")


def _with_pods(finding: Finding, *, namespaces: bool) -> str:
    """Return the object and the path of a finding, with its first pods."""
    place = f"{_object(finding, namespaces=namespaces)}{written(finding)} {words.short_path(finding.path)}"
    return f"{place}: {words.names(finding.pods)}" if finding.pods else place
