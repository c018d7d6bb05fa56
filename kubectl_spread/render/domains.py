"""The document of ``domains``: all domains of a topology key, or the workloads in one."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import UnsetType

from kubectl_spread.kube.api.labels import DOMAIN_NOUNS
from kubectl_spread.phrases import capitalized, domains, named, plural, some, value
from kubectl_spread.render import about
from kubectl_spread.render.document import Card, Document, Instruction, Table
from kubectl_spread.render.terminal import Cell, Column
from kubectl_spread.report.domains import Amount, DomainRequests, DomainRow, LostBudget, LostWorkload, SpreadDomains
from kubectl_spread.report.model import Severity

_NONE: Final = "<none>"
"""The name of the nodes without the topology key."""
_BINARY: Final = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_STEP: Final = 1024
_THOUSAND: Final = 1000
_WHOLE: Final = 100
_NUMBERS: Final = (
    Column("Nodes", "right"),
    Column("Ready", "right"),
    Column("Cordoned", "right", short="Cord"),
    Column("Pods", "right"),
    Column("Share", "right"),
    Column("Only here", "right", short="Only"),
    Column("Half here", "right", short="Half"),
)
_WIDE: Final = (Column("Workloads", "right"), Column("Terminating", "right"))
_REQUESTS: Final = (Column("CPU", "right"), Column("Memory", "right", short="Mem"))
_WORKLOADS: Final = (
    Column("Workload", fit="middle", least=16),
    Column("Here", "right"),
    Column("Left", "right"),
    Column("Budget", fit="wrap", least=16),
)
_LEGEND: Final = (
    "Only here: workloads without a running pod anywhere else. Half here: workloads with at least half of their "
    "running pods here."
)
_UNLESS: Final = {"cordoned": "", "tainted": " without a toleration"}
_OPENED: Final = 3
"""The most domains for which the command that opens them is printed."""
_LEFT: Final = "Left: running pods elsewhere, ready or not."
_REQUESTS_UNKNOWN: Final = "Requests are not shown, because the pods of other namespaces were not read (-A reads them)."


def document(report: SpreadDomains, inputs: Sequence[str] = (), *, wide: bool = True) -> Document:
    """Return a report as a document.

    Args:
        report: The report.
        inputs: The flags of commands that read the same cluster or files.
        wide: Whether the table has all columns.
    """
    if isinstance(report.workloads, UnsetType):
        headline = _fullest(report)
        table, legend = _domains(report, wide=wide), _LEGEND
    else:
        headline = capitalized(f"{_subject(report)}: {_summary(report)}.")
        table, legend = _workloads(report, report.workloads), _left(report, inputs)
    return Document(
        command="domains",
        title="Topology domains",
        cluster=about.label(report.cluster),
        header=_header(report),
        headline=headline,
        cards=[*_closed(report)],
        tables=[table],
        notes=[legend, *remarks(report)],
    )


def _fullest(report: SpreadDomains) -> str:
    """Return the number of the domains, and the one with the most running pods."""
    named = [domain for domain in report.domains if domain.value is not None]
    text = plural(len(named), _noun(report.topology_key))
    fullest = max(named, key=lambda domain: domain.pods, default=None)
    if fullest is None or not fullest.pods:
        return f"{text}."
    number = f"{fullest.pods} of {plural(report.totals.pods, 'running pod')}"
    return (
        f"{text}; {domains(report.topology_key, [_name(fullest)])} has {number} "
        f"({_share(fullest.pods, report.totals.pods)})."
    )


def _noun(key: str) -> str:
    """Return what a domain of a topology key is called: ``zone``; of other keys their last part."""
    return DOMAIN_NOUNS.get(key) or key.rpartition("/")[2]


def _name(domain: DomainRow) -> str:
    """Return the name of a domain."""
    return _NONE if domain.value is None else value(domain.value)


def _share(part: int, whole: int) -> str:
    """Return a part of a whole in percent, rounded; 0% and 100% are exact."""
    if not whole:
        return "-"
    percent = (2 * _WHOLE * part + whole) // (2 * whole)
    if percent == 0 and part:
        return "<1%"
    if percent == _WHOLE and part != whole:
        return ">99%" if part < whole else ">100%"
    return f"{percent}%"


def _cores(thousandths: int) -> str:
    """Return an amount of CPU as Kubernetes writes it: ``250m``, ``1.5``."""
    if abs(thousandths) < _THOUSAND and thousandths:
        return f"{thousandths}m"
    whole, rest = divmod(thousandths, _THOUSAND)
    return f"{whole}.{rest:03}".rstrip("0").rstrip(".")


def _size(number: int) -> str:
    """Return an amount of memory in the largest unit of which it has one: ``512Mi``, ``1.5Gi``."""
    exponent = 0
    while abs(number) >= _STEP ** (exponent + 1) and exponent < len(_BINARY) - 1:
        exponent += 1
    rounded = f"{number / _STEP**exponent:.1f}"
    return f"{rounded.removesuffix('.0')}{_BINARY[exponent]}"


def _use(requests: DomainRequests, resource: str) -> tuple[str, str]:
    """Return the requests for a resource, ``34.5/96 (36%)``, and a shorter form, ``36%``."""
    amount: Amount = getattr(requests, resource)
    written = _cores if resource == "cpu" else _size
    bound = ">=" if requests.unknown_pods else ""
    requested = f"{bound}{written(amount.requested)}"
    if isinstance(amount.allocatable, UnsetType):
        return f"{requested}/?", requested
    percent = f"{bound}{_share(amount.requested, amount.allocatable)}"
    return f"{requested}/{written(amount.allocatable)} ({percent})", percent


def _nodes(domain: DomainRow) -> str:
    """Return the number of a domain's nodes, and of those that take no pods: ``3 nodes (1 not ready)``."""
    parts = [
        f"{number} {state}"
        for number, state in ((domain.nodes - domain.ready, "not ready"), (domain.cordoned, "cordoned"))
        if number
    ]
    return plural(domain.nodes, "node") + (f" ({', '.join(parts)})" if parts else "")


