"""The table that ``check`` prints: rows, findings, totals."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Final, Literal

import msgspec
from msgspec import UnsetType

from kubectl_spread.kube.api import labels
from kubectl_spread.phrases import plural
from kubectl_spread.render import about, bars, figures, words
from kubectl_spread.render.changes import Changes
from kubectl_spread.render.folding import folded
from kubectl_spread.render.terminal import Cell, Column, Terminal, between_phrases, hanging, paragraph, table
from kubectl_spread.report.model import Finding, Report, Row, severest_first
from kubectl_spread.report.severity import SEVEREST_FIRST, Severity

_STYLES: Final = {Severity.ERROR: "bold red", Severity.WARNING: "yellow", Severity.INFO: "cyan"}
_LISTED_DOMAINS: Final = 5
_LARGE: Final = 50
_INDENT: Final = " " * 9
_GUTTER: Final = 2
"""The width of a mark and the space after it."""
_FURTHER: Final = "  "


class Layout(msgspec.Struct, frozen=True):
    """The form of the table. Without a value of ``show``, rows without findings are listed unless there are many rows.

    ``changes`` are marked to the left of rows and findings; without them there is no column for marks.
    """

    wide: bool = False
    namespaces: bool = False
    headers: bool = True
    show: Literal["problems", "all"] | None = None
    changes: Changes | None = None


def check(report: Report, layout: Layout, terminal: Terminal) -> str:
    """Return the whole text: the header, rows (those with findings first), findings, totals."""
    troubled = {texts.place for texts in report.findings}
    rows = sorted(report.constraints, key=lambda row: row.place not in troubled)
    problems_only = layout.show == "problems" or (layout.show is None and len(rows) > _LARGE)
    visible = [row for row in rows if not problems_only or row.place in troubled]
    header = about.header(report.cluster, report.summary, report.constraints)
    parts = [between_phrases(header, _FURTHER, terminal)] if layout.headers else []
    if visible:
        parts.append(_rows(visible, layout, terminal))
    if report.findings:
        pods = figures.pods_by_place(report)
        texts = (
            _finding(finding, pods[finding.place], layout, terminal) for finding in severest_first(report.findings)
        )
        parts.append("".join(texts))
    parts.append(hanging(totals(report, hidden=len(rows) - len(visible)), _FURTHER, terminal))
    return "\n".join(parts)


def totals(report: Report, *, hidden: int = 0) -> str:
    """Return the last line: the numbers of pods, rows and findings, and of those that were left out."""
    summary = report.summary
    counts = ", ".join(
        f"{number} {severity}{'s' if number != 1 and severity is not Severity.INFO else ''}"
        for severity in SEVEREST_FIRST
        if (number := summary.findings.of(severity))
    )
    objects = [plural(summary.pods, "pod"), plural(summary.constraints, "constraint")]
    if isinstance(summary.templates, int):
        objects.append(plural(summary.templates, "pod template"))
    baseline = isinstance(summary.known, int)
    parts = [", ".join(objects), counts or ("no new findings" if baseline else "no findings")]
    if hidden:
        parts.append(f"{plural(hidden, 'row')} without findings not shown (--show all)")
    if summary.silenced:
        parts.append(f"{summary.silenced} silenced")
    if baseline:
        parts.append(f"{summary.known} known (baseline)")
    if report.cluster.nodes == "none":
        parts.append("placement not evaluated: no nodes")
    if summary.skipped:
        parts.append(figures.skipped(summary))
    return "; ".join(parts)


def _rows(rows: Sequence[Row], layout: Layout, terminal: Terminal) -> str:
    columns = [
        *([Column("NAMESPACE", fit="end", least=6)] if layout.namespaces else []),
        Column("WORKLOAD", fit="middle", least=10),
        Column("CONSTRAINT", fit="end", least=10),
        Column("PODS", "right"),
        Column("SELECTOR", fit="middle", least=8),
        Column("DOMAINS"),
        Column("SKEW", "right"),
        Column("MAX", "right"),
    ]
    if layout.wide:
        columns += [
            Column("MIN", "right"),
            Column("SELF", "right"),
            Column("BARS"),
            Column("PATH"),
            Column("EFFECTIVE", fit="end", least=20),
        ]
    changes = layout.changes
    cells = [_cells(row, layout, terminal) for row in rows]
    if changes is None:
        return table(columns, cells, terminal, headers=layout.headers)
    text = table(columns, cells, terminal.narrower(_GUTTER), headers=layout.headers)
    marks = [*([" "] if layout.headers else []), *(changes.mark(row) for row in rows)]
    return "".join(f"{mark} {line}\n" for mark, line in zip(marks, text.splitlines(), strict=True))


def _cells(row: Row, layout: Layout, terminal: Terminal) -> list[Cell | str]:
    cells: list[Cell | str] = [
        words.workload(row.workload),
        Cell(words.term(row), shorter=(words.term(row, short=True), words.strictness(row))),
        str(row.pod_count),
        _selector(row),
        _domains(row),
        _skew(row),
        _number(row.max_skew),
    ]
    if layout.namespaces:
        cells.insert(0, words.safe(row.namespace))
    if layout.wide:
        cells += [
            _number(row.min_match_num),
            _number(row.self_match_num),
            ("" if figures.matches_nothing(row) else bars.side_by_side(row, ascii_only=terminal.ascii)) or "-",
            words.short_path(row.path),
            words.safe(labels.describe(row.selector.effective)),
        ]
    return cells


def _selector(row: Row) -> Cell:
    if not row.verdicts:
        return Cell("-")
    worst, number = next(iter(row.verdicts.items()))
    text = worst if number == row.pod_count else f"{worst} {number}/{row.pod_count}"
    return Cell(text, "yellow" if figures.is_doubtful(row) else "")


def _domains(row: Row) -> Cell:
    """Return the count of each domain; for many, and on narrow terminals, their number and the range of counts."""
    counts = figures.domain_counts(row)
    if counts is None or isinstance(row.domains, UnsetType) or figures.matches_nothing(row):
        return Cell("-")
    if not counts.number:
        return Cell("<none>")
    summary = f"{counts.number} ({counts.least}..{counts.most})"
    if counts.number > _LISTED_DOMAINS:
        return Cell(summary)
    text = folded([words.value(domain.value) for domain in row.domains], [domain.match_num for domain in row.domains])
    return Cell(text, shorter=(text, summary) if len(summary) < len(text) else ())


def _skew(row: Row) -> Cell:
    if isinstance(row.skew, UnsetType) or figures.matches_nothing(row):
        return Cell("-")
    bound = ">=" if row.lower_bound is True else ""
    return Cell(f"{bound}{row.skew}", "yellow" if row.exceeds_max_skew else "")


def _number(value: int | UnsetType) -> str:
    return "-" if isinstance(value, UnsetType) else str(value)


def _finding(finding: Finding, pods: int, layout: Layout, terminal: Terminal) -> str:
    """Return the text of a finding; ``pods`` is the number of pods with the constraint or term."""
    place = words.workload(finding.object)
    if layout.namespaces:
        place = f"{words.safe(finding.namespace)}/{place}"
    about = f"{place}  {words.short_path(finding.path)}  {figures.concerned(finding, pods)}{_written(finding)}"
    if layout.changes is None:
        return head(finding, about, terminal) + details(finding, terminal, pods=layout.wide)
    narrower = terminal.narrower(_GUTTER)
    text = head(finding, about, narrower) + details(finding, narrower, pods=layout.wide)
    return f"{layout.changes.mark(finding)} " + textwrap.indent(text, " " * _GUTTER).removeprefix(" " * _GUTTER)


def _written(finding: Finding) -> str:
    """Return the position of a finding on a manifest, as compilers write it."""
    return "" if isinstance(finding.source, UnsetType) else f"  {words.safe(finding.source.file)}:{finding.source.line}"


def head(finding: Finding, about: str, terminal: Terminal) -> str:
    """Return the first line of a finding: severity, code, name, workload and path."""
    text = f"{finding.severity!s:<8} {finding.code} {finding.name}  {about}"
    severity = terminal.styled(str(finding.severity), _STYLES[finding.severity])
    return severity + hanging(text, _INDENT, terminal).removeprefix(str(finding.severity))


def details(finding: Finding, terminal: Terminal, *, pods: bool) -> str:
    """Return the lines below the head of a finding: message, pods if ``pods`` is true, fix."""
    texts = [finding.message, *([f"pods: {' '.join(finding.pods)}"] if pods else []), f"fix: {finding.fix}"]
    paragraphs = "".join(paragraph(words.safe(text), _INDENT, terminal) for text in texts)
    # A command is one line of any length, so that it can be copied.
    commands = () if isinstance(finding.commands, UnsetType) else finding.commands
    return paragraphs + "".join(f"{_INDENT}$ {words.safe(command)}\n" for command in commands)
