"""The text of ``explain``: a list of independent sections, each a pure function of the explanation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kubectl_spread.explain.explanation import Explanation
from kubectl_spread.render.sections.conclusion import conclusion, read
from kubectl_spread.render.sections.domains import domains
from kubectl_spread.render.sections.engines import engines
from kubectl_spread.render.sections.placing import placing, replicas, waiting
from kubectl_spread.render.sections.rollup import rollup
from kubectl_spread.render.sections.terms import selectors, templates
from kubectl_spread.render.terminal import Terminal

Section = Callable[[Explanation, Terminal], str]


def explain(explanation: Explanation, terminal: Terminal) -> str:
    """Return the whole text, without empty sections."""
    return "\n".join(text for section in _SECTIONS if (text := section(explanation, terminal)))


_SECTIONS: Final[tuple[Section, ...]] = (
    conclusion,
    waiting,
    domains,
    placing,
    replicas,
    selectors,
    templates,
    rollup,
    engines,
    read,
)
