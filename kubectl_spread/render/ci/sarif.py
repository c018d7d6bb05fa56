"""SARIF 2.1.0, for GitHub code scanning and for editors.

Source: https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/sarif-v2.1.0-errata01-os-complete.html
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from hashlib import sha256
from typing import Any, Final, TypeAlias
from urllib.parse import quote

from msgspec import UnsetType

from kubectl_spread import __version__
from kubectl_spread.phrases import plural
from kubectl_spread.render import about, ci, structured
from kubectl_spread.render.words import safe
from kubectl_spread.report.model import Cluster, Finding, Report, Severity, severest_first
from kubectl_spread.rules import RULES
from kubectl_spread.rules.model import Rule

MOST_RESULTS: Final = 25_000
"""The most results that GitHub accepts in a log."""
_SCHEMA: Final = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_FINGERPRINT: Final = "finding/v1"
_LEVELS: Final = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}
_PROBLEMS: Final = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "recommendation"}
"""The severities of GitHub for rules that are not about security."""
_INDEX: Final = {rule.code: index for index, rule in enumerate(RULES)}
_BRACES: Final = str.maketrans({"{": "{{", "}": "}}"})
_DRIVE: Final = re.compile(r"[A-Za-z]:/")
_Object: TypeAlias = dict[str, Any]
"""An object of the specification; tests validate logs against its schema."""


def sarif(report: Report) -> str:
    """Return a report as a SARIF log, with the most severe findings if GitHub does not accept all."""
    findings = report.findings
    excess = len(findings) - MOST_RESULTS
    if excess > 0:
        findings = severest_first(findings)[:MOST_RESULTS]
    unanswered = ci.unanswered(report)
    notifications = [_notification("error", *lines) for lines in unanswered.values()]
    notifications += [_notification("warning", text) for text in report.cluster.warnings or ()]
    if excess > 0:
        text = f"{plural(excess, 'finding')} left out: no log may have more results"
        notifications.append(_notification("warning", text))
    driver = {
        "name": "kubectl-spread",
        "version": __version__,
        "informationUri": ci.HOME,
        "rules": [_rule(rule) for rule in RULES],
    }
    run = {
        "tool": {"driver": driver},
        **_automation(report.cluster),
        "invocations": [{"executionSuccessful": not unanswered, "toolExecutionNotifications": notifications}],
        "columnKind": "unicodeCodePoints",
        "results": list(_results(findings)),
        "properties": {"cluster": {key: safe(text) for key, text in sorted(about.identity(report.cluster).items())}},
    }
    return structured.json({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]})


def _automation(cluster: Cluster) -> _Object:
    """Return the category by which GitHub separates runs on several clusters, if the cluster has a name.

    The category is the ``id`` up to its last slash.
    """
    name = safe(about.label(cluster))
    time = "" if isinstance(cluster.read_at, UnsetType) else safe(cluster.read_at)
    return {"automationDetails": {"id": f"kubectl-spread/{name}/{time}"}} if name else {}


def _rule(rule: Rule) -> _Object:
    address = f"{ci.HOME}/blob/v{__version__}/docs/rules.md#{rule.code.lower()}"
    why, source = rule.documentation.why, rule.documentation.source
    markdown = f"{why}\n\n**Fix:** {rule.general_fix}\n\n[{rule.code}]({address}), [source]({source})"
    return {
        "id": rule.code,
        "name": rule.name,
        "shortDescription": _message(rule.summary),
        "fullDescription": _message(why),
        "help": {
            **_message(why, f"Fix: {rule.general_fix}", f"Source: {source}"),
            "markdown": markdown.translate(_BRACES),
        },
        "helpUri": address,
        "defaultConfiguration": {"level": _LEVELS[rule.severity]},
        "properties": {"problem.severity": _PROBLEMS[rule.severity], "tags": ["kubernetes", "topology-spread"]},
    }


def _results(findings: list[Finding]) -> Iterator[_Object]:
    """Yield the results; findings that differ only in their order have numbered fingerprints."""
    fingerprints: Counter[str] = Counter()
    for finding in findings:
        fingerprint = _fingerprint(finding)
        fingerprints[fingerprint] += 1
        yield _result(finding, f"{fingerprint}:{fingerprints[fingerprint]}")


def _result(finding: Finding, fingerprint: str) -> _Object:
    name = safe(finding.path)
    logical = {"name": name, "fullyQualifiedName": safe(f"{ci.place(finding)}/{name}"), "kind": "object"}
    return {
        "ruleId": finding.code,
        "ruleIndex": _INDEX[finding.code],
        "level": _LEVELS[finding.severity],
        "message": _message(f"{ci.place(finding)}: {finding.message}", *ci.advice(finding)),
        "locations": [{**_physical(finding), "logicalLocations": [logical]}],
        "partialFingerprints": {_FINGERPRINT: fingerprint},
        "properties": {
            "podCount": finding.pod_count,
            "values": dict(sorted(finding.values.items())),
            **({"patch": safe(patch)} if (patch := ci.patch(finding)) else {}),
        },
    }


def _physical(finding: Finding) -> _Object:
    """Return the position of a finding in a file, if it has one."""
    source = finding.source
    if not source:
        return {}
    column = {"startColumn": source.column} if source.column else {}
    region = {"startLine": source.line, **column}
    return {"physicalLocation": {"artifactLocation": {"uri": _uri(source.file)}, "region": region}}


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


def _notification(level: str, *lines: str) -> _Object:
    return {"level": level, "message": _message(*lines)}


def _message(*lines: str) -> _Object:
    """Return lines as a text without placeholders and links."""
    return {"text": "\n".join(map(safe, lines)).translate(_BRACES).replace("](", "] (")}
