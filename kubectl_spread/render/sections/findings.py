"""The findings of ``explain``."""

from __future__ import annotations

from kubectl_spread.explain.explanation import Explanation
from kubectl_spread.render import words
from kubectl_spread.render.table import details, head
from kubectl_spread.render.terminal import Terminal


def findings(explanation: Explanation, terminal: Terminal) -> str:
    """Return the findings, each with its fix."""
    text = ""
    for finding in explanation.findings:
        text += head(finding, words.short_path(finding.path), terminal)
        text += details(finding, terminal, pods=False)
    return text
