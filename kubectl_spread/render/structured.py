"""JSON, YAML and names."""

from __future__ import annotations

import re
from typing import Final

import msgspec

from kubectl_spread.render.words import is_unsafe, safe, workload
from kubectl_spread.report.model import Report

_NOT_PRINTABLE_ASCII: Final = re.compile(r"[^\n -~]")


def json(document: msgspec.Struct) -> str:
    """Return a document as indented JSON; what could move a cursor or hide text is written as an escape."""
    text = msgspec.json.format(msgspec.json.encode(document, order="deterministic"), indent=2).decode()
    return _NOT_PRINTABLE_ASCII.sub(lambda found: _escaped(found[0]), text) + "\n"


def json_line(document: msgspec.Struct) -> str:
    """Return a document as JSON in one line; what could move a cursor or hide text is written as an escape."""
    text = msgspec.json.encode(document, order="deterministic").decode()
    return _NOT_PRINTABLE_ASCII.sub(lambda found: _escaped(found[0]), text) + "\n"


def _escaped(char: str) -> str:
    """Return a character of a JSON string, by its UTF-16 units where it is unsafe."""
    if not is_unsafe(char):
        return char
    units = char.encode("utf-16-be").hex()
    return "".join(f"\\u{units[start : start + 4]}" for start in range(0, len(units), 4))


def yaml(document: msgspec.Struct) -> str:
    """Return a document as YAML."""
    from kubectl_spread.render import yaml_text  # noqa: PLC0415 - only this format needs it

    return yaml_text.dump([msgspec.to_builtins(document, order="deterministic")])


def names(report: Report) -> str:
    """Return the workloads with findings, one a line: ``deploy/web``.

    With several namespaces ``namespace/deploy/web``.
    """
    found = [(finding.namespace, workload(finding.object)) for finding in report.findings]
    several = len({row.namespace for row in report.constraints}) > 1
    lines = dict.fromkeys(f"{safe(namespace)}/{name}" if several else name for namespace, name in found)
    return "".join(f"{line}\n" for line in lines)
