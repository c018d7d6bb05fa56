"""``check --baseline FILE``: the findings of a report that an earlier run wrote."""

from __future__ import annotations

from typing import Final

import msgspec

from kubectl_spread.errors import DecodeError, Position, SourceError, UsageError
from kubectl_spread.kube.api.objects import ObjectRef
from kubectl_spread.kube.api.types import Message
from kubectl_spread.report import model
from kubectl_spread.report.model import SEVEREST_FIRST, Severity
from kubectl_spread.rules.engine import Baseline, FindingKey
from kubectl_spread.sources.decode import json_objects
from kubectl_spread.sources.decode.json_objects import MalformedFieldError, Path
from kubectl_spread.sources.files import inputs

_SEVERITIES: Final = tuple(severity.value for severity in SEVEREST_FIRST)


class _Object(Message, frozen=True):
    kind: str = ""
    name: str = ""


class _Finding(Message, frozen=True):
    """The fields of a finding that identify it, and its severity."""

    code: str = ""
    severity: str = ""
    namespace: str = ""
    object: _Object = _Object()
    path: str = ""


class _Report(Message, frozen=True):
    api_version: str = ""
    kind: str = ""
    findings: tuple[_Finding, ...] | None = None


def load(path: str, filename: tuple[str, ...]) -> Baseline:
    """Read the report of an earlier ``check -o json`` or ``-o yaml``.

    Args:
        path: The file, or ``-``.
        filename: The files of ``--filename``, where standard input may not be named again.

    Raises:
        UsageError: Standard input is named twice.
        SourceError: The file cannot be read, or is not one document.
        DecodeError: The document is not a report: a field is missing or has an invalid value.
    """
    if path == inputs.STDIN and inputs.STDIN in filename:
        raise UsageError("--baseline and --filename cannot both be standard input")
    severities: dict[FindingKey, list[Severity]] = {}
    for finding in _findings(path):
        ref = ObjectRef(finding.namespace, finding.object.kind, finding.object.name)
        key = FindingKey(finding.code, ref, finding.path)
        severities.setdefault(key, []).append(Severity(finding.severity))
    return Baseline({key: tuple(grades) for key, grades in severities.items()})


def _findings(path: str) -> tuple[_Finding, ...]:
    source = inputs.source_name(path)
    records = list(inputs.records(path))
    if len(records) != 1:
        raise SourceError(f"{source}: expected one report, found {len(records) or 'none'}")
    (record,) = records
    try:
        return _checked(json_objects.decode(record.content, _Report))
    except MalformedFieldError as error:
        position = Position(source, record.line_of(error.path))
        raise DecodeError(position, "", json_objects.format_path(error.path), error.problem) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise SourceError(f"{Position(source, record.line_of())}: {error}") from error


def _checked(report: _Report) -> tuple[_Finding, ...]:
    header = (("apiVersion", report.api_version, model.API_VERSION), ("kind", report.kind, model.KIND))
    for name, value, expected in header:
        if value != expected:
            problem = f"expected {expected}, got {value}" if value else f"is missing: no {model.KIND}"
            raise MalformedFieldError((name,), problem)
    if report.findings is None:
        raise MalformedFieldError(("findings",), "is missing")
    for index, finding in enumerate(report.findings):
        _check(finding, ("findings", index))
    return report.findings


def _check(finding: _Finding, path: Path) -> None:
    for field, value in (
        (("code",), finding.code),
        (("severity",), finding.severity),
        (("object", "kind"), finding.object.kind),
    ):
        if not value:
            raise MalformedFieldError((*path, *field), "is missing")
    if finding.severity not in _SEVERITIES:
        expected = ", ".join(_SEVERITIES)
        raise MalformedFieldError((*path, "severity"), f"expected one of {expected}, got {finding.severity}")
