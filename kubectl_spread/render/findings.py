"""Findings on a screen: a block for each rule and severity, a paragraph for each cause, each text once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec
from msgspec import UnsetType

from kubectl_spread.phrases import plural
from kubectl_spread.render import words
from kubectl_spread.render.terminal import Terminal, paragraph
from kubectl_spread.report.model import Finding
from kubectl_spread.report.severity import Severity

STYLES: Final = {Severity.ERROR: "bold red", Severity.WARNING: "yellow", Severity.INFO: "cyan"}
_INDENT: Final = "  "
_CAUSES: Final = 3
"""The most causes of a block that are printed in full."""
_OBJECTS: Final = 4
"""The most objects of a cause that are named."""
_COMMANDS: Final = 3
"""The most objects of a cause whose commands are printed."""


class Cause(msgspec.Struct, frozen=True):
    """Findings with the same message."""

    findings: list[Finding]

    @property
    def pods(self) -> int:
        """The number of pods of all findings."""
        return sum(finding.pod_count for finding in self.findings)


class Block(msgspec.Struct, frozen=True):
    """The causes of one rule's findings of one severity, those with the most pods first."""

    causes: list[Cause]

    @property
    def findings(self) -> list[Finding]:
        """The findings of all causes."""
        return [finding for cause in self.causes for finding in cause.findings]


def blocks(findings: Iterable[Finding]) -> list[Block]:
    """Return the findings in blocks, the worst first: by severity, then by the number of pods."""
    grouped: dict[tuple[Severity, str], dict[str, list[Finding]]] = {}
    for finding in findings:
        causes = grouped.setdefault((finding.severity, finding.code), {})
        causes.setdefault(finding.group, []).append(finding)
    unsorted = [Block(sorted(map(Cause, causes.values()), key=_size, reverse=True)) for causes in grouped.values()]
    return sorted(unsorted, key=_importance, reverse=True)


def _size(cause: Cause) -> tuple[int, int]:
    return len(cause.findings), cause.pods


def _importance(block: Block) -> tuple[Severity, int]:
    findings = block.findings
    return findings[0].severity, sum(finding.pod_count for finding in findings)


def text(block: Block, terminal: Terminal, *, namespaces: bool, wide: bool) -> str:
    """Return the text of a block.

    Args:
        block: The findings.
        terminal: Where it is printed.
        namespaces: Whether objects are written with their namespaces.
        wide: Whether all causes, objects and pods are listed.
    """
    findings = block.findings
    severity = findings[0].severity
    title = f"{severity} {findings[0].code} {findings[0].name}: {_subject(findings, namespaces=namespaces)}\n"
    shown = block.causes if wide else block.causes[:_CAUSES]
    alone = len(findings) == 1
    paragraphs = [_cause(cause, terminal, alone=alone, namespaces=namespaces, wide=wide) for cause in shown]
    if left := block.causes[len(shown) :]:
        objects = _objects([finding for cause in left for finding in cause.findings])
        paragraphs.append(f"{_INDENT}and {objects} with other values (-o wide lists all)\n")
    return terminal.styled(str(severity), STYLES[severity]) + title.removeprefix(str(severity)) + "".join(paragraphs)


def _subject(findings: Sequence[Finding], *, namespaces: bool) -> str:
    """Return the object of the only finding with the number of its pods, or the number of objects."""
    if len(findings) > 1:
        return _objects(findings)
    (finding,) = findings
    pods = f", {plural(finding.pod_count, 'pod')}" if finding.pods else ""
    return f"{_object(finding, namespaces=namespaces)}{pods}{_written(finding)}"


def _objects(findings: Sequence[Finding]) -> str:
    """Return the number of the workloads of findings, and of their namespaces."""
    workloads = plural(len({finding.ref for finding in findings}), "workload")
    namespaces = len({finding.namespace for finding in findings})
    return workloads if namespaces == 1 else f"{workloads} in {namespaces} namespaces"


def _object(finding: Finding, *, namespaces: bool) -> str:
    name = words.workload(finding.object)
    return f"{words.safe(finding.namespace)}/{name}" if namespaces else name


def _written(finding: Finding) -> str:
    """Return the position of a finding on a manifest, as compilers write it."""
    return (
        "" if isinstance(finding.source, UnsetType) else f" ({words.safe(finding.source.file)}:{finding.source.line})"
    )


def _cause(cause: Cause, terminal: Terminal, *, alone: bool, namespaces: bool, wide: bool) -> str:
    """Return the message, the objects unless there is only one in the block, the fix and the commands."""
    findings = cause.findings
    texts = [findings[0].message]
    if wide:
        texts += [_with_pods(finding, namespaces=namespaces) for finding in findings]
    elif not alone:
        texts.append(_listed(findings, namespaces=namespaces))
    fixes = dict.fromkeys(finding.fix for finding in findings)
    # Fixes differ where they name pods or owners: the first stands for the others.
    texts.append(next(iter(fixes)))
    printed = "".join(paragraph(words.safe(line), _INDENT, terminal) for line in texts)
    return printed + _commands(findings, wide=wide)


def _listed(findings: Sequence[Finding], *, namespaces: bool) -> str:
    """Return the first objects, and the number of the others."""
    names = list(dict.fromkeys(_object(finding, namespaces=namespaces) + _written(finding) for finding in findings))
    left = len(names) - _OBJECTS
    return ", ".join(names[:_OBJECTS]) + (f" and {left} more (-o wide lists all)" if left > 0 else "")


def _with_pods(finding: Finding, *, namespaces: bool) -> str:
    place = f"{_object(finding, namespaces=namespaces)}{_written(finding)} {words.short_path(finding.path)}"
    return f"{place}: {' '.join(finding.pods)}" if finding.pods else place


def _commands(findings: Sequence[Finding], *, wide: bool) -> str:
    """Return a line for each command: of all objects if these are few, else of the first one."""
    each = [finding.commands for finding in findings if not isinstance(finding.commands, UnsetType)]
    shown = each if wide or len(each) <= _COMMANDS else each[:1]
    # A command is one line of any length, so that it can be copied.
    lines = dict.fromkeys(f"{_INDENT}$ {words.safe(command)}\n" for commands in shown for command in commands)
    left = len(each) - len(shown)
    return "".join(lines) + (f"{_INDENT}… and for {left} more (-o wide lists all)\n" if left else "")
