"""The table that ``check`` prints: rows, findings, totals."""

from __future__ import annotations

import textwrap
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Final, Literal

import msgspec
from msgspec import UnsetType

from kubectl_spread.kube.api import labels
from kubectl_spread.phrases import plural
from kubectl_spread.render import about, bars, figures, words
from kubectl_spread.render import findings as grouped
from kubectl_spread.render.changes import Changes
from kubectl_spread.render.folding import folded
from kubectl_spread.render.terminal import Cell, Column, Terminal, between_phrases, hanging, table
from kubectl_spread.report.model import Finding, Report, Row, Summary
from kubectl_spread.report.severity import SEVEREST_FIRST, Severity

_STYLES: Final = {Severity.ERROR: "bold red", Severity.WARNING: "yellow", Severity.INFO: "cyan"}
_LISTED_DOMAINS: Final = 5
_SCREEN: Final = 20
"""The most rows that are listed where neither -o wide nor --show all asks for all."""
_INDENT: Final = " " * 9
_GUTTER: Final = 2
"""The width of a mark and the space after it."""
_FURTHER: Final = "  "


class Layout(msgspec.Struct, frozen=True):
    """The form of the table. Without a value of ``show``, a screen of rows is listed, those with findings first.

    ``notes`` tells whether findings of the severity ``info`` are printed.
    ``changes`` are marked to the left of rows and findings; without them there is no column for marks.
    """

    wide: bool = False
    namespaces: bool = False
    headers: bool = True
    show: Literal["problems", "all"] | None = None
    notes: bool = False
    changes: Changes | None = None


def check(report: Report, layout: Layout, terminal: Terminal) -> str:
    """Return the whole text: the header, rows (those with findings first), findings, totals."""
    findings = [finding for finding in report.findings if layout.notes or finding.severity > Severity.INFO]
    of_rows = _by_row(report, findings)
    rows = sorted(report.constraints, key=lambda row: id(row) not in of_rows)
    visible = _visible(rows, of_rows, layout)
    header = about.header(report.cluster, report.summary, report.constraints)
    parts = [between_phrases(header, _FURTHER, terminal)] if layout.headers else []
    if visible:
        hidden = _hidden(rows[len(visible) :], of_rows)
        parts.append(_rows(visible, of_rows, layout, terminal) + hanging(hidden, _FURTHER, terminal))
    for block in grouped.blocks(findings):
        text = grouped.text(block, _beside_marks(layout, terminal), namespaces=layout.namespaces, wide=layout.wide)
        parts.append(_marked(text, block, layout))
    parts.append(hanging(totals(report, notes=layout.notes), _FURTHER, terminal))
    return "\n".join(parts)


def _by_row(report: Report, findings: Iterable[Finding]) -> dict[int, list[Finding]]:
    """Return the findings that are about pods of each row, by the identity of the row."""
    of_rows: dict[int, list[Finding]] = {}
    for finding in findings:
        for index in () if isinstance(finding.rows, UnsetType) else finding.rows:
            of_rows.setdefault(id(report.constraints[index]), []).append(finding)
    return of_rows


def _visible(rows: Sequence[Row], of_rows: Container[int], layout: Layout) -> Sequence[Row]:
    """Return the rows to list: all where they are few, else those with findings, up to a screen."""
    if layout.show == "problems":
        return [row for row in rows if id(row) in of_rows]
    if layout.show == "all" or layout.wide:
        return rows
    return rows[:_SCREEN]


def _hidden(rows: Sequence[Row], of_rows: Container[int]) -> str:
    """Return how many rows were left out, or ""."""
    problems = sum(id(row) in of_rows for row in rows)
    kinds = [f"{problems} more with findings"] if problems else []
    if len(rows) > problems:
        kinds.append(f"{len(rows) - problems} without")
    return f"{' and '.join(kinds)}: --show all" if kinds else ""


