"""The causes of a skew, or of a pod that no node is allowed for."""

from __future__ import annotations

from kubectl_spread.explain.causes import SkewCause
from kubectl_spread.explain.explanation import Explanation
from kubectl_spread.kube.api import labels
from kubectl_spread.render import words
from kubectl_spread.render.terminal import Terminal, heading, paragraph


def causes(explanation: Explanation, terminal: Terminal) -> str:
    """Return the causes of each row, the strongest first."""
    by_row: dict[int, list[SkewCause]] = {}
    for cause in explanation.causes:
        by_row.setdefault(cause.row, []).append(cause)
    return "\n".join(_of_row(row, of_row, explanation, terminal) for row, of_row in by_row.items())


def _of_row(row: int, of_row: list[SkewCause], explanation: Explanation, terminal: Terminal) -> str:
    path = words.short_path(of_row[0].path)
    title = f"why {path}  {words.clause(explanation.constraints[row])}"
    if sum(constraint.path == of_row[0].path for constraint in explanation.constraints) > 1:
        title += f", selecting {words.safe(labels.describe(explanation.constraints[row].selector.effective))}"
    text = heading(title, terminal)
    for cause in of_row:
        text += f"  {cause.cause}\n"
        text += "".join(paragraph(words.safe(evidence), " " * 4, terminal) for evidence in cause.evidence)
    return text
