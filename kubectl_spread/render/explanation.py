"""The documents of ``explain``: of one pod or workload, and of one rule."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile
from typing import Final

from kubectl_spread.explain.explanation import Explanation
from kubectl_spread.phrases import capitalized, named, sentence
from kubectl_spread.render import about, catalogue, sections
from kubectl_spread.render import findings as grouped
from kubectl_spread.render.catalogue import Example
from kubectl_spread.render.document import Card, Details, Document
from kubectl_spread.render.findings import Detail
from kubectl_spread.render.sections.conclusion import verdict
from kubectl_spread.render.terminal import Terminal
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
        cards=[*_cards(explanation)],
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


def _cards(explanation: Explanation) -> Iterator[Card]:
    """Yield each cause with its pods, unless these are all."""
    for block in grouped.blocks(explanation.findings):
        title = grouped.rules(block.findings)
        for cause in block.causes:
            pods = list(dict.fromkeys(name for finding in cause.findings for name in finding.pods))
            yield Card(
                about.message(cause.findings),
                severity=cause.findings[0].severity,
                objects=pods if len(pods) < explanation.summary.pods else [],
                instructions=[*grouped.instructions(cause.findings, namespaces=False, detail=Detail.EVERYTHING)],
                title=title,
            )


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
