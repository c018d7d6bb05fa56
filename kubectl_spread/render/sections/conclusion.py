"""The conclusion: what is wrong, why, and what to type; and what was not checked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import msgspec
from msgspec import UnsetType

from kubectl_spread.explain.explanation import Explanation
from kubectl_spread.phrases import capitalized, listed, plural
from kubectl_spread.render import about, figures, findings, words
from kubectl_spread.render.findings import Block, Cause
from kubectl_spread.render.screen import STYLES
from kubectl_spread.render.terminal import Terminal, between_phrases, hanging, heading, paragraph
from kubectl_spread.report.model import SEVEREST_FIRST, CommandLine, Finding, Severity

_INDENT: Final = "  "
_LISTED_ROWS: Final = 4
_EXPLAIN: Final = ("kubectl", "spread", "explain")


class Conclusion(msgspec.Struct, frozen=True):
    """The number of findings in words, and sentences about what was checked and what could hide a problem."""

    text: str
    limits: Sequence[str]


def verdict(explanation: Explanation) -> Conclusion:
    """Return what an explanation found."""
    blocks, limits = findings.blocks(explanation.findings), _unchecked(explanation)
    if has_problem(explanation):
        return Conclusion(_counts(blocks), limits)
    text = f"no errors or warnings, {_counts(blocks)}" if blocks else "no findings"
    limits = [*([] if _is_unspread(explanation) else [_checked(explanation)]), *limits]
    if pending := _pending(explanation):
        text = f"{_of(pending, explanation.summary.pods)} pending, {text}"
        limits.insert(0, "No rule explains why the scheduler has not placed a pending pod.")
    return Conclusion(text, limits)


def conclusion(explanation: Explanation, terminal: Terminal) -> str:
    """Return the verdict, and every finding with its cause and the commands, the worst first."""
    name = f"{words.workload(explanation.object)} in {words.safe(explanation.namespace)}: "
    blocks = findings.blocks(explanation.findings)
    if not has_problem(explanation):
        result = verdict(explanation)
        checked = "".join(paragraph(line, _INDENT, terminal) for line in result.limits)
        notes = (_block(block, explanation, terminal, "") for block in blocks)
        return "\n".join([heading(f"{name}{result.text}", terminal) + checked, *notes])
    others = _counts(blocks[1:])
    more = f"; also {others}" if others else ""
    first = _block(blocks[0], explanation, terminal, name, more)
    return "\n".join([first, *(_block(block, explanation, terminal, "") for block in blocks[1:])])


def _is_unspread(explanation: Explanation) -> bool:
    """Tell whether a finding says that the pods have no constraints, and only the scheduler's defaults may apply."""
    return any(finding.code == "SPR504" for finding in explanation.findings)


def has_problem(explanation: Explanation) -> bool:
    """Tell whether there is an error or a warning."""
    return any(finding.severity > Severity.INFO for finding in explanation.findings)


def read(explanation: Explanation, terminal: Terminal) -> str:
    """Return the cluster that was read, and what was not checked if the conclusion does not say it."""
    header = about.header(explanation.cluster, explanation.summary, explanation.findings, scope=False)
    unchecked = _unchecked(explanation) if has_problem(explanation) else []
    return between_phrases(header, _INDENT, terminal) + "".join(paragraph(line, "", terminal) for line in unchecked)


def _counts(blocks: Sequence[Block]) -> str:
    """Return the number of findings of each severity in blocks; "" for none."""
    severities = [finding.severity for block in blocks for finding in block.findings]
    nouns = {Severity.INFO: "note"}
    counts = [
        plural(number, nouns.get(severity, str(severity)))
        for severity in SEVEREST_FIRST
        if (number := severities.count(severity))
    ]
    return listed(counts, len(counts)) if counts else ""


def _block(block: Block, explanation: Explanation, terminal: Terminal, before: str, after: str = "") -> str:
    """Return the findings of one rule and severity: a title, and each cause with the fix, the commands and the pods."""
    finding = block.findings[0]
    # A finding names its constraint where the workload has several.
    paths = {row.path for row in explanation.constraints} | {term.path for term in explanation.templates}
    place = f", {_paths(block)}" if len(paths) > 1 else ""
    of_pods = f", {_pods(block.findings, explanation)}"
    title = f"{finding.severity} {findings.rules(block.findings)}{place}{of_pods}"
    severity = terminal.styled(str(finding.severity), STYLES[finding.severity])
    line = hanging(f"{before}{title}{after}", _INDENT, terminal)
    line = line.replace(f"{finding.severity} {finding.code}", f"{severity} {finding.code}", 1)
    by_fix: dict[tuple[str, ...], list[Cause]] = {}
    for cause in block.causes:
        by_fix.setdefault(_fixes(cause.findings), []).append(cause)
    return line + "".join(_causes(fixes, causes, explanation, terminal) for fixes, causes in by_fix.items())


def _paths(block: Block) -> str:
    paths = dict.fromkeys(words.short_path(finding.path) for finding in block.findings if finding.path)
    return listed(list(paths), len(paths))


def _pods(of_rule: Sequence[Finding], explanation: Explanation) -> str:
    """Return how many of the pods findings are about."""
    if not explanation.summary.pods:
        return "pod template"
    number = len({name for finding in of_rule for name in finding.pods})
    return figures.concerned(of_rule[0], 0) if not number else _of(number, explanation.summary.pods)