def _subject(report: SpreadDomains) -> str:
    """Return the only domain of a report: ``zone a``."""
    (domain,) = report.domains
    if domain.value is None:
        return f"nodes without {report.topology_key}"
    return f"{_noun(report.topology_key)} {_name(domain)}"


def _summary(report: SpreadDomains) -> str:
    """Return the nodes, the pods and the requests of the only domain of a report, as one phrase."""
    (domain,) = report.domains
    parts = [
        _nodes(domain),
        f"{domain.pods} of {plural(report.totals.pods, 'running pod')} ({_share(domain.pods, report.totals.pods)})",
    ]
    if not isinstance(domain.requests, UnsetType):
        parts += [f"{label} {_use(domain.requests, label)[0]}" for label in ("cpu", "memory")]
    return ", ".join(parts)


def _left(report: SpreadDomains, inputs: Sequence[str]) -> str:
    """Return what the numbers of the only domain of a report leave open, and the command that answers it."""
    (domain,) = report.domains
    if domain.value is None:
        return _LEFT
    nodes_lost = f"{DOMAIN_NOUNS.get(report.topology_key, report.topology_key)}={domain.value}"
    command = shlex.join(["kubectl", "spread", "simulate", "--lose", nodes_lost, *inputs])
    return f"{_LEFT} Where the others would go: {command}"


def _budgets(workload: LostWorkload) -> str:
    """Return the budgets whose minimum is not left or is unknown: ``web needs 3``; "-" for none."""
    if isinstance(workload.budgets, UnsetType):
        return "unknown"
    texts = [_budget(budget, workload) for budget in workload.budgets if budget.below is not False]
    return "; ".join(texts) or "-"


def _budget(budget: LostBudget, workload: LostWorkload) -> str:
    if isinstance(budget.minimum, UnsetType):
        return f"{budget.name}: minimum unknown"
    others = "" if budget.left == workload.left else f", {budget.left} left"
    return f"{budget.name} needs {budget.minimum}{others}"


def _closed(report: SpreadDomains) -> Iterator[Card]:
    """Yield a card about the domains that take no new pods for each reason, with commands that open some of them."""
    of_state: dict[str, list[DomainRow]] = {}
    for domain in report.domains:
        if domain.value is not None and not isinstance(domain.closed, UnsetType):
            of_state.setdefault(domain.closed, []).append(domain)
    for state, rows in sorted(of_state.items()):
        names = capitalized(domains(report.topology_key, [_name(row) for row in rows]))
        verb = "is" if len(rows) == 1 else "are"
        commands = [row.commands for row in rows if not isinstance(row.commands, UnsetType)][:_OPENED]
        yield Card(
            f"{names} {verb} {state}, so no pod{_UNLESS[state]} goes there.",
            Severity.WARNING,
            instructions=[Instruction(commands=[command for each in commands for command in each])],
        )


