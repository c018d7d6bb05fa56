"""The text of ``explain``: a list of independent sections, each a pure function of the explanation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kubectl_spread.explain.explanation import Explanation
from kubectl_spread.phrases import plural
from kubectl_spread.render import about, words
from kubectl_spread.render import findings as grouped
from kubectl_spread.render.sections.placing import placing, replicas, waiting
from kubectl_spread.render.sections.rollup import rollup
from kubectl_spread.render.sections.skews import causes, engines, evictions
from kubectl_spread.render.sections.terms import domains, selectors, templates
from kubectl_spread.render.terminal import Terminal, between_phrases, heading, paragraph
from kubectl_spread.report.severity import SEVEREST_FIRST, Severity

Section = Callable[[Explanation, Terminal], str]


def explain(explanation: Explanation, terminal: Terminal) -> str:
    """Return the whole text, without empty sections."""
    return "\n".join(text for section in _SECTIONS if (text := section(explanation, terminal)))


def conclusion(explanation: Explanation, terminal: Terminal) -> str:
    """Return the object with the number of its findings, and the findings, the worst first."""
    counts = ", ".join(
        f"{number} {severity}{'s' if number > 1 and severity is not Severity.INFO else ''}"
        for severity in SEVEREST_FIRST
        if (number := explanation.summary.findings.of(severity))
    )
    name = f"{words.workload(explanation.object)} in {words.safe(explanation.namespace)}"
    blocks = grouped.blocks(explanation.findings)
    texts = (grouped.text(block, terminal, namespaces=False, wide=False) for block in blocks)
    return heading(f"{name}: {counts or 'no findings'}", terminal) + "\n".join(texts)


def read(explanation: Explanation, terminal: Terminal) -> str:
    """Return the cluster that was read, and why pods have no constraints to explain."""
    text = between_phrases(
        about.header(explanation.cluster, explanation.summary, explanation.findings, scope=False), "  ", terminal
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


_SECTIONS: Final[tuple[Section, ...]] = (
    conclusion,
    causes,
    evictions,
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