def _pending(explanation: Explanation) -> int:
    """Return the number of pods without a node, as far as it is known."""
    waiting = {name for group in explanation.waiting for name in group.pods}
    return max(len(waiting), sum(group.pending for group in explanation.groups))


def _of(number: int, pods: int) -> str:
    return f"{number} of {plural(pods, 'pod')}" if number < pods else plural(pods, "pod")


def _causes(fixes: Sequence[str], causes: Sequence[Cause], explanation: Explanation, terminal: Terminal) -> str:
    """Return the message of each cause, then the fixes and commands that they share, and the pods if not all."""
    of_causes = [finding for cause in causes for finding in cause.findings]
    commands = [command for finding in of_causes for command in _commands(finding)]
    pods = list(dict.fromkeys(name for finding in of_causes for name in finding.pods))
    # Pods that wait for closed domains do so for reasons of their own.
    waits = about.closed_domains(of_causes) is not None
    messages = dict.fromkeys(finding.message for cause in causes for finding in cause.findings[: None if waits else 1])
    text = "".join(paragraph(words.safe(message), _INDENT, terminal) for message in messages)
    domains, own = about.closed_domains(of_causes), about.alternatives(of_causes)
    if domains is None:
        text += _fix("Fix", fixes, commands, terminal)
    else:
        commands = [command for finding in own for command in _commands(finding)]
        advice: list[tuple[Sequence[str], Iterable[object]]] = [
            ([domains.fix], domains.opening),
            (_fixes(own), commands),
        ]
        labels = ("Fix", domains.condition)
        in_order = reversed(advice) if own and domains.lasting else advice
        text += "".join(_fix(label, *each, terminal) for label, each in zip(labels, in_order, strict=True))
    named = {word for command in commands for word in command.words}
    if len(pods) >= explanation.summary.pods or named.issuperset(pods):
        return text
    return text + paragraph(f"Affected: {words.names(pods)}", _INDENT, terminal)


def _fix(label: str, fixes: Iterable[str], commands: Iterable[object], terminal: Terminal) -> str:
    """Return fixes with their commands, each in one line of any length, so that it can be copied."""
    text = "".join(paragraph(f"{label}: {words.safe(fix)}", _INDENT, terminal) for fix in fixes)
    return text + "".join(f"{_INDENT * 2}$ {words.safe(line)}\n" for line in dict.fromkeys(map(str, commands)))


def _fixes(of_cause: Sequence[Finding]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(finding.fix for finding in of_cause))


def _commands(finding: Finding) -> list[CommandLine]:
    """Return the commands of a finding, without those that lead here."""
    commands = [] if isinstance(finding.commands, UnsetType) else finding.commands
    return [command for command in commands if command.words[:3] != _EXPLAIN]


def _checked(explanation: Explanation) -> str:
    """Return the numbers of pods and constraints, and the largest skews."""
    if not explanation.constraints:
        return _without_constraints(explanation)
    skews = [
        f"{words.topology(row.topology_key)} {row.skew} (maxSkew {row.max_skew})"
        for row in explanation.constraints
        if isinstance(row.skew, int) and isinstance(row.max_skew, int)
    ]
    pods = plural(explanation.summary.pods, "pod")
    text = f"Checked {pods} with {plural(explanation.summary.constraints, 'constraint')}."
    return f"{text} Skew by {listed(list(dict.fromkeys(skews)), _LISTED_ROWS)}." if skews else text


def _without_constraints(explanation: Explanation) -> str:
    """Return the numbers of pods and of the template's constraints, for pods without constraints."""
    nothing = "no spread constraint and no affinity term with matchLabelKeys"
    if explanation.summary.pods or not explanation.summary.templates:
        verb = "has" if explanation.summary.pods == 1 else "have"
        return f"{plural(explanation.summary.pods, 'pod').capitalize()} {verb} {nothing}."
    spread = sum(isinstance(clause.when_unsatisfiable, str) for clause in explanation.templates)
    affinity_terms = len(explanation.templates) - spread
    counts = [plural(spread, "spread constraint")] if spread else []
    counts += [f"{plural(affinity_terms, 'affinity term')} with matchLabelKeys"] if affinity_terms else []
    return f"There are no pods. The template has {' and '.join(counts) or nothing}."


def _unchecked(explanation: Explanation) -> list[str]:
    """Return a sentence for everything that could hide a problem because it was not checked."""
    return [capitalized(sentence) for sentence in _limits(explanation)]


def _limits(explanation: Explanation) -> Iterator[str]:
    nodes, summary = explanation.cluster.nodes, explanation.summary
    yield from figures.unanswered(summary.skipped)
    if nodes == "none":
        yield "not checked: where pods are and where they can go, because no nodes were read."
    elif nodes == "inferred":
        yield "not checked: domains without pods, because nodes could not be read."
    if isinstance(explanation.unconstrained, list) and not _is_unspread(explanation):
        number = len(explanation.unconstrained)
        pods = "the pods" if number == summary.pods else f"{number} of {plural(summary.pods, 'pod')}"
        yield (
            f"not checked: the scheduler's default constraints, which apply to {pods} without constraints "
            "(--defaults or --scheduler-config)."
        )
    if upgrade := figures.upgrade(explanation.cluster, summary):
        yield f"{upgrade}."
    if selected := figures.selected(summary):
        yield f"{selected}."
    if summary.silenced:
        yield f"not shown: {plural(summary.silenced, 'silenced finding')}."
    if skipped := figures.skipped(summary):
        yield skipped
    if nodes == "listed":
        yield "not checked: volume limits, devices and other plugins of the scheduler."
