"""Figures of rows, findings and totals that several formats print."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Final, NamedTuple, TypeVar

from msgspec import UnsetType

from kubectl_spread.audit.merge.verdicts import Verdict
from kubectl_spread.phrases import plural, sentence, value
from kubectl_spread.render.terminal import Cell
from kubectl_spread.report.model import (
    FAILED,
    SEVEREST_FIRST,
    Cluster,
    FieldRef,
    Finding,
    Report,
    Row,
    Severity,
    Summary,
    Unchecked,
)

_QUIET: Final = frozenset({Verdict.MERGED, Verdict.BIND_LABEL, Verdict.SCHEDULER_MERGED, Verdict.AUTHORED})
_Part = TypeVar("_Part", Row, Finding)
UNANSWERED: Final = ("conflicting", FAILED, "forbidden", "malformed", "unevaluated", "unreadable")
"""Reasons why objects in scope were not evaluated; other skipped objects are not in scope."""
_SKIPPED: Final = {
    "unknownKind": "of other kinds",
    "notKubernetes": "not Kubernetes objects",
    "kustomizePatch": "Kustomize patches",
}
UNCONSTRAINED: Final = "without spread constraints, and without affinity terms that have matchLabelKeys"
_MOST_UNCHECKED: Final = 20
"""The most objects that one text names: GitHub cuts a long one."""
_UNREAD: Final = {
    "conflicting": "conflicting object",
    "forbidden": "forbidden list",
    "malformed": "malformed object",
    "unreadable": "unreadable file",
}
"""Maps the reasons why objects were not read to what was not read."""


class DomainCounts(NamedTuple):
    """The number of eligible domains, and the smallest and the largest count of matching pods in one."""

    number: int
    least: int
    most: int


def domain_counts(row: Row) -> DomainCounts | None:
    """Return the figures of all domains of a row, even those that are not listed; None if pods are not counted."""
    if isinstance(row.domains, UnsetType):
        return None
    empty = row.empty_domains if isinstance(row.empty_domains, int) else 0
    counts = [domain.match_num for domain in row.domains] + ([0] if empty else [])
    return DomainCounts(len(row.domains) + empty, min(counts, default=0), max(counts, default=0))


def matches_nothing(row: Row) -> bool:
    """Tell whether a row's constraint selects no pod, not even its own, so that its counts of 0 say nothing."""
    counts = domain_counts(row)
    return counts is not None and row.self_match_num == 0 and not counts.most


def is_counted(row: Row) -> bool:
    """Tell whether the skew of a row says anything: there are domains, and the constraint selects pods."""
    counts = domain_counts(row)
    return counts is not None and counts.number > 0 and not matches_nothing(row)


def is_unevaluated(row: Row) -> bool:
    """Tell whether pods of a spread constraint could not all be counted; those of affinity terms are not."""
    has_counts = not row.verdicts or not isinstance(row.max_skew, UnsetType)
    return row.lower_bound is True or (has_counts and isinstance(row.domains, UnsetType))


def is_doubtful(row: Row) -> bool:
    """Tell whether the worst verdict of a row means that its selector may be wrong."""
    return bool(row.verdicts) and next(iter(row.verdicts)) not in _QUIET


def causes(findings: Iterable[Finding]) -> Counter[Severity]:
    """Return the number of causes by their severity: one for all findings that belong together, such as of one zone."""
    severities: dict[str, Severity] = {}
    for finding in findings:
        severities[finding.group] = max(finding.severity, severities.get(finding.group, Severity.INFO))
    return Counter(severities.values())


def noun(severity: Severity) -> str:
    """Return what a cause of a severity is called: ``error``, ``warning`` or ``note``."""
    return "note" if severity is Severity.INFO else str(severity)


def counted(severities: Iterable[Severity]) -> list[str]:
    """Return the number of each severity, the worst first: ``1 error``, ``2 notes``."""
    numbers = Counter(severities)
    return [plural(numbers[severity], noun(severity)) for severity in SEVEREST_FIRST if numbers[severity]]


