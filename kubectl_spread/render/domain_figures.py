"""Figures and sentences that the table and the page of ``domains`` share."""

from __future__ import annotations

import shlex
from typing import Final

from msgspec import UnsetType

from kubectl_spread.kube.api.labels import DOMAIN_NOUNS
from kubectl_spread.phrases import capitalized, domains, plural, some
from kubectl_spread.render import about, words
from kubectl_spread.report.domains import Amount, DomainRequests, DomainRow, LostBudget, LostWorkload, SpreadDomains

_NONE: Final = "<none>"
"""The name of the nodes without the topology key."""
_BINARY: Final = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_STEP: Final = 1024
_THOUSAND: Final = 1000
_WHOLE: Final = 100
LEGEND: Final = (
    "Only here: workloads without a running pod anywhere else. Half here: workloads with at least half of their "
    "running pods here."
)
_UNLESS: Final = {"cordoned": "", "tainted": " without a toleration"}
_OPENED: Final = 3
"""The most domains for which the command that opens them is printed."""
_LEFT: Final = "Left: running pods elsewhere, ready or not."
_REQUESTS_UNKNOWN: Final = "Requests are not shown, because the pods of other namespaces were not read (-A reads them)."


def noun(key: str) -> str:
    """Return what a domain of a topology key is called: ``zone``; of other keys their last part."""
    return DOMAIN_NOUNS.get(key) or words.safe(key.rpartition("/")[2])


def name(domain: DomainRow) -> str:
    """Return the name of a domain."""
    return _NONE if domain.value is None else words.value(domain.value)


def share(part: int, whole: int) -> str:
    """Return a part of a whole in percent, rounded; 0% and 100% are exact."""
    if not whole:
        return "-"
    percent = (2 * _WHOLE * part + whole) // (2 * whole)
    if percent == 0 and part:
        return "<1%"
    if percent == _WHOLE and part != whole:
        return ">99%" if part < whole else ">100%"
    return f"{percent}%"


def cores(thousandths: int) -> str:
    """Return an amount of CPU as Kubernetes writes it: ``250m``, ``1.5``."""
    if abs(thousandths) < _THOUSAND and thousandths:
        return f"{thousandths}m"
    whole, rest = divmod(thousandths, _THOUSAND)
    return f"{whole}.{rest:03}".rstrip("0").rstrip(".")


def size(number: int) -> str:
    """Return an amount of memory in the largest unit of which it has one: ``512Mi``, ``1.5Gi``."""
    exponent = 0
    while abs(number) >= _STEP ** (exponent + 1) and exponent < len(_BINARY) - 1:
        exponent += 1
    rounded = f"{number / _STEP**exponent:.1f}"
    return f"{rounded.removesuffix('.0')}{_BINARY[exponent]}"


def use(requests: DomainRequests, resource: str) -> tuple[str, str]:
    """Return the requests for a resource, ``34.5/96 (36%)``, and a shorter form, ``36%``."""
    amount: Amount = getattr(requests, resource)
    written = cores if resource == "cpu" else size
    bound = ">=" if requests.unknown_pods else ""
    requested = f"{bound}{written(amount.requested)}"
    if isinstance(amount.allocatable, UnsetType):
        return f"{requested}/?", requested
    percent = f"{bound}{share(amount.requested, amount.allocatable)}"
    return f"{requested}/{written(amount.allocatable)} ({percent})", percent


def nodes(domain: DomainRow) -> str:
    """Return the number of a domain's nodes, and of those that take no pods: ``3 nodes (1 not ready)``."""
    parts = [
        f"{number} {state}"
        for number, state in ((domain.nodes - domain.ready, "not ready"), (domain.cordoned, "cordoned"))
        if number
    ]
    return plural(domain.nodes, "node") + (f" ({', '.join(parts)})" if parts else "")


def subject(report: SpreadDomains) -> str:
    """Return the only domain of a report: ``zone a``."""
    (domain,) = report.domains
    if domain.value is None:
        return f"nodes without {words.safe(report.topology_key)}"
    return f"{noun(report.topology_key)} {name(domain)}"


