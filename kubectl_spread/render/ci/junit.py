"""JUnit: a suite for each namespace, a case for each workload and constraint.

Errors and warnings fail a case, and infos are its output. A constraint whose pods could not be counted is skipped.
Objects that were not evaluated are errors.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from junitparser import Attr, Error, Failure, IntAttr, JUnitXml, Skipped, SystemOut, TestCase, TestSuite

from kubectl_spread.phrases import plural, some
from kubectl_spread.render import about, ci, figures
from kubectl_spread.render.words import safe
from kubectl_spread.report.model import FieldRef, Finding, Report, Row, Severity, severest_first

_TOOL: Final = "kubectl-spread"
_NOT_COUNTED: Final = "placement was not evaluated, or only in part"
_MOST_PODS: Final = 10


class _Case(TestCase):
    """A test case with a position in a file."""

    file = Attr()
    line = IntAttr()


def junit(report: Report) -> str:
    """Return a report as JUnit XML."""
    document = JUnitXml(_TOOL)
    suites: dict[str, list[TestCase]] = {}
    rows, findings = figures.by_place(report.constraints), figures.by_place(report.findings)
    for place in dict.fromkeys((*rows, *findings)):
        case = _case(place, rows.get(place, []), findings.get(place, []))
        suites.setdefault(place.object.namespace, []).append(case)
    identity = about.identity(report.cluster)
    for namespace, cases in sorted(suites.items()):
        document.append(_suite(namespace, cases, identity))
    if unanswered := ci.unanswered(report):
        document.append(_suite(_TOOL, [_unanswered(reason, lines) for reason, lines in unanswered.items()], identity))
    # update_statistics would add an attribute that Jenkins' schema does not have.
    for count in ("tests", "failures", "errors"):
        setattr(document, count, sum(getattr(suite, count) for suite in document))
    stream = io.BytesIO()
    document.write(stream, pretty=True)
    return stream.getvalue().decode()


def _suite(name: str, cases: Sequence[TestCase], identity: Mapping[str, str]) -> TestSuite:
    suite = TestSuite(safe(name))
    for key, value in identity.items():
        suite.add_property(f"cluster.{key}", safe(value))
    suite.add_testcases(list(cases))
    return suite


def _case(place: FieldRef, rows: Sequence[Row], place_findings: Sequence[Finding]) -> TestCase:
    ref, path = place
    keys = dict.fromkeys(row.topology_key for row in rows)
    # GitLab takes two cases for one if class and name are the same, whatever their suites.
    case = _Case(safe(" ".join((path, *keys))), safe(f"{ref.namespace}/{ref.kind}/{ref.name}"))
    findings = severest_first(place_findings)
    source = next((source for finding in findings if (source := finding.source)), None)
    if source is not None:
        case.file, case.line = safe(source.file), source.line
    return _with_results(case, findings, is_counted=not all(map(figures.is_unevaluated, rows)))


def _with_results(case: TestCase, findings: Sequence[Finding], *, is_counted: bool) -> TestCase:
    if not (findings or is_counted):
        case.append(Skipped(_NOT_COUNTED))
    failures = [finding for finding in findings if finding.severity is not Severity.INFO]
    if failures:
        case.append(_failure(failures))
    if infos := findings[len(failures) :]:
        case.append(SystemOut(_finding_texts(infos)))
    return case


def _failure(findings: Sequence[Finding]) -> Failure:
    """Return one failure for all findings, because GitLab reads only one of a case."""
    first = findings[0]
    more = f" (and {plural(len(findings) - 1, 'more finding')})" if len(findings) > 1 else ""
    failure = Failure(safe(f"{ci.rule(first)}: {first.message}{more}"), first.severity.value)
    failure.text = _finding_texts(findings)
    return failure


def _finding_texts(findings: Sequence[Finding]) -> str:
    return "\n\n".join("\n".join(map(safe, _lines(finding))) for finding in findings)


def _lines(finding: Finding) -> Iterator[str]:
    yield f"{finding.severity} {ci.rule(finding)}: {finding.message}"
    if source := finding.source:
        yield ":".join(map(str, filter(None, (source.file, source.line, source.column))))
    if finding.pods:
        yield f"{plural(finding.pod_count, 'pod')}: {some(finding.pods, _MOST_PODS)}"
    yield from ci.advice(finding)


def _unanswered(reason: str, lines: Sequence[str]) -> TestCase:
    case = TestCase(reason, _TOOL)
    error = Error(safe(lines[0]), reason)
    if names := lines[1:]:
        error.text = "\n".join(map(safe, names))
    case.append(error)
    return case
