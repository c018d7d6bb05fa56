"""Baselines: the findings of a report that an earlier run wrote."""

from __future__ import annotations

from typing import BinaryIO, Final

import msgspec

from kubectl_spread.errors import DecodeError, Position, SourceError
from kubectl_spread.kube.api.types import Message
from kubectl_spread.sources.decode import documents, json_objects
from kubectl_spread.sources.decode.json_objects import MalformedFieldError, Path
from kubectl_spread.sources.files import inputs

SEVERITIES: Final = ("error", "warning", "info")


class KnownObject(Message, frozen=True):
    """The workload that a finding is about."""

    kind: str = ""
    name: str = ""


class KnownFinding(Message, frozen=True):
    """The fields of a finding that identify it, and its severity."""

    code: str = ""
    severity: str = ""
    namespace: str = ""
    object: KnownObject = KnownObject()
    path: str = ""


class _Report(Message, frozen=True):
    api_version: str = ""
    kind: str = ""
    findings: tuple[KnownFinding, ...] | None = None


def read(path: str, stdin: BinaryIO, *, api_version: str, kind: str) -> tuple[KnownFinding, ...]:
    """Return the findings of a report in JSON or YAML.

    Args:
        path: The file, or ``-``.
        stdin: The stream that ``-`` names.
        api_version: The apiVersion that the report must have.
        kind: The kind that it must have.

    Raises:
        SourceError: The file cannot be read, or is not one document.
        DecodeError: A field is missing or has an invalid value.
    """
    source = inputs.source_name(path)
    records = list(documents.records(inputs.blocks(path, stdin), source))
    if len(records) != 1:
        raise SourceError(f"{source}: expected one report, found {len(records) or 'none'}")
    (record,) = records
    try:
        report = json_objects.decode(record.raw, _Report)
        return _checked(report, api_version, kind)
    except MalformedFieldError as error:
        position = Position(source, record.line_of(error.path))
        raise DecodeError(position, "", json_objects.format_path(error.path), error.problem) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise SourceError(f"{Position(source, record.line)}: {error}") from error


def _checked(report: _Report, api_version: str, kind: str) -> tuple[KnownFinding, ...]:
    """Return the findings of a document that must be a report.

    Raises:
        MalformedFieldError: A field is missing or has an invalid value.
    """
    for name, value, expected in (("apiVersion", report.api_version, api_version), ("kind", report.kind, kind)):
        if value != expected:
            raise MalformedFieldError(
                (name,), f"expected {expected}, got {value}" if value else f"is missing: no {kind}"
            )
    if report.findings is None:
        raise MalformedFieldError(("findings",), "is missing")
    for index, finding in enumerate(report.findings):
        _check(finding, ("findings", index))
    return report.findings


def _check(finding: KnownFinding, path: Path) -> None:
    for field, value in (
        (("code",), finding.code),
        (("severity",), finding.severity),
        (("object", "kind"), finding.object.kind),
    ):
        if not value:
            raise MalformedFieldError((*path, *field), "is missing")
    if finding.severity not in SEVERITIES:
        expected = ", ".join(SEVERITIES)
        raise MalformedFieldError((*path, "severity"), f"expected one of {expected}, got {finding.severity}")
