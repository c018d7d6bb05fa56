"""Lists of names in the sections, which end after the first names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kubectl_spread.explain.placing import NodeRefusal
from kubectl_spread.phrases import plural
from kubectl_spread.render import words
from kubectl_spread.render.terminal import Terminal, paragraph

NAMED: Final = 8


def named(names: Sequence[str]) -> str:
    """Return names; of many the first, and the number of the others."""
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(words.safe(name) for name in names[:NAMED]) + more


def nodes(names: Sequence[str]) -> str:
    """Return the number of nodes, and their names."""
    return f"{plural(len(names), 'node')} ({named(names)})" if names else "no node"


def answer(
    allowed: Sequence[str],
    refused: Sequence[NodeRefusal],
    unknown: Sequence[str],
    terminal: Terminal,
    ranked: str = "",
) -> str:
    """Return the nodes where a pod may go, a line for each reason against others, and the limits of this answer.

    ``ranked`` says how the nodes are ranked that take it; "" if they are not.
    """
    lines = [f"may go to {nodes(allowed)}", *([ranked] if ranked else [])]
    lines += [f"not to {nodes(refusal.nodes)}: {words.safe(refusal.reason)}" for refusal in refused]
    lines += [f"not known: {words.safe(text)}" for text in unknown]
    lines.append("ports, volumes and other plugins are not looked at")
    return "".join(paragraph(line, "  ", terminal) for line in lines)