def by_place(parts: Iterable[_Part]) -> dict[FieldRef, list[_Part]]:
    """Return the rows or findings of each workload and path."""
    places: dict[FieldRef, list[_Part]] = {}
    for part in parts:
        places.setdefault(part.place, []).append(part)
    return places


def workloads(summary: Summary) -> int:
    """Return the number of workloads that were checked, with and without pods."""
    return summary.workloads + (summary.without_pods or 0)


def constraints(summary: Summary) -> int:
    """Return the number of the constraints of pods, or of templates where pods have none."""
    return summary.constraints or summary.template_constraints or 0


def objects(summary: Summary) -> str:
    """Return the numbers of pods, pod templates and constraints; "" for none."""
    counts = ((summary.pods, "pod"), (summary.templates or 0, "pod template"), (constraints(summary), "constraint"))
    return ", ".join(plural(number, name) for number, name in counts if number)


def is_exposure_checked(report: Report) -> bool:
    """Tell whether the loss of a node or a zone was checked, which needs nodes and several pods of a workload."""
    return report.cluster.nodes == "listed" and report.summary.pods > report.summary.workloads


def withheld(cluster: Cluster, summary: Summary) -> Iterator[str]:
    """Yield sentences on what another Kubernetes changes, on findings that are left out, and on the rules that ran."""
    if change := _upgrade(cluster, summary):
        yield sentence(change)
    if summary.silenced:
        yield f"{plural(summary.silenced, 'finding')} silenced."
    if isinstance(summary.known, int):
        yield f"{plural(summary.known, 'finding')} in the baseline."
    if summary.gone:
        yield f"{plural(summary.gone, 'finding')} of the baseline gone."
    if summary.selected:
        yield f"Only these rules ran: {', '.join(summary.selected)}."


def _upgrade(cluster: Cluster, summary: Summary) -> str:
    """Return what the change to another Kubernetes changes, as a sentence without a full stop; "" without one."""
    change = summary.upgrade
    if isinstance(change, UnsetType):
        return ""
    now, then = cluster.evaluated_as, change.minors[-1]
    is_lower = _minor(then) < _minor(now)
    subject = f"the {'downgrade' if is_lower else 'upgrade'} from {now} to {then}"
    if change.codes:
        return f"{subject} changes {plural(change.workloads, 'workload')} ({', '.join(change.codes)})"
    silenced = f" but {plural(change.silenced, 'silenced finding')}" if change.silenced else ""
    unread = " in what was read and evaluated" if any(unanswered(summary.skipped)) else ""
    return f"{subject} changes nothing{unread}{silenced}"


def _minor(version: str) -> int:
    return int(version.rpartition(".")[2])


def pending(report: Report) -> str:
    """Return how many pods are pending, or ""; without nodes pods may be manifests, which are not created yet."""
    number = 0 if report.cluster.nodes == "none" else report.summary.pending or 0
    return f"{plural(number, 'pod')} {'is' if number == 1 else 'are'} pending" if number else ""


def unanswered(numbers: Mapping[str, int]) -> Iterator[str]:
    """Yield sentences about what was not read or evaluated, and about bugs; ``numbers`` are by reason."""
    if unread := [plural(numbers[reason], noun) for reason, noun in _UNREAD.items() if numbers.get(reason)]:
        yield f"Not read: {', '.join(unread)}."
    if number := numbers.get("unevaluated"):
        yield f"Not evaluated: {plural(number, 'pod template')}."
    if number := numbers.get(FAILED):
        yield f"Failed because of a bug: {plural(number, 'check')}."


def unchecked_lines(entries: Sequence[Unchecked]) -> list[str]:
    """Return a line about each of the first objects that could not be checked, and the number of the others."""
    lines = [each.message for each in entries[:_MOST_UNCHECKED]]
    return lines if len(entries) <= _MOST_UNCHECKED else [*lines, f"and {len(entries) - _MOST_UNCHECKED} more"]


