"""Reports whose findings have positions in files, for the formats that print them."""

from __future__ import annotations

import msgspec
from msgspec import UNSET, UnsetType

from kubectl_spread.report.model import Finding, Report, Source, Summary
from tests.audits import reported
from tests.render.test_render import REPORTS

PLACES: tuple[Source | UnsetType, ...] = (
    Source(file="manifests/web.yaml", line=12, column=9),
    Source(file="a b/100%,ö:#1?.yaml", line=3),
    Source(file="/srv/web.yaml", line=4, column=1),
    UNSET,
    Source(file="STDIN", line=7),
    Source(file="/dev/fd/63", line=8),
)


def several() -> Report:
    """Return a report with findings in files of all kinds, and others without a file."""
    report = reported(REPORTS["several"]())
    return with_findings(
        report, [moved(*finding_and_source) for finding_and_source in zip(report.findings, PLACES, strict=False)]
    )


def moved(finding: Finding, place: Source | UnsetType) -> Finding:
    return msgspec.structs.replace(finding, source=place)


def with_findings(report: Report, findings: list[Finding]) -> Report:
    return msgspec.structs.replace(report, findings=findings)


def unanswered(report: Report) -> Report:
    """Return a report about a run in which some objects could not be evaluated."""
    skipped = {"finished": 3, "forbidden": 0, "malformed": 2, "unreadable": 1}
    summary: Summary = msgspec.structs.replace(report.summary, skipped=skipped)
    return msgspec.structs.replace(report, summary=summary)
