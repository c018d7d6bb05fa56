"""The text of ``explain``: a list of independent sections, each a pure function of the explanation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kubectl_spread.explain.explanation import Explanation
from kubectl_spread.render.sections.causes import causes
from kubectl_spread.render.sections.clauses import clauses
from kubectl_spread.render.sections.engines import engines
from kubectl_spread.render.sections.evictions import evictions
from kubectl_spread.render.sections.findings import findings
from kubectl_spread.render.sections.placing import placing
from kubectl_spread.render.sections.replicas import replicas
from kubectl_spread.render.sections.rollup import rollup
from kubectl_spread.render.sections.templates import templates
from kubectl_spread.render.sections.title import title
from kubectl_spread.render.sections.waiting import waiting
from kubectl_spread.render.terminal import Terminal

Section = Callable[[Explanation, Terminal], str]

SECTIONS: Final[tuple[Section, ...]] = (
    title,
    templates,
    rollup,
    clauses,
    causes,
    evictions,
    waiting,
    placing,
    replicas,
    engines,
    findings,
)


def explain(explanation: Explanation, terminal: Terminal) -> str:
    """Return the whole text, without empty sections."""
    return "\n".join(text for section in SECTIONS if (text := section(explanation, terminal)))
