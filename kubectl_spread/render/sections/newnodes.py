"""Nodes that autoscalers could make for pending pods: the answer, its reasons, what helps, and what they said."""

from __future__ import annotations

from typing import Final

from msgspec import UnsetType

from kubectl_spread.explain.explanation import Explanation
from kubectl_spread.phrases import plural
from kubectl_spread.render import words
from kubectl_spread.render.terminal import Column, Terminal, heading, paragraph, table
from kubectl_spread.report.explanation import NewNodes, NodePoolDomain, refusing

_INDENT: Final = "  "
_NOT_KNOWN: Final = "Not known: instance types and their capacity, which are not in the API."


def new_nodes(explanation: Explanation, terminal: Terminal) -> str:
    """Return a block for each group of pending pods with the same answer; "" where no autoscaler was read."""
    if isinstance(explanation.new_nodes, UnsetType):
        return ""
    return "\n".join(_group(group, terminal) for group in explanation.new_nodes)


def _group(group: NewNodes, terminal: Terminal) -> str:
    none = group.verdict == "none"
    pods = (
        words.names(group.pods)
        if len(group.pods) == 1
        else f"{plural(len(group.pods), 'pod')} ({words.names(group.pods)})"
    )
    text = heading(
        f"{refusing(group.node_pools, group.node_groups) if none else 'A node may be made'} for {pods}", terminal
    )
    lines = [*([] if none else [group.summary]), *group.reasons]
    text += "".join(paragraph(words.safe(line), _INDENT, terminal) for line in lines)
    text += _domains(group.domains, terminal)
    text += "".join(paragraph(f"Fix: {words.safe(fix)}", _INDENT, terminal) for fix in group.fixes)
    text += "".join(paragraph(f"Event: {words.safe(message)}", _INDENT, terminal) for message in group.messages)
    return text if none else text + paragraph(_NOT_KNOWN, _INDENT, terminal)


def _domains(domains: list[NodePoolDomain], terminal: Terminal) -> str:
    """Return the domains that Karpenter counts, with the nodes that the scheduler counts, and why they count."""
    if not domains:
        return ""
    columns = [
        Column(f"{_INDENT}DOMAIN FOR KARPENTER", fit="middle", least=16),
        Column("NODES", "right"),
        Column("PODS", "right"),
        Column("COUNTS BECAUSE", fit="wrap", least=24),
    ]
    rows = [
        [
            f"{_INDENT}{words.topology(each.topology_key)} {words.value(each.value)}",
            str(each.nodes),
            str(each.pods),
            words.safe("; ".join(each.sources)),
        ]
        for each in domains
    ]
    return table(columns, rows, terminal)
