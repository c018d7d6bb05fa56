"""The table that ``check`` prints: rows, findings, totals."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Final, Literal

import msgspec
from msgspec import UnsetType

from kubectl_spread.kube.api import labels
from kubectl_spread.phrases import capitalized, plural
from kubectl_spread.render import about, figures, words
from kubectl_spread.render import findings as grouped
from kubectl_spread.render.findings import Detail
from kubectl_spread.render.terminal import Cell, Column, Terminal, between_phrases, hanging, table
from kubectl_spread.report.model import SEVEREST_FIRST, Finding, Report, Row, Severity, Summary

_LEAST: Final = 4
"""The least number of common characters to fold."""
_RESERVED: Final = frozenset('{}=\\" ')


def folded(values: Sequence[str], counts: Sequence[int]) -> str:
    """Return values with their counts, on one line.

    The common prefix ends before the last part of each value, and the suffix begins after the first: a part is letters
    alone, or digits alone.
    """
    prefix = _common(values)
    remainders = [value.removeprefix(prefix) for value in values]
    suffix = _common([value[::-1] for value in remainders])[::-1]
    parts = [value.removesuffix(suffix) for value in remainders]
    text = " ".join(f"{part}={count}" for part, count in zip(parts, counts, strict=True))
    return f"{prefix}{{{text}}}{suffix}" if prefix or suffix else text


def _common(values: Sequence[str]) -> str:
    """Return the common prefix of values, if it is long enough; it is shorter than each value."""
    if len(values) < 2 or any(not _RESERVED.isdisjoint(value) for value in values):  # noqa: PLR2004 - several
        return ""
    length = sum(1 for _ in takewhile(lambda chars: len(set(chars)) == 1, zip(*values, strict=False)))
    while length and not all(_ends_part(value, length) for value in values):
        length -= 1
    return values[0][:length] if length >= _LEAST else ""


def _ends_part(value: str, length: int) -> bool:
    """Tell whether a part ends before ``length``, and another part follows."""
    if length >= len(value):
        return False
    before, after = value[length - 1], value[length]
    return not ((before.isalpha() and after.isalpha()) or (before.isdigit() and after.isdigit()))


_LISTED_DOMAINS: Final = 5
_ABOVE_FINDINGS: Final = 3
"""The most rows above findings where not all fit, so that the first command is on the first screen."""
_LEAST_ROWS: Final = 5
"""The least number of rows that a terminal shows without findings, however low it is."""
_LONG: Final = 24
"""With more lines of findings than this, the last lines repeat the commands that end most."""
_LONGEST: Final = 60
"""With more lines of findings than this, those without pending pods are printed in brief."""
_FIRST: Final = 3
_FURTHER: Final = "  "
_UNCONSTRAINED: Final = "without spread constraints, and without affinity terms that have matchLabelKeys"


class Layout(msgspec.Struct, frozen=True):
    """The form of the table. Without a value of ``show``, rows are hidden that would push findings off a terminal.

    ``notes`` tells whether findings of the severity ``info`` are printed.
    """

    wide: bool = False
    namespaces: bool = False
    headers: bool = True
    show: Literal["problems", "all"] | None = None
    notes: bool = False


def check(report: Report, layout: Layout, terminal: Terminal) -> str:
    """Return the whole text: the header, rows (those with the worst findings first), findings, totals."""
    findings = [finding for finding in report.findings if layout.notes or finding.severity > Severity.INFO]
    header = about.header(report.cluster, report.summary, findings)
    above = [between_phrases(header, _FURTHER, terminal)] if layout.headers else []
    blocks = grouped.blocks(findings)
    below = [_block(block, layout, terminal, Detail.EVERYTHING if layout.wide else Detail.USUAL) for block in blocks]
    if is_long := _lines(below) > _LONGEST and not layout.wide:
        below = [_block(block, layout, terminal, Detail.BRIEF) for block in blocks]
    first = _first_commands(blocks) if _lines(below) > _LONG else ""
    shortened = " Shortened (-o wide lists all)." if is_long else ""
    below.append(
        hanging(f"{totals(report, notes=layout.notes)}{shortened}", _FURTHER, terminal) + first + _plan(report)
    )
    return "\n".join([*above, *_table(report, findings, layout, terminal, _lines([*above, *below])), *below])


def _first_commands(blocks: Sequence[grouped.Block]) -> str:
    """Return the single commands that end most: pending pods of errors, or else several findings."""
    ended: dict[str, list[Finding]] = {}
    for finding in (finding for block in blocks for finding in block.findings):
        commands = finding.own_commands if isinstance(finding.closed, UnsetType) else finding.opening
        if len(commands) == 1:
            ended.setdefault(commands[0], []).append(finding)
    sizes = {command: (about.waiting(findings)[0], len(findings)) for command, findings in ended.items()}
    most = sorted((command for command in ended if sizes[command] > (0, 1)), key=lambda each: sizes[each], reverse=True)
    lines = [f"{_FURTHER * 2}$ {words.safe(command)}\n" for command in most[:_FIRST]]
    return "".join(["Do this first:\n", *lines]) if lines else ""


def _plan(report: Report) -> str:
    """Return the command that orders the evictions for skews."""
    command = report.summary.plan
    return "" if isinstance(command, UnsetType) else f"Several evictions:\n{_FURTHER * 2}$ {words.safe(command)}\n"


def _lines(parts: Sequence[str]) -> int:
    return sum(part.count("\n") + 1 for part in parts)


def _block(block: grouped.Block, layout: Layout, terminal: Terminal, detail: Detail) -> str:
    return grouped.text(block, terminal, namespaces=layout.namespaces, detail=detail)


def _table(
    report: Report, findings: Iterable[Finding], layout: Layout, terminal: Terminal, other_lines: int
) -> Iterator[str]:
    """Yield the table, and how many rows it hides; nothing for no rows."""
    of_rows, troubled = _by_row(report, report.findings), _by_row(report, findings)
    worst = {row: max(finding.severity for finding in row_findings) for row, row_findings in troubled.items()}
    rows = sorted(
        report.constraints, key=lambda row: (id(row) in worst, worst.get(id(row), Severity.INFO)), reverse=True
    )
    problems = sum(id(row) in worst for row in rows)
    visible = rows[: _visible(len(rows), problems, layout, terminal, other_lines)]
    if rows:
        hidden = _hidden(problems - len(visible), len(rows) - max(problems, len(visible)))
        text = _rows(visible, of_rows, layout, terminal) if visible else ""
        yield text + (hanging(hidden, _FURTHER, terminal) if hidden else "")


def _by_row(report: Report, findings: Iterable[Finding]) -> dict[int, list[Finding]]:
    """Return the findings that are about pods of each row, by the identity of the row."""
    of_rows: dict[int, list[Finding]] = {}
    for finding in findings:
        for index in () if isinstance(finding.rows, UnsetType) else finding.rows:
            of_rows.setdefault(id(report.constraints[index]), []).append(finding)
    return of_rows


def _visible(rows: int, problems: int, layout: Layout, terminal: Terminal, other_lines: int) -> int:
    """Return how many rows to list: all in a pipe and where the whole report fits, else first those with findings.

    Args:
        rows: The number of rows.
        problems: The number of rows with findings.
        layout: The form of the table.
        terminal: Where it is printed.
        other_lines: The number of lines that are not rows.
    """
    if layout.show == "problems":
        return problems
    if layout.show == "all" or layout.wide or terminal.height is None:
        return rows
    # The heading, the line about hidden rows and the prompt need a line each.
    fitting = terminal.height - other_lines - 3
    most = max(fitting, _ABOVE_FINDINGS if problems else _LEAST_ROWS)
    if rows <= fitting or not problems:
        return min(rows, most)
    return min(problems, most)


def _hidden(problems: int, others: int) -> str:
    """Return how many rows are hidden, or ""."""
    kinds = [f"{plural(problems, 'row')} with findings"] if problems > 0 else []
    if others > 0:
        kinds.append(f"{plural(others, 'row')} without findings")
    return f"Hidden: {', '.join(kinds)} (--show all)" if kinds else ""


def totals(report: Report, *, notes: bool = True) -> str:
    """Return the last line: what was not read, the causes, their objects, and everything that was left out.

    ``notes`` tells whether findings of the severity ``info`` were printed.
    """
    summary = report.summary
    printed = [finding for finding in report.findings if notes or finding.severity > Severity.INFO]
    causes = figures.causes(report.findings)
    counts = ", ".join(
        f"{number} {severity}{'s' if number != 1 and severity is not Severity.INFO else ''}"
        for severity in SEVEREST_FIRST
        if (number := causes[severity]) and (notes or severity > Severity.INFO)
    )
    in_baseline = summary.known if isinstance(summary.known, int) else None
    concerned = len({finding.ref for finding in printed})
    sentences = [
        f"{counts} in {concerned} of {plural(figures.workloads(summary), 'workload')}"
        if counts
        else _nothing(report, notes=notes, baseline=in_baseline is not None)
    ]
    if upgrade := figures.upgrade(report.cluster, summary):
        sentences.append(capitalized(upgrade))
    if not notes and causes[Severity.INFO]:
        sentences.append(f"{plural(causes[Severity.INFO], 'note')} hidden (--severity info)")
    if summary.silenced:
        sentences.append(f"{plural(summary.silenced, 'finding')} silenced")
    if in_baseline is not None:
        sentences.append(f"{plural(in_baseline, 'finding')} in the baseline")
    if selected := figures.selected(summary):
        sentences.append(capitalized(selected))
    if pending := figures.pending(report):
        sentences.append(pending)
    if report.cluster.nodes == "none" and _constraints(summary):
        sentences.append("Placement was not evaluated: no nodes")
    skipped = figures.skipped(summary)
    return " ".join(
        [*figures.unanswered(summary.skipped), *(f"{each}." for each in sentences), *([skipped] if skipped else [])]
    )


def _nothing(report: Report, *, notes: bool, baseline: bool) -> str:
    """Return that there are no findings, or that there was nothing to check; ``notes`` tells whether notes count."""
    summary = report.summary
    objects = _objects(summary)
    if not objects:
        return "Nothing was checked: no pods and no pod templates"
    workloads = f"{plural(figures.workloads(summary), 'workload')} ({objects})"
    if not (_has_constraints(summary) or summary.findings.info or figures.is_exposure_checked(report)):
        return f"Nothing to check: {workloads} {_UNCONSTRAINED}"
    what = "findings" if notes or not summary.findings.info else "errors or warnings"
    which = "" if _has_constraints(summary) or summary.findings.info else f" {_UNCONSTRAINED}"
    return f"No {'new ' if baseline else ''}{what} in {workloads}{which}"


def _constraints(summary: Summary) -> int:
    """Return the number of the constraints of pods, or of templates where pods have none."""
    of_templates = summary.template_constraints
    return summary.constraints or (of_templates if isinstance(of_templates, int) else 0)


def _has_constraints(summary: Summary) -> bool:
    """Tell whether there are constraints, even if they were not evaluated."""
    return bool(_constraints(summary)) or "unevaluated" in summary.skipped


def _objects(summary: Summary) -> str:
    objects = [plural(summary.pods, "pod")] if summary.pods else []
    if isinstance(summary.templates, int):
        objects.append(plural(summary.templates, "pod template"))
    if constraints := _constraints(summary):
        objects.append(plural(constraints, "constraint"))
    return ", ".join(objects)


def _rows(rows: Sequence[Row], findings: Mapping[int, Sequence[Finding]], layout: Layout, terminal: Terminal) -> str:
    columns = [
        *([Column("NAMESPACE", fit="end", least=6, short="NS")] if layout.namespaces else []),
        Column("WORKLOAD", fit="middle", least=10),
        Column("TOPOLOGY", fit="end", least=6, short="KEY"),
        Column("POLICY", fit="end", least=6),
        Column("PODS", "right"),
        Column("DOMAINS"),
        Column("SKEW", "right"),
        Column("MAXSKEW", "right", short="MAX"),
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
    cells = [_cells(row, findings.get(id(row), ()), layout, terminal) for row in rows]
    return table(columns, cells, terminal, headers=layout.headers)


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
            ("" if figures.matches_nothing(row) else figures.side_by_side(row, ascii_only=terminal.ascii)) or "-",
            words.short_path(row.path),
            words.safe(labels.describe(row.selector.effective)),
        ]
    return cells


def _status(row: Row, findings: Sequence[Finding]) -> Cell:
    """Return the name of the row's worst finding, or its worst verdict, or in words what was evaluated.

    Pods are pending only where nodes were read: the pods of a manifest are not created yet.
    """
    worst = max(findings, key=lambda finding: finding.severity, default=None)
    if worst is not None:
        return Cell(_of_pods(worst.name, row), grouped.STYLES[worst.severity])
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
    if isinstance(row.skew, UnsetType) or not figures.is_counted(row):
        return Cell("-")
    bound = ">=" if row.lower_bound is True else ""
    return Cell(f"{bound}{row.skew}", "yellow" if row.exceeds_max_skew else "")


def _number(value: int | UnsetType) -> str:
    return "-" if isinstance(value, UnsetType) else str(value)
