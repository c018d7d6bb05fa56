"""The clauses of a template without pods: their selectors after the merge, and the answer of the API."""

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


def templates(explanation: Explanation, terminal: Terminal) -> str:
    """Return one block for every clause."""
    return "\n".join(_clause(clause, terminal) for clause in explanation.templates)


def _clause(clause: TemplateClause, terminal: Terminal) -> str:
    title = (
        f"{words.safe(clause.path)}  {words.requirement(clause.topology_key, clause.path, clause.when_unsatisfiable)}"
    )
    if isinstance(clause.max_skew, int):
        title += f"  maxSkew {clause.max_skew}"
    lines = [
        f"{'authored':<10} {words.safe(labels.describe(clause.selector.authored))}",
        f"{'merged':<10} {words.safe(labels.describe(clause.selector.merged))}",
    ]
    if clause.presumed:
        keys = ", ".join(words.safe(key) for key in clause.presumed)
        lines.append(f"{'<value>':<10} what the controller will set as {keys}")
    lines.append(f"{'API':<10} {_answer(clause)}")
    return heading(title, terminal) + "".join(paragraph(line, "  ", terminal) for line in lines)


def _answer(clause: TemplateClause) -> str:
    if isinstance(clause.refused, UnsetType):
        return "allows it"
    return f"{_REFUSES[clause.refused]}: {words.safe('; '.join(clause.messages))}"
