"""JSON, YAML and names."""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec
from msgspec import UnsetType

from kubectl_spread.phrases import named
from kubectl_spread.render.words import safe
from kubectl_spread.report.model import Report

_NOT_PRINTABLE_ASCII: Final = re.compile(r"[^\n -~]")


def json(document: msgspec.Struct | dict[str, Any]) -> str:
    """Return a document as indented JSON; characters that could move a cursor or hide text are escaped."""
    return _printable(msgspec.json.format(_encoded(document), indent=2))


def json_line(document: msgspec.Struct) -> str:
    """Return a document as JSON in one line; characters that could move a cursor or hide text are escaped."""
    return _printable(_encoded(document))


def _encoded(document: msgspec.Struct | dict[str, Any]) -> bytes:
    """Return a document as JSON; the author of a dict has chosen the order of its keys."""
    return msgspec.json.encode(document, order=None if isinstance(document, dict) else "deterministic", enc_hook=str)


def _printable(encoded: bytes) -> str:
    text = encoded.decode()
    return _NOT_PRINTABLE_ASCII.sub(lambda match: _escaped(match[0]), text) + "\n"


def _escaped(char: str) -> str:
    """Return a character of a JSON string; unsafe ones as the escapes of their UTF-16 units."""
    if char.isprintable():
        return char
    units = char.encode("utf-16-be").hex()
    return "".join(f"\\u{units[start : start + 4]}" for start in range(0, len(units), 4))


def yaml(document: msgspec.Struct | dict[str, Any]) -> str:
    """Return a document as YAML."""
    from kubectl_spread.render import yaml_text  # noqa: PLC0415 - only this format needs it

    return yaml_text.dump(msgspec.to_builtins(document, order="deterministic", enc_hook=str))


def document(part: msgspec.Struct | dict[str, Any], form: str) -> str:
    """Return a document in the format that ``-o`` names."""
    return yaml(part) if form == "yaml" else json(part)


def names(report: Report) -> str:
    """Return the workloads with findings and the objects that could not be checked, one per line: ``deploy/web``.

    A line is ``namespace/deploy/web`` for all namespaces of a cluster, and for files with several namespaces.
    """
    workloads = [finding.ref for finding in report.findings]
    workloads += [ref for each in report.unchecked or () if (ref := each.ref)]
    if isinstance(report.cluster.server_version, UnsetType):
        namespaces = {*(row.namespace for row in report.constraints), *(ref.namespace for ref in workloads)} - {""}
        with_namespace = len(namespaces) > 1
    else:
        with_namespace = isinstance(report.cluster.namespace, UnsetType)
    lines = dict.fromkeys(
        f"{f'{ref.namespace}/' if with_namespace and ref.namespace else ''}{named(ref.kind, ref.name)}"
        for ref in workloads
    )
    return "".join(f"{safe(line)}\n" for line in lines)
