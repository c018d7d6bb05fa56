"""Workflow commands of GitHub Actions: annotations on the lines of manifests.

GitHub shows only the first ten of each kind in a step, so the most severe come first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from kubectl_spread.render import about, ci
from kubectl_spread.render.words import safe
from kubectl_spread.report.model import Finding, Report, Severity, severest_first

_COMMANDS: Final = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}
_DATA: Final = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A"})
_PROPERTY: Final = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A", ":": "%3A", ",": "%2C"})


def github(report: Report) -> str:
    """Return a report as workflow commands, one per line; "" if there is nothing to annotate."""
    cluster = about.label(report.cluster)
    where = f" in {cluster}" if cluster else ""
    title = {"title": f"kubectl-spread{where}"}
    commands = [_command("error", title, *lines) for lines in ci.unanswered(report).values()]
    commands += [_command("warning", title, text) for text in report.cluster.warnings or ()]
    for finding in severest_first(report.findings):
        lines = (finding.message, finding.path, *ci.advice(finding))
        commands.append(_command(_COMMANDS[finding.severity], dict(_properties(finding, where)), *lines))
    return "".join(commands)


def _properties(finding: Finding, where: str) -> Iterator[tuple[str, str]]:
    if source := finding.source:
        yield "file", source.file
        yield "line", str(source.line)
        if source.column:
            yield "col", str(source.column)
    yield "title", f"{ci.rule(finding)} {ci.place(finding)}{where}"


def _command(name: str, properties: Mapping[str, str], *lines: str) -> str:
    assignments = ",".join(f"{key}={safe(value).translate(_PROPERTY)}" for key, value in properties.items())
    data = "\n".join(map(safe, lines)).translate(_DATA)
    return f"::{name} {assignments}::{data}\n"
