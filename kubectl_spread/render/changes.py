"""The changes from one report to the next: marks for rows and findings, and a line that counts them."""

from __future__ import annotations

from operator import attrgetter
from typing import Final, TypeVar

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from kubectl_spread.report.model import Finding, Report, Row

NEW: Final = "+"
CHANGED: Final = "*"
_SAME: Final = " "
_Part = TypeVar("_Part", Row, Finding)


def lasting(report: Report) -> Report:
    """Return a report without the time and the lists' revisions, which change even if the cluster does not."""
    return replace(report, cluster=replace(report.cluster, read_at=UNSET, resource_versions={}))


class Changes:
    """The new and the changed parts of a report."""

    def __init__(self, before: Report | None, now: Report) -> None:
        """Compare two reports; without an earlier report, nothing is new."""
        self._before, self._now = before or now, now
        parts: list[Row | Finding] = [*self._before.constraints, *self._before.findings]
        self._parts = {_encoded(part) for part in parts}
        self._names = {_name(part) for part in parts}

    def mark(self, part: Row | Finding) -> str:
        """Return ``+`` for a new row or finding, ``*`` for a changed one, and a space for others."""
        if _encoded(part) in self._parts:
            return _SAME
        return CHANGED if _name(part) in self._names else NEW

    def summary(self) -> str:
        """Return the changes as ``pods 18 -> 19; rows: 1 new, 2 changed; findings: 1 gone``, or "" for none."""
        before, now = self._before, self._now
        numbers = [
            ("pods", before.summary.pods, now.summary.pods),
            ("nodes", before.cluster.node_count, now.cluster.node_count),
        ]
        texts = [
            f"{noun} {earlier} -> {later}"
            for noun, earlier, later in numbers
            if earlier != later and UNSET not in (earlier, later)
        ]
        texts += self._counted("rows", before.constraints, now.constraints)
        texts += self._counted("findings", before.findings, now.findings)
        return "; ".join(texts)

    def _counted(self, noun: str, before: list[_Part], now: list[_Part]) -> list[str]:
        marks = [self.mark(part) for part in now]
        names = {_name(part) for part in now}
        gone = sum(_name(part) not in names for part in before)
        numbers = [(marks.count(NEW), "new"), (marks.count(CHANGED), "changed"), (gone, "gone")]
        counts = ", ".join(f"{number} {change}" for number, change in numbers if number)
        return [f"{noun}: {counts}"] if counts else []


_OF_FINDINGS: Final = attrgetter("code", "name", "namespace", "object", "path", "pending", "closed", "source")
_OF_ROWS: Final = attrgetter(
    *("namespace", "workload", "path", "default", "topology_key", "when_unsatisfiable", "max_skew", "min_domains"),
    *("node_affinity_policy", "node_taints_policy", "selector", "lower_bound"),
)
"""The fields by which a finding, or a row, is found in another report; its numbers and texts may differ."""


def _name(part: Row | Finding) -> bytes:
    """Return what is equal in an earlier version of a row or finding."""
    return _encoded(_OF_FINDINGS(part) if isinstance(part, Finding) else _OF_ROWS(part))


def _encoded(part: object) -> bytes:
    return msgspec.json.encode(part, order="deterministic", enc_hook=str)
