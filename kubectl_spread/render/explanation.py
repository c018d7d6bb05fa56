"""The document of ``explain`` about one pod or workload: what is wrong, why, what to type, and the evidence."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from kubectl_spread.explain.explanation import Explanation
from kubectl_spread.phrases import listed, named, plural
from kubectl_spread.render import about, figures, words
from kubectl_spread.render import findings as grouped
from kubectl_spread.render.document import Card, Document, Instruction
from kubectl_spread.render.domain_evidence import domains, new_nodes, placing, replicas, waiting
from kubectl_spread.render.findings import Block, Detail
from kubectl_spread.render.selector_evidence import rollup, selectors, templates
from kubectl_spread.report.model import Finding, Severity

_LISTED_ROWS: Final = 4


def document(explanation: Explanation, inputs: Sequence[str] = ()) -> Document:
    """Return an explanation as a document; if nothing is wrong, the conclusion says what was checked and what not.

    Args:
        explanation: The explanation.
        inputs: The flags of commands that read the same cluster or files.
    """
    subject = f"{named(explanation.object.kind, explanation.object.name)} in {explanation.namespace}"
    is_wrong = any(finding.severity > Severity.INFO for finding in explanation.findings)
    limits = [*_limits(explanation)]
    return Document(
        command="explain",
        title=subject,
        cluster=about.label(explanation.cluster),
        header=about.header(explanation.cluster, explanation.summary, explanation.findings, scope=False),
        header_last=True,
        headline=f"{subject}: {_verdict(explanation, is_wrong=is_wrong)}.",
        facts=[] if is_wrong else [("", text) for text in (*_checked(explanation), *limits)],
        cards=[card for block in grouped.blocks(explanation.findings) for card in _cards(block, explanation)],
        sections=[
            *waiting(explanation),
            *new_nodes(explanation),
            *domains(explanation),
            *placing(explanation),
            *replicas(explanation, inputs),
            *selectors(explanation),
            *templates(explanation),
            *rollup(explanation),
        ],
        notes=limits if is_wrong else [],
    )


def _verdict(explanation: Explanation, *, is_wrong: bool) -> str:
    """Return the pending pods, unless a finding is about them, and the number of findings of each severity."""
    counts = listed(figures.counted(finding.severity for finding in explanation.findings))
    if is_wrong:
        return counts
    pending = _pending(explanation)
    waiting = f"{_of(pending, explanation.summary.pods)} pending, " if pending else ""
    return f"{waiting}{f'no errors or warnings, {counts}' if explanation.findings else 'no findings'}"


def _pending(explanation: Explanation) -> int:
    """Return the number of pods without a node, as far as it is known."""
    waiting = {name for group in explanation.waiting for name in group.pods}
    return max(len(waiting), sum(group.pending for group in explanation.groups))


def _of(number: int, pods: int) -> str:
    return f"{number} of {plural(pods, 'pod')}" if number < pods else plural(pods, "pod")


def _cards(block: Block, explanation: Explanation) -> Iterator[Card]:
    """Yield the causes of a block, each with what to do, and with its pods if these are not all.

    The title names the constraint where there are several. Pods that wait for closed domains have reasons of their own.
    """
    paths = {row.path for row in explanation.constraints} | {term.path for term in explanation.templates}
    of_block = dict.fromkeys(words.short_path(finding.path) for finding in block.findings if finding.path)
    place = [listed([*of_block], len(of_block))] if len(paths) > 1 else []
    title = ", ".join([grouped.rules(block.findings), *place, _pods(block.findings, explanation)])
    severity: Severity | None = block.findings[0].severity
    for cause in block.causes:
        *others, last = dict.fromkeys(finding.message for finding in cause.findings)
        instructions = [*grouped.instructions(cause.findings, namespaces=False, detail=Detail.EVERYTHING)]
        affected = [*_affected(cause.findings, instructions, explanation.summary.pods)]
        cards = [*map(Card, others), Card(last, instructions=[*instructions, *affected])]
        for card in cards:
            yield Card(card.sentence, severity, instructions=card.instructions, title=title)
            severity, title = None, ""


def _pods(of_rule: Sequence[Finding], explanation: Explanation) -> str:
    """Return how many of the pods findings are about."""
    number = len({name for finding in of_rule for name in finding.pods})
    return _of(number, explanation.summary.pods) if number else "pod template"


def _affected(findings: Iterable[Finding], instructions: Iterable[Instruction], number: int) -> Iterator[Instruction]:
    """Yield the pods of findings, unless these are all or the commands name them."""
    pods = list(dict.fromkeys(name for finding in findings for name in finding.pods))
    typed = {word for instruction in instructions for command in instruction.commands for word in command.split()}
    if len(pods) < number and not typed.issuperset(pods):
        yield Instruction(f"Affected: {words.names(pods)}")


def _checked(explanation: Explanation) -> Iterator[str]:
    """Yield the numbers of pods and constraints, and the largest skews."""
    if _pending(explanation):
        yield "No rule explains why the scheduler has not placed a pending pod."
    if _is_unspread(explanation):
        return
    skews = [
        f"{words.topology(row.topology_key)} {row.skew} (maxSkew {row.max_skew})"
        for row in explanation.constraints
        if isinstance(row.skew, int) and isinstance(row.max_skew, int)
    ]
    without = "" if figures.constraints(explanation.summary) else f" {figures.UNCONSTRAINED}"
    most = f" Skew by {listed([*dict.fromkeys(skews)], _LISTED_ROWS)}." if skews else ""
    yield f"Checked: {figures.objects(explanation.summary)}{without}.{most}"


def _is_unspread(explanation: Explanation) -> bool:
    """Tell whether a finding says that the pods have no constraints, and only the scheduler's defaults may apply."""
    return any(finding.code == "SPR504" for finding in explanation.findings)


def _limits(explanation: Explanation) -> Iterator[str]:
    nodes, summary = explanation.cluster.nodes, explanation.summary
    yield from figures.unanswered(summary.skipped)
    if nodes == "none":
        yield "Not checked: where pods are and where they can go, because no nodes were read."
    elif nodes == "inferred":
        yield "Not checked: domains without pods, because nodes could not be read."
    if isinstance(explanation.unconstrained, list) and not _is_unspread(explanation):
        number = len(explanation.unconstrained)
        pods = "the pods" if number == summary.pods else f"{number} of {plural(summary.pods, 'pod')}"
        yield (
            f"Not checked: the scheduler's default constraints, which apply to {pods} without constraints "
            "(--defaults or --scheduler-config)."
        )
    yield from figures.withheld(explanation.cluster, summary)
    yield from figures.skipped(summary)
    if nodes == "listed":
        yield "Not checked: volume limits, devices and other plugins of the scheduler."
