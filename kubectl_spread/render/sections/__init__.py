"""The text of ``explain``: a list of sections, each a pure function of the explanation that may return ""."""

from __future__ import annotations

from collections.abc import Callable, Iterable
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
    return _joined((conclusion, *_DETAILS, read), explanation, terminal)


def details(explanation: Explanation, terminal: Terminal) -> str:
    """Return the text between the conclusion and the cluster, without empty sections."""
    return _joined(_DETAILS, explanation, terminal)


def _joined(sections: Iterable[Section], explanation: Explanation, terminal: Terminal) -> str:
    return "\n".join(text for section in sections if (text := section(explanation, terminal)))


_DETAILS: Final[tuple[Section, ...]] = (
    waiting,
    new_nodes,
    domains,
    placing,
    replicas,
    selectors,
    templates,
    rollup,
)
