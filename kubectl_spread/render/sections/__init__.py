"""The text of ``explain``: a list of sections, each a pure function of the explanation that may return ""."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kubectl_spread.explain.explanation import Explanation
from kubectl_spread.render.sections.conclusion import conclusion, read
from kubectl_spread.render.sections.domains import domains, placing, replicas, waiting
from kubectl_spread.render.sections.newnodes import new_nodes
from kubectl_spread.render.sections.terms import rollup, selectors, templates
from kubectl_spread.render.terminal import Terminal

Section = Callable[[Explanation, Terminal], str]


def explain(explanation: Explanation, terminal: Terminal) -> str:
    """Return the whole text, without empty sections."""
    return "\n".join(text for section in _SECTIONS if (text := section(explanation, terminal)))


_SECTIONS: Final[tuple[Section, ...]] = (
    conclusion,
    waiting,
    new_nodes,
    domains,
    placing,
    replicas,
    selectors,
    templates,
    rollup,
    read,
)
