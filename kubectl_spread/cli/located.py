"""Where findings are: the places in manifests, joined to the report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from kubectl_spread.audit.report import Finding, Report, Source, unset_none
from kubectl_spread.audit.templates import template_path
from kubectl_spread.errors import Position
from kubectl_spread.sources import positions
from kubectl_spread.sources.positions import Field, Name


def located(report: Report, written: Mapping[Name, Position]) -> Report:
    """Return a report whose findings on manifests say where these are.

    Args:
        report: The report.
        written: The file and line of every manifest that was read.
    """
    fields = [_field(finding, written) for finding in report.findings]
    found = positions.fields([field for field in fields if field], written)
    findings = [
        msgspec.structs.replace(finding, source=_source(found[field])) if field else finding
        for finding, field in zip(report.findings, fields, strict=True)
    ]
    return msgspec.structs.replace(report, findings=findings)


def _field(finding: Finding, written: Mapping[Name, Position]) -> Field | None:
    """Return the field of a manifest that a finding is about; None where there is no manifest."""
    return next((field for field in _fields(finding) if field[0] in written), None)


def _fields(finding: Finding) -> Iterator[Field]:
    """Yield what a finding may be about: the field that its path names, or else the template of that field."""
    namespace, found, path = finding.namespace, finding.object, finding.path
    name = (found.kind, namespace, found.name)
    template = template_path(found.kind)
    if found.kind == "Pod" or path.startswith(f"{template}."):
        yield name, path
        return
    for pod in finding.pods:
        yield ("Pod", namespace, pod), path
    yield name, f"{template}{path.removeprefix('spec')}" if path.startswith("spec.") else path


def _source(position: Position) -> Source:
    # A file's name may be no text at all, which no format can hold.
    file = Path(position.source).as_posix().encode(errors="surrogateescape").decode(errors="backslashreplace")
    return Source(file=file, line=position.line or 1, column=unset_none(position.column))