def summary(report: SpreadDomains) -> str:
    """Return the nodes, the pods and the requests of the only domain of a report, as one phrase."""
    (domain,) = report.domains
    parts = [
        nodes(domain),
        f"{domain.pods} of {plural(report.totals.pods, 'running pod')} ({share(domain.pods, report.totals.pods)})",
    ]
    if not isinstance(domain.requests, UnsetType):
        parts += [f"{label} {use(domain.requests, label)[0]}" for label in ("cpu", "memory")]
    return ", ".join(parts)


def left(report: SpreadDomains) -> str:
    """Return what the numbers of the only domain of a report leave open, and the command that answers it."""
    (domain,) = report.domains
    if domain.value is None:
        return _LEFT
    nodes_lost = f"{DOMAIN_NOUNS.get(report.topology_key, report.topology_key)}={domain.value}"
    return f"{_LEFT} Where the others would go: kubectl spread simulate --lose {words.safe(shlex.quote(nodes_lost))}"


def budgets(workload: LostWorkload) -> str:
    """Return the budgets whose minimum is not left or is unknown: ``web needs 3``; "-" for none."""
    if isinstance(workload.budgets, UnsetType):
        return "unknown"
    texts = [_budget(budget, workload) for budget in workload.budgets if budget.below is not False]
    return "; ".join(texts) or "-"


def _budget(budget: LostBudget, workload: LostWorkload) -> str:
    if isinstance(budget.minimum, UnsetType):
        return f"{words.safe(budget.name)}: minimum unknown"
    others = "" if budget.left == workload.left else f", {budget.left} left"
    return f"{words.safe(budget.name)} needs {budget.minimum}{others}"


def is_below(workload: LostWorkload) -> bool:
    """Tell whether the rest is too small for a budget."""
    return not isinstance(workload.budgets, UnsetType) and any(each.below is True for each in workload.budgets)


def closed(report: SpreadDomains) -> tuple[str, list[str]]:
    """Return a sentence about the domains that take no new pods, and commands that open the first of them."""
    of_state: dict[str, list[DomainRow]] = {}
    for domain in report.domains:
        if domain.value is not None and not isinstance(domain.closed, UnsetType):
            of_state.setdefault(domain.closed, []).append(domain)
    sentences = [
        f"{capitalized(domains(report.topology_key, [name(row) for row in rows]))} "
        f"{'is' if len(rows) == 1 else 'are'} {state}, so no pod{_UNLESS[state]} goes there."
        for state, rows in sorted(of_state.items())
    ]
    commands = [row.commands for rows in of_state.values() for row in rows if not isinstance(row.commands, UnsetType)]
    return " ".join(sentences), [words.safe(command) for each in commands[:_OPENED] for command in each]


def remarks(report: SpreadDomains) -> list[str]:
    """Return sentences about everything that the numbers of the domains leave out."""
    totals = report.totals
    unlisted, nodes_unlisted = sum(node.pods for node in totals.unlisted), len(totals.unlisted)
    nodes = f"{plural(nodes_unlisted, 'node')} that {'was' if nodes_unlisted == 1 else 'were'} not listed"
    names = some([words.safe(node.name) for node in totals.unlisted])
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


def header(report: SpreadDomains) -> list[str]:
    """Return the cluster, its version, what was counted, and when."""
    cluster = report.cluster
    namespace = "" if isinstance(cluster.namespace, UnsetType) else f"namespace {words.safe(cluster.namespace)}: "
    totals = report.totals
    version = (
        "" if isinstance(cluster.server_version, UnsetType) else f"Kubernetes {words.safe(cluster.server_version)}"
    )
    counted = f"{plural(totals.pods, 'running pod')} in {plural(totals.workloads, 'workload')}"
    read_at = "" if isinstance(cluster.read_at, UnsetType) else words.safe(cluster.read_at)
    return [part for part in (about.label(cluster), version, namespace + counted, read_at) if part]