def skipped(summary: Summary) -> Iterator[str]:
    """Yield a sentence on the numbers of objects that are not in scope, with the reasons, if there are any."""
    others = {reason: number for reason, number in summary.skipped.items() if reason not in UNANSWERED}
    numbers = ", ".join(f"{number} {_SKIPPED.get(reason, reason)}" for reason, number in others.items())
    if numbers:
        yield f"Skipped: {numbers}."


WIDTH: Final = 24
"""The most characters of a bar."""


class _Shades(NamedTuple):
    """Characters for pods up to the minimum, up to maxSkew above it, beyond that, and for further allowed pods."""

    common: str
    allowed: str
    excess: str
    free: str


_SHADES: Final = _Shades("▒", "▓", "█", "·")


def lengthwise(count: int, row: Row, most: int) -> str:
    """Return the bar of one domain: one character for each pod, or fewer if ``most``, the largest count, is wider."""
    shades, limit = _SHADES, _limit(row, most)
    scale = min(WIDTH / max(most, limit or 0, 1), 1)
    length = _length(count, scale)
    if limit is None or not isinstance(row.min_match_num, int):
        return shades.excess * length
    common = min(_length(row.min_match_num, scale), length)
    allowed = min(_length(limit, scale), length) - common
    free = max(_length(limit, scale) - length, 0)
    return (
        shades.common * common
        + shades.allowed * allowed
        + shades.excess * (length - common - allowed)
        + shades.free * free
    )


def legend(rows: Iterable[Row]) -> str:
    """Return the meaning of the characters in the ``lengthwise`` bars of rows; "" if all domains of each are alike."""
    meanings = _Shades("up to the global minimum", "up to maxSkew above it", "more", "free")
    drawn = ""
    for row in rows:
        counts = {domain.match_num for domain in row.domains} if isinstance(row.domains, list) else set()
        if isinstance(row.min_match_num, int) and max(counts, default=0) > row.min_match_num:
            drawn += "".join(lengthwise(count, row, max(counts)) for count in counts)
    texts = [f"{shade} {meaning}" for shade, meaning in zip(_SHADES, meanings, strict=True) if shade in drawn]
    return f"Bars: {', '.join(texts)}." if texts else ""


def _limit(row: Row, most: int) -> int | None:
    """Return how many pods a domain may have by maxSkew, at most twice ``most``; None where that is unknown."""
    if isinstance(row.min_match_num, int) and isinstance(row.max_skew, int):
        return min(row.min_match_num + row.max_skew, 2 * max(most, 1))
    return None


def _length(count: int, scale: float) -> int:
    """Return the length of a bar: at least 1 for a domain with pods."""
    return max(round(count * scale), 1) if count else 0


_LEAST: Final = 4
"""The least number of common characters to fold."""
_RESERVED: Final = frozenset('{}=\\" ')
_PART: Final = re.compile(r"[^\W\d_]+|\d+|.")


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
    parts = zip(*(_PART.findall(value)[:-1] for value in values), strict=False)
    prefix = "".join(equal[0] for equal in takewhile(lambda each: len(set(each)) == 1, parts))
    return prefix if len(prefix) >= _LEAST else ""


LISTED: Final = 5
"""The most domains whose counts are listed in a table, unless it is wide."""


def counts_cell(counts: Mapping[str, int], *, empty: int = 0, most: int = LISTED) -> Cell:
    """Return the count of each domain; on narrow terminals, their number and the range of counts.

    Args:
        counts: The counts.
        empty: The number of further domains without pods.
        most: The most domains whose counts are listed; of more, the cell has only the shorter form.
    """
    number = len(counts) + empty
    if not number:
        return Cell("<none>")
    numbers = [*counts.values(), *([0] if empty else [])]
    summary = f"{number} ({min(numbers)}..{max(numbers)})"
    if number > most:
        return Cell(summary)
    text = folded([*map(value, counts)], [*counts.values()])
    return Cell(text, shorter=(text, summary) if len(summary) < len(text) else ())
