"""The clauses of a template without pods: what the API server would store for them, and what the API says."""

from __future__ import annotations

from typing import Final

from msgspec import UnsetType

from kubectl_spread.explain.explanation import Explanation
from kubectl_spread.explain.template_preview import TemplateClause
from kubectl_spread.kube.api import labels
from kubectl_spread.render import words
from kubectl_spread.render.terminal import Terminal, heading, paragraph

_REFUSES: Final = {
    "workload": "refuses the workload",
    "pods": "takes the template, and refuses every pod of it",
}


def templates(found: Explanation, terminal: Terminal) -> str:
    """Return one block for every clause."""
    return "\n".join(_clause(one, terminal) for one in found.templates)


def _clause(found: TemplateClause, terminal: Terminal) -> str:
    title = f"{words.safe(found.path)}  {words.asked(found.topology_key, found.path, found.when_unsatisfiable)}"
    if isinstance(found.max_skew, int):
        title += f"  maxSkew {found.max_skew}"
    lines = [
        f"{'authored':<10} {words.safe(labels.describe(found.selector.authored))}",
        f"{'merged':<10} {words.safe(labels.describe(found.selector.merged))}",
    ]
    if found.presumed:
        keys = ", ".join(words.safe(key) for key in found.presumed)
        lines.append(f"{'<value>':<10} what the controller will set as {keys}")
    lines.append(f"{'API':<10} {_answer(found)}")
    return heading(title, terminal) + "".join(paragraph(line, "  ", terminal) for line in lines)


def _answer(found: TemplateClause) -> str:
    if isinstance(found.refused, UnsetType):
        return "allows it"
    return f"{_REFUSES[found.refused]}: {words.safe('; '.join(found.messages))}"