def remarks(report: SpreadDomains) -> list[str]:
    """Return sentences about everything that the numbers of the domains leave out."""
    totals = report.totals
    unlisted, nodes_unlisted = sum(node.pods for node in totals.unlisted), len(totals.unlisted)
    nodes = f"{plural(nodes_unlisted, 'node')} that {'was' if nodes_unlisted == 1 else 'were'} not listed"
    names = some([node.name for node in totals.unlisted])
    unknown = sum(each.requests.unknown_pods for each in report.domains if not isinstance(each.requests, UnsetType))
    mirrors = totals.skipped.get("mirror", 0)
    sentences = (
        (unlisted, f"{plural(unlisted, 'running pod')} {_is(unlisted)} on {nodes} ({names})."),
        (totals.pending, f"{plural(totals.pending, 'pod')} {_is(totals.pending)} pending."),
        (
            totals.terminating,
            f"{plural(totals.terminating, 'pod')} {_is(totals.terminating)} terminating and not counted.",
        ),
        (mirrors, f"{plural(mirrors, 'mirror pod')} {_is(mirrors)} not counted."),
        (unknown, f"The requests of {plural(unknown, 'pod')} are unknown, so sums with >= are lower bounds."),
        (any(isinstance(domain.requests, UnsetType) for domain in report.domains), _REQUESTS_UNKNOWN),
    )
    return [sentence for applies, sentence in sentences if applies]


def _is(number: int) -> str:
    return "is" if number == 1 else "are"


def _domains(report: SpreadDomains, *, wide: bool) -> Table:
    with_requests = not any(isinstance(domain.requests, UnsetType) for domain in report.domains)
    name = capitalized(_noun(report.topology_key))
    columns = [
        Column(name, fit="middle"),
        *_NUMBERS,
        *(_WIDE if wide else ()),
        *(_REQUESTS if with_requests else ()),
    ]
    rows = [_domain(domain, report.totals.pods, wide=wide) for domain in report.domains]
    return Table(f"Nodes and pods by {_noun(report.topology_key)}", columns, rows)


def _domain(domain: DomainRow, total: int, *, wide: bool) -> list[Cell]:
    cells = [
        Cell(_name(domain)),
        Cell(str(domain.nodes)),
        Cell(str(domain.ready), "yellow" if domain.ready < domain.nodes else ""),
        Cell(str(domain.cordoned), "yellow" if domain.cordoned else ""),
        Cell(str(domain.pods)),
        Cell(_share(domain.pods, total)),
        Cell(str(domain.only_here), "yellow" if domain.only_here else ""),
        Cell(str(domain.half_here)),
    ]
    if wide:
        cells += [Cell(str(domain.workloads)), Cell(str(domain.terminating))]
    if not isinstance(domain.requests, UnsetType):
        for resource in ("cpu", "memory"):
            text, shorter = _use(domain.requests, resource)
            cells.append(Cell(text, shorter=(shorter,)))
    return cells


def _workloads(report: SpreadDomains, workloads: list[LostWorkload]) -> Table:
    with_namespaces = isinstance(report.cluster.namespace, UnsetType)
    columns = [*([Column("Namespace", fit="end")] if with_namespaces else []), *_WORKLOADS]
    rows = [_workload(workload, with_namespace=with_namespaces) for workload in workloads]
    return Table("Workloads with running pods here", columns, rows, empty="No pods run here.")


def _workload(lost: LostWorkload, *, with_namespace: bool) -> list[Cell]:
    return [
        *([Cell(lost.namespace)] if with_namespace else []),
        Cell(named(lost.workload.kind, lost.workload.name)),
        Cell(f"{lost.here} of {lost.running}"),
        Cell(str(lost.left), "" if lost.left else "red"),
        Cell(_budgets(lost), "yellow" if any(each.below is True for each in lost.budgets or ()) else ""),
    ]


def _header(report: SpreadDomains) -> list[str]:
    """Return the cluster, its version, what was counted, and when."""
    cluster, totals = report.cluster, report.totals
    namespace = f"namespace {cluster.namespace}: " if cluster.namespace else ""
    version = f"Kubernetes {cluster.server_version}" if cluster.server_version else ""
    counted = f"{namespace}{plural(totals.pods, 'running pod')} in {plural(totals.workloads, 'workload')}"
    return [*filter(None, (about.label(cluster), version, counted, cluster.read_at or ""))]
