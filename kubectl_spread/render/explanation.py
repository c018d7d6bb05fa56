"""The documents of ``explain``: of one pod or workload, and of one rule."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import Final

from kubectl_spread.explain.explanation import Explanation
from kubectl_spread.phrases import capitalized, named, sentence
from kubectl_spread.render import about, catalogue, sections
from kubectl_spread.render import findings as grouped
from kubectl_spread.render.catalogue import Example
from kubectl_spread.render.document import Card, Details, Document, Instruction
from kubectl_spread.render.sections.conclusion import verdict
from kubectl_spread.render.terminal import Terminal
from kubectl_spread.report.model import Finding
from kubectl_spread.rules.model import Rule

_GAP: Final = "  "


def document(explanation: Explanation) -> Document:
    """Return an explanation as a document: the verdict, each cause with its fix, and the sections of the text."""
    subject = f"{named(explanation.object.kind, explanation.object.name)} in {explanation.namespace}"
    header = about.header(explanation.cluster, explanation.summary, explanation.findings, scope=False)
    conclusion = verdict(explanation)
    return Document(
        command="explain",
        title=subject,
        cluster=about.label(explanation.cluster),
        header=header.split(_GAP),
        headline=f"{subject}: {conclusion.text}.",
        cards=[
            _card(cause.findings, explanation)
            for block in grouped.blocks(explanation.findings)
            for cause in block.causes
        ],
        details=[*_details(sections.details(explanation, Terminal()))],
        notes=conclusion.limits,
    )


def of_rule(rule: Rule, example: Example) -> Document:
    """Return the page of a rule as a document."""
    title = f"{rule.code} {rule.name}"
    _, _, text = catalogue.rule(rule, example).partition("\n\n")
    return Document(
        command=f"explain {rule.code}",
        title=title,
        cluster="",
        header=[title],
        headline=sentence(rule.summary),
        details=[*_details(text)],
    )


def _card(findings: Sequence[Finding], explanation: Explanation) -> Card:
    """Return a cause with its pods, unless these are all."""
    pods = list(dict.fromkeys(name for finding in findings for name in finding.pods))
    return Card(
        sentence=f"{grouped.rules(findings)}: {about.message(findings)}",
        severity=findings[0].severity,
        objects=pods if len(pods) < explanation.summary.pods else [],
        instructions=[*_instructions(findings)],
    )


def _instructions(findings: Sequence[Finding]) -> Iterator[Instruction]:
    """Yield the fixes of a cause with their commands, and what opens the domains for which its pods wait."""
    domains, others = about.closed_domains(findings), about.alternatives(findings)
    if domains is None:
        yield from _own("Fix", findings)
    elif domains.lasting and others:
        yield from _own("Fix", others)
        yield Instruction(f"{domains.condition}: {domains.fix}", domains.opening)
    else:
        yield Instruction(f"Fix: {domains.fix}", domains.opening)
        yield from _own(domains.condition, others)


def _own(label: str, findings: Sequence[Finding]) -> Iterator[Instruction]:
    for each in grouped.advice(findings, everything=True):
        yield Instruction(f"{label}: {each.fix}", each.commands)


def _details(text: str) -> Iterator[Details]:
    """Yield the parts of a text: lines at the margin are the title of those that follow, or sentences without any."""
    title, lines = "", list[str]()
    for block in text.rstrip("\n").split("\n\n"):
        titles = [*takewhile(lambda line: not line.startswith(" "), block.split("\n"))]
        body = [line.removeprefix(_GAP) for line in block.split("\n")[len(titles) :]]
        if not titles:
            lines += ["", *body]
            continue
        if lines:
            yield Details(title, lines, preformatted=True)
        title, lines = capitalized("; ".join(titles)), body
        if not body:
            yield Details("How to read it", titles)
    if lines:
        yield Details(title, lines, preformatted=True)
