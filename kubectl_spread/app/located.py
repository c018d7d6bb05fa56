"""The positions of findings in manifests, added to the report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from kubectl_spread.audit.snapshot.records import Manifest
from kubectl_spread.errors import Position
from kubectl_spread.kube.api.fieldpath import POD_SPEC, FieldPath
from kubectl_spread.kube.api.objects import ObjectRef
from kubectl_spread.kube.api.workloads import template_path
from kubectl_spread.report.model import Finding, Report, Source, unset_none
from kubectl_spread.sources.files import positions
from kubectl_spread.sources.files.positions import Field


def located(report: Report, manifests: Mapping[ObjectRef, Manifest]) -> Report:
    """Return a report with the position of each finding on a manifest.

    Args:
        report: The report.
        manifests: The manifests that were read.
    """
    refs: dict[Position, list[ObjectRef]] = {}
    positions_by_ref: dict[ObjectRef, Position] = {}
    for copy, manifest in manifests.items():
        ref = copy.first_copy
        refs.setdefault(manifest.position, []).append(ref)
        positions_by_ref.setdefault(ref, manifest.position)
    fields = [_field(finding, refs, positions_by_ref) for finding in report.findings]
    sources = positions.fields(field for field in fields if field)
    findings = [
        msgspec.structs.replace(finding, source=_source(sources[field])) if field else finding
        for finding, field in zip(report.findings, fields, strict=True)
    ]
    return msgspec.structs.replace(report, findings=findings)


def _field(
    finding: Finding, refs: Mapping[Position, Sequence[ObjectRef]], positions_by_ref: Mapping[ObjectRef, Position]
) -> Field | None:
    """Return the field of a manifest that a finding is about; None for a finding on no manifest.

    A line of JSON may hold several objects. The object of a finding may be the owner of the object with the template.
    """
    if isinstance(finding.source, Source):
        position = Position(finding.source.file, finding.source.line)
        line_refs = refs[position]
        if finding.ref in line_refs or len(line_refs) == 1:
            return finding.ref if finding.ref in line_refs else line_refs[0], position, FieldPath.parse(finding.path)
    return next(((ref, positions_by_ref[ref], path) for ref, path in _fields(finding) if ref in positions_by_ref), None)


def _fields(finding: Finding) -> Iterator[tuple[ObjectRef, FieldPath]]:
    """Yield the fields that a finding may be about: the field at its path, or else the same field of the template."""
    ref, path = finding.ref, FieldPath.parse(finding.path)
    template = template_path(ref.kind)
    if ref.kind == "Pod" or path.is_inside(template):
        yield ref, path
        return
    for pod in finding.pods:
        yield ObjectRef(ref.namespace, "Pod", pod), path
    yield ref, path.moved(POD_SPEC, template)


def _source(position: Position) -> Source:
    # No format can hold a file name that is not UTF-8 text.
    file = Path(position.source).as_posix().encode(errors="surrogateescape").decode(errors="backslashreplace")
    return Source(file=file, line=position.line or 1, column=unset_none(position.column))