def totals(report: Report, *, notes: bool = True) -> str:
    """Return the last line: the findings, the objects that they are about, and everything that was left out.

    ``notes`` tells whether findings of the severity ``info`` were printed.
    """
    summary = report.summary
    shown = [finding for finding in report.findings if notes or finding.severity > Severity.INFO]
    counts = ", ".join(
        f"{number} {severity}{'s' if number != 1 and severity is not Severity.INFO else ''}"
        for severity in SEVEREST_FIRST
        if (number := summary.findings.of(severity)) and (notes or severity > Severity.INFO)
    )
    baseline = isinstance(summary.known, int)
    concerned = len({finding.ref for finding in shown})
    sentences = [
        f"{counts} in {concerned} of {_workloads(summary)}" if counts else _nothing(summary, baseline=baseline)
    ]
    if not notes and summary.findings.info:
        sentences.append(f"{plural(summary.findings.info, 'note')} hidden (--severity info)")
    if summary.silenced:
        sentences.append(f"{plural(summary.silenced, 'finding')} silenced")
    if baseline:
        sentences.append(f"{summary.known} known by the baseline")
    if report.cluster.nodes == "none":
        sentences.append("Placement was not evaluated: no nodes")
    if summary.skipped:
        sentences.append(figures.skipped(summary).capitalize())
    return "".join(f"{sentence}. " for sentence in sentences).rstrip()


def _nothing(summary: Summary, *, baseline: bool) -> str:
    return f"No {'new ' if baseline else ''}findings in {_workloads(summary)} ({_objects(summary)})"


def _workloads(summary: Summary) -> str:
    if isinstance(summary.templates, int) and summary.templates > summary.workloads:
        return plural(summary.templates, "workload")
    return plural(summary.workloads, "workload")


def _objects(summary: Summary) -> str:
    objects = [plural(summary.pods, "pod"), plural(summary.constraints, "constraint")]
    if isinstance(summary.templates, int):
        objects.append(plural(summary.templates, "pod template"))
    return ", ".join(objects)


def _beside_marks(layout: Layout, terminal: Terminal) -> Terminal:
    return terminal if layout.changes is None else terminal.narrower(_GUTTER)


def _marked(text: str, block: grouped.Block, layout: Layout) -> str:
    """Return the text with the mark of the first changed finding to its left."""
    if layout.changes is None:
        return text
    marks = [mark for finding in block.findings if (mark := layout.changes.mark(finding)).strip()]
    indented = textwrap.indent(text, " " * _GUTTER).removeprefix(" " * _GUTTER)
    return f"{next(iter(marks), ' ')} {indented}"


def _rows(rows: Sequence[Row], findings: Mapping[int, Sequence[Finding]], layout: Layout, terminal: Terminal) -> str:
    columns = [
        *([Column("NAMESPACE", fit="end", least=6)] if layout.namespaces else []),
        Column("WORKLOAD", fit="middle", least=10),
        Column("TOPOLOGY", fit="end", least=6),
        Column("POLICY", fit="end", least=6),
        Column("PODS", "right"),
        Column("DOMAINS"),
        Column("SKEW", "right"),
        Column("MAXSKEW", "right"),
        Column("STATUS", fit="middle", least=8),
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
    cells = [_cells(row, findings.get(id(row), ()), layout, terminal) for row in rows]
    if changes is None:
        return table(columns, cells, terminal, headers=layout.headers)
    text = table(columns, cells, terminal.narrower(_GUTTER), headers=layout.headers)
    marks = [*([" "] if layout.headers else []), *(changes.mark(row) for row in rows)]
    return "".join(f"{mark} {line}\n" for mark, line in zip(marks, text.splitlines(), strict=True))


def _cells(row: Row, findings: Sequence[Finding], layout: Layout, terminal: Terminal) -> list[Cell | str]:
    cells: list[Cell | str] = [
        words.workload(row.workload),
        Cell(words.topology(row.topology_key), shorter=(words.short_key(row.topology_key),)),
        Cell(words.policy(row), shorter=(words.policy(row, short=True),)),
        str(row.pod_count),
        _domains(row),
        _skew(row),
        _number(row.max_skew),
        _status(row, findings),
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


def _status(row: Row, findings: Sequence[Finding]) -> Cell:
    """Return the worst verdict of a row where it is doubtful, else what its findings are about, else ``ok``."""
    if figures.is_doubtful(row):
        worst, number = next(iter(row.verdicts.items()))
        text = worst if number == row.pod_count else f"{worst} {number}/{row.pod_count}"
        return Cell(text, "yellow")
    if row.exceeds_max_skew:
        return Cell("uneven", "yellow")
    worst_finding = max(findings, key=lambda finding: finding.severity, default=None)
    if worst_finding is not None and worst_finding.severity > Severity.INFO:
        return Cell(worst_finding.name, _STYLES[worst_finding.severity])
    return Cell("ok")


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
