"""Nodes that autoscalers could make for pending pods: the answer, its reasons, what helps, and what they said."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kubectl_spread.explain.explanation import Explanation
from kubectl_spread.phrases import plural
from kubectl_spread.render import words
from kubectl_spread.render.document import AnswerSection, Table
from kubectl_spread.render.terminal import Cell, Column
from kubectl_spread.report.explanation import NewNodes, refusing

_NOT_KNOWN: Final = "Not known: instance types and their capacity, which are not in the API."
_COLUMNS: Final = (
    Column("Domain for Karpenter", fit="middle", least=16),
    Column("Nodes", "right"),
    Column("Pods", "right"),
    Column("Counts because", fit="wrap", least=24),
)
"""A domain that Karpenter counts, the nodes that the scheduler counts, and why the domain counts."""


def new_nodes(explanation: Explanation) -> Iterator[AnswerSection]:
    """Yield a section for each group of pending pods with the same answer, where an autoscaler was read."""
    yield from map(_group, explanation.new_nodes or ())


def _group(group: NewNodes) -> AnswerSection:
    none = group.verdict == "none"
    pods = words.names(group.pods)
    pods = pods if len(group.pods) == 1 else f"{plural(len(group.pods), 'pod')} ({pods})"
    rows = [
        [
            Cell(f"{words.topology(each.topology_key)} {words.value(each.value)}"),
            Cell(str(each.nodes)),
            Cell(str(each.pods)),
            Cell("; ".join(each.sources)),
        ]
        for each in group.domains
    ]
    return AnswerSection(
        f"{refusing(group.node_pools, group.node_groups) if none else 'A node may be made'} for {pods}",
        [
            *([] if none else [group.summary]),
            *group.reasons,
            *([Table("", _COLUMNS, rows)] if rows else []),
            *(f"Fix: {fix}" for fix in group.fixes),
            *(f"Event: {message}" for message in group.messages),
            *([] if none else [_NOT_KNOWN]),
        ],
    )
