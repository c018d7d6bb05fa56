"""The domains of each constraint: their pods, the formula for one more pod, the causes of a skew, pods to evict."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import UnsetType

from kubectl_spread.diagnosis.evictions import Evictions
from kubectl_spread.explain.causes import SkewCause
from kubectl_spread.explain.explanation import Explanation
from kubectl_spread.kube.api import labels
from kubectl_spread.phrases import plural, sentence, some
from kubectl_spread.render import bars, words
from kubectl_spread.render.terminal import Column, Terminal, heading, paragraph, table
from kubectl_spread.report.model import Domain, Row

_INDENT: Final = "  "
_LISTED: Final = 12
"""The most domains with a line each; of more domains, those with equal counts share a line."""
_LEGEND: Final = (
    "NEXT POD is the domain's pods, plus 1 if the selector matches the pod itself, minus the global minimum, compared "
    "with maxSkew."
)
_SKEW_RULES: Final = ("SPR301", "SPR302")


def domains(explanation: Explanation, terminal: Terminal) -> str:
    """Return a block for each row whose pods are counted, and the meaning of the columns and bars that need it."""
    counted = [
        (index, row) for index, row in enumerate(explanation.constraints) if not isinstance(row.domains, UnsetType)
    ]
    text = "\n".join(_row(index, row, explanation, terminal) for index, row in counted)
    rows = [row for _, row in counted if row.domains]
    legends = [
        _LEGEND if any(map(_has_formulas, rows)) else "",
        bars.legend(rows, ascii_only=terminal.ascii),
    ]
    meaning = "".join(paragraph(legend, "", terminal) for legend in legends if legend)
    return f"{text}\n{meaning}" if meaning else text


def _has_formulas(row: Row) -> bool:
    return isinstance(row.self_match_num, int) and not isinstance(row.next, UnsetType)


def title(row: Row, explanation: Explanation) -> str:
    """Return the path of a row and its requirement, and its selector where rows of the same path differ in it."""
    text = f"{words.short_path(row.path)}: {words.topology(row.topology_key)} {words.policy(row)}"
    if isinstance(row.max_skew, int):
        text += f", maxSkew {row.max_skew}"
    if sum(constraint.path == row.path for constraint in explanation.constraints) > 1:
        text += f", selecting {words.safe(labels.describe(row.selector.effective))}"
    return text


def _row(index: int, row: Row, explanation: Explanation, terminal: Terminal) -> str:
    pending = f", {row.pending} pending" if row.pending else ""
    text = heading(f"Domains of {title(row, explanation)} ({plural(row.pod_count, 'pod')}{pending})", terminal)
    text += _table(row, terminal) + "".join(paragraph(line, _INDENT, terminal) for line in _skew(row))
    for cause in explanation.causes:
        if cause.row == index:
            text += "".join(paragraph(words.safe(line), _INDENT, terminal) for line in _cause(cause))
    for plan in explanation.evictions:
        if plan.row == index and not _is_reported(plan, explanation):
            text += paragraph(words.safe(_evictions(plan)), _INDENT, terminal)
    return text


def _table(row: Row, terminal: Terminal) -> str:
    """Return a line for each domain, or for each number of pods if there are many domains."""
    if not isinstance(row.domains, list) or not row.domains:
        return ""
    most = max(domain.match_num for domain in row.domains)
    formulas = _has_formulas(row)
    columns = [
        Column(f"{_INDENT}DOMAIN", fit="middle", least=16),
        Column("NODES", "right"),
        Column("PODS", "right"),
        Column(""),
        *([Column("NEXT POD")] if formulas else []),
    ]
    cells = []
    for equal in _folded(row.domains):
        first = equal[0]
        bar = bars.lengthwise(first.match_num, row, most, ascii_only=terminal.ascii)
        numbers = [str(sum(domain.nodes for domain in equal)), f"{first.match_num}{' each' if len(equal) > 1 else ''}"]
        cells.append([_INDENT + _name(equal), *numbers, bar, *([_formula(first, row)] if formulas else [])])
    return table(columns, cells, terminal)


def _folded(listed: Sequence[Domain]) -> list[list[Domain]]:
    """Return each domain by itself or, of many domains, those with equal counts together, the fullest first."""
    if len(listed) <= _LISTED:
        return [[domain] for domain in listed]
    by_count: dict[int, list[Domain]] = {}
    for domain in sorted(listed, key=lambda domain: -domain.match_num):
        by_count.setdefault(domain.match_num, []).append(domain)
    return list(by_count.values())


def _name(equal: Sequence[Domain]) -> str:
    if len(equal) == 1:
        return words.value(equal[0].value)
    return f"{len(equal)} domains ({some([words.value(domain.value) for domain in equal])})"


def _formula(domain: Domain, row: Row) -> str:
    """Return the comparison in Filter for one more pod: matchNum + selfMatchNum - minMatchNum against maxSkew."""
    numbers = (row.self_match_num, row.min_match_num, row.max_skew)
    own, least, most = (number for number in numbers if isinstance(number, int))
    skew = domain.skew + own
    if row.when_unsatisfiable != "DoNotSchedule":
        return f"{domain.match_num} + {own} - {least} = {skew}, preferred <= {most}"
    sign, answer = (">", "blocked") if skew > most else ("<=", "allowed")
    return f"{domain.match_num} + {own} - {least} = {skew} {sign} {most} {answer}"


def _skew(row: Row) -> list[str]:
    """Return the number of domains that are not listed, and the skew in words."""
    if not row.domains:
        return ["No node that counts has the topology key, so there is no domain."]
    lines = []
    if isinstance(row.empty_domains, int):
        lines.append(f"{plural(row.empty_domains, 'more domain')} without matching pods.")
    bound = "at least " if row.lower_bound is True else ""
    most = plural(max(domain.match_num for domain in row.domains), "pod")
    lines.append(
        f"The skew is {bound}{row.skew}: the fullest domain has {most}, and the global minimum is {row.min_match_num}."
    )
    return lines


def _cause(cause: SkewCause) -> list[str]:
    """Return a cause in a sentence with its name in JSON, and further evidence in sentences of their own."""
    certainty = {"certain": "Cause", "likely": "Likely cause", "unknown": "Cause"}[cause.confidence]
    first, *more = cause.evidence
    return [f"{certainty} ({cause.cause}): {first}", *more]


def _is_reported(plan: Evictions, explanation: Explanation) -> bool:
    """Tell whether a finding about the skew has the reason why no pods can be named, or commands with these pods."""
    findings = [
        finding
        for finding in explanation.findings
        if finding.code in _SKEW_RULES and not isinstance(finding.rows, UnsetType) and plan.row in finding.rows
    ]
    if isinstance(plan.pods, UnsetType):
        return bool(findings)
    commands = [command for finding in findings if isinstance(finding.commands, list) for command in finding.commands]
    return set(plan.pods) <= {word for command in commands for word in command.replace("/", " ").split()}


def _evictions(plan: Evictions) -> str:
    """Return the pods to evict so that the skew ends within maxSkew, or the reason why there are none."""
    if isinstance(plan.pods, UnsetType):
        return sentence(str(plan.reason))
    replacements = (
        "Their replacements can only go where the skew ends within maxSkew."
        if plan.sure
        else "Other constraints decide too where the replacements go, so the skew may end differently."
    )
    pods = f"{plural(len(plan.pods), 'pod')}: {', '.join(plan.pods)}"
    return f"To bring the skew within maxSkew, evict {pods}. {replacements}"
