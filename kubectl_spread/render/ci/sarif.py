"""SARIF 2.1.0, for GitHub code scanning and for editors."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from hashlib import sha256
from typing import Final
from urllib.parse import quote

from msgspec import UNSET, UnsetType

from kubectl_spread import __version__
from kubectl_spread.phrases import plural
from kubectl_spread.render import about, structured, words
from kubectl_spread.render.ci import common
from kubectl_spread.render.ci import sarif_log as log
from kubectl_spread.render.words import safe
from kubectl_spread.report.model import Cluster, Finding, Report, severest_first
from kubectl_spread.report.severity import Severity
from kubectl_spread.rules import RULES
from kubectl_spread.rules.model import Rule

MOST_RESULTS: Final = 25_000
"""The most results that GitHub accepts in a log."""
_FINGERPRINT: Final = "finding/v1"
_LEVELS: Final[dict[Severity, log.Level]] = {
    Severity.ERROR: "error",
    Severity.WARNING: "warning",
    Severity.INFO: "note",
}
_PROBLEMS: Final = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "recommendation"}
"""The severities of GitHub for rules that are not about security."""
_INDEX: Final = {rule.code: index for index, rule in enumerate(RULES)}
_BRACES: Final = str.maketrans({"{": "{{", "}": "}}"})
_DRIVE: Final = re.compile(r"[A-Za-z]:/")


def sarif(report: Report) -> str:
    """Return a report as a SARIF log, with the most severe findings if GitHub does not accept all."""
    findings = report.findings
    left_out = len(findings) - MOST_RESULTS
    if left_out > 0:
        findings = severest_first(findings)[:MOST_RESULTS]
    lost = common.unanswered(report)
    notifications = [
        _notification("error", f"could not be checked: {number} {reason}") for reason, number in lost.items()
    ]
    notifications += [_notification("warning", text) for text in words.warnings(report.cluster)]
    if left_out > 0:
        notifications.append(
            _notification("warning", f"{plural(left_out, 'finding')} left out: no log may have more results")
        )
    driver = log.Driver(
        name="kubectl-spread", version=__version__, information_uri=common.HOME, rules=[_rule(rule) for rule in RULES]
    )
    run = log.Run(
        tool=log.Tool(driver=driver),
        automation_details=_automation(report.cluster),
        invocations=[log.Invocation(execution_successful=not lost, tool_execution_notifications=notifications)],
        results=list(_results(findings)),
        properties={"cluster": about.identity(report.cluster)},
    )
    return structured.json(log.Log(runs=[run]))


def _automation(cluster: Cluster) -> log.AutomationDetails | UnsetType:
    """Return the category by which GitHub separates runs on several clusters; UNSET without a name of the cluster."""
    name = about.label(cluster)
    time = "" if isinstance(cluster.read_at, UnsetType) else safe(cluster.read_at)
    return log.AutomationDetails(id=f"kubectl-spread/{name}/{time}") if name else UNSET


def _rule(rule: Rule) -> log.Descriptor:
    address = f"{common.HOME}/blob/v{__version__}/docs/rules.md#{rule.code.lower()}"
    markdown = f"{rule.why}\n\n**Fix:** {rule.general_fix}\n\n[{rule.code}]({address}), [source]({rule.source})"
    return log.Descriptor(
        id=rule.code,
        name=rule.name,
        short_description=_message(rule.summary),
        full_description=_message(rule.why),
        help=log.SarifMessage(
            text=_text(rule.why, f"Fix: {rule.general_fix}", f"Source: {rule.source}"),
            markdown=markdown.translate(_BRACES),
        ),
        help_uri=address,
        default_configuration=log.Configuration(level=_LEVELS[rule.severity]),
        properties={"problem.severity": _PROBLEMS[rule.severity], "tags": ["kubernetes", "topology-spread"]},
    )


def _results(findings: list[Finding]) -> Iterator[log.Result]:
    """Yield the results; findings that differ only in their order have numbered fingerprints."""
    seen: Counter[str] = Counter()
    for finding in findings:
        fingerprint = _fingerprint(finding)
        seen[fingerprint] += 1
        yield _result(finding, f"{fingerprint}:{seen[fingerprint]}")


def _result(finding: Finding, fingerprint: str) -> log.Result:
    name = safe(finding.path)
    logical = log.LogicalLocation(name=name, fully_qualified_name=f"{common.place(finding)}/{name}", kind="object")
    return log.Result(
        rule_id=finding.code,
        rule_index=_INDEX[finding.code],
        level=_LEVELS[finding.severity],
        message=_message(f"{common.place(finding)}: {finding.message}", f"Fix: {finding.fix}"),
        locations=[log.Location(physical_location=_physical(finding), logical_locations=[logical])],
        partial_fingerprints={_FINGERPRINT: fingerprint},
        properties={"podCount": finding.pod_count, "values": finding.values},
    )


def _physical(finding: Finding) -> log.PhysicalLocation | UnsetType:
    source = common.in_file(finding)
    if source is None:
        return UNSET
    return log.PhysicalLocation(
        artifact_location=log.ArtifactLocation(uri=_uri(source.file)),
        region=log.Region(start_line=source.line, start_column=source.column),
    )


def _uri(file: str) -> str:
    """Return the URI of a file, relative if the path is."""
    if _DRIVE.match(file):
        return f"file:///{file[:2]}{quote(file[2:])}"
    if file.startswith("//"):
        return f"file:{quote(file)}"
    return f"file://{quote(file)}" if file.startswith("/") else quote(file)


def _fingerprint(finding: Finding) -> str:
    """Return a digest of the rule, the object and the path, which stays the same when lines move."""
    identity = (finding.code, finding.namespace, finding.object.kind, finding.object.name, finding.path)
    return sha256("\0".join(identity).encode()).hexdigest()


def _notification(level: log.Level, text: str) -> log.Notification:
    return log.Notification(level=level, message=_message(text))


def _message(*lines: str) -> log.SarifMessage:
    return log.SarifMessage(text=_text(*lines))


def _text(*lines: str) -> str:
    """Return lines as text without placeholders and links."""
    return "\n".join(map(safe, lines)).translate(_BRACES).replace("](", "] (")
