"""Markdown for job summaries and merge requests: documents, and reports of ``check`` short enough for GitHub."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from msgspec import UnsetType

from kubectl_spread.kube.api.objects import ObjectRef
from kubectl_spread.phrases import plural, some
from kubectl_spread.render import about, figures, words
from kubectl_spread.render import findings as grouped
from kubectl_spread.render.document import Document, Instruction, objects
from kubectl_spread.render.table import totals
from kubectl_spread.report.model import Finding, Report, Row, Severity

MOST_BYTES: Final = 1_000_000
"""GitHub shows a summary of up to 1 MiB, for all steps together."""
_ROOM: Final = 500
"""Bytes for the head of a table, and for the line with the number of rows that were left out."""
_LISTED_DOMAINS: Final = 5
_LISTED_OBJECTS: Final = 4
_LISTED_WORKLOADS: Final = 50
"""The most objects of a cause of a document that are named."""
_FINDING: Final = ("Severity", "Rule", "Workloads", "Path", "Pods", "Message", "Fix")
_ROW: Final = ("Workload", "Constraint", "Pods", "Selector", "Domains", "Skew", "maxSkew")
_SPECIAL: Final = re.compile(r"[\\`*_\[\]~$&<>|\u200b]")
_ENTITIES: Final = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "|": "&#124;", "\u200b": "&#8203;"}
_LINKED: Final = re.compile(r"[@#!%~$&](?=\w)|:(?=//|[a-z+-][\w+-]*:)|\bwww(?=\.)", re.IGNORECASE)
"""Text that GitHub or GitLab would replace by a link to a person, an issue, a label or an address, or by an emoji."""


def markdown(report: Report) -> str:
    """Return a report as GitHub's Markdown: totals, findings by severity, rows with findings.

    Rows beyond ``MOST_BYTES`` bytes are left out and counted.
    """
    with_namespace = (
        len({row.namespace for row in report.constraints} | {finding.namespace for finding in report.findings}) > 1
    )
    troubled = {finding.place for finding in report.findings}
    rows = [row for row in report.constraints if row.place in troubled]
    header = about.header(report.cluster, report.summary, report.findings)
    text = f"### kubectl spread check\n\n**{escaped(totals(report))}**\n\n{escaped(header)}\n"
    text += "".join(f"\n**Warning:** {escaped(warning)}\n" for warning in words.warnings(report.cluster))
    errors = figures.unchecked_lines(figures.unchecked(report))
    text += "".join(f"\n**Error:** {escaped(error)}\n" for error in errors)
    causes = [
        _cause(cause.findings, with_namespace=with_namespace)
        for block in grouped.blocks(report.findings)
        for cause in block.causes
    ]
    text += _table("finding", _FINDING, causes, _remaining_bytes(text) - _ROOM)
    return text + _table(
        "constraint", _ROW, [_row(row, with_namespace=with_namespace) for row in rows], _remaining_bytes(text)
    )


def _remaining_bytes(text: str) -> int:
    return MOST_BYTES - len(text.encode())


def _table(noun: str, columns: Sequence[str], rows: Iterable[Sequence[str]], most: int) -> str:
    """Return a table below its title, or "" for no rows; rows that do not fit into ``most`` bytes are counted."""
    lines = [_line(row) for row in rows]
    if not lines:
        return ""
    text = f"\n#### {noun.capitalize()}s\n\n{_line(columns)}{_line(['---'] * len(columns))}"
    size = _ROOM
    for index, line in enumerate(lines):
        size += len(line.encode())
        if size > most:
            left_out = plural(len(lines) - index, f"more {noun}")
            return f"{text}{''.join(lines[:index])}\n{left_out} left out; `-o json` has all.\n"
    return text + "".join(lines)


def document(answer: Document) -> str:
    """Return a document as GitHub's Markdown."""
    return "\n\n".join(filter(None, _blocks(answer))) + "\n"


def _blocks(answer: Document) -> Iterator[str]:
    """Yield the parts of a document, between which are empty lines; "" where one is missing."""
    yield f"### kubectl spread {answer.command}"
    yield f"**{escaped(answer.headline)}**" if answer.headline else ""
    yield from (escaped(text) for _, text in answer.facts)
    yield escaped(" · ".join(answer.header))
    yield from map(_instruction, answer.instructions)
    for card in answer.cards:
        severity = "" if card.severity is None else f"**{card.severity}** "
        yield f"{severity}{escaped(card.sentence)}"
        yield escaped(objects(card, _LISTED_WORKLOADS))
        yield from map(_instruction, card.instructions)
    if answer.zones:
        zones = [(zone.name, str(zone.before), zone.after.text) for zone in answer.zones]
        yield _titled("Running pods by zone", ("Zone", "Before", "After"), zones)
    for numbers in answer.tables:
        cells = [[cell.text for cell in row] for row in numbers.rows]
        titles = [column.title for column in numbers.columns]
        yield _titled(numbers.title, titles, cells) if cells else escaped(numbers.empty)
    for part in answer.details:
        yield f"#### {escaped(part.title)}"
        yield _fenced(part.lines) if part.preformatted else "\n".join(f"- {escaped(line)}" for line in part.lines)
    yield from map(escaped, answer.notes)
    yield "" if answer.next_step is None else _instruction(answer.next_step)


