"""The sections about a skew: its causes, the pods to evict, the counts of other engines."""

from __future__ import annotations

from typing import Final

from msgspec import UnsetType

from kubectl_spread.diagnosis.evictions import Evictions
from kubectl_spread.explain.causes import SkewCause
from kubectl_spread.explain.engines import OtherCount
from kubectl_spread.explain.explanation import Explanation
from kubectl_spread.kube.api import labels
from kubectl_spread.phrases import plural
from kubectl_spread.render import words
from kubectl_spread.render.terminal import Terminal, heading, paragraph

_LISTED_DOMAINS: Final = 8


def causes(explanation: Explanation, terminal: Terminal) -> str:
    """Return the causes of each row, the strongest first."""
    by_row: dict[int, list[SkewCause]] = {}
    for cause in explanation.causes:
        by_row.setdefault(cause.row, []).append(cause)
    return "\n".join(_causes(row, row_causes, explanation, terminal) for row, row_causes in by_row.items())


def _causes(index: int, row_causes: list[SkewCause], explanation: Explanation, terminal: Terminal) -> str:
    row = explanation.constraints[index]
    title = f"why {words.short_path(row.path)}  {words.term(row)}"
    if sum(constraint.path == row.path for constraint in explanation.constraints) > 1:
        title += f", selecting {words.safe(labels.describe(row.selector.effective))}"
    text = heading(title, terminal)
    for cause in row_causes:
        text += f"  {cause.cause}\n"
        text += "".join(paragraph(words.safe(evidence), " " * 4, terminal) for evidence in cause.evidence)
    return text


def evictions(explanation: Explanation, terminal: Terminal) -> str:
    """Return a set of pods for each hard constraint above maxSkew, or the reason why there is none."""
    return "\n".join(_evictions(plan, terminal) for plan in explanation.evictions)


def _evictions(plan: Evictions, terminal: Terminal) -> str:
    title = heading(f"to bring {words.short_path(plan.path)} within maxSkew", terminal)
    if isinstance(plan.pods, UnsetType):
        return title + paragraph(words.safe(str(plan.reason)), "  ", terminal)
    text = f"evict {plural(len(plan.pods), 'pod')}: {' '.join(words.safe(name) for name in plan.pods)}"
    replacements = (
        "their replacements can only go where the skew ends within maxSkew"
        if plan.sure
        else "other constraints decide too where replacements go, so the skew may end differently"
    )
    return title + paragraph(text, "  ", terminal) + paragraph(replacements, "  ", terminal)


def engines(explanation: Explanation, terminal: Terminal) -> str:
    """Return a line for each engine and constraint, and the rules by which they differ from kube-scheduler."""
    if not explanation.other_engines:
        return ""
    counts = "".join(_count(count, terminal) for count in explanation.other_engines)
    return heading("other engines", terminal) + counts


def _count(count: OtherCount, terminal: Terminal) -> str:
    text = paragraph(f"{count.engine}, {words.short_path(count.path)}: {_figures(count)}", "  ", terminal)
    return text + "".join(paragraph(f"- {difference.clause}", "    ", terminal) for difference in count.differences)


def _figures(count: OtherCount) -> str:
    if isinstance(count.domains, UnsetType):
        return "no number from here"
    counts = [f"{words.value(domain)}={number}" for domain, number in list(count.domains.items())[:_LISTED_DOMAINS]]
    more = f" and {len(count.domains) - _LISTED_DOMAINS} more" if len(count.domains) > _LISTED_DOMAINS else ""
    same = "" if count.differences else ", the same count"
    eviction = "would evict" if count.violated else "leaves it"
    return f"{' '.join(counts) or 'no domain'}{more}: skew {count.skew}, {eviction}{same}"
