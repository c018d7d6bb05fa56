"""What formats for CI systems say about findings, and the annotations of GitHub."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Final

import msgspec
from msgspec import UnsetType

from kubectl_spread.render import about, figures
from kubectl_spread.render.findings import Detail, instructions
from kubectl_spread.render.words import safe
from kubectl_spread.report.model import Finding, Report, Severity, Unchecked, severest_first

_COMMANDS: Final = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}
_DATA: Final = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A"})
_PROPERTY: Final = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A", ":": "%3A", ",": "%2C"})

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


def github(report: Report) -> str:
    """Return a report as workflow commands of GitHub Actions, one per line; "" if there is nothing to annotate.

    These are annotations on the lines of manifests. GitHub shows only the first ten of each kind in a step, so the most
    severe come first.
    """
    cluster = about.label(report.cluster)
    where = f" in {cluster}" if cluster else ""
    title = {"title": f"kubectl-spread{where}"}
    commands = [_command("error", title, *lines) for lines in unanswered(report).values()]
    commands += [_command("warning", title, text) for text in report.cluster.warnings or ()]
    for finding in severest_first(report.findings):
        lines = (finding.message, finding.path, *advice(finding))
        commands.append(_command(_COMMANDS[finding.severity], dict(_properties(finding, where)), *lines))
    return "".join(commands)


def _properties(finding: Finding, where: str) -> Iterator[tuple[str, str]]:
    if source := finding.source:
        yield "file", source.file
        yield "line", str(source.line)
        if source.column:
            yield "col", str(source.column)
    yield "title", f"{rule(finding)} {place(finding)}{where}"


def _command(name: str, properties: Mapping[str, str], *lines: str) -> str:
    assignments = ",".join(f"{key}={safe(value).translate(_PROPERTY)}" for key, value in properties.items())
    data = "\n".join(map(safe, lines)).translate(_DATA)
    return f"::{name} {assignments}::{data}\n"