def _instruction(instruction: Instruction) -> str:
    lines = [*(f"$ {command}" for command in instruction.commands), *instruction.lines]
    return "\n\n".join(
        filter(None, (escaped(instruction.text), _fenced(lines, "console" * bool(instruction.commands))))
    )


def _fenced(lines: Sequence[str], language: str = "") -> str:
    """Return a block of code, whose fence is longer than any in it; "" without lines."""
    texts = [words.safe(line) for line in lines]
    longest = max((len(run) for text in texts for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return "\n".join((f"{fence}{language}", *texts, fence)) if texts else ""


def _titled(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of plain texts below its title, without a line feed at its end."""
    cells = [[escaped(cell) for cell in row] for row in (columns, *rows)]
    cells.insert(1, ["---"] * len(columns))
    return f"#### {escaped(title)}\n\n{''.join(map(_line, cells))}".removesuffix("\n")


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |\n"


def _cause(findings: Sequence[Finding], *, with_namespace: bool) -> tuple[str, ...]:
    """Return the cells about findings with the same cause."""
    first = findings[0]
    workloads = dict.fromkeys(_workload(finding.ref, with_namespace=with_namespace) for finding in findings)
    paths = dict.fromkeys(escaped(words.short_path(finding.path) + grouped.written(finding)) for finding in findings)
    return (
        f"**{first.severity}**" if first.severity is Severity.ERROR else str(first.severity),
        grouped.rules(findings),
        some(list(workloads), _LISTED_OBJECTS),
        some(list(paths), _LISTED_OBJECTS),
        str(sum(finding.pod_count for finding in findings)),
        escaped(about.message(findings)),
        _fixes(findings, with_namespace=with_namespace),
    )


def _fixes(findings: Sequence[Finding], *, with_namespace: bool) -> str:
    """Return the fixes, with their first workload where there are several, each above its commands."""
    domains, lines = about.closed_domains(findings), list[str]()
    others = about.alternatives(findings)
    if domains is not None and not (domains.lasting and others):
        lines += [escaped(domains.fix), *map(_code, map(words.safe, domains.opening))]
        lines += [escaped(f"{domains.condition}: {about.alternative(findings)}")] if others else []
        return "<br>".join([*lines, *(map(_code, others[0].own_commands) if len(findings) == len(others) == 1 else ())])
    findings = findings if domains is None else others
    all_advice = grouped.advice(findings)
    for each in all_advice:
        workload = _workload(each.findings[0].ref, with_namespace=with_namespace)
        lines.append((f"{workload}: " if len(all_advice) > 1 else "") + escaped(each.fix))
        lines += map(_code, map(words.safe, each.commands))
        lines += [f"and for {each.left} more"] if each.left else []
    left = len(findings) - sum(len(each.findings) for each in all_advice)
    lines += [f"and {left} more with other fixes"] if left else []
    return "<br>".join([*lines, *([] if domains is None else [escaped(f"{domains.condition}: {domains.fix}")])])


def _row(row: Row, *, with_namespace: bool) -> tuple[str, ...]:
    verdicts = ", ".join(f"{verdict} {number}" for verdict, number in row.verdicts.items())
    return (
        _workload(row.place.object, with_namespace=with_namespace),
        escaped(words.term(row)),
        str(row.pod_count),
        verdicts or "-",
        escaped(_domains(row)),
        _skew(row),
        "-" if isinstance(row.max_skew, UnsetType) else str(row.max_skew),
    )


def _workload(ref: ObjectRef, *, with_namespace: bool) -> str:
    name = words.workload(ref)
    return escaped(f"{ref.namespace}/{name}" if with_namespace else name)


def _domains(row: Row) -> str:
    """Return the count of each domain; for many domains their number and the range of counts."""
    counts = figures.domain_counts(row)
    if counts is None or isinstance(row.domains, UnsetType) or figures.matches_nothing(row):
        return "-"
    if counts.number <= _LISTED_DOMAINS:
        return " ".join(f"{words.value(domain.value)}={domain.match_num}" for domain in row.domains) or "none"
    return f"{counts.number} ({counts.least} to {counts.most})"


def _skew(row: Row) -> str:
    """Return the skew, in bold and with ``above`` if it is above maxSkew."""
    if isinstance(row.skew, UnsetType) or not figures.is_counted(row):
        return "-"
    text = f"at least {row.skew}" if row.lower_bound is True else str(row.skew)
    return f"**{text}, above**" if row.exceeds_max_skew else text


def _code(text: str) -> str:
    """Return text as code in a cell of a table, in which only the ends of cells are special."""
    fence = "`" * (max(map(len, re.findall("`+", text)), default=0) + 1)
    padding = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{padding}{text}{padding}{fence}".replace("|", "\\|")


def escaped(text: str) -> str:
    """Return text as Markdown without markup, HTML, links, mentions or emoji.

    A space of no width breaks text that GitHub would link after it has rendered the Markdown.
    """
    apart = _LINKED.sub(lambda match: f"{match[0]}\u200b", words.safe(text))
    return _SPECIAL.sub(lambda match: _ENTITIES.get(match[0], f"\\{match[0]}"), apart)
