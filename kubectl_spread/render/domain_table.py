"""The tables that ``domains`` prints: all domains, or the workloads in one."""

from __future__ import annotations

from typing import Final

from msgspec import UnsetType

from kubectl_spread.render import domain_figures, words
from kubectl_spread.render.terminal import Cell, Column, Terminal, between_phrases, hanging, table
from kubectl_spread.report.domains import DomainRow, LostWorkload, SpreadDomains

_INDENT: Final = "  "
_NUMBERS: Final = (
    Column("NODES", "right"),
    Column("READY", "right"),
    Column("CORDONED", "right", short="CORD"),
    Column("PODS", "right"),
    Column("SHARE", "right"),
    Column("ONLY HERE", "right", short="ONLY"),
    Column("HALF HERE", "right", short="HALF"),
)
_WIDE: Final = (Column("WORKLOADS", "right"), Column("TERMINATING", "right"))
_REQUESTS: Final = (Column("CPU", "right"), Column("MEMORY", "right", short="MEM"))


def domains(report: SpreadDomains, terminal: Terminal, *, wide: bool, headers: bool) -> str:
    """Return the header, the table, and sentences about what it leaves out; without ``headers`` the lines alone."""
    header = between_phrases(_INDENT.join(domain_figures.header(report)), _INDENT, terminal)
    if isinstance(report.workloads, UnsetType):
        body, legend = _domains(report, terminal, wide=wide, headers=headers), domain_figures.LEGEND
    else:
        body, legend = _workloads(report, report.workloads, terminal, headers=headers), domain_figures.left(report)
        header += hanging(f"{domain_figures.subject(report)}: {domain_figures.summary(report)}", _INDENT, terminal)
    if not headers:
        return body
    closed, commands = domain_figures.closed(report)
    sentences = (*([closed] if closed else []), legend, *domain_figures.remarks(report))
    below = [hanging(sentence, _INDENT, terminal) for sentence in sentences]
    # A command is one line of any length, so that it can be copied.
    below[bool(closed) : bool(closed)] = [f"{_INDENT}$ {command}\n" for command in commands]
    return f"{header}\n{body}\n{''.join(below)}"


def _domains(report: SpreadDomains, terminal: Terminal, *, wide: bool, headers: bool) -> str:
    with_requests = not any(isinstance(domain.requests, UnsetType) for domain in report.domains)
    title = words.safe(domain_figures.noun(report.topology_key)).upper()
    columns = [
        Column(title, fit="middle"),
        *_NUMBERS,
        *(_WIDE if wide else ()),
        *(_REQUESTS if with_requests else ()),
    ]
    rows = [_domain(domain, report.totals.pods, wide=wide) for domain in report.domains]
    return table(columns, rows, terminal, headers=headers)


def _domain(domain: DomainRow, total: int, *, wide: bool) -> list[Cell]:
    cells = [
        Cell(domain_figures.name(domain)),
        Cell(str(domain.nodes)),
        Cell(str(domain.ready), "yellow" if domain.ready < domain.nodes else ""),
        Cell(str(domain.cordoned), "yellow" if domain.cordoned else ""),
        Cell(str(domain.pods)),
        Cell(domain_figures.share(domain.pods, total)),
        Cell(str(domain.only_here), "yellow" if domain.only_here else ""),
        Cell(str(domain.half_here)),
    ]
    if wide:
        cells += [Cell(str(domain.workloads)), Cell(str(domain.terminating))]
    if not isinstance(domain.requests, UnsetType):
        for resource in ("cpu", "memory"):
            text, shorter = domain_figures.use(domain.requests, resource)
            cells.append(Cell(text, shorter=(shorter,)))
    return cells


def _workloads(report: SpreadDomains, workloads: list[LostWorkload], terminal: Terminal, *, headers: bool) -> str:
    if not workloads:
        return "No pods run here.\n"
    with_namespaces = isinstance(report.cluster.namespace, UnsetType)
    columns = [
        *([Column("NAMESPACE", fit="end")] if with_namespaces else []),
        Column("WORKLOAD", fit="middle", least=16),
        Column("HERE", "right"),
        Column("LEFT", "right"),
        Column("BUDGET", fit="wrap", least=16),
    ]
    rows = [_workload(workload, with_namespace=with_namespaces) for workload in workloads]
    return table(columns, rows, terminal, headers=headers)


def _workload(lost: LostWorkload, *, with_namespace: bool) -> list[Cell]:
    below = domain_figures.is_below(lost)
    return [
        *([Cell(words.safe(lost.namespace))] if with_namespace else []),
        Cell(words.workload(lost.workload)),
        Cell(f"{lost.here} of {lost.running}"),
        Cell(str(lost.left), "" if lost.left else "red"),
        Cell(domain_figures.budgets(lost), "yellow" if below else ""),
    ]
