"""The list of rules that ``rules`` and ``explain CODE`` print; its JSON form is a contract (docs/json.md)."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from kubectl_spread.report.model import API_VERSION, Part, Severity
from kubectl_spread.rules.model import Rule


class RuleEntry(Part, frozen=True, kw_only=True):
    """A rule; ``message`` is a template of a finding's values."""

    code: str
    name: str
    severity: Severity
    summary: str
    message: str
    why: str
    fix: str
    source: str
    needs_nodes: bool


class RuleList(Part, frozen=True, kw_only=True):
    """Rules, in the order of the catalogue."""

    api_version: str = API_VERSION
    kind: str = "RuleList"
    rules: list[RuleEntry]


def listing(rules: Iterable[Rule]) -> RuleList:
    """Return rules as a document."""
    return RuleList(rules=[_entry(rule) for rule in rules])


def _entry(rule: Rule) -> RuleEntry:
    entry = msgspec.convert(rule, RuleEntry, from_attributes=True)
    return msgspec.structs.replace(entry, fix=rule.general_fix)
