"""The table that ``check`` prints: rows, findings, totals."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Literal

import msgspec
from msgspec import UnsetType
from msgspec.structs import replace

from kubectl_spread.kube.api import labels
from kubectl_spread.phrases import named, plural
from kubectl_spread.render import about, figures, headline, screen, words
from kubectl_spread.render import findings as grouped
from kubectl_spread.render.document import Card, Document, Instruction, Table
from kubectl_spread.render.figures import counts_cell
from kubectl_spread.render.findings import Block, Detail
from kubectl_spread.render.screen import STYLES
from kubectl_spread.render.terminal import Cell, Column, Terminal
from kubectl_spread.report.model import Finding, Report, Row, Severity

_ABOVE_FINDINGS: Final = 3
"""The most rows above findings where not all fit, so that the first command is on the first screen."""
_LEAST_ROWS: Final = 5
"""The least number of rows that a terminal shows without findings, however low it is."""
_LONG: Final = 24
"""With as many lines of findings, the last lines repeat the commands that end most."""
_LONGEST: Final = 56
"""With more lines than this without rows, findings without pending pods are printed in brief."""
_FIRST: Final = 3


class Layout(msgspec.Struct, frozen=True):
    """The form of the table. Without a value of ``show``, rows are hidden that would push findings off a terminal.

    ``notes`` tells whether findings of the severity ``info`` are printed.
    """

    wide: bool = False
    namespaces: bool = False
    headers: bool = True
    show: Literal["problems", "all"] | None = None
    notes: bool = False


def page(report: Report, detail: Detail = Detail.CAUSES) -> Document:
    """Return a report as a document for Markdown and HTML: all causes, and the rows with findings."""
    spaces = {row.namespace for row in report.constraints} | {finding.namespace for finding in report.findings}
    layout = Layout(namespaces=len(spaces) > 1, show="problems", notes=True)
    facts, sentences = headline.facts(report), totals(report)
    if not facts and report.findings and not any(figures.unanswered(report.summary.skipped)):
        facts = [f"{_nothing(report, notes=False)}."]
    conclusion, *further = [*facts, " ".join(sentences)] if facts else sentences
    answer = replace(_document(report, layout, report.findings), headline=conclusion, picture=headline.picture(report))
    return replace(
        answer,
        facts=[("", text) for text in (*further, *_doubts(report))],
        cards=[*_cards(grouped.blocks(report.findings), layout, detail)],
        tables=[table for table in _tables(report, report.findings, layout, None, 0) if table.rows],
    )


def check(report: Report, layout: Layout, terminal: Terminal) -> str:
    """Return the text for a screen: the header, rows (those with the worst findings first), findings, totals.

    Where it is long, it is shortened from its end.
    """
    findings = [finding for finding in report.findings if layout.notes or finding.severity > Severity.INFO]
    blocks = grouped.blocks(findings)
    answer = _document(report, layout, findings)
    first = [Instruction("Do this first:", commands)] if (commands := _first_commands(blocks)) else []
    longest = replace(answer, next_steps=[*first, *answer.next_steps])
    cards, is_shortened = _shortened(blocks, layout, terminal, _LONGEST - _lines(longest, terminal))
    is_long = screen.cards(cards, terminal).count("\n") >= _LONG
    answer = replace(longest if is_long else answer, cards=cards, shortened=is_shortened)
    # The heading, the line about hidden rows and the prompt need a line each.
    fitting = None if terminal.height is None else terminal.height - _lines(answer, terminal) - 3
    above = 0 if is_shortened else _ABOVE_FINDINGS
    answer = replace(answer, tables=[*_tables(report, findings, layout, fitting, above)])
    return screen.text(answer, terminal, titles=layout.headers, everything=layout.wide)


def _document(report: Report, layout: Layout, findings: Iterable[Finding]) -> Document:
    """Return the header, the totals as the conclusion, and the command that orders several evictions."""
    plan = report.summary.plan
    return Document(
        command="check",
        title="Topology spread report",
        cluster=about.label(report.cluster),
        header=about.header(report.cluster, report.summary, findings) if layout.headers else [],
        headline=" ".join(totals(report, notes=layout.notes)),
        next_steps=[Instruction("Several evictions:", [plan])] if plan else [],
        conclusion_last=True,
    )


def _doubts(report: Report) -> Iterator[str]:
    """Yield what a screen has on stderr: why the report may not hold, and what could not be checked."""
    yield from (f"Warning: {text}" for text in report.cluster.warnings or ())
    yield from (f"Error: {text}" for text in figures.unchecked_lines(report.unchecked or []))


def _lines(answer: Document, terminal: Terminal) -> int:
    """Return the number of lines on a screen, with an empty one before more."""
    return screen.text(answer, terminal).count("\n") + 1


def _cards(blocks: Iterable[Block], layout: Layout, detail: Detail) -> Iterator[Card]:
    for block in blocks:
        yield from grouped.cards(block, namespaces=layout.namespaces, detail=detail)


def _shortened(blocks: Sequence[Block], layout: Layout, terminal: Terminal, room: int) -> tuple[list[Card], bool]:
    """Return the cards of blocks, and whether they are shortened because they have more lines than there is room."""

    def fits(cards: Sequence[Card]) -> bool:
        return screen.cards(cards, terminal).count("\n") <= room

    cards = [*_cards(blocks, layout, Detail.EVERYTHING if layout.wide else Detail.USUAL)]
    if layout.wide or fits(cards):
        return cards, False
    for number in reversed(range(len(blocks) + 1)):
        brief = _cards(blocks[:number], layout, Detail.BRIEF)
        cards = [*brief, *_cards(blocks[number:], layout, Detail.TITLE)]
        if fits(cards):
            break
    return cards, True


def _first_commands(blocks: Sequence[Block]) -> list[str]:
    """Return the single commands that end most: pending pods of errors, or else several findings."""
    ended: dict[str, list[Finding]] = {}
    for finding in (finding for block in blocks for finding in block.findings):
        commands = (finding.closed.commands or []) if finding.closed else finding.own_commands
        if len(commands) == 1:
            ended.setdefault(commands[0], []).append(finding)
    sizes = {command: (about.waiting(findings)[0], len(findings)) for command, findings in ended.items()}
    most = sorted((command for command in ended if sizes[command] > (0, 1)), key=lambda each: sizes[each], reverse=True)
    return most[:_FIRST]


def _tables(
    report: Report, findings: Iterable[Finding], layout: Layout, fitting: int | None, above: int
) -> Iterator[Table]:
    """Yield the table, and how many rows it hides; nothing for no rows."""
    of_rows, troubled = _by_row(report, report.findings), _by_row(report, findings)
    worst = {row: max(finding.severity for finding in row_findings) for row, row_findings in troubled.items()}
    rows = sorted(
        report.constraints, key=lambda row: (id(row) in worst, worst.get(id(row), Severity.INFO)), reverse=True
    )
    problems = sum(id(row) in worst for row in rows)
    visible = rows[: _visible(len(rows), problems, layout, fitting, above)]
    if rows:
        hidden = _hidden(problems - len(visible), len(rows) - max(problems, len(visible)))
        cells = [_cells(row, of_rows.get(id(row), ()), layout) for row in visible]
        yield Table("Constraints", _columns(layout), cells, empty=hidden, note=hidden)


def _by_row(report: Report, findings: Iterable[Finding]) -> dict[int, list[Finding]]:
    """Return the findings that are about pods of each row, by the identity of the row."""
    of_rows: dict[int, list[Finding]] = {}
    for finding in findings:
        for index in finding.rows or ():
            of_rows.setdefault(id(report.constraints[index]), []).append(finding)
    return of_rows


def _visible(rows: int, problems: int, layout: Layout, fitting: int | None, above: int) -> int:
    """Return how many rows to list: all in a pipe and where the whole report fits, else first those with findings.

    Args:
        rows: The number of rows.
        problems: The number of rows with findings.
        layout: The form of the table.
        fitting: The number of rows that fit; None for a pipe.
        above: The least number of rows above findings where not all fit.
    """
    if layout.show == "problems":
        return problems
    if layout.show == "all" or layout.wide or fitting is None:
        return rows
    if rows <= fitting or not problems:
        return min(rows, max(fitting, _LEAST_ROWS))
    return min(problems, max(fitting, above))


def _hidden(problems: int, others: int) -> str:
    """Return how many rows are hidden, or ""."""
    kinds = [f"{plural(problems, 'row')} with findings"] if problems > 0 else []
    if others > 0:
        kinds.append(f"{plural(others, 'row')} without findings")
    return f"Hidden: {', '.join(kinds)} (--show all)" if kinds else ""


def totals(report: Report, *, notes: bool = True) -> list[str]:
    """Return sentences on what was not read, the causes and their objects, and everything that was left out.

    ``notes`` tells whether findings of the severity ``info`` are printed.
    """
    summary = report.summary
    printed = [finding for finding in report.findings if notes or finding.severity > Severity.INFO]
    causes = figures.causes(report.findings)
    counts = ", ".join(figures.counted(each for each in causes.elements() if notes or each > Severity.INFO))
    concerned = f"{len({finding.ref for finding in printed})} of {plural(figures.workloads(summary), 'workload')}"
    hidden = "" if notes or not causes[Severity.INFO] else plural(causes[Severity.INFO], "note")
    placed = report.cluster.nodes != "none" or not figures.constraints(summary)
    pending = figures.pending(report)
    return [
        *figures.unanswered(summary.skipped),
        f"{counts} in {concerned}." if counts else f"{_nothing(report, notes=notes)}.",
        *([f"{hidden} hidden (--severity info)."] if hidden else []),
        *figures.withheld(report.cluster, summary),
        *([f"{pending}."] if pending else []),
        *([] if placed else ["Placement was not evaluated: no nodes."]),
        *figures.skipped(summary),
    ]


def _nothing(report: Report, *, notes: bool) -> str:
    """Return that there are no findings, or that there was nothing to check; ``notes`` tells whether notes count."""
    summary = report.summary
    objects = figures.objects(summary)
    if not objects:
        return "Nothing was checked: no pods and no pod templates"
    workloads = f"{plural(figures.workloads(summary), 'workload')} ({objects})"
    # Constraints that were not evaluated are constraints, too.
    has_answers = figures.constraints(summary) or "unevaluated" in summary.skipped or summary.findings.info
    if not (has_answers or figures.is_exposure_checked(report)):
        return f"Nothing to check: {workloads} {figures.UNCONSTRAINED}"
    what = "findings" if notes or not summary.findings.info else "errors or warnings"
    which = "" if has_answers else f" {figures.UNCONSTRAINED}"
    return f"No {'new ' if isinstance(summary.known, int) else ''}{what} in {workloads}{which}"


def _columns(layout: Layout) -> list[Column]:
    columns = [
        *([Column("Namespace", fit="end", least=6, short="Ns")] if layout.namespaces else []),
        Column("Workload", fit="middle", least=10),
        Column("Topology", fit="end", least=6, short="Key"),
        Column("Policy", fit="end", least=6),
        Column("Pods", "right"),
        Column("Domains"),
        Column("Skew", "right"),
        Column("maxSkew", "right", short="Max"),
        Column("Status", fit="middle", least=8),
    ]
    if layout.wide:
        columns += [
            Column("Min", "right"),
            Column("Self", "right"),
            Column("Path"),
            Column("Effective", fit="end", least=20),
        ]
    return columns


def _cells(row: Row, findings: Sequence[Finding], layout: Layout) -> list[Cell]:
    cells: list[Cell | str] = [
        named(row.workload.kind, row.workload.name),
        Cell(words.topology(row.topology_key), shorter=(words.short_key(row.topology_key),)),
        Cell(words.policy(row), shorter=(words.policy(row, short=True),)),
        str(row.pod_count),
        _domains(row, figures.WIDTH if layout.wide else figures.LISTED),
        _skew(row),
        _number(row.max_skew),
        _status(row, findings),
    ]
    if layout.namespaces:
        cells.insert(0, row.namespace)
    if layout.wide:
        cells += [
            _number(row.min_match_num),
            _number(row.self_match_num),
            words.short_path(row.path),
            labels.describe(row.selector.effective),
        ]
    return [cell if isinstance(cell, Cell) else Cell(cell) for cell in cells]


def _status(row: Row, findings: Sequence[Finding]) -> Cell:
    """Return the name of the row's worst finding, or its worst verdict, or in words what was evaluated.

    Pods are pending only where nodes were read: the pods of a manifest are not created yet.
    """
    worst = max(findings, key=lambda finding: finding.severity, default=None)
    if worst is not None:
        return Cell(_of_pods(worst.name, row), STYLES[worst.severity])
    if figures.is_doubtful(row):
        return Cell(_of_pods(next(iter(row.verdicts)), row), "yellow")
    if row.exceeds_max_skew:
        return Cell("uneven", "yellow")
    counts = figures.domain_counts(row)
    if row.pending and counts is not None:
        text = "pending" if row.pending == row.pod_count else f"pending {row.pending}/{row.pod_count}"
        return Cell(text, "yellow")
    if counts is not None and not counts.number:
        return Cell("no domains", "yellow")
    return Cell("unknown" if figures.is_unevaluated(row) else "ok")


def _of_pods(name: str, row: Row) -> str:
    """Return a verdict with the number of its pods, unless all pods of the row have it."""
    number = row.verdicts.get(name, row.pod_count)
    return name if number == row.pod_count else f"{name} {number}/{row.pod_count}"


def _domains(row: Row, most: int) -> Cell:
    """Return the counts of up to ``most`` domains, or of more the number of domains and the range of counts."""
    counts = figures.domain_counts(row)
    if counts is None or isinstance(row.domains, UnsetType) or figures.matches_nothing(row):
        return Cell("-")
    return counts_cell(
        {domain.value: domain.match_num for domain in row.domains}, empty=row.empty_domains or 0, most=most
    )


def _skew(row: Row) -> Cell:
    if isinstance(row.skew, UnsetType) or not figures.is_counted(row):
        return Cell("-")
    bound = ">=" if row.lower_bound is True else ""
    return Cell(f"{bound}{row.skew}", "yellow" if row.exceeds_max_skew else "")


def _number(value: int | UnsetType) -> str:
    return "-" if isinstance(value, UnsetType) else str(value)
