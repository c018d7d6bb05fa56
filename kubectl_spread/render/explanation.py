"""The text of ``explain``: a list of independent sections, each a pure function of the explanation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kubectl_spread.explain.explanation import Explanation
from kubectl_spread.phrases import plural
from kubectl_spread.render import about, words
from kubectl_spread.render.sections.placing import placing, replicas, waiting
from kubectl_spread.render.sections.rollup import rollup
from kubectl_spread.render.sections.skews import causes, engines, evictions
from kubectl_spread.render.sections.terms import templates, terms
from kubectl_spread.render.table import details, head
from kubectl_spread.render.terminal import Terminal, between_phrases, heading, paragraph

Section = Callable[[Explanation, Terminal], str]


def explain(explanation: Explanation, terminal: Terminal) -> str:
    """Return the whole text, without empty sections."""
    return "\n".join(text for section in _SECTIONS if (text := section(explanation, terminal)))


def title(explanation: Explanation, terminal: Terminal) -> str:
    """Return the name of the object, and its cluster."""
    text = heading(f"{words.workload(explanation.object)} in {words.safe(explanation.namespace)}", terminal)
    text += between_phrases(
        about.header(explanation.cluster, explanation.summary, explanation.constraints, scope=False), "  ", terminal
    )
    if not explanation.constraints:
        text += paragraph(_without_rows(explanation), "", terminal)
    if isinstance(explanation.unconstrained, list):
        text += paragraph(_defaults(len(explanation.unconstrained), explanation.summary.pods), "", terminal)
    return text


def _without_rows(explanation: Explanation) -> str:
    """Return the numbers of pods and constraints, for pods without constraints."""
    count = plural(explanation.summary.pods, "pod")
    nothing = "no spread constraint and no affinity term with keys"
    if explanation.summary.pods or not explanation.summary.templates:
        return f"{count}, {nothing}"
    spread = sum(isinstance(clause.when_unsatisfiable, str) for clause in explanation.templates)
    affinity_terms = len(explanation.templates) - spread
    term_counts = [plural(spread, "spread constraint")] if spread else []
    term_counts += [f"{plural(affinity_terms, 'affinity term')} with keys"] if affinity_terms else []
    return f"{count}; the template has {' and '.join(term_counts) or nothing}"


def _defaults(number: int, pods: int) -> str:
    """Return how many of the pods have no constraints, so that the scheduler's defaults apply."""
    some_pods = "" if number == pods else f"{number} of {plural(pods, 'pod')}: "
    pronoun = "its" if number == pods else "their"
    return (
        f"{some_pods}no constraints of {pronoun} own: the scheduler's defaults apply (--defaults, --scheduler-config)"
    )


def findings(explanation: Explanation, terminal: Terminal) -> str:
    """Return the findings, each with its fix."""
    text = ""
    for finding in explanation.findings:
        text += head(finding, words.short_path(finding.path), terminal)
        text += details(finding, terminal, pods=False)
    return text


_SECTIONS: Final[tuple[Section, ...]] = (
    title,
    templates,
    rollup,
    terms,
    causes,
    evictions,
    waiting,
    placing,
    replicas,
    engines,
    findings,
)
