"""The positions of findings in manifests, added to the report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from kubectl_spread.audit.snapshot.records import Manifest
from kubectl_spread.errors import Position
from kubectl_spread.kube.api.fieldpath import POD_SPEC, FieldPath
from kubectl_spread.kube.api.objects import ObjectRef
from kubectl_spread.kube.api.workloads import template_path
from kubectl_spread.report.model import Finding, Report, Source, unset_none


def located(report: Report, manifests: Mapping[ObjectRef, Manifest]) -> Report:
    """Return a report with the position of each finding on a manifest.

    Args:
        report: The report.
        manifests: The manifests that were read.
    """
    by_position: dict[Position, dict[ObjectRef, Manifest]] = {}
    first_copies: dict[ObjectRef, Manifest] = {}
    for copy, manifest in manifests.items():
        by_position.setdefault(manifest.position, {})[copy.first_copy] = manifest
        first_copies.setdefault(copy.first_copy, manifest)
    findings = [_located(finding, by_position, first_copies) for finding in report.findings]
    return msgspec.structs.replace(report, findings=findings)


def _located(
    finding: Finding,
    by_position: Mapping[Position, Mapping[ObjectRef, Manifest]],
    first_copies: Mapping[ObjectRef, Manifest],
) -> Finding:
    """Return a finding with the position of its field in a manifest; a finding on no manifest has none.

    A line of JSON may hold several objects. The object of a finding may be the owner of the object with the template.
    """
    if isinstance(finding.source, Source):
        on_line = by_position[Position(finding.source.file, finding.source.line)]
        manifest = on_line.get(finding.ref) or (next(iter(on_line.values())) if len(on_line) == 1 else None)
        if manifest:
            return _with_source(finding, manifest, FieldPath.parse(finding.path))
    for ref, path in _fields(finding):
        if ref in first_copies:
            return _with_source(finding, first_copies[ref], path)
    return finding


def _with_source(finding: Finding, manifest: Manifest, path: FieldPath) -> Finding:
    return msgspec.structs.replace(finding, source=_source(manifest.position_of(path)))


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
